//! The suites that Node runs: each file of tests in a process of its own, some at once, and alone once more
//! when it failed.
//!
//! A whole computer, a browser and a model server have many ways to be late. What fails twice fails; what needed
//! its second try is named beside the verdict, to be looked into.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};

use crate::{cargo, shell};

/// For a file, and for a test in it. The longest file takes a quarter of it on two quiet cores.
const PATIENCE_MS: u32 = 360_000;
/// They wait more than they work: for pages, for dev servers, for what should not happen.
const AT_ONCE: usize = 2;

/// Every `*.test.js` in a folder of the repository. Returns what is to be remarked.
pub(crate) fn run(folder: &str, set: impl Fn(&mut Command) + Sync) -> Result<Option<String>> {
    let folder = cargo::root().join(folder);
    let files = files(&folder)?;
    ensure!(!files.is_empty(), "{} has no tests", folder.display());
    let fails = |file: &str| {
        let mut node = Command::new(shell::find("node").unwrap_or_else(|| PathBuf::from("node")));
        node.args(["--test", "--test-concurrency=1", "--test-reporter=spec"]);
        node.arg(format!("--test-timeout={PATIENCE_MS}")).arg(file).current_dir(&folder);
        set(&mut node);
        !passes(file, &mut node)
    };
    let once = failing(&files, fails);
    let twice: Vec<_> = once.iter().copied().filter(|file| fails(file)).collect();
    if !twice.is_empty() {
        bail!("{} failed twice: {}", twice.len(), twice.join(", "));
    }
    Ok((!once.is_empty()).then(|| format!("passed at the second try only: {}", once.join(", "))))
}

/// Those that fail, in the order of their names.
fn failing(files: &[String], fails: impl Fn(&str) -> bool + Sync) -> Vec<&str> {
    let (next, failed) = (Mutex::new(files.iter()), Mutex::new(Vec::new()));
    // Taken out of the lock before the work begins.
    let take = || next.lock().unwrap_or_else(PoisonError::into_inner).next();
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(file) = take() {
                    if fails(file) {
                        failed.lock().unwrap_or_else(PoisonError::into_inner).push(file.as_str());
                    }
                }
            });
        }
    });
    let mut failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
    failed.sort_unstable();
    failed
}

/// Shows what it said when it ends, in one piece.
fn passes(file: &str, node: &mut Command) -> bool {
    let began = Instant::now();
    let ran = match node.output() {
        Ok(ran) => ran,
        Err(error) => {
            eprintln!("error: cannot run {}: {error}", shell::display(node));
            return false;
        }
    };
    let mut out = io::stdout().lock();
    let took = began.elapsed().as_secs_f64();
    // A terminal that went away is no reason to stop.
    _ = writeln!(out, "{file}: {}, {took:.0} s", ran.status);
    _ = out.write_all(&ran.stdout).and_then(|()| out.write_all(&ran.stderr));
    ran.status.success()
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
