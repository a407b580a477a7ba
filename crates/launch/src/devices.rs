//! `/dev`, `/proc` and `/sys` of a sandbox.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use rustix::mount::MountFlags;

use crate::mounts::{bind, mount, restrict, tmpfs};
use crate::{Result, Step};

/// Devices that hold nothing of the host's.
const DEVICES: &[&str] = &["null", "zero", "full", "random", "urandom", "tty"];

const LINKS: &[(&str, &str)] = &[
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("ptmx", "pts/ptmx"),
];

/// Shows nothing: what they tell everybody is about the host. What only the host's root may read or
/// write is closed to a sandbox anyway, since none of its ids is that.
const HIDDEN_PROC: &[&str] = &[
    "acpi",
    "asound",
    "bus",
    "config.gz",
    "fs",
    "interrupts",
    "iomem",
    "ioports",
    "irq",
    "kallsyms",
    "kcore",
    "key-users",
    "keys",
    "latency_stats",
    "modules",
    "sched_debug",
    "scsi",
    "sysrq-trigger",
    "timer_list",
];

/// What programs look up to count cores and memory nodes.
const SHOWN_SYS: &[&str] = &["devices/system/cpu", "devices/system/node"];

pub(crate) fn mount_dev(dev: &Path, many_ids: bool, shm_bytes: u64) -> Result<()> {
    tmpfs(dev, MountFlags::NOSUID | MountFlags::NOEXEC, 0o755, 1 << 20)?;
    for device in DEVICES {
        let target = dev.join(device);
        fs::write(&target, b"").step(|| format!("create {}", target.display()))?;
        bind(Path::new("/dev").join(device), &target)?;
    }
    for (link, target) in LINKS {
        symlink(target, dev.join(link)).step(|| format!("link /dev/{link}"))?;
    }
    make_directories(dev, &["pts", "shm"])?;
    // Group 5 is `tty` on every distribution; with one id mapped there is no such group.
    let group = if many_ids { ",gid=5,mode=620" } else { "" };
    mount(
        "devpts",
        dev.join("pts"),
        MountFlags::NOSUID | MountFlags::NOEXEC,
        &format!("newinstance,ptmxmode=0666{group}"),
    )?;
    tmpfs(dev.join("shm"), MountFlags::NOSUID | MountFlags::NODEV, 0o1777, shm_bytes)
}

pub(crate) fn mount_proc(proc: &Path, null: &Path) -> Result<()> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount("proc", proc, flags, "")?;
    hide(proc, HIDDEN_PROC, null)?;
    bind(proc.join("sys"), proc.join("sys"))?;
    restrict(proc.join("sys"), flags | MountFlags::RDONLY)
}

/// `/sys`, read-only, with nothing but what a program needs to count cores and see its limits.
pub(crate) fn mount_sys(sys: &Path) -> Result<()> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    tmpfs(sys, flags, 0o555, 1 << 16)?;
    for shown in SHOWN_SYS {
        let (from, to) = (Path::new("/sys").join(shown), sys.join(shown));
        if from.is_dir() {
            fs::create_dir_all(&to).step(|| format!("create {}", to.display()))?;
            bind(&from, &to)?;
            restrict(&to, flags | MountFlags::RDONLY)?;
        }
    }
    let cgroup = sys.join("fs/cgroup");
    fs::create_dir_all(&cgroup).step(|| format!("create {}", cgroup.display()))?;
    // With the controllers in version 1 hierarchies there is nothing to see in version 2.
    if only_cgroup2() {
        mount("cgroup2", &cgroup, flags | MountFlags::RDONLY, "")?;
    }
    restrict(sys, flags | MountFlags::RDONLY)
}

fn only_cgroup2() -> bool {
    fs::read_to_string("/proc/self/cgroup")
        .is_ok_and(|text| text.lines().all(|line| line.starts_with("0::")))
}

fn hide(parent: &Path, names: &[&str], null: &Path) -> Result<()> {
    for name in names {
        let path = parent.join(name);
        match fs::symlink_metadata(&path) {
            Ok(metadata) if metadata.is_dir() => {
                tmpfs(
                    &path,
                    MountFlags::NOSUID | MountFlags::NODEV | MountFlags::RDONLY,
                    0o555,
                    4096,
                )?;
            }
            Ok(_) => bind(null, &path)?,
            Err(_) => {}
        }
    }
    Ok(())
}

fn make_directories(parent: &Path, names: &[&str]) -> Result<()> {
    for name in names {
        let path = parent.join(name);
        fs::create_dir(&path).step(|| format!("create {}", path.display()))?;
    }
    Ok(())
}
