//! Mount calls with the path in the error.

use std::ffi::CString;
use std::path::Path;

use rustix::fs::StatVfsMountFlags;
use rustix::mount::{MountFlags, MountPropagationFlags, UnmountFlags};

use crate::{Result, Step};

/// No mount of ours reaches the host, and none of the host's reaches us later.
pub(crate) fn make_private() -> Result<()> {
    rustix::mount::mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
        .step(|| "make mounts private".to_owned())
}

pub(crate) fn mount(
    kind: &str,
    target: impl AsRef<Path>,
    flags: MountFlags,
    options: &str,
) -> Result<()> {
    let target = target.as_ref();
    let step = || format!("mount {kind} on {}", target.display());
    let options = CString::new(options).map_err(std::io::Error::other).step(step)?;
    rustix::mount::mount(kind, target, kind, flags, options.as_c_str()).step(step)
}

pub(crate) fn tmpfs(
    target: impl AsRef<Path>,
    flags: MountFlags,
    mode: u32,
    bytes: u64,
) -> Result<()> {
    mount("tmpfs", target, flags, &format!("mode={mode:o},size={bytes}"))
}

pub(crate) fn bind(source: impl AsRef<Path>, target: impl AsRef<Path>) -> Result<()> {
    let (source, target) = (source.as_ref(), target.as_ref());
    rustix::mount::mount_bind(source, target)
        .step(|| format!("bind {} on {}", source.display(), target.display()))
}

/// Adds flags to a bind mount. Those it has already may be locked, so they are named again.
pub(crate) fn restrict(target: impl AsRef<Path>, add: MountFlags) -> Result<()> {
    let target = target.as_ref();
    let step = || format!("restrict {}", target.display());
    let has = rustix::fs::statvfs(target).step(step)?.f_flag;
    let keep = [
        (StatVfsMountFlags::NOSUID, MountFlags::NOSUID),
        (StatVfsMountFlags::NODEV, MountFlags::NODEV),
        (StatVfsMountFlags::NOEXEC, MountFlags::NOEXEC),
        (StatVfsMountFlags::RDONLY, MountFlags::RDONLY),
        (StatVfsMountFlags::NOATIME, MountFlags::NOATIME),
        (StatVfsMountFlags::NODIRATIME, MountFlags::NODIRATIME),
        (StatVfsMountFlags::RELATIME, MountFlags::RELATIME),
    ]
    .into_iter()
    .filter(|(had, _)| has.contains(*had))
    .fold(add | MountFlags::BIND, |flags, (_, flag)| flags | flag);
    rustix::mount::mount_remount(target, keep, c"").step(step)
}

/// Makes the mount at `root` the root of everything and forgets the old one.
pub(crate) fn pivot(root: &Path) -> Result<()> {
    rustix::process::chdir(root).step(|| format!("enter {}", root.display()))?;
    // Both arguments the same: the old root ends up on top of the new one, where it is detached.
    rustix::process::pivot_root(".", ".").step(|| "pivot_root".to_owned())?;
    rustix::mount::unmount(".", UnmountFlags::DETACH).step(|| "detach the old root".to_owned())?;
    rustix::process::chdir("/").step(|| "enter /".to_owned())
}
