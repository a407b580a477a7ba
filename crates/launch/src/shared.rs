//! The folder that every sandbox sees at `/opt/nacre`: one copy on the host, read-only in all of them.
//!
//! Programs in it run and native modules load, so it is not `noexec`. Its files keep the owner they have
//! outside, who is nobody inside.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rustix::mount::{MountFlags, UnmountFlags};

use crate::mounts::{bind, restrict};
use crate::{Result, Step};

const PLACE: [&str; 2] = ["opt", "nacre"];

pub(crate) fn mount(root: &Path, folder: &OwnedFd) -> Result<()> {
    let place = mount_point(root)?;
    bind(format!("/proc/self/fd/{}", folder.as_raw_fd()), &place)?;
    let restricted = restrict(&place, MountFlags::NOSUID | MountFlags::NODEV | MountFlags::RDONLY);
    if restricted.is_err() {
        // None at all is better than one that can be written to.
        rustix::mount::unmount(&place, UnmountFlags::DETACH)
            .step(|| format!("unmount {}", place.display()))?;
    }
    restricted
}

/// In the base, or else in the layer of the sandbox's own. Root of the sandbox had its hands on both: a
/// link there is not followed, it might lead to a path of the host's.
fn mount_point(root: &Path) -> Result<PathBuf> {
    let mut place = root.to_owned();
    for name in PLACE {
        place.push(name);
        let step = || format!("make room for it at {}", place.display());
        match fs::symlink_metadata(&place) {
            Ok(found) if found.is_dir() => {}
            Ok(_) => return Err(io::Error::from(io::ErrorKind::NotADirectory)).step(step),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                fs::create_dir(&place).step(step)?;
                fs::set_permissions(&place, fs::Permissions::from_mode(0o755)).step(step)?;
            }
            Err(error) => return Err(error).step(step),
        }
    }
    Ok(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mount_point_is_made_and_a_link_is_not_followed() {
        let root = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        assert_eq!(mount_point(root.path()).unwrap(), root.path().join("opt/nacre"));
        mount_point(root.path()).unwrap();
        fs::rename(root.path().join("opt"), root.path().join("moved")).unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), root.path().join("opt")).unwrap();
        let refused = mount_point(root.path()).unwrap_err().to_string();
        assert!(refused.contains("opt: not a directory"), "{refused}");
        assert!(fs::read_dir(elsewhere.path()).unwrap().next().is_none());
    }
}
