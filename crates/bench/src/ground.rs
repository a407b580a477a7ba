//! Where everything happens: an ext4 of its own whose blocks are in memory, so that neither a busy
//! disk nor what else is on it is in the numbers.
//!
//! The mount is in a mount namespace of this process and the image has no name, so nothing is left
//! when the process ends, however it ends.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use rustix::mount::{MountPropagationFlags, UnmountFlags, mount_change, unmount};
use rustix::thread::{UnshareFlags, unshare_unsafe};

use crate::peers;

const MEMORY: &str = "/dev/shm";

pub(crate) struct Ground {
    point: tempfile::TempDir,
    mounted: bool,
}

/// Before the first thread is started: those that exist already would not come along.
pub(crate) fn own_mounts() -> Result<()> {
    // SAFETY: only the mount namespace is unshared; no file descriptors become invalid.
    unsafe { unshare_unsafe(UnshareFlags::NEWNS) }.context("cannot unshare the mounts")?;
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change("/", private).context("cannot make the mounts private")
}

impl Ground {
    /// A fresh ext4 of up to `size` bytes in memory, or else a folder on this machine's disk and a
    /// note why.
    pub(crate) fn new(size: u64, notes: &mut Vec<String>) -> Result<Self> {
        let point = tempfile::Builder::new().prefix("nacre-bench-").tempdir()?;
        let mounted = match mount(point.path(), size) {
            Ok(()) => true,
            Err(error) => {
                let note = format!("not on an ext4 in memory but on this disk: {error:#}");
                eprintln!("{note}");
                notes.push(note);
                false
            }
        };
        Ok(Self { point, mounted })
    }

    pub(crate) fn path(&self) -> &Path {
        self.point.path()
    }

    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    /// So that nobody pays for what was written before.
    pub(crate) fn settle(&self) -> Result<()> {
        rustix::fs::syncfs(File::open(self.path())?).context("cannot sync")
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        if self.mounted {
            // What does not come off now goes with the process.
            let _ = unmount(self.path(), UnmountFlags::DETACH);
        }
    }
}

fn mount(point: &Path, size: u64) -> Result<()> {
    let free = free_memory();
    // Twice: what is read and written is cached once more above the image.
    ensure!(free > size / 2, "{} MB of memory are free, not half of {}", free >> 20, size >> 20);
    let image = tempfile::Builder::new().prefix("nacre-bench-").tempfile_in(MEMORY)?;
    image.as_file().set_len(size)?;
    let mut make = Command::new(peers::find("mkfs.ext4")?);
    make.args(["-q", "-F", "-i", "8192", "-E", "nodiscard"]).arg(image.path());
    succeed(&mut make)?;
    // Without the thread that zeroes unused inode tables in the background.
    let mut mount = Command::new(peers::find("mount")?);
    mount.args(["-t", "ext4", "-o", "loop,noinit_itable"]).arg(image.path()).arg(point);
    // The loop device holds the image; its name goes with `image`.
    succeed(&mut mount)
}

fn free_memory() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

fn succeed(command: &mut Command) -> Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output =
        command.stdin(Stdio::null()).output().with_context(|| format!("cannot run {name}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{name} ended with {}: {}", output.status, said.trim());
    Ok(())
}
