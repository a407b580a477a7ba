//! Puts the sandbox's root directory together.

use std::ffi::CString;
use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::CWD;
use rustix::mount::{MountFlags, MoveMountFlags};

use crate::layout::{self, make};
use crate::mounts::{bind, mount, restrict, tmpfs};
use crate::order::{Base, Build, Built, Layer, Lower};
use crate::{Result, Step, device, devices, shared};

/// From a sandbox's data directory to the one that holds all sandboxes.
const UP: &str = "../..";

/// Where the root directory is put together: a directory that all sandboxes have in common, each in
/// its own mount namespace.
const ROOT: &str = "../../.base/root";
/// Where trees from the host are mounted, by number.
const TREES: &str = "../../.base/tree";

/// A root directory that is ready to be pivoted to.
pub(crate) struct Assembled {
    pub(crate) root: PathBuf,
    pub(crate) built: Built,
}

/// What lies beneath: detached mounts in the order of the layers that want one, and directories.
#[derive(Default)]
pub(crate) struct Beneath {
    pub(crate) trees: std::vec::IntoIter<OwnedFd>,
    pub(crate) rootfs: Option<OwnedFd>,
    pub(crate) shared: Option<Result<OwnedFd>>,
    /// Trees that have found their place.
    pub(crate) mounted: usize,
}

/// Mounts everything. The current directory is the sandbox's data directory.
pub(crate) fn assemble(build: &Build, mut beneath: Beneath) -> Result<Assembled> {
    let mut built = Built::default();
    layout::lay_out(build.many_ids)?;
    let root = match &build.base {
        Base::Host { system, layers } => host_root(system, layers, &mut beneath, &mut built)?,
        Base::Rootfs { lower } => rootfs_root(build, lower, &mut beneath)?,
    };
    if let Some(folder) = beneath.shared.take() {
        let mounted = folder.and_then(|folder| shared::mount(&root, &folder));
        built.no_shared = mounted.err().map(|error| error.to_string());
    }
    let restricted = MountFlags::NOSUID | MountFlags::NODEV;
    bind("workspace", root.join("workspace"))?;
    restrict(root.join("workspace"), restricted)?;
    devices::mount_dev(&root.join("dev"), build.many_ids, build.memory_mounts_bytes)?;
    devices::mount_proc(&root.join("proc"), &root.join("dev/null"))?;
    devices::mount_sys(&root.join("sys"))?;
    tmpfs(root.join("tmp"), restricted, 0o1777, build.memory_mounts_bytes)?;
    mount_run(&root.join("run"))?;
    Ok(Assembled { root, built })
}

/// Gives the memory-backed mounts another size. The root is the sandbox's own by now.
pub(crate) fn resize(bytes: u64) -> Result<()> {
    let size = CString::new(format!("size={bytes}")).unwrap_or_default();
    for target in ["/tmp", "/dev/shm"] {
        let flags = MountFlags::NOSUID | MountFlags::NODEV;
        rustix::mount::mount_remount(target, flags, size.as_c_str())
            .step(|| format!("resize {target}"))?;
    }
    Ok(())
}

/// `/run`, with the way to the host where only root finds it.
fn mount_run(run: &Path) -> Result<()> {
    tmpfs(run, MountFlags::NOSUID | MountFlags::NODEV, 0o755, 64 << 20)?;
    let directory = |name: &str, mode| {
        let path = run.join(name);
        fs::create_dir(&path).step(|| format!("create {}", path.display()))?;
        rustix::fs::chmod(&path, rustix::fs::Mode::from_raw_mode(mode))
            .step(|| format!("chmod {}", path.display()))
    };
    directory("lock", 0o1777)?;
    directory("nacre", 0o700)?;
    directory("nacre/host", 0o700)?;
    bind("../host", run.join("nacre/host"))?;
    restrict(
        run.join("nacre/host"),
        MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC | MountFlags::RDONLY,
    )
}

/// The host's own system. The layers say what is shown; nothing else of the host is.
fn host_root(
    system: &Path,
    layers: &[Layer],
    beneath: &mut Beneath,
    built: &mut Built,
) -> Result<PathBuf> {
    let root = PathBuf::from(ROOT);
    let system = format!("{UP}/{}", system.display());
    overlay(&format!("{system}/root"), "root", &root)?;
    for layer in layers {
        mount_layer(&root, &system, layer, beneath, built)?;
    }
    Ok(root)
}

/// Shows a directory at its own place, under a layer for the sandbox's changes.
fn mount_layer(
    root: &Path,
    system: &str,
    layer: &Layer,
    beneath: &mut Beneath,
    built: &mut Built,
) -> Result<()> {
    let inside = layer.at.strip_prefix("/").unwrap_or(&layer.at);
    let name = inside.to_string_lossy().replace('/', "-");
    let target = root.join(inside);
    if !target.is_dir() {
        fs::create_dir_all(&target).step(|| format!("create {}", target.display()))?;
    }
    let shown = lower_directories(&layer.lower, &layer.at, beneath)?;
    let hide = format!("{system}/hide/{}", inside.display());
    let lower = if Path::new(&hide).is_dir() { format!("{hide}:{shown}") } else { shown.clone() };
    if let Err(error) = overlay(&lower, &name, &target) {
        // Without an overlay the lowest directory can still be shown as it is.
        bind(shown.rsplit(':').next().unwrap_or(&shown), &target)?;
        restrict(&target, MountFlags::NOSUID | MountFlags::NODEV | MountFlags::RDONLY)?;
        built.read_only.push(format!("{}: {error}", layer.at.display()));
    }
    Ok(())
}

fn overlay(lower: &str, name: &str, target: &Path) -> Result<()> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    let (upper, work) = (format!("upper/{name}"), format!("work/{name}"));
    make(&upper)?;
    make(&work)?;
    mount(
        "overlay",
        target,
        flags,
        &format!("lowerdir={lower},upperdir={upper},workdir={work},userxattr"),
    )
}

/// The value of overlayfs' `lowerdir`.
fn lower_directories(lower: &Lower, at: &Path, beneath: &mut Beneath) -> Result<String> {
    match lower {
        Lower::Tree => {
            let tree = beneath
                .trees
                .next()
                .ok_or_else(|| std::io::Error::other("no tree came with the order"))
                .step(|| format!("mount {}", at.display()))?;
            beneath.mounted += 1;
            let place = format!("{TREES}{}", beneath.mounted);
            rustix::mount::move_mount(
                &tree,
                "",
                CWD,
                place.as_str(),
                MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH,
            )
            .step(|| format!("mount {}", at.display()))?;
            Ok(place)
        }
        Lower::OwnedOverHost(path) => Ok(format!("{UP}/{}:{}", path.display(), at.display())),
        Lower::Rootfs => {
            let directory = beneath
                .rootfs
                .as_ref()
                .ok_or_else(|| std::io::Error::other("the seed was parked without one"))
                .step(|| "open the root filesystem".to_owned())?;
            Ok(format!("/proc/self/fd/{}", directory.as_raw_fd()))
        }
    }
}

/// A root filesystem from a directory.
fn rootfs_root(build: &Build, lower: &Lower, beneath: &mut Beneath) -> Result<PathBuf> {
    let root = PathBuf::from(ROOT);
    let lower = lower_directories(lower, Path::new("/"), beneath)?;
    overlay(&lower, "root", &root)?;
    for name in ["dev", "proc", "sys", "tmp", "run", "workspace", "etc"] {
        let path = root.join(name);
        if !path.is_dir() {
            fs::create_dir(&path).step(|| format!("create {}", path.display()))?;
        }
    }
    if build.many_ids {
        ensure_user(&root.join("etc"))?;
    }
    ensure_resolver(&root.join("etc"))?;
    Ok(root)
}

/// Names are asked of the other end of the device.
pub(crate) fn resolver() -> String {
    format!("nameserver {}\n", device::PEER)
}

/// A sandbox that has written its own keeps it.
fn ensure_resolver(etc: &Path) -> Result<()> {
    if fs::symlink_metadata("upper/root/etc/resolv.conf").is_ok() {
        return Ok(());
    }
    let path = etc.join("resolv.conf");
    // Often a link to a file of a service that does not run here.
    let _ = fs::remove_file(&path);
    fs::write(&path, resolver()).step(|| format!("write {}", path.display()))
}

/// Adds our user to a root filesystem whose number nobody has.
fn ensure_user(etc: &Path) -> Result<()> {
    let id = layout::USER_ID.to_string();
    let entries = [
        ("passwd", format!("{0}:x:{id}:{id}::/home/{0}:/bin/sh\n", layout::USER)),
        ("group", format!("{0}:x:{id}:\n", layout::USER)),
    ];
    for (file, line) in entries {
        let path = etc.join(file);
        let mut text = fs::read_to_string(&path).unwrap_or_default();
        if text.lines().any(|line| line.split(':').nth(2) == Some(&id)) {
            continue;
        }
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&line);
        fs::write(&path, text).step(|| format!("write {}", path.display()))?;
    }
    Ok(())
}
