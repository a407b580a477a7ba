//! What the last pass saw.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Stat};

/// By path from the top; the top itself is the empty path.
#[derive(Default)]
pub(super) struct Records(BTreeMap<PathBuf, Directory>);

pub(super) struct Directory {
    pub(super) stat: Stat,
    pub(super) entries: HashMap<OsString, Seen>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    pub(super) signature: Signature,
    /// It may have changed without a sign of it.
    pub(super) hot: bool,
}

/// What is different when a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Signature {
    mode: u32,
    inode: u64,
    size: i64,
    modified: (i64, u64),
    changed: (i64, u64),
}

impl Signature {
    pub(super) fn of(stat: &Stat) -> Self {
        Self {
            mode: stat.st_mode,
            inode: stat.st_ino,
            size: stat.st_size,
            modified: (stat.st_mtime, stat.st_mtime_nsec),
            changed: (stat.st_ctime, stat.st_ctime_nsec),
        }
    }

    pub(super) fn kind(&self) -> FileType {
        FileType::from_raw_mode(self.mode)
    }

    pub(super) fn inode(&self) -> u64 {
        self.inode
    }
}

impl Directory {
    pub(super) fn plain_entries(&self) -> u64 {
        let plain = |seen: &&Seen| seen.signature.kind() != FileType::Directory;
        self.entries.values().filter(plain).count() as u64
    }

    pub(super) fn bytes(&self) -> u64 {
        let file = |seen: &&Seen| seen.signature.kind() == FileType::RegularFile;
        self.entries
            .values()
            .filter(file)
            .map(|seen| seen.signature.size.max(0).unsigned_abs())
            .sum()
    }
}

impl Records {
    pub(super) fn iter(&self) -> impl Iterator<Item = (&PathBuf, &Directory)> {
        self.0.iter()
    }

    pub(super) fn take(&mut self, path: &Path) -> Option<Directory> {
        self.0.remove(path)
    }

    pub(super) fn put(&mut self, path: PathBuf, directory: Directory) {
        self.0.insert(path, directory);
    }

    /// Forgets a directory and everything below it.
    pub(super) fn forget(&mut self, path: &Path) {
        let below: Vec<PathBuf> = self
            .0
            .range(path.to_owned()..)
            .take_while(|(other, _)| other.starts_with(path))
            .map(|(other, _)| other.clone())
            .collect();
        for path in below {
            self.0.remove(&path);
        }
    }
}
