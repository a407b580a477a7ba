//! A tree of any size: like a project with its `node_modules`, the same on every run.
//!
//! Of a hundred files about ten are copies of others, five are incompressible, and the rest is
//! source. Sizes are log-normal with a median of 2 KB; a hundred thousand files are about 530 MB.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::random::Random;
use super::text::Writer;

const MEDIAN_SIZE: f64 = 2000.0;
/// Makes the mean 2.65 times the median.
const SPREAD: f64 = 1.396;
const LARGEST: f64 = 3e6;
/// Of the project's own files; the rest are in packages.
const OWN: f64 = 0.12;
const COPIES: f64 = 0.10;
const NOISE: f64 = 0.05;
/// Among how many recent files a copy finds its original.
const REMEMBERED: usize = 4096;
const FOLDERS: &[&str] = &[
    "",
    "lib",
    "dist",
    "dist/esm",
    "dist/cjs",
    "dist/types",
    "src",
    "src/internal",
    "src/core",
    "src/core/impl",
    "types",
    "test",
    "test/fixtures",
    "build",
    "esm",
    "locale",
    "helpers",
];
const OWN_FOLDERS: &[&str] = &["src", "src/pages", "src/api", "src/ui", "tests", "docs", "tools"];
const ENDINGS: &[&str] = &["js", "js", "js", "ts", "d.ts", "js.map", "json", "md", "mjs", "css"];

/// What one file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Holds {
    Source { package: u64, seed: u64, size: usize },
    Noise { seed: u64, size: usize },
    Licence { number: usize },
}

/// A tree that is on disk.
pub(super) struct Tree {
    pub(super) root: PathBuf,
    /// Relative to the root.
    pub(super) files: Vec<PathBuf>,
    pub(super) directories: usize,
    pub(super) bytes: u64,
}

/// Where the next files go: a folder of a package gets some, then the next folder does.
struct Shape {
    random: Random,
    package: String,
    left_in_package: usize,
    folder: String,
    left_in_folder: usize,
    packages: usize,
    folders: usize,
    originals: Vec<Holds>,
}

impl Shape {
    fn new() -> Self {
        Self {
            random: Random::new(20),
            package: String::new(),
            left_in_package: 0,
            folder: String::new(),
            left_in_folder: 0,
            packages: 0,
            folders: 0,
            originals: Vec::new(),
        }
    }

    /// Says whether the folder is a new one.
    fn next_folder(&mut self) -> bool {
        let package_begins = self.left_in_package == 0;
        if package_begins {
            self.begin_package();
        }
        self.left_in_package -= 1;
        if self.left_in_folder == 0 || package_begins {
            self.folders += 1;
            let below = if package_begins { "" } else { *self.random.pick(FOLDERS) };
            // Numbered: a folder that is picked twice is two folders.
            let number = self.folders;
            self.folder = match below {
                "" => self.package.clone(),
                below => format!("{}/{below}/m{number}", self.package),
            };
            self.left_in_folder = 3 + self.random.below(26);
            self.left_in_folder -= 1;
            return true;
        }
        self.left_in_folder -= 1;
        false
    }

    fn begin_package(&mut self) {
        self.packages += 1;
        let number = self.packages;
        self.package = if self.random.chance(OWN) {
            format!("{}/part{number}", self.random.pick(OWN_FOLDERS))
        } else if self.random.chance(0.3) {
            format!("node_modules/@scope{}/pkg{number}", number % 40)
        } else {
            format!("node_modules/pkg{number}")
        };
        self.left_in_package = ((40.0 * self.random.normal().exp()) as usize).clamp(4, 1500);
    }

    fn next_file(&mut self, number: usize) -> (PathBuf, Holds) {
        let begins = self.next_folder();
        let name = match (begins, self.folder == self.package) {
            (true, true) => format!("LICENSE{number}"),
            (_, false) | (false, true) => {
                format!("file{number}.{}", self.random.pick(ENDINGS))
            }
        };
        (Path::new(&self.folder).join(name.clone()), self.content(name.starts_with("LICENSE")))
    }

    fn content(&mut self, licence: bool) -> Holds {
        if licence {
            return Holds::Licence { number: self.random.below(5) };
        }
        if !self.originals.is_empty() && self.random.chance(COPIES) {
            return *self.random.pick(&self.originals);
        }
        let size = (MEDIAN_SIZE * (SPREAD * self.random.normal()).exp()).clamp(20.0, LARGEST);
        let (seed, size) = (self.random.next(), size as usize);
        let noise = self.random.chance(NOISE);
        let package = self.packages as u64;
        let holds =
            if noise { Holds::Noise { seed, size } } else { Holds::Source { package, seed, size } };
        if self.originals.len() < REMEMBERED {
            self.originals.push(holds);
        } else {
            let place = self.random.below(REMEMBERED);
            self.originals[place] = holds;
        }
        holds
    }
}

impl Tree {
    pub(super) fn plant(root: &Path, files: usize) -> Result<Self> {
        let writer = Writer::new();
        let mut shape = Shape::new();
        let mut tree = Self { root: root.to_owned(), files: vec![], directories: 0, bytes: 0 };
        fs::create_dir_all(root).with_context(|| format!("cannot make {}", root.display()))?;
        let mut bytes = Vec::new();
        let mut folder = PathBuf::new();
        for number in 0..files {
            let (path, holds) = shape.next_file(number);
            let above = path.parent().unwrap_or(Path::new(""));
            if above != folder {
                folder = above.to_owned();
                fs::create_dir_all(root.join(&folder))?;
            }
            bytes.clear();
            match holds {
                Holds::Source { package, seed, size } => {
                    writer.source(package, seed, size, &mut bytes);
                }
                Holds::Noise { seed, size } => Writer::noise(seed, size, &mut bytes),
                Holds::Licence { number } => {
                    bytes.extend_from_slice(writer.licence(number).as_bytes());
                }
            }
            fs::write(root.join(&path), &bytes)
                .with_context(|| format!("cannot write {}", path.display()))?;
            tree.bytes += bytes.len() as u64;
            tree.files.push(path);
        }
        tree.directories = directories(&tree.files);
        Ok(tree)
    }
}

pub(super) fn directories(files: &[PathBuf]) -> usize {
    let above = files.iter().flat_map(|file| file.ancestors().skip(1));
    let all: std::collections::HashSet<&Path> =
        above.filter(|folder| !folder.as_os_str().as_bytes().is_empty()).collect();
    all.len()
}

/// A change of some files, and what they were.
pub(super) struct Edit<'a> {
    tree: &'a Tree,
    before: Vec<(&'a Path, Vec<u8>)>,
}

impl<'a> Edit<'a> {
    /// Rewrites the files with one more line in them, as an editor does; which files, and what line,
    /// depends on `round` alone.
    pub(super) fn make(tree: &'a Tree, count: usize, round: usize) -> Result<Self> {
        let mut random = Random::new(1000 + round as u64);
        let mut before = Vec::new();
        for index in random.distinct(count, tree.files.len()) {
            let path = tree.files[index].as_path();
            let old = fs::read(tree.root.join(path))?;
            let at = old.len() / 3;
            let line = format!("// edit {round} of file {index}: {:x}\n", random.next());
            let new = [&old[..at], line.as_bytes(), &old[at..]].concat();
            fs::write(tree.root.join(path), new)?;
            before.push((path, old));
        }
        Ok(Self { tree, before })
    }

    pub(super) fn paths(&self) -> impl Iterator<Item = &'a Path> {
        self.before.iter().map(|(path, _)| *path)
    }

    /// Whether every file is again what it was.
    pub(super) fn is_undone(&self) -> Result<bool> {
        for (path, old) in &self.before {
            if fs::read(self.tree.root.join(path))? != *old {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_trees_of_one_size_are_the_same_and_shaped_as_promised() {
        let temp = tempfile::tempdir().unwrap();
        let [one, two] =
            ["one", "two"].map(|name| Tree::plant(&temp.path().join(name), 3000).unwrap());
        assert_eq!((one.files.len(), one.bytes), (3000, two.bytes));
        assert_eq!(one.files, two.files);
        let mean = one.bytes / 3000;
        assert!((3500..8000).contains(&mean), "{mean} bytes a file");
        assert!((150..450).contains(&one.directories), "{} directories", one.directories);
        for file in &one.files {
            let read = |tree: &Tree| fs::read(tree.root.join(file)).unwrap();
            assert_eq!(read(&one), read(&two), "{}", file.display());
        }
    }

    #[test]
    fn an_edit_changes_each_file_and_knows_when_it_is_undone() {
        let temp = tempfile::tempdir().unwrap();
        let tree = Tree::plant(temp.path(), 50).unwrap();
        let edit = Edit::make(&tree, 10, 0).unwrap();
        assert_eq!(edit.paths().count(), 10);
        assert!(!edit.is_undone().unwrap());
        for (path, old) in &edit.before {
            assert_ne!(&fs::read(tree.root.join(path)).unwrap(), old);
            fs::write(tree.root.join(path), old).unwrap();
        }
        assert!(edit.is_undone().unwrap());
    }
}
