//! The desktop in `shell/`: installed, built and packed for the programs that carry it.
//!
//! `target/desktop` gets what `shell/scripts/pack.mjs` makes: the built copy and the source, which the
//! guest carries, and the modules, which `nacre` does. Nothing is done when `shell/` is what it was.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::{cargo, npm, shell};

/// Tells every build and test where what was packed is.
pub(crate) const VARIABLE: &str = "NACRE_DESKTOP";

const SOURCE: &str = "shell";
/// What Vite needs.
const OLDEST_NODE: (u32, u32) = (20, 19);
const PACKED: [&str; 4] = ["built/index.html", "source.tar.gz", "modules.tar.gz", "modules.id"];
/// What is made there, and says nothing about the source.
const MADE: [&str; 2] = ["node_modules", "dist"];

/// Where what was packed is.
pub(crate) fn folder() -> PathBuf {
    cargo::target_dir().join("desktop")
}

pub(crate) fn build() -> Result<()> {
    build_at(&cargo::root().join(SOURCE), &folder())
}

/// What has to hold for its source: types, unit tests, and what is generated being current.
pub(crate) fn check() -> Result<()> {
    npm::install(SOURCE)?;
    shell::run(&mut npm::command(SOURCE, &["run", "--silent", "check"])?)
}

fn build_at(source: &Path, out: &Path) -> Result<()> {
    ensure!(
        source.join("package.json").is_file(),
        "{} is not there: it holds the desktop, which the programs carry",
        source.join("package.json").display()
    );
    let stamp = out.join("stamp");
    let wanted = format!("{:016x}", fingerprint(source)?);
    let whole = PACKED.iter().all(|name| out.join(name).is_file());
    if whole && fs::read_to_string(&stamp).is_ok_and(|done| done == wanted) {
        return Ok(());
    }
    check_node()?;
    npm::install(source)?;
    shell::run(&mut npm::command(source, &["run", "--silent", "build"])?)?;
    // Until it is whole again: who stops us in the middle does not leave something that looks done.
    match fs::remove_file(&stamp) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
        Ok(()) | Err(_) => {}
    }
    let mut pack = Command::new(shell::find("node").context("node is not there")?);
    shell::run(pack.arg("scripts/pack.mjs").arg(out).current_dir(source))?;
    for name in PACKED {
        ensure!(out.join(name).is_file(), "the desktop was packed without {name}");
    }
    Ok(fs::write(stamp, wanted)?)
}

fn check_node() -> Result<()> {
    let said = shell::output(Command::new("node").arg("--version"))?;
    let mut numbers = said.trim_start_matches('v').split('.').map(str::parse::<u32>);
    if let (Some(Ok(major)), Some(Ok(minor))) = (numbers.next(), numbers.next())
        && (major, minor) < OLDEST_NODE
    {
        let (major, minor) = OLDEST_NODE;
        bail!(
            "node {said} is too old for the desktop, which needs {major}.{minor}: https://nodejs.org"
        );
    }
    Ok(())
}

/// Of every file's path and content. Times would differ with every checkout.
fn fingerprint(source: &Path) -> Result<u64> {
    let mut hasher = DefaultHasher::new();
    let mut folders = vec![source.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder).with_context(|| format!("{}", folder.display()))?;
        let mut entries = entries.collect::<io::Result<Vec<_>>>()?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let (path, kind) = (entry.path(), entry.file_type()?);
            let relative = path.strip_prefix(source).unwrap_or(&path);
            if MADE.iter().any(|made| relative == Path::new(made)) {
                continue;
            }
            if kind.is_dir() {
                folders.push(path);
            } else if kind.is_file() {
                relative.hash(&mut hasher);
                fs::read(&path).with_context(|| format!("{}", path.display()))?.hash(&mut hasher);
            }
        }
    }
    Ok(hasher.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Notes in `log` what was run, and packs what it must.
    const PACK: &str = r#"
        import { appendFileSync, mkdirSync, writeFileSync } from "node:fs";
        const out = process.argv[2];
        mkdirSync(`${out}/built`, { recursive: true });
        for (const name of ["built/index.html", "source.tar.gz", "modules.tar.gz", "modules.id"])
          writeFileSync(`${out}/${name}`, name);
        appendFileSync("../log", "pack\n");
    "#;

    struct Stand {
        dir: tempfile::TempDir,
    }

    impl Stand {
        fn new() -> Self {
            let stand = Self { dir: tempfile::tempdir().unwrap() };
            fs::create_dir_all(stand.source().join("scripts")).unwrap();
            stand.write(
                "package.json",
                r#"{"name":"stand","version":"1.0.0","scripts":{"build":"echo build >> ../log"}}"#,
            );
            stand.write(
                "package-lock.json",
                r#"{"name":"stand","version":"1.0.0","lockfileVersion":3,"packages":{"":{"name":"stand","version":"1.0.0"}}}"#,
            );
            stand.write("scripts/pack.mjs", PACK);
            stand
        }

        fn source(&self) -> PathBuf {
            self.dir.path().join("shell")
        }

        fn out(&self) -> PathBuf {
            self.dir.path().join("out")
        }

        fn write(&self, name: &str, content: &str) {
            fs::write(self.source().join(name), content).unwrap();
        }

        fn build(&self) -> Result<()> {
            build_at(&self.source(), &self.out())
        }

        fn log(&self) -> String {
            fs::read_to_string(self.dir.path().join("log")).unwrap_or_default()
        }
    }

    #[test]
    fn it_is_built_when_the_source_changed_and_not_otherwise() {
        let stand = Stand::new();
        stand.build().unwrap();
        assert_eq!(stand.log(), "build\npack\n");
        fs::create_dir_all(stand.source().join("dist/assets")).unwrap();
        stand.write("dist/assets/a.js", "made");
        stand.build().unwrap();
        assert_eq!(stand.log(), "build\npack\n", "what is made there changes nothing");
        stand.write("index.html", "<!doctype html>");
        stand.build().unwrap();
        assert_eq!(stand.log(), "build\npack\n".repeat(2));
        fs::remove_file(stand.out().join("modules.id")).unwrap();
        stand.build().unwrap();
        assert_eq!(stand.log(), "build\npack\n".repeat(3), "what is missing is packed again");
    }

    #[test]
    fn what_fails_is_not_taken_for_done() {
        let stand = Stand::new();
        stand.write("scripts/pack.mjs", "process.exit(3)");
        stand.build().unwrap_err();
        stand.write("scripts/pack.mjs", "");
        let lacking = stand.build().unwrap_err().to_string();
        assert!(lacking.contains("packed without built/index.html"), "{lacking}");
        stand.write("scripts/pack.mjs", PACK);
        stand.build().unwrap();
    }

    #[test]
    fn a_source_that_is_not_there_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let missing = build_at(&dir.path().join("shell"), dir.path()).unwrap_err().to_string();
        assert!(missing.contains("shell/package.json is not there"), "{missing}");
    }
}
