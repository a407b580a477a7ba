//! Random changes to a tree, as programs make them, and what a tree holds, for comparison.

use std::collections::BTreeMap;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use nacre_history::TreePath;

use super::random::Random;
use super::text::Writer;

/// What a name is, the bytes as a hash. Without times: a file whose bytes a restore changes is as
/// new as the restore, so that build tools notice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Node {
    File { mode: u32, bytes: u64 },
    Directory { mode: u32 },
    Symlink(PathBuf),
}

pub(super) type State = BTreeMap<PathBuf, Node>;

pub(super) fn state(root: &Path) -> Result<State> {
    let mut state = State::new();
    for path in names(root)? {
        let full = root.join(&path);
        let metadata = fs::symlink_metadata(&full)?;
        let node = if metadata.is_dir() {
            Node::Directory { mode: metadata.mode() }
        } else if metadata.is_symlink() {
            Node::Symlink(fs::read_link(&full)?)
        } else {
            let mut hasher = DefaultHasher::new();
            fs::read(&full)?.hash(&mut hasher);
            Node::File { mode: metadata.mode(), bytes: hasher.finish() }
        };
        state.insert(path, node);
    }
    Ok(state)
}

/// In words.
pub(super) fn differences<'a>(
    wanted: &'a State,
    found: &'a State,
) -> impl Iterator<Item = String> + 'a {
    let here = wanted.iter().filter_map(|(path, node)| {
        let other = found.get(path);
        (other != Some(node)).then(|| format!("{}: {other:?}, not {node:?}", path.display()))
    });
    let more = found.keys().filter(|path| !wanted.contains_key(*path));
    here.chain(more.map(|path| format!("{} is too much", path.display())))
}

/// Relative to the root, a directory before what is in it.
fn names(root: &Path) -> Result<Vec<PathBuf>> {
    let mut names = Vec::new();
    let mut waiting = vec![PathBuf::new()];
    while let Some(folder) = waiting.pop() {
        for entry in fs::read_dir(root.join(&folder))? {
            let entry = entry?;
            let path = folder.join(entry.file_name());
            if entry.file_type()?.is_dir() {
                waiting.push(path.clone());
            }
            names.push(path);
        }
    }
    Ok(names)
}

/// A name found by going down at random, without listing the whole tree. `None` in an empty one.
fn somewhere(root: &Path, random: &mut Random) -> Result<Option<PathBuf>> {
    let mut path = PathBuf::new();
    loop {
        let mut entries: Vec<PathBuf> = fs::read_dir(root.join(&path))?
            .map(|entry| Ok(path.join(entry?.file_name())))
            .collect::<Result<_>>()?;
        if entries.is_empty() {
            return Ok(Some(path).filter(|path| !path.as_os_str().is_empty()));
        }
        // Directories list in no order that a seed could repeat.
        entries.sort();
        path = random.pick(&entries).clone();
        let is_dir = fs::symlink_metadata(root.join(&path))?.is_dir();
        if !is_dir || random.chance(0.15) {
            return Ok(Some(path));
        }
    }
}

/// Does one thing, and says which names it touched.
pub(super) fn change(root: &Path, random: &mut Random) -> Result<Vec<TreePath>> {
    let Some(path) = somewhere(root, random)? else {
        return create(root, Path::new(""), random);
    };
    let full = root.join(&path);
    let metadata = fs::symlink_metadata(&full)?;
    match random.below(10) {
        0..=2 if metadata.is_file() => {
            fs::write(&full, bytes(random))?;
            Ok(vec![named(&path)?])
        }
        3 if metadata.is_file() => {
            fs::OpenOptions::new().append(true).open(&full)?.write_all(&bytes(random))?;
            Ok(vec![named(&path)?])
        }
        4 if !metadata.is_symlink() => {
            let mode = *random.pick(if metadata.is_dir() {
                &[0o755, 0o700, 0o2775]
            } else {
                &[0o644, 0o600, 0o755]
            });
            fs::set_permissions(&full, fs::Permissions::from_mode(mode))?;
            Ok(vec![named(&path)?])
        }
        5 => {
            if metadata.is_dir() { fs::remove_dir_all(&full) } else { fs::remove_file(&full) }?;
            Ok(vec![named(&path)?])
        }
        6 => rename(root, &path, random),
        7 => {
            let link = path.with_file_name(format!("link{:x}", random.next() & 0xffff_ffff));
            symlink(path.file_name().unwrap_or_default(), root.join(&link))?;
            Ok(vec![named(&link)?])
        }
        _ => {
            let folder = if metadata.is_dir() { Some(path.as_path()) } else { path.parent() };
            create(root, folder.unwrap_or(Path::new("")), random)
        }
    }
}

/// To a fresh name beside it or at the top.
fn rename(root: &Path, path: &Path, random: &mut Random) -> Result<Vec<TreePath>> {
    let name = format!("moved{:x}", random.next() & 0xffff_ffff);
    let to = if random.chance(0.5) { path.with_file_name(name) } else { PathBuf::from(name) };
    fs::rename(root.join(path), root.join(&to))?;
    Ok(vec![named(path)?, named(&to)?])
}

/// A few files in a new folder, so that the tree does not wither.
fn create(root: &Path, below: &Path, random: &mut Random) -> Result<Vec<TreePath>> {
    let folder = below.join(format!("new{:x}", random.next() & 0xffff_ffff));
    fs::create_dir(root.join(&folder))?;
    for number in 0..random.below(8) {
        fs::write(root.join(&folder).join(format!("file{number}.js")), bytes(random))?;
    }
    Ok(vec![named(&folder)?])
}

fn bytes(random: &mut Random) -> Vec<u8> {
    let mut bytes = Vec::new();
    let size = random.below(12_000);
    Writer::noise(random.next(), size, &mut bytes);
    // Half of it compresses.
    bytes.iter_mut().skip(size / 2).for_each(|byte| *byte &= 0x0f);
    bytes
}

fn named(path: &Path) -> Result<TreePath> {
    TreePath::parse(path).with_context(|| format!("{} is no path of the tree", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_touches_only_what_it_says() {
        let temp = tempfile::tempdir().unwrap();
        let mut random = Random::new(3);
        for _ in 0..300 {
            let before = state(temp.path()).unwrap();
            let touched = change(temp.path(), &mut random).unwrap();
            let after = state(temp.path()).unwrap();
            let all = before.keys().chain(after.keys());
            for path in all.filter(|path| before.get(*path) != after.get(*path)) {
                let named = TreePath::parse(path).unwrap();
                assert!(touched.iter().any(|top| named.is_within(top)), "{named}: {touched:?}");
            }
        }
    }

    #[test]
    fn a_difference_is_named() {
        let one = State::from([(PathBuf::from("a"), Node::Directory { mode: 0o755 })]);
        let two = State::from([(PathBuf::from("b"), Node::Directory { mode: 0o755 })]);
        assert_eq!(differences(&one, &one).count(), 0);
        assert_eq!(differences(&one, &two).count(), 2);
    }
}
