//! Pulling the plug: what a disk holds at a moment is what a file holds that stands for it.

use std::fs;
use std::path::{Path, PathBuf};

use super::check::{Acknowledged, Still, check, still};
use super::disk::{Disk, image};
use super::run::live;
use crate::tree::Snapshot;

/// A disk as the day begins.
pub(crate) struct Socket {
    directory: tempfile::TempDir,
    fresh: PathBuf,
    still: Still,
}

impl Socket {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir_in("/dev/shm").unwrap();
        let fresh = image(directory.path(), 24);
        let disk = Disk::loopback(&fresh);
        super::begin(&disk.path().join("work"));
        let still = still(disk.path());
        drop(disk);
        Self { directory, fresh, still }
    }

    /// Lives the day until strace ends it, and holds what is on the disk in that moment to what was
    /// said until then.
    pub(crate) fn pull(
        &self,
        strace: &[String],
        what: &[&str],
        trees: &[Snapshot; 3],
    ) -> Acknowledged {
        let (disk, pulled) = (self.file("disk"), self.file("pulled"));
        copy(&self.fresh, &disk);
        let said = self.file("said");
        let _ = fs::remove_file(&said);
        let mounted = Disk::loopback(&disk);
        live(mounted.path(), &said, &[&["sync"], what].concat(), strace);
        let said = Acknowledged::parse(&fs::read_to_string(&said).unwrap_or_default());
        // Nobody writes any more, and what the kernel has not been asked to write it keeps for long.
        copy(&disk, &pulled);
        drop(mounted);
        let again = Disk::loopback(&pulled);
        check(again.path(), &said, &self.still, trees);
        said
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }
}

/// To a new file: the loop device of an earlier one may be slow to let go of it.
fn copy(from: &Path, to: &Path) {
    let _ = fs::remove_file(to);
    fs::copy(from, to).unwrap();
}
