//! A copy of a directory tree that somebody may be writing to.
//!
//! The first [`pass`](Cloner::pass) copies everything and remembers what it saw. Each further pass
//! looks at every name again and brings the copy up to date, so one that is made while all writers
//! are frozen leaves exactly what was there at that moment, and lasts as long as looking does. What
//! cannot be seen to have changed is copied again: a file that somebody had open for writing (a
//! store through a mapping need not show in its times), and one that changed within the clock's
//! last tick.
//!
//! The writers are not trusted: names are opened below an open directory and never through a link.
//! The copy itself is reachable for nobody else.

mod data;
mod entry;
mod pool;
mod record;
#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests;
mod visit;

use std::collections::HashMap;
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::fs::{Mode, OFlags};
use serde::{Deserialize, Serialize};

use crate::{Result, Step};
use record::{Records, Signature};

/// Names of what was left out that are told of.
const NAMED: usize = 20;

/// How far a clone has come. Shared with whoever wants to know.
#[derive(Debug, Default)]
pub struct Progress {
    files: AtomicU64,
    bytes: AtomicU64,
}

impl Progress {
    /// Files and bytes so far.
    pub fn now(&self) -> (u64, u64) {
        (self.files.load(Ordering::Relaxed), self.bytes.load(Ordering::Relaxed))
    }

    pub fn set(&self, files: u64, bytes: u64) {
        self.files.store(files, Ordering::Relaxed);
        self.bytes.store(bytes, Ordering::Relaxed);
    }

    fn add(&self, bytes: u64) {
        self.files.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// What a clone holds and lacks.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Report {
    /// Files, links and directories of the clone.
    pub names: u64,
    /// The contents of its files.
    pub bytes: u64,
    /// How much of that takes no space of its own, because the filesystem shares it.
    pub shared_bytes: u64,
    /// Sockets, pipes and devices, which mean nothing in a copy.
    pub left_out: u64,
    /// The first of them, relative to the tree.
    pub left_out_names: Vec<String>,
}

/// Copies one tree. See the [module](self).
pub struct Cloner {
    top: Arc<visit::Pair>,
    /// Names at the top that are none of the copy's.
    leave_out: Vec<OsString>,
    progress: Arc<Progress>,
    records: Mutex<Records>,
    links: Mutex<HashMap<(u64, u64), Linked>>,
    /// Whether the filesystem can share contents, as far as is known.
    shares: AtomicBool,
    shared_bytes: AtomicU64,
    left_out: Mutex<Vec<PathBuf>>,
}

/// Where the copy of a file with several names is, and what it was copied from.
struct Linked {
    path: PathBuf,
    signature: Signature,
    hot: bool,
}

impl Cloner {
    /// Both directories exist. Nobody but us reaches `to`.
    pub fn new(
        from: &Path,
        to: &Path,
        leave_out: &[OsString],
        progress: Arc<Progress>,
    ) -> Result<Self> {
        let top = visit::Pair { from: open_directory(from)?, to: open_directory(to)? };
        Ok(Self {
            top: Arc::new(top),
            leave_out: leave_out.to_vec(),
            progress,
            records: Mutex::default(),
            links: Mutex::default(),
            shares: AtomicBool::new(true),
            shared_bytes: AtomicU64::new(0),
            left_out: Mutex::default(),
        })
    }

    /// Copies what is new or different since the last pass, and says how many names that were.
    pub fn pass(&self) -> Result<u64> {
        lock(&self.links).clear();
        lock(&self.left_out).clear();
        let changed = AtomicU64::new(0);
        let first = visit::Job::top(self.top.clone());
        pool::run(first, |job, more| {
            changed.fetch_add(self.visit(&job, more)?, Ordering::Relaxed);
            Ok(())
        })?;
        Ok(changed.into_inner())
    }

    /// Gives every directory its owner, mode and times, which copying into it has changed.
    pub fn finish(&self) -> Result<Report> {
        let records = lock(&self.records);
        let mut report =
            Report { shared_bytes: self.shared_bytes.load(Ordering::Relaxed), ..Report::default() };
        for (path, directory) in records.iter() {
            let to = self.open_copy(path)?;
            entry::dress(&to, &directory.stat).step(|| format!("restore {}", path.display()))?;
            report.names += 1 + directory.plain_entries();
            report.bytes += directory.bytes();
        }
        let left_out = lock(&self.left_out);
        report.left_out = left_out.len() as u64;
        report.left_out_names =
            left_out.iter().take(NAMED).map(|path| path.to_string_lossy().into_owned()).collect();
        Ok(report)
    }

    /// A directory of the copy. Only we write there, so its path is safe to follow.
    fn open_copy(&self, path: &Path) -> Result<OwnedFd> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        rustix::fs::openat(&self.top.to, path, flags, Mode::empty())
            .step(|| format!("open the copy of {}", path.display()))
    }
}

fn open_directory(path: &Path) -> Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty()).step(|| format!("open {}", path.display()))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
