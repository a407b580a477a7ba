//! The floor under any scan: one thread that lists every directory and asks `statx` about every
//! name. And the sizes of stores.

use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RawDir, StatxFlags, openat, statx};

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
const BUFFER: usize = 32 << 10;

/// How many names there are below, and how long it took to ask about each.
pub(super) fn walk(root: &Path) -> Result<(u64, Duration)> {
    let began = Instant::now();
    let top = openat(CWD, root, DIRECTORY, Mode::empty())
        .with_context(|| format!("cannot open {}", root.display()))?;
    let names = below(&top)?;
    Ok((names, began.elapsed()))
}

fn below(directory: &OwnedFd) -> Result<u64> {
    let mut buffer = Vec::with_capacity(BUFFER);
    let mut names = 0;
    let mut folders = Vec::new();
    let mut entries = RawDir::new(directory, buffer.spare_capacity_mut());
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let name = entry.file_name();
        if name.to_bytes() == b"." || name.to_bytes() == b".." {
            continue;
        }
        names += 1;
        std::hint::black_box(look(directory, name)?);
        if entry.file_type() == FileType::Directory {
            folders.push(name.to_owned());
        }
    }
    for folder in folders {
        names += below(&openat(directory, &folder, DIRECTORY, Mode::empty())?)?;
    }
    Ok(names)
}

fn look(directory: impl AsFd, name: &std::ffi::CStr) -> Result<u64> {
    let flags = AtFlags::SYMLINK_NOFOLLOW;
    let found = statx(directory, name, flags, StatxFlags::BASIC_STATS)?;
    Ok(found.stx_size)
}

/// What a store takes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Size {
    /// Bytes in files.
    pub(super) apparent: u64,
    /// Blocks of files and directories.
    pub(super) disk: u64,
}

pub(super) fn size(store: &Path) -> Result<Size> {
    let mut waiting: Vec<PathBuf> = vec![store.to_owned()];
    let mut size = Size::default();
    while let Some(folder) = waiting.pop() {
        let named = || format!("cannot look at {}", folder.display());
        size.disk += std::fs::symlink_metadata(&folder).with_context(named)?.blocks() * 512;
        for entry in std::fs::read_dir(&folder).with_context(named)? {
            let entry = entry?;
            let metadata = entry.metadata()?;
            if metadata.is_dir() {
                waiting.push(entry.path());
            } else {
                size.apparent += metadata.len();
                size.disk += metadata.blocks() * 512;
            }
        }
    }
    Ok(size)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn every_name_is_counted_and_every_byte() {
        let temp = tempfile::tempdir().unwrap();
        fs::create_dir_all(temp.path().join("a/b")).unwrap();
        fs::write(temp.path().join("a/b/c"), [1; 10_000]).unwrap();
        fs::write(temp.path().join("d"), [1; 5]).unwrap();
        assert_eq!(walk(temp.path()).unwrap().0, 4);
        assert_eq!(size(temp.path()).unwrap().apparent, 10_005);
    }
}
