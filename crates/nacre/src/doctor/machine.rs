//! Disk, port, data directory and watch limits.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use nacre_wire::control::Check;
use tokio::net::TcpListener;

use super::{failed, ok, reduced};
use crate::connect::Gateway;
use crate::output;

const LOW_DISK: u64 = 2 << 30;
const NO_DISK: u64 = 200 << 20;
/// A workspace with a few dependency trees has this many folders.
const ENOUGH_WATCHES: u64 = 100_000;

pub(super) fn data_dir(dir: &Path) -> Check {
    let name = "data directory";
    let shown = dir.display();
    match fs::metadata(dir) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            ok(name, format!("{shown} will be made by nacre up"))
        }
        Err(error) => failed(name, format!("{shown}: {error}"), "choose another with --data DIR"),
        Ok(metadata) if !metadata.is_dir() => {
            failed(name, format!("{shown} is not a folder"), "choose another with --data DIR")
        }
        Ok(metadata) if metadata.uid() != rustix::process::getuid().as_raw() => failed(
            name,
            format!("{shown} belongs to user {}", metadata.uid()),
            "choose another with --data DIR",
        ),
        Ok(metadata) if metadata.mode() & 0o077 != 0 => failed(
            name,
            format!("{shown} is open to others (mode {:o})", metadata.mode() & 0o777),
            format!("chmod 700 {shown}"),
        ),
        Ok(_) => ok(name, format!("{shown} is yours alone")),
    }
}

pub(super) fn disk(dir: &Path) -> Check {
    let name = "disk space";
    let place = existing_ancestor(dir);
    match rustix::fs::statvfs(&place) {
        Ok(stat) => describe_disk(&place, stat.f_bavail.saturating_mul(stat.f_frsize)),
        Err(error) => reduced(
            name,
            format!("{}: {error}", place.display()),
            "choose a data directory on a local disk with --data DIR",
        ),
    }
}

fn describe_disk(place: &Path, free: u64) -> Check {
    let detail = format!("{} free at {}", output::bytes(free), place.display());
    let remedy = "free some space, or choose another disk with --data DIR";
    if free < NO_DISK {
        failed("disk space", detail, remedy)
    } else if free < LOW_DISK {
        reduced("disk space", detail, remedy)
    } else {
        ok("disk space", detail)
    }
}

/// The first folder on the way up that exists.
pub(super) fn existing_ancestor(dir: &Path) -> PathBuf {
    dir.ancestors().find(|ancestor| ancestor.is_dir()).unwrap_or(Path::new("/")).to_owned()
}

pub(super) fn inotify() -> Check {
    let text = fs::read_to_string("/proc/sys/fs/inotify/max_user_watches").unwrap_or_default();
    describe_watches(text.trim().parse().unwrap_or(0))
}

fn describe_watches(most: u64) -> Check {
    let detail = format!("{most} folders can be watched");
    if most >= ENOUGH_WATCHES {
        return ok("inotify", detail);
    }
    reduced(
        "inotify",
        detail,
        "echo fs.inotify.max_user_watches=524288 | sudo tee /etc/sysctl.d/60-nacre-watches.conf \
         && sudo sysctl --system",
    )
}

pub(super) async fn port(data_dir: &Path, listen: SocketAddr) -> Check {
    let name = "port";
    if let Ok(Some((_, status))) = Gateway::find(data_dir).await {
        return ok(name, format!("Nacre is running at {}", status.url));
    }
    match TcpListener::bind(listen).await {
        Ok(_) => ok(name, format!("{listen} is free")),
        Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => failed(
            name,
            format!("another program listens on {listen}"),
            format!("nacre up --listen {}:0, or see who it is: ss -ltnp", listen.ip()),
        ),
        Err(error) => {
            failed(name, format!("{listen}: {error}"), "nacre up --listen 127.0.0.1:8080")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nacre_wire::control::CheckStatus;

    #[test]
    fn little_disk_is_reduced_and_none_fails() {
        let status = |free| describe_disk(Path::new("/"), free).status;
        assert_eq!(status(10 << 30), CheckStatus::Ok);
        assert_eq!(status(1 << 30), CheckStatus::Reduced);
        assert_eq!(status(1 << 20), CheckStatus::Failed);
    }

    #[test]
    fn an_open_data_directory_is_named_with_the_command_that_closes_it() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let check = data_dir(dir.path());
        assert_eq!(check.status, CheckStatus::Failed);
        assert_eq!(check.remedy, Some(format!("chmod 700 {}", dir.path().display())));
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o700)).unwrap();
        assert_eq!(data_dir(dir.path()).status, CheckStatus::Ok);
        assert_eq!(data_dir(&dir.path().join("no/such")).status, CheckStatus::Ok);
    }

    #[tokio::test]
    async fn a_port_in_use_fails() {
        let dir = tempfile::tempdir().unwrap();
        let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let check = port(dir.path(), taken.local_addr().unwrap()).await;
        assert_eq!(check.status, CheckStatus::Failed);
    }
}
