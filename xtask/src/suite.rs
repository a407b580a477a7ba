//! The suites that Node runs: each file of tests in a process of its own, and once more when it failed.
//!
//! A whole computer, a browser and a model server have many ways to be late. What fails twice fails; what needed
//! its second try is named beside the verdict, to be looked into.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::{cargo, shell};

/// For a file, and for a test in it. The longest file takes a quarter of it on two quiet cores.
const PATIENCE_MS: u32 = 360_000;

/// Every `*.test.js` in a folder of the repository. Returns what is to be remarked.
pub(crate) fn run(folder: &str, set: impl Fn(&mut Command)) -> Result<Option<String>> {
    let folder = cargo::root().join(folder);
    let files = files(&folder)?;
    ensure!(!files.is_empty(), "{} has no tests", folder.display());
    let fails = |file: &&String| {
        let mut node = Command::new(shell::find("node").unwrap_or_else(|| PathBuf::from("node")));
        node.args(["--test", "--test-concurrency=1", "--test-reporter=spec"]);
        node.arg(format!("--test-timeout={PATIENCE_MS}")).arg(file).current_dir(&folder);
        set(&mut node);
        shell::run(&mut node).inspect_err(|error| eprintln!("error: {error:#}")).is_err()
    };
    let once: Vec<_> = files.iter().filter(fails).collect();
    let twice: Vec<_> = once.iter().copied().filter(fails).map(String::as_str).collect();
    if !twice.is_empty() {
        bail!("{} failed twice: {}", twice.len(), twice.join(", "));
    }
    let once: Vec<_> = once.into_iter().map(String::as_str).collect();
    Ok((!once.is_empty()).then(|| format!("passed at the second try only: {}", once.join(", "))))
}

fn files(folder: &Path) -> Result<Vec<String>> {
    let entries = fs::read_dir(folder).with_context(|| format!("{}", folder.display()))?;
    let mut files = Vec::new();
    for entry in entries {
        files.extend(
            entry?.file_name().into_string().ok().filter(|name| name.ends_with(".test.js")),
        );
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fails_once_is_remarked_and_what_fails_twice_fails() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().to_str().unwrap();
        let write = |name: &str, text: &str| fs::write(dir.path().join(name), text).unwrap();
        assert!(run(folder, |_| ()).is_err(), "no tests are no success");
        write("good.test.js", "");
        write("other.js", "throw new Error('no test')");
        assert_eq!(run(folder, |_| ()).unwrap(), None);
        write(
            "late.test.js",
            "import fs from 'node:fs'; if (!fs.existsSync('came')) { fs.writeFileSync('came', ''); throw 1 }",
        );
        write("package.json", r#"{"type":"module"}"#);
        let remark = run(folder, |_| ()).unwrap().unwrap();
        assert_eq!(remark, "passed at the second try only: late.test.js");
        write("bad.test.js", "throw 1");
        let failed = run(folder, |_| ()).unwrap_err().to_string();
        assert_eq!(failed, "1 failed twice: bad.test.js");
    }
}
