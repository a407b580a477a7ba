//! What sandboxes lie over: the host's own system, or a root filesystem.
//!
//! Files in a sandbox belong to ids that mean nothing outside, and files of the host belong to ids
//! that mean nothing inside. Root bridges that with id-mapped mounts, made for each start. Others
//! may not, so their sandboxes get a shared layer of directories that root of the sandbox owns, with
//! the host's files showing through: new files can be written anywhere, the host's replaced, but not
//! changed in place. `/etc` is a copy in either case, of what everybody may read.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

use nacre_launch::order::{Base, Ids, Layer, LayerKind, Lower, OwnedLayer, Task};
use rustix::fs::CWD;
use rustix::mount::{OpenTreeFlags, open_tree};

use super::files::{BASE, MOST_TREES, Store};
use super::ids::IdPlan;
use super::nursery::Nursery;

pub(super) struct BaseSystem {
    directory: PathBuf,
    admin: Ids,
    many_ids: bool,
    /// This process is root and may map ids of a mount.
    may_map: bool,
    /// Directories of the host that sandboxes see.
    shown: Vec<PathBuf>,
    /// Layers known to be there, by what they are made from.
    ready: Mutex<HashMap<PathBuf, String>>,
}

/// What a seed needs to be told about the base.
pub(super) struct Prepared {
    pub(super) base: Base,
    /// One for each [`Lower::Tree`] in it.
    pub(super) trees: Vec<OwnedFd>,
    /// Names of the shared layers in it.
    pub(super) owned: Vec<String>,
}

impl BaseSystem {
    pub(super) fn new(store: &Store, ids: &IdPlan, also: Vec<PathBuf>) -> Self {
        let aliases = ["bin", "sbin", "lib", "lib32", "lib64", "libx32"];
        let separate =
            aliases.iter().map(|name| Path::new("/").join(name)).filter(|path| !path.is_symlink());
        let shown = std::iter::once(PathBuf::from("/usr"))
            .chain(separate)
            .chain([PathBuf::from("/var/lib/dpkg")])
            .chain(also)
            .filter(|path| path.is_dir())
            .collect();
        Self {
            directory: store.base(),
            admin: ids.admin.clone(),
            many_ids: ids.many,
            may_map: ids.chown_to.is_some(),
            shown,
            ready: Mutex::default(),
        }
    }

    /// Whether a seed has to be told of a root filesystem before it gives up our identity.
    pub(super) fn seed_opens_rootfs(&self) -> bool {
        !self.may_map
    }

    /// Everything a seed needs to mount its base. `pid` is the seed, whose ids the trees map to.
    pub(super) fn prepare(
        &self,
        nursery: &Nursery,
        pid: i32,
        rootfs: Option<&Path>,
    ) -> io::Result<Prepared> {
        if let Some(rootfs) = rootfs {
            return self.prepare_rootfs(pid, rootfs);
        }
        let system = self.layer(nursery, None)?;
        let (mut layers, mut trees, mut owned) = (Vec::new(), Vec::new(), vec![system.clone()]);
        for at in &self.shown {
            let mapped = self.may_map.then(|| mapped_tree(at, pid)).transpose();
            let lower = match mapped {
                Ok(Some(tree)) => {
                    trees.push(tree);
                    if trees.len() > MOST_TREES {
                        let why =
                            format!("at most {MOST_TREES} directories of the host can be shown");
                        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
                    }
                    Lower::Tree
                }
                // Not every filesystem can map ids; the shared layer does without.
                Ok(None) | Err(_) => {
                    let name = self.layer(nursery, Some(at))?;
                    owned.push(name.clone());
                    Lower::OwnedOverHost(Path::new(BASE).join(name))
                }
            };
            layers.push(Layer { at: at.clone(), lower });
        }
        Ok(Prepared {
            base: Base::Host { system: Path::new(BASE).join(system), layers },
            trees,
            owned,
        })
    }

    fn prepare_rootfs(&self, pid: i32, rootfs: &Path) -> io::Result<Prepared> {
        let (lower, trees) = if self.may_map {
            (Lower::Tree, vec![mapped_tree(rootfs, pid)?])
        } else {
            (Lower::Rootfs, Vec::new())
        };
        Ok(Prepared { base: Base::Rootfs { lower }, trees, owned: Vec::new() })
    }

    /// The shared layer of directories of `of`, or the system layer, made now if it is missing or
    /// the host's has changed since.
    fn layer(&self, nursery: &Nursery, of: Option<&Path>) -> io::Result<String> {
        // Held while it is made: two starts at once need one layer.
        let mut ready = self.ready();
        let key = of.unwrap_or(Path::new("/")).to_owned();
        if let Some(name) = ready.get(&key) {
            return Ok(name.clone());
        }
        let ids = if self.many_ids { "m" } else { "s" };
        let (kind, name) = match of {
            None => (LayerKind::System, format!("system-{ids}{:016x}", fingerprint_system())),
            Some(of) => {
                let stem = of.strip_prefix("/").unwrap_or(of).to_string_lossy().replace('/', "-");
                let name = format!("{stem}-{ids}{:016x}", fingerprint_packages());
                (LayerKind::Directories { of: of.to_owned() }, name)
            }
        };
        let to = self.directory.join(&name);
        if !to.is_dir() {
            let layer = OwnedLayer { to, many_ids: self.many_ids, kind };
            nursery.administer(&Task::MakeLayer { ids: self.admin.clone(), layer })?;
        }
        ready.insert(key, name.clone());
        Ok(name)
    }

    fn ready(&self) -> MutexGuard<'_, HashMap<PathBuf, String>> {
        self.ready.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Removes layers of earlier states of the host that no sandbox has mounted, and half-made ones.
    pub(super) fn prune(&self, nursery: &Nursery, used: &[String]) {
        // What this process has made is in use, even by sandboxes that only wait to be needed. Read
        // before the other lock is taken: who makes a layer has this one and waits for that.
        let ready: Vec<String> = self.ready().values().cloned().collect();
        // A launcher that makes a layer holds the lock, even when the process that asked for the
        // layer is gone. What it is making must not be removed; the next start prunes instead.
        let Ok(alone) = fs::File::open(&self.directory) else { return };
        if alone.try_lock().is_err() {
            return;
        }
        let Ok(entries) = fs::read_dir(&self.directory) else { return };
        let system = format!("{:016x}", fingerprint_system());
        let packages = format!("{:016x}", fingerprint_packages());
        for entry in entries.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let current =
                name.ends_with(&system) || name.ends_with(&packages) || ready.contains(&name);
            // Mount points have no dash in their names.
            if name.contains('-') && !current && !used.contains(&name) {
                let task = Task::Remove { ids: self.admin.clone(), path: entry.path() };
                if let Err(error) = nursery.administer(&task) {
                    tracing::warn!(layer = name, "cannot remove an old layer: {error}");
                }
            }
        }
    }
}

/// A detached copy of the mount at `path` in which ids of the disk are ids of the process's
/// namespace.
fn mapped_tree(path: &Path, pid: i32) -> io::Result<OwnedFd> {
    // <linux/mount.h>
    const MOUNT_ATTR_RDONLY: u64 = 1;
    const MOUNT_ATTR_IDMAP: u64 = 0x0010_0000;
    #[repr(C)]
    struct MountAttr {
        set: u64,
        clear: u64,
        propagation: u64,
        userns: u64,
    }
    let tree =
        open_tree(CWD, path, OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC)?;
    let userns = fs::File::open(format!("/proc/{pid}/ns/user"))?;
    let attributes = MountAttr {
        set: MOUNT_ATTR_IDMAP | MOUNT_ATTR_RDONLY,
        clear: 0,
        propagation: 0,
        userns: userns.as_raw_fd() as u64,
    };
    // SAFETY: the structure has the kernel's layout, its size is passed along, and both descriptors
    // are open.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            tree.as_fd().as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH,
            &raw const attributes,
            size_of::<MountAttr>(),
        )
    };
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(tree) }
}

/// Changes when something in `/etc` does, or when we lay the layer out differently.
fn fingerprint_system() -> u64 {
    const LAYOUT: u8 = 4;
    let mut mark = Mark::default();
    mark.add(&[LAYOUT]);
    let mut todo = vec![PathBuf::from("/etc")];
    while let Some(directory) = todo.pop() {
        let mut entries: Vec<_> = fs::read_dir(directory).into_iter().flatten().flatten().collect();
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let Ok(metadata) = entry.metadata() else { continue };
            mark.add(entry.file_name().as_bytes());
            mark.add(&metadata.mtime_nsec().to_le_bytes());
            mark.add(&metadata.mtime().to_le_bytes());
            mark.add(&metadata.mode().to_le_bytes());
            if metadata.is_dir() {
                todo.push(entry.path());
            }
        }
    }
    mark.0
}

/// Changes when packages are installed or removed, which is when directories come and go.
fn fingerprint_packages() -> u64 {
    let mut mark = Mark::default();
    let places = [
        "/var/lib/dpkg/status",
        "/var/lib/rpm",
        "/usr",
        "/usr/lib",
        "/usr/share",
        "/usr/local/lib",
        "/opt",
    ];
    for path in places {
        let changed = fs::metadata(path).map_or(0, |metadata| metadata.mtime());
        mark.add(&changed.to_le_bytes());
    }
    mark.0
}

/// FNV-1a, which is stable between versions of us.
struct Mark(u64);

impl Default for Mark {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Mark {
    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}
