//! Disk limits by project quota, where the filesystem of the data directory has them.
//!
//! ext4 and xfs count blocks by "project", a number that files inherit from their directory. Each
//! sandbox's data directory gets a number of its own. Setting it and the limit needs root.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;

use nacre_wire::control::Reduction;

use crate::SandboxId;

#[derive(Debug)]
pub(super) struct Quota {
    available: bool,
}

// <linux/fs.h> and <linux/dqblk_xfs.h>, <linux/quota.h>: the libc crate has only parts of them.
const FS_IOC_FSGETXATTR: libc::c_ulong = 0x801c_581f;
const FS_IOC_FSSETXATTR: libc::c_ulong = 0x401c_5820;
const FS_XFLAG_PROJINHERIT: u32 = 0x200;
const PROJECT_QUOTA: u32 = 2;
const Q_GETQUOTA: u32 = 0x80_0007;
const Q_SETQUOTA: u32 = 0x80_0008;
const QIF_BLIMITS: u32 = 1;
const BLOCK: u64 = 1024;

#[repr(C)]
#[derive(Default)]
struct FsXattr {
    xflags: u32,
    extsize: u32,
    nextents: u32,
    project: u32,
    cowextsize: u32,
    pad: [u8; 8],
}

#[repr(C)]
#[derive(Default)]
struct DiskQuota {
    block_hard: u64,
    block_soft: u64,
    bytes_used: u64,
    inode_hard: u64,
    inode_soft: u64,
    inodes_used: u64,
    block_time: u64,
    inode_time: u64,
    valid: u32,
    pad: u32,
}

impl Quota {
    pub(super) fn detect(data_dir: &Path) -> Self {
        let root = rustix::process::geteuid().is_root();
        let available =
            root && File::open(data_dir).is_ok_and(|directory| get(&directory, 0).is_ok());
        Self { available }
    }

    pub(super) fn available(&self) -> bool {
        self.available
    }

    pub(super) fn reduced(&self) -> Option<Reduction> {
        (!self.available).then(|| Reduction {
            what: "disk".to_owned(),
            why: "the filesystem of the data directory has no project quotas: disk limits are not enforced"
                .to_owned(),
            remedy: Some(
                "put the data directory on xfs or ext4 mounted with -o prjquota (ext4: tune2fs -O project,quota)"
                    .to_owned(),
            ),
        })
    }

    /// Counts everything in `data` as this sandbox's. For one that was built before it had an id: as
    /// yet it holds directories only, and what is made in them follows.
    pub(super) fn adopt(&self, data: &Path, id: &SandboxId) -> io::Result<()> {
        if !self.available {
            return Ok(());
        }
        for entry in std::fs::read_dir(data)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                self.adopt(&entry.path(), id)?;
            }
        }
        set_project(&File::open(data)?, project_of(id))
    }

    /// Sets or lifts the limit of a sandbox. Without quotas there is nothing to do.
    pub(super) fn limit(&self, data: &Path, id: &SandboxId, bytes: Option<u64>) -> io::Result<()> {
        if !self.available {
            return Ok(());
        }
        let directory = File::open(data)?;
        let project = project_of(id);
        set_project(&directory, project)?;
        let mut quota = DiskQuota {
            block_hard: bytes.map_or(0, |bytes| bytes.div_ceil(BLOCK)),
            valid: QIF_BLIMITS,
            ..DiskQuota::default()
        };
        call(&directory, Q_SETQUOTA, project, &mut quota)
    }

    pub(super) fn used(&self, data: &Path, id: &SandboxId) -> Option<u64> {
        if !self.available {
            return None;
        }
        Some(get(&File::open(data).ok()?, project_of(id)).ok()?.bytes_used)
    }
}

/// A number that two sandboxes of one machine will not share: FNV-1a of the id, above the small
/// numbers that administrators use.
fn project_of(id: &SandboxId) -> u32 {
    let hash = id
        .as_str()
        .bytes()
        .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    hash | 0x4000_0000
}

/// Counts a directory, and what will be made in it, as this project's.
fn set_project(directory: &File, project: u32) -> io::Result<()> {
    let mut attributes = FsXattr::default();
    // SAFETY: the structure has the kernel's layout and lives across the call.
    check(unsafe { libc::ioctl(directory.as_raw_fd(), FS_IOC_FSGETXATTR, &raw mut attributes) })?;
    if attributes.project == project {
        return Ok(());
    }
    attributes.project = project;
    attributes.xflags |= FS_XFLAG_PROJINHERIT;
    // SAFETY: as above.
    check(unsafe { libc::ioctl(directory.as_raw_fd(), FS_IOC_FSSETXATTR, &raw const attributes) })
}

fn get(directory: &File, project: u32) -> io::Result<DiskQuota> {
    let mut quota = DiskQuota::default();
    call(directory, Q_GETQUOTA, project, &mut quota)?;
    Ok(quota)
}

fn call(directory: &File, command: u32, project: u32, quota: &mut DiskQuota) -> io::Result<()> {
    let command = (command << 8) | PROJECT_QUOTA;
    // SAFETY: quotactl_fd reads or fills a structure with the kernel's layout.
    let result = unsafe {
        libc::syscall(
            libc::SYS_quotactl_fd,
            directory.as_raw_fd(),
            command,
            project,
            std::ptr::from_mut(quota),
        )
    };
    check(result as i32)
}

fn check(result: i32) -> io::Result<()> {
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
