//! Layers of the base that all sandboxes share, owned by ids of the sandboxes.
//!
//! The system layer holds `root/`, what a sandbox finds where the host's own directories do not
//! show, and `hide/`, which takes things away from those that do.

mod accounts;
mod copy;

use std::fs;
use std::os::unix::fs::{PermissionsExt, lchown, symlink};
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::layout::{USER, USER_ID};
use crate::order::{LayerKind, OwnedLayer};
use crate::{Result, Step};

/// Path, mode.
const DIRECTORIES: &[(&str, u32)] = &[
    ("usr", 0o755),
    ("opt", 0o755),
    ("opt/nacre", 0o755),
    ("proc", 0o555),
    ("sys", 0o555),
    ("dev", 0o755),
    ("tmp", 0o1777),
    ("run", 0o755),
    ("workspace", 0o755),
    ("home", 0o755),
    ("root", 0o700),
    ("srv", 0o755),
    ("mnt", 0o755),
    ("media", 0o755),
    ("var", 0o755),
    ("var/cache", 0o755),
    ("var/cache/apt", 0o755),
    ("var/cache/apt/archives", 0o755),
    ("var/cache/apt/archives/partial", 0o755),
    ("var/lib", 0o755),
    ("var/lib/apt", 0o755),
    ("var/lib/apt/lists", 0o755),
    ("var/lib/apt/lists/partial", 0o755),
    ("var/lib/dpkg", 0o755),
    ("var/lib/misc", 0o755),
    ("var/log", 0o755),
    ("var/log/apt", 0o755),
    ("var/mail", 0o775),
    ("var/spool", 0o755),
    ("var/tmp", 0o1777),
];

/// Directories that are links into `/usr` on a merged system and directories elsewhere.
const USR_ALIASES: &[&str] = &["bin", "sbin", "lib", "lib32", "lib64", "libx32"];

/// Root of the sandbox as a job sees it: with many ids, 0 is the host's own user.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Owner {
    root: u32,
}

impl Owner {
    pub(crate) fn new(many_ids: bool) -> Self {
        Self { root: u32::from(many_ids) }
    }

    /// Gives `path` to `id` of the sandbox. We may still write in it afterwards.
    pub(crate) fn own(self, path: &Path, id: u32) -> Result<()> {
        let id = Some(self.root + id);
        lchown(path, id, id).step(|| format!("chown {}", path.display()))
    }

    fn directory(self, path: &Path, mode: u32, id: u32) -> Result<()> {
        let step = || format!("create {}", path.display());
        fs::create_dir(path).step(step)?;
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).step(step)?;
        self.own(path, id)
    }
}

/// Makes a layer at `to`, which must not be there.
pub(crate) fn make(layer: &OwnedLayer, to: &Path) -> Result<()> {
    let owner = Owner::new(layer.many_ids);
    match &layer.kind {
        LayerKind::System => system(to, layer.many_ids, owner),
        LayerKind::Directories { of } => copy::directories(of, to, owner),
    }
}

fn system(to: &Path, many_ids: bool, owner: Owner) -> Result<()> {
    owner.directory(to, 0o755, 0)?;
    let root = to.join("root");
    owner.directory(&root, 0o755, 0)?;
    for (name, mode) in DIRECTORIES {
        owner.directory(&root.join(name), *mode, 0)?;
    }
    let aliases = USR_ALIASES.iter().filter_map(|name| {
        let target = fs::read_link(Path::new("/").join(name)).ok()?;
        Some((*name, target))
    });
    for (name, target) in
        aliases.chain([("var/run", "/run".into()), ("var/lock", "/run/lock".into())])
    {
        symlink(target, root.join(name)).step(|| format!("link {name}"))?;
        owner.own(&root.join(name), 0)?;
    }
    copy::etc(&root.join("etc"), owner)?;
    accounts::write(&root.join("etc"), many_ids, owner)?;
    home(&root, many_ids, owner)?;
    hide(to, owner)
}

fn home(root: &Path, many_ids: bool, owner: Owner) -> Result<()> {
    let (home, id) =
        if many_ids { (root.join("home").join(USER), USER_ID) } else { (root.join("root"), 0) };
    if many_ids {
        owner.directory(&home, 0o750, id)?;
    }
    let Ok(entries) = fs::read_dir("/etc/skel") else { return Ok(()) };
    for entry in
        entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()))
    {
        let target = home.join(entry.file_name());
        fs::copy(entry.path(), &target).step(|| format!("create {}", target.display()))?;
        owner.own(&target, id)?;
    }
    Ok(())
}

/// Some keep secrets in `/usr/local/etc`, and with mapped ids root of a sandbox may read what root
/// of the host may.
fn hide(to: &Path, owner: Owner) -> Result<()> {
    for name in ["hide", "hide/usr", "hide/usr/local"] {
        owner.directory(&to.join(name), 0o755, 0)?;
    }
    let whiteout = to.join("hide/usr/local/etc");
    mknodat(CWD, &whiteout, FileType::CharacterDevice, Mode::empty(), 0)
        .step(|| format!("create {}", whiteout.display()))
}
