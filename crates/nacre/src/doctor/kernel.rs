//! What the kernel can do, tried where trying is cheap.

use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use nacre_wire::control::Check;
use rustix::fs::{MemfdFlags, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use rustix::thread::UnshareFlags;

use super::{failed, ok, reduced};

/// Overlay mounts in a user namespace came with 5.11.
const OLDEST: (u32, u32) = (5, 11);
const RESTRICTION: &str = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns";

pub(super) fn version() -> Check {
    let uname = rustix::system::uname();
    let release = uname.release().to_string_lossy();
    match parse_version(&release) {
        Some(version) if version < OLDEST => failed(
            "kernel",
            format!("Linux {release} is older than {}.{}", OLDEST.0, OLDEST.1),
            "install a newer kernel: sudo apt install linux-image-amd64",
        ),
        _ => ok("kernel", format!("Linux {release}")),
    }
}

/// Without it, programs in a sandbox that know no proxy have no way out.
pub(super) fn packets() -> Check {
    const NODE: &str = "/dev/net/tun";
    let name = "packets";
    match rustix::fs::open(NODE, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()) {
        Ok(_) => ok(name, "programs that know no proxy get out too"),
        Err(error) => {
            let detail = format!(
                "{NODE}: {}; only programs that use the proxy get out of a sandbox",
                io::Error::from(error).to_string().split(" (os").next().unwrap_or_default()
            );
            let remedy = match error {
                Errno::NOENT | Errno::NODEV | Errno::NXIO => {
                    "sudo modprobe tun && echo tun | sudo tee /etc/modules-load.d/nacre.conf"
                }
                _ => "sudo chmod 0666 /dev/net/tun",
            };
            reduced(name, detail, remedy)
        }
    }
}

fn parse_version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// Really makes one: settings, AppArmor and container hosts can each refuse.
pub(super) fn user_namespaces() -> Check {
    let name = "user namespaces";
    match try_user_namespace() {
        Ok(()) => ok(name, "a process can make one"),
        Err(error) => {
            let setting =
                |path: &str| fs::read_to_string(path).ok().map(|text| text.trim().to_owned());
            let (detail, remedy) = why_refused(
                &error,
                setting(RESTRICTION).as_deref(),
                setting("/proc/sys/kernel/unprivileged_userns_clone").as_deref(),
                setting("/proc/sys/user/max_user_namespaces").as_deref(),
            );
            failed(name, detail, remedy)
        }
    }
}

fn try_user_namespace() -> io::Result<()> {
    let mut command = Command::new("/proc/self/exe");
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let unshare = || {
        // SAFETY: the child has one thread and shares nothing that leaving these namespaces could
        // pull from under anybody.
        unsafe {
            rustix::thread::unshare_unsafe(
                UnshareFlags::NEWUSER | UnshareFlags::NEWNS | UnshareFlags::NEWPID,
            )
        }
        .map_err(io::Error::from)
    };
    // SAFETY: between fork and exec the closure makes one system call and allocates nothing.
    unsafe { command.pre_exec(unshare) };
    command.status().map(|_| ())
}

fn why_refused(
    error: &io::Error,
    apparmor: Option<&str>,
    clone: Option<&str>,
    most: Option<&str>,
) -> (String, String) {
    if apparmor == Some("1") {
        return (
            "AppArmor keeps unprivileged programs from making them".to_owned(),
            "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0 && echo \
             'kernel.apparmor_restrict_unprivileged_userns=0' | sudo tee /etc/sysctl.d/60-nacre.conf"
                .to_owned(),
        );
    }
    if clone == Some("0") {
        return (
            "they are switched off for ordinary users".to_owned(),
            "sudo sysctl -w kernel.unprivileged_userns_clone=1".to_owned(),
        );
    }
    if most == Some("0") {
        return (
            "this system allows none".to_owned(),
            "sudo sysctl -w user.max_user_namespaces=15000".to_owned(),
        );
    }
    (
        format!("the kernel refuses: {error}"),
        "in a container, run it with --security-opt seccomp=unconfined --security-opt \
         apparmor=unconfined"
            .to_owned(),
    )
}

pub(super) fn overlayfs() -> Check {
    let name = "overlayfs";
    let known = fs::read_to_string("/proc/filesystems").unwrap_or_default();
    if lists_filesystem(&known, "overlay") {
        ok(name, "the kernel has it")
    } else {
        failed(name, "the kernel has not loaded it", "sudo modprobe overlay")
    }
}

fn lists_filesystem(filesystems: &str, name: &str) -> bool {
    filesystems.lines().any(|line| line.split_whitespace().last() == Some(name))
}

pub(super) fn openat2() -> Check {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened =
        rustix::fs::openat2(rustix::fs::CWD, "/", flags, Mode::empty(), ResolveFlags::empty());
    match opened {
        Ok(_) => ok("openat2", "paths can be confined by the kernel"),
        Err(error) => failed(
            "openat2",
            format!("the kernel refuses: {error}"),
            "Linux 5.6 or later; in a container, update the container runtime",
        ),
    }
}

pub(super) fn seccomp() -> Check {
    match fs::read_to_string("/proc/sys/kernel/seccomp/actions_avail") {
        Ok(actions) if actions.split_whitespace().any(|action| action == "errno") => {
            ok("seccomp", "filters are available")
        }
        _ => failed(
            "seccomp",
            "the kernel has no filters",
            "use a kernel built with CONFIG_SECCOMP_FILTER, as all distributions' are",
        ),
    }
}

/// The guest binary runs from memory, so that a sandbox never sees the host's file.
pub(super) fn memfd_exec() -> Check {
    let name = "memfd exec";
    let setting = fs::read_to_string("/proc/sys/vm/memfd_noexec").unwrap_or_default();
    if setting.trim() == "2" {
        let remedy = "sudo sysctl -w vm.memfd_noexec=1";
        return failed(name, "programs may not run from memory (vm.memfd_noexec=2)", remedy);
    }
    // Kernels before 6.3 do not know the flag and need no permission.
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let made = match rustix::fs::memfd_create("nacre-doctor", flags | MemfdFlags::EXEC) {
        Err(Errno::INVAL) => rustix::fs::memfd_create("nacre-doctor", flags),
        other => other,
    };
    match made {
        Ok(_) => ok(name, "programs can run from memory"),
        Err(error) => {
            failed(name, format!("the kernel refuses: {error}"), "sudo sysctl -w vm.memfd_noexec=0")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        assert_eq!(parse_version("6.12.3-arch1"), Some((6, 12)));
        assert_eq!(parse_version("5.4.0-150-generic"), Some((5, 4)));
        assert!(parse_version("5.4.0").unwrap() < OLDEST);
        assert_eq!(parse_version("what"), None);
    }

    #[test]
    fn a_refusal_names_the_setting_behind_it() {
        let error = io::Error::from_raw_os_error(1);
        let remedy = |apparmor, clone, most| why_refused(&error, apparmor, clone, most).1;
        assert!(remedy(Some("1"), None, None).contains("apparmor_restrict_unprivileged_userns=0"));
        assert!(remedy(Some("0"), Some("0"), None).contains("unprivileged_userns_clone=1"));
        assert!(remedy(None, Some("1"), Some("0")).contains("max_user_namespaces=15000"));
        assert!(remedy(None, None, None).contains("seccomp=unconfined"));
    }

    #[test]
    fn a_filesystem_is_listed_by_its_whole_name() {
        let known = "nodev\tproc\nnodev\toverlay\n\text4\n";
        assert!(lists_filesystem(known, "overlay"));
        assert!(lists_filesystem(known, "ext4"));
        assert!(!lists_filesystem(known, "over"));
    }
}
