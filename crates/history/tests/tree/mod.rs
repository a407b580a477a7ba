//! What a directory holds, for comparison.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) kind: Kind,
    pub(crate) mode: u32,
    pub(crate) owner: (u32, u32),
    /// The first of the names that share this file, when there are several.
    pub(crate) twin_of: Option<PathBuf>,
    /// The value of `user.note`.
    pub(crate) note: Option<Vec<u8>>,
}

#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    File(Vec<u8>),
    Directory,
    Symlink(Vec<u8>),
    Special,
}

/// With the start of what a file holds.
impl std::fmt::Debug for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File(bytes) => {
                let start = String::from_utf8_lossy(&bytes[..bytes.len().min(24)]);
                write!(f, "File({} bytes, {start:?})", bytes.len())
            }
            Self::Directory => f.write_str("Directory"),
            Self::Symlink(target) => write!(f, "Symlink({:?})", String::from_utf8_lossy(target)),
            Self::Special => f.write_str("Special"),
        }
    }
}

pub(crate) type Snapshot = BTreeMap<PathBuf, Node>;

/// Everything below, byte for byte.
pub(crate) fn snapshot(root: &Path) -> Snapshot {
    let mut found = Snapshot::new();
    let mut inodes: HashMap<u64, PathBuf> = HashMap::new();
    let mut todo = vec![root.to_owned()];
    while let Some(directory) = todo.pop() {
        let mut entries: Vec<_> = fs::read_dir(&directory).unwrap().map(Result::unwrap).collect();
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let metadata = fs::symlink_metadata(entry.path()).unwrap();
            let file_type = metadata.file_type();
            let name = entry.path().strip_prefix(root).unwrap().to_owned();
            let kind = if file_type.is_dir() {
                todo.push(entry.path());
                Kind::Directory
            } else if file_type.is_symlink() {
                let target = fs::read_link(entry.path()).unwrap();
                Kind::Symlink(target.as_os_str().as_bytes().to_vec())
            } else if file_type.is_socket() || file_type.is_fifo() || file_type.is_char_device() {
                Kind::Special
            } else {
                Kind::File(fs::read(entry.path()).unwrap())
            };
            let several = kind != Kind::Directory && metadata.nlink() > 1;
            let twin_of = several
                .then(|| inodes.entry(metadata.ino()).or_insert_with(|| name.clone()).clone());
            let owner = (metadata.uid(), metadata.gid());
            let note = note(&entry.path(), &kind);
            let node = Node { kind, mode: metadata.mode() & 0o7777, owner, twin_of, note };
            found.insert(name, node);
        }
    }
    found
}

fn note(path: &Path, kind: &Kind) -> Option<Vec<u8>> {
    if matches!(kind, Kind::Symlink(_) | Kind::Special) {
        return None;
    }
    let mut value = [0; 64];
    let length = rustix::fs::lgetxattr(path, "user.note", &mut value).ok()?;
    Some(value[..length].to_vec())
}

/// What tells whether anybody touched a file: its inode, its change time, and how many names it has.
#[allow(dead_code, reason = "not every suite asks")]
pub(crate) fn identities(root: &Path, names: &Snapshot) -> BTreeMap<PathBuf, (u64, i64, i64, u64)> {
    let identity = |name: &PathBuf| {
        let metadata = fs::symlink_metadata(root.join(name)).ok()?;
        let (ctime, nanoseconds) = (metadata.ctime(), metadata.ctime_nsec());
        Some((name.clone(), (metadata.ino(), ctime, nanoseconds, metadata.nlink())))
    };
    names.keys().filter_map(identity).collect()
}
