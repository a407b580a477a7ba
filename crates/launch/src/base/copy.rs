//! Copying parts of the host's system.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use super::Owner;
use crate::{Result, Step};

/// Left out even though everybody may read some of them.
const HIDDEN_ETC: &[&str] = &[
    "shadow",
    "shadow-",
    "gshadow",
    "gshadow-",
    "passwd-",
    "group-",
    "subuid",
    "subuid-",
    "subgid",
    "subgid-",
    "sudoers",
    "sudoers.d",
    "ssh",
    "machine-id",
    "fstab",
    "crypttab",
    "exports",
    "krb5.keytab",
    "ipsec.secrets",
    "ipsec.d",
    "wireguard",
    "openvpn",
    "letsencrypt",
    "NetworkManager",
    "netplan",
    "network",
    "samba",
    "docker",
    "kubernetes",
    "rancher",
    "cloud",
    "nacre",
    "cron.d",
    "crontab",
    "mysql",
    "postgresql",
];

/// Left out because nothing in a sandbox reads them: it has no init, no kernel and no devices.
const USELESS_ETC: &[&str] = &[
    "apparmor.d",
    "cron.daily",
    "cron.hourly",
    "cron.monthly",
    "cron.weekly",
    "init.d",
    "initramfs-tools",
    "kernel",
    "logrotate.d",
    "modprobe.d",
    "modules-load.d",
    "rc0.d",
    "rc1.d",
    "rc2.d",
    "rc3.d",
    "rc4.d",
    "rc5.d",
    "rc6.d",
    "rcS.d",
    "systemd",
    "udev",
];

/// Larger files of `/etc` are data, not configuration.
const MAX_FILE: u64 = 4 << 20;

/// Copies what everybody may read of `/etc`.
pub(super) fn etc(to: &Path, owner: Owner) -> Result<()> {
    tree(Path::new("/etc"), to, owner, &|path| {
        let name = path.strip_prefix("/etc").unwrap_or(path);
        let left_out =
            HIDDEN_ETC.iter().chain(USELESS_ETC).any(|left_out| name == Path::new(left_out));
        // A third of a usual /etc: links to manual pages.
        left_out
            || (name.starts_with("alternatives") && name.extension().is_some_and(|end| end == "gz"))
    })
}

/// Copies the directories below `from` and nothing else.
pub(super) fn directories(from: &Path, to: &Path, owner: Owner) -> Result<()> {
    make_like(from, to, owner)?;
    for entry in fs::read_dir(from).step(|| format!("read {}", from.display()))?.flatten() {
        let open = entry
            .metadata()
            .is_ok_and(|metadata| metadata.is_dir() && metadata.permissions().mode() & 0o5 == 0o5);
        if open {
            directories(&entry.path(), &to.join(entry.file_name()), owner)?;
        }
    }
    Ok(())
}

fn tree(from: &Path, to: &Path, owner: Owner, hidden: &dyn Fn(&Path) -> bool) -> Result<()> {
    make_like(from, to, owner)?;
    for entry in fs::read_dir(from).step(|| format!("read {}", from.display()))?.flatten() {
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        // What vanishes meanwhile is not there to copy.
        let Ok(metadata) = fs::symlink_metadata(&from) else { continue };
        let mode = metadata.permissions().mode();
        if hidden(&from) {
            continue;
        }
        if metadata.is_symlink() {
            let Ok(target) = fs::read_link(&from) else { continue };
            symlink(target, &to).step(|| format!("create {}", to.display()))?;
            owner.own(&to, 0)?;
        } else if metadata.is_dir() && mode & 0o5 == 0o5 {
            tree(&from, &to, owner, hidden)?;
        } else if metadata.is_file() && mode & 0o4 != 0 && metadata.len() <= MAX_FILE {
            fs::copy(&from, &to).step(|| format!("copy {}", from.display()))?;
            owner.own(&to, 0)?;
        }
    }
    Ok(())
}

fn make_like(from: &Path, to: &Path, owner: Owner) -> Result<()> {
    let mode =
        fs::metadata(from).step(|| format!("look at {}", from.display()))?.permissions().mode();
    owner.directory(to, mode & 0o1777, 0)
}
