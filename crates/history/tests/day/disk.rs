//! Filesystems of their own: small ones to fill, and disks to pull.

use std::ffi::CString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

/// A filesystem that is mounted while this lives. To mount takes root, and without it the tests that
/// need a disk fail here.
pub(crate) struct Disk {
    at: tempfile::TempDir,
}

impl Disk {
    pub(crate) fn in_memory(bytes: u64) -> Self {
        let at = tempfile::tempdir_in("/dev/shm").unwrap();
        let data = CString::new(format!("size={bytes}")).unwrap();
        mount("none", at.path(), "tmpfs", MountFlags::empty(), data.as_c_str())
            .expect("mount a tmpfs: the disk tests run as root");
        Self { at }
    }

    /// What the kernel writes ends in the file `image`, and nothing else does.
    pub(crate) fn loopback(image: &Path) -> Self {
        let at = tempfile::tempdir_in("/dev/shm").unwrap();
        // Nothing is written because time has passed or a name was replaced, only what is asked for.
        let options = "loop,commit=3600,noauto_da_alloc,data=writeback,nodiscard";
        run(Command::new("mount").args(["-t", "ext4", "-o", options]).arg(image).arg(at.path()));
        Self { at }
    }

    pub(crate) fn path(&self) -> &Path {
        self.at.path()
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // A file of ours may still be open when a test has failed.
        let _ = unmount(self.at.path(), UnmountFlags::empty())
            .or_else(|_| unmount(self.at.path(), UnmountFlags::DETACH));
    }
}

/// An empty ext4 in a file that is in memory.
pub(crate) fn image(directory: &Path, megabytes: u64) -> PathBuf {
    let image = directory.join("image");
    File::create(&image).unwrap().set_len(megabytes << 20).unwrap();
    run(Command::new("mkfs.ext4").args(["-q", "-F", "-E", "lazy_itable_init=0"]).arg(&image));
    image
}

fn run(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {error} (the disk tests run as root)");
}
