//! A sandbox on disk.
//!
//! ```text
//! sandboxes/ID/sandbox.json   what it was made of
//!              data/          everything of the sandbox's own, owned by its root
//!              host/          where the host listens; bound into the sandbox
//!              door.sock      where the supervisor listens
//!              run.json       while it runs: which process, which cgroups
//!              log            what the supervisor wrote
//! sandboxes/.instance         the name of its cgroups
//! sandboxes/.base/            parts of the host's system as sandboxes see them
//! sandboxes/.new-ID           half-made: removed by reconcile
//! sandboxes/.blank-NAME       waits to become a sandbox: removed by reconcile
//! sandboxes/.gone-ID-N        being removed: removal goes on in reconcile
//! ```

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, IFlags, RenameFlags, ioctl_getflags, ioctl_setflags, renameat_with};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::process::Identity;
use crate::{SandboxId, SandboxSpec};

const NEW: &str = ".new-";
const BLANK: &str = ".blank-";
const GONE: &str = ".gone-";
/// As many as the message to a seed has room for.
pub(super) const MOST_TREES: usize = 6;
const INSTANCE: &str = ".instance";
pub(super) const BASE: &str = ".base";

/// Every sandbox of one data directory.
#[derive(Debug, Clone)]
pub(super) struct Store {
    directory: PathBuf,
}

/// `run.json`
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Run {
    pub(super) process: Identity,
    pub(super) cgroups: String,
    /// Names in `.base/` that it has mounted.
    pub(super) base: Vec<String>,
}

/// The paths of one sandbox.
#[derive(Debug, Clone)]
pub(super) struct Place(pub(super) PathBuf);

impl Place {
    /// The name of its directory.
    pub(super) fn name(&self) -> String {
        self.0.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    pub(super) fn data(&self) -> PathBuf {
        self.0.join("data")
    }

    pub(super) fn host(&self) -> PathBuf {
        self.0.join("host")
    }

    pub(super) fn door(&self) -> PathBuf {
        self.0.join("door.sock")
    }

    pub(super) fn log(&self) -> PathBuf {
        self.0.join("log")
    }

    fn run(&self) -> PathBuf {
        self.0.join("run.json")
    }

    fn spec(&self) -> PathBuf {
        self.0.join("sandbox.json")
    }

    pub(super) fn read_spec(&self) -> io::Result<SandboxSpec> {
        read(&self.spec())
    }

    pub(super) fn read_run(&self) -> Option<Run> {
        read(&self.run()).ok()
    }

    /// Notes who will run here. It counts from [`Place::publish_run`] on.
    pub(super) fn write_run(&self, run: &Run) -> io::Result<()> {
        fs::write(self.next_run(), serde_json::to_vec(run)?)
    }

    /// Replaces it whole: a reader sees the old one or the new one.
    pub(super) fn publish_run(&self) -> io::Result<()> {
        fs::rename(self.next_run(), self.run())
    }

    fn next_run(&self) -> PathBuf {
        self.0.join("run.json.new")
    }

    /// Forgets that it ran.
    pub(super) fn clear_run(&self) -> io::Result<()> {
        for path in [self.door(), self.run()] {
            match fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }
}

impl Store {
    pub(super) fn open(data_dir: &Path) -> io::Result<Self> {
        let directory = data_dir.join("sandboxes");
        fs::DirBuilder::new().recursive(true).mode(0o700).create(data_dir)?;
        fs::DirBuilder::new().recursive(true).create(directory.join(BASE))?;
        // Where seeds mount, each in its own namespace.
        let trees = (1..=MOST_TREES).map(|number| format!("tree{number}"));
        for mount_point in trees.chain(["root".to_owned()]) {
            fs::DirBuilder::new().recursive(true).create(directory.join(BASE).join(mount_point))?;
        }
        // Seeds pass through with ids that are not ours; the data directory above stays closed.
        for open in [&directory, &directory.join(BASE)] {
            fs::set_permissions(open, fs::Permissions::from_mode(0o711))?;
            spread(open);
        }
        Ok(Self { directory })
    }

    /// What this data directory calls itself in the kernel, made up the first time.
    pub(super) fn instance(&self) -> io::Result<String> {
        let path = self.directory.join(INSTANCE);
        match fs::read_to_string(&path) {
            Ok(name) if !name.is_empty() => return Ok(name),
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut random = [0_u8; 6];
        rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())?;
        let name =
            random.iter().fold("nacre-".to_owned(), |name, byte| format!("{name}{byte:02x}"));
        let new = self.directory.join(".instance-new");
        fs::write(&new, &name)?;
        fs::rename(new, path)?;
        Ok(name)
    }

    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Layers of the base, shared by all sandboxes.
    pub(super) fn base(&self) -> PathBuf {
        self.directory.join(BASE)
    }

    pub(super) fn place(&self, id: &SandboxId) -> Place {
        Place(self.directory.join(id.as_str()))
    }

    pub(super) fn exists(&self, id: &SandboxId) -> bool {
        self.place(id).0.is_dir()
    }

    pub(super) fn new_place(&self, id: &SandboxId) -> Place {
        Place(self.directory.join(format!("{NEW}{id}")))
    }

    /// Where a sandbox waits that nobody has asked for yet.
    pub(super) fn blank_place(&self, name: &str) -> Place {
        Place(self.directory.join(format!("{BLANK}{name}")))
    }

    /// Makes what lies at `from` exist as this sandbox, all at once.
    pub(super) fn publish(
        &self,
        from: &Place,
        id: &SandboxId,
        spec: &SandboxSpec,
    ) -> io::Result<()> {
        fs::write(from.spec(), serde_json::to_vec_pretty(spec)?)?;
        Ok(renameat_with(CWD, &from.0, CWD, self.place(id).0, RenameFlags::NOREPLACE)?)
    }

    /// Takes a sandbox out of existence, all at once, and says what is left to remove.
    pub(super) fn retire(&self, id: &SandboxId) -> io::Result<PathBuf> {
        let mut number = 0;
        loop {
            let gone = self.directory.join(format!("{GONE}{id}-{number}"));
            match renameat_with(CWD, self.place(id).0, CWD, &gone, RenameFlags::NOREPLACE) {
                Ok(()) => return Ok(gone),
                Err(rustix::io::Errno::EXIST) => number += 1,
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// What a crash left half-made or half-removed. Blanks may be `live`, by their name.
    pub(super) fn leftovers(&self, live: impl Fn(&str) -> bool) -> io::Result<Vec<PathBuf>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.directory)? {
            let entry = entry?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let dead_blank = name.strip_prefix(BLANK).is_some_and(|name| !live(name));
            if name.starts_with(NEW) || name.starts_with(GONE) || dead_blank {
                found.push(entry.path());
            }
        }
        Ok(found)
    }

    pub(super) fn ids(&self) -> io::Result<Vec<SandboxId>> {
        let mut ids = Vec::new();
        for entry in fs::read_dir(&self.directory)? {
            if let Some(Ok(id)) = entry?.file_name().to_str().map(str::parse) {
                ids.push(id);
            }
        }
        ids.sort();
        Ok(ids)
    }
}

/// Tells ext4 that what is in a directory is unrelated (`chattr +T`), so each of it gets a part of
/// the disk to itself. Otherwise they share one, and without a journal ext4 looks at every inode
/// there that was freed in the last minute before it makes a file. Others do not know the flag.
fn spread(directory: &Path) {
    let Ok(directory) = fs::File::open(directory) else { return };
    if let Ok(flags) = ioctl_getflags(&directory)
        && !flags.contains(IFlags::TOPDIR)
    {
        let _ = ioctl_setflags(&directory, flags | IFlags::TOPDIR);
    }
}

/// The folder that all sandboxes see, open to every id, and where it is.
pub(super) fn make_shared(folder: &Path) -> io::Result<PathBuf> {
    let folder = std::path::absolute(folder)?;
    fs::DirBuilder::new().recursive(true).create(&folder)?;
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755))?;
    Ok(folder)
}

/// Creates everything of a sandbox but what it holds and what it is made of.
pub(super) fn make_place(place: &Place) -> io::Result<()> {
    fs::DirBuilder::new().mode(0o711).create(&place.0)?;
    // Open to the sandbox's ids; only who may enter the directory above gets here.
    fs::DirBuilder::new().mode(0o755).create(place.host())
}

/// Creates `data/` and gives it to root of the sandbox.
pub(super) fn make_data(place: &Place, owner: (u32, u32)) -> io::Result<()> {
    fs::DirBuilder::new().mode(0o755).create(place.data())?;
    chown(place.data(), Some(owner.0), Some(owner.1))
}

/// The log, with one older one kept when it has grown.
pub(super) fn open_log(place: &Place) -> io::Result<fs::File> {
    const LARGE: u64 = 4 << 20;
    let log = place.log();
    if fs::metadata(&log).is_ok_and(|metadata| metadata.len() > LARGE) {
        fs::rename(&log, place.0.join("log.1"))?;
    }
    fs::OpenOptions::new().create(true).append(true).mode(0o600).open(log)
}

fn read<T: DeserializeOwned>(path: &Path) -> io::Result<T> {
    Ok(serde_json::from_slice(&fs::read(path)?)?)
}
