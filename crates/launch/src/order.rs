//! What the host tells a launcher, and what it answers. One JSON message each, see [`Control`].
//!
//! [`Control`]: crate::Control

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::clone::Report;

/// The first message to a launcher.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Task {
    /// Make a seed and park it. Answered by [`Reply::Parked`]; a [`Build`] may follow.
    Park(Park),
    /// Create the directory `path`, owned by root of the sandbox. For a host that may not chown.
    MakeDirectory { ids: Ids, path: PathBuf },
    /// Remove `path` and everything in it, whoever in the sandbox owns it.
    Remove { ids: Ids, path: PathBuf },
    /// Make a layer of the base that root of every sandbox owns.
    MakeLayer { ids: Ids, layer: OwnedLayer },
    /// Copy a sandbox's files, in passes: see [`CloneOrder`].
    Clone(CloneTree),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CloneTree {
    pub ids: Ids,
    pub from: PathBuf,
    /// Exists, and is empty.
    pub to: PathBuf,
    /// Names at the top that are not copied.
    pub leave_out: Vec<String>,
}

/// What a launcher with [`Task::Clone`] is told next. It answers each with [`Reply::Passed`] or
/// [`Reply::Cloned`], and says with [`Reply::Copying`] how far it is in between.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum CloneOrder {
    Pass,
    Finish,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Park {
    pub ids: Ids,
    /// The directory that holds all sandboxes. It must be open (`--x`) to ids that are not ours.
    pub sandboxes: PathBuf,
    /// A root filesystem that the order will ask for, when the host cannot pass it as a tree.
    pub rootfs: Option<PathBuf>,
    /// A folder of the host that every sandbox sees at `/opt/nacre`, read-only.
    pub shared: Option<PathBuf>,
    /// Directories of the cgroups to join, one in each hierarchy in use.
    pub cgroups: Vec<PathBuf>,
    /// Makes the kernel end something else first when memory is short, if we may.
    pub oom_score_adj: Option<i32>,
}

/// A copy of a part of the host's system.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnedLayer {
    pub to: PathBuf,
    /// As [`Build::many_ids`].
    pub many_ids: bool,
    pub kind: LayerKind,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum LayerKind {
    /// The directories of a system that are not the host's own, with a copy of what everybody may
    /// read in `/etc`, without the host's secrets and people.
    System,
    /// Only the directories of this tree, so that root of the sandbox may write in them. Files of
    /// an owner who has no number in the sandbox show through from beneath.
    Directories { of: PathBuf },
}

/// How ids in the sandbox map to ids outside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ids {
    pub uids: Vec<IdRange>,
    pub gids: Vec<IdRange>,
    pub writer: MapWriter,
}

/// Who may write the maps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum MapWriter {
    /// The launcher is root.
    Root,
    /// `newuidmap` and `newgidmap`, which check `/etc/subuid` and `/etc/subgid`.
    Helpers,
    /// Anybody may map themselves, if they give up `setgroups`.
    Single,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdRange {
    pub inside: u32,
    pub outside: u32,
    pub count: u32,
}

/// The first message to a parked seed: what to mount. Answered by [`Reply::Built`]; a [`Begin`] may
/// follow. These descriptors come with it, in this order: the listening door, the log, and one for
/// each [`Lower::Tree`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Build {
    /// Its directory in [`Park::sandboxes`]. It may get another name while it is mounted.
    pub directory: String,
    pub base: Base,
    /// Ids other than 0 are mapped, so there can be an unprivileged user.
    pub many_ids: bool,
    /// Size of `/tmp` and of the other memory-backed mounts.
    pub memory_mounts_bytes: u64,
}

/// The second message to a seed: who it is. Answered by [`Reply::Ready`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Begin {
    pub host_name: String,
    /// The most processes, when no cgroup counts them.
    pub max_processes: Option<u64>,
    /// As [`Build::memory_mounts_bytes`]; the mounts get this size if they were built with another.
    pub memory_mounts_bytes: u64,
}

/// What the sandbox's own files lie over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Base {
    /// A system layer, by its path from [`Park::sandboxes`], and directories of the host's own.
    Host { system: PathBuf, layers: Vec<Layer> },
    /// An OCI root filesystem.
    Rootfs { lower: Lower },
}

/// A directory of the sandbox: read-only beneath, with a layer that keeps changes on top.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layer {
    /// Where, in the sandbox and on the host.
    pub at: PathBuf,
    pub lower: Lower,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Lower {
    /// A detached mount that comes as a descriptor, with ids mapped as the sandbox's are.
    Tree,
    /// A layer of directories, by its path from [`Park::sandboxes`], over the host's own.
    OwnedOverHost(PathBuf),
    /// [`Park::rootfs`].
    Rootfs,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reply {
    /// The seed waits; its pid as the host sees it.
    Parked {
        pid: i32,
    },
    /// Everything is mounted.
    Built(Built),
    /// The supervisor runs and the door is open.
    Ready,
    /// An administrative task is done.
    Done,
    Copying {
        files: u64,
        bytes: u64,
    },
    /// A pass is over, and this many names were not as the one before had left them.
    Passed {
        changed: u64,
    },
    Cloned(Report),
    Failed {
        step: String,
        message: String,
        errno: Option<i32>,
    },
}

/// What building found out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct Built {
    /// Directories of the base that could not be made writable, and why.
    pub read_only: Vec<String>,
    /// Why there is no device for packets, if there is none.
    #[serde(default)]
    pub no_device: Option<String>,
    /// Why there is no shared folder, if there should be one.
    #[serde(default)]
    pub no_shared: Option<String>,
}
