//! Runs the day under strace, which ends it or lets a call fail where it is told to.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::check::{Acknowledged, Still, still};

/// Calls that change something, those that are alike together.
pub(crate) const CALLS: &[&str] = &[
    "openat",
    "write",
    "pwrite64",
    "fdatasync",
    "fsync",
    "syncfs",
    "rename,renameat,renameat2",
    "unlink,unlinkat,rmdir",
    "mkdir,mkdirat",
    "link,linkat",
    "symlink,symlinkat",
    "ftruncate",
    "fallocate",
    "chmod,fchmod,fchmodat",
    "chown,fchown,fchownat,lchown",
    "setxattr,lsetxattr,fsetxattr,removexattr,lremovexattr",
    "utimensat",
];

pub(crate) fn program() -> PathBuf {
    // tests live in target/PROFILE/deps, examples in target/PROFILE/examples.
    let own = std::env::current_exe().unwrap();
    let path = own.parent().unwrap().parent().unwrap().join("examples/day");
    assert!(path.exists(), "{} is built together with the tests", path.display());
    path
}

/// Somewhere to live the day.
pub(crate) struct Place {
    pub(crate) home: tempfile::TempDir,
    pub(crate) still: Still,
}

impl Place {
    pub(crate) fn new() -> Self {
        let home = tempfile::tempdir_in("/dev/shm").unwrap();
        super::begin(&home.path().join("work"));
        let still = still(home.path());
        Self { home, still }
    }

    pub(crate) fn path(&self) -> &Path {
        self.home.path()
    }

    /// Beside the home, for that may be on a disk which is pulled.
    pub(crate) fn acknowledgements(home: &Path) -> PathBuf {
        home.join("said")
    }

    pub(crate) fn said(&self) -> Acknowledged {
        let text = fs::read_to_string(Self::acknowledgements(self.path())).unwrap_or_default();
        Acknowledged::parse(&text)
    }
}

/// Lives the day, or `what` else the program can do, with these words for strace.
pub(crate) fn live(home: &Path, said: &Path, what: &[&str], strace: &[String]) {
    let output = Command::new("strace")
        .args(["-f", "-qq", "-o", "/dev/null"])
        .args(strace)
        .arg(program())
        .arg(home)
        .arg(said)
        .args(what)
        .stdin(Stdio::null())
        .output()
        .expect("strace is installed by `cargo xtask test`");
    let error = String::from_utf8_lossy(&output.stderr);
    // The program itself gives up when it cannot change a file or say that it is done.
    assert!(!error.contains("panicked at crates/history/src"), "{strace:?}: {error}");
}

/// The `nth` of these calls is the last thing that is tried.
pub(crate) fn kill_at(calls: &str, nth: usize) -> Vec<String> {
    inject(calls, nth, "signal=SIGKILL")
}

pub(crate) fn inject(calls: &str, nth: usize, what: &str) -> Vec<String> {
    let trace = format!("trace={calls}");
    let inject = format!("inject={calls}:{what}:when={nth}");
    ["-e".to_owned(), trace, "-e".to_owned(), inject].into()
}

/// How often each group of [`CALLS`] comes, when nothing goes wrong.
pub(crate) fn count(home: &Path, what: &[&str]) -> BTreeMap<&'static str, usize> {
    let log = tempfile::NamedTempFile::new().unwrap();
    let trace = format!("trace={}", CALLS.join(","));
    let output = Command::new("strace")
        .args(["-f", "-qq", "-e", &trace, "-o"])
        .arg(log.path())
        .arg(program())
        .arg(home)
        .arg(Place::acknowledgements(home))
        .args(what)
        .output()
        .expect("strace is installed by `cargo xtask test`");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = fs::read_to_string(log.path()).unwrap();
    let called = |group: &str, line: &str| {
        let call = line.split_whitespace().nth(1).unwrap_or("");
        group
            .split(',')
            .any(|name| call.strip_prefix(name).is_some_and(|rest| rest.starts_with('(')))
    };
    CALLS
        .iter()
        .map(|group| (*group, text.lines().filter(|line| called(group, line)).count()))
        .collect()
}

/// All numbers up to `count`, or at most `few` spread over them unless `NACRE_LONG` asks for all.
pub(crate) fn sample(count: usize, few: usize) -> Vec<usize> {
    if std::env::var_os("NACRE_LONG").is_some() || count <= few {
        return (1..=count).collect();
    }
    (0..few).map(|index| 1 + index * (count - 1) / (few - 1)).collect()
}
