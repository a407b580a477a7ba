//! Calls relative to an open directory. Each that changes something is a point where a crash is
//! tested.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{
    self, AtFlags, CWD, FileType, Gid, Mode, OFlags, RenameFlags, Timespec, Timestamps, UTIME_OMIT,
    Uid, XattrFlags,
};
use rustix::io::Errno;

use super::journal::Attributes;
use crate::error::{Context, Result};
use crate::planted::{Fault, is_planted};
use crate::tree::{self, Root, Stat};

/// A directory is locked while a name is made in it: threads that stage far apart do not meet. Few,
/// since ext4 looks for a name among all of a block.
pub(super) const NAMES_PER_FOLDER: u64 = 64;

/// Ends the name of the mark beside a slot.
pub(super) const MARK: &str = ".changed";

/// The folder `staging/OP`. Only this library writes in it.
#[derive(Debug)]
pub(super) struct Staging {
    directory: OwnedFd,
}

impl Staging {
    pub(super) fn open(path: &Path) -> Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = fs::openat(CWD, path, flags, Mode::empty())
            .context(|| format!("open {}", path.display()))?;
        Ok(Self { directory })
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }

    pub(super) fn sync(&self) -> Result<()> {
        fs::syncfs(&self.directory).context(|| "sync the tree".to_owned())
    }

    pub(super) fn make_folders(&self, slots: u64) -> Result<()> {
        for folder in 0..slots.div_ceil(NAMES_PER_FOLDER) {
            fs::mkdirat(&self.directory, PathBuf::from(folder.to_string()), Mode::RWXU)
                .context(|| "make a staging folder".to_owned())?;
        }
        Ok(())
    }
}

/// Where the new thing of a step waits and where the old one ends.
pub(super) fn slot(number: u64) -> PathBuf {
    format!("{}/{number}", number / NAMES_PER_FOLDER).into()
}

/// Where another thing goes that was at the same name.
pub(super) fn further_slot(number: u64, further: u32) -> PathBuf {
    format!("{}/{number}.{further}", number / NAMES_PER_FOLDER).into()
}

/// Is there when what is in the slot was changed after it was recorded, in a way that only its
/// change time told before the rename renewed that.
fn changed_mark(number: u64) -> PathBuf {
    format!("{}/{number}{MARK}", number / NAMES_PER_FOLDER).into()
}

/// Stats `name` itself; the empty name is the directory.
pub(super) fn stat(directory: impl AsFd, name: impl AsRef<Path>) -> Result<Option<Stat>, Errno> {
    // Everything it fails with is the kernel's.
    tree::stat_at(directory, name.as_ref())
        .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
}

pub(super) enum Obstacle {
    /// A directory that may be emptied and removed.
    Directory,
    Special,
}

/// What a file cannot take the place of.
pub(super) fn obstacle(root: &Root, found: &Stat) -> Option<Obstacle> {
    match found.special(root) {
        Some(_) => Some(Obstacle::Special),
        None => found.is_directory().then_some(Obstacle::Directory),
    }
}

/// Puts what is in staging at a name that is free.
pub(super) fn put(
    staging: &Staging,
    slot: &Path,
    parent: &OwnedFd,
    name: &OsStr,
) -> Result<(), Errno> {
    crash::point();
    fs::renameat_with(staging.fd(), slot, parent, name, RenameFlags::NOREPLACE)
}

/// Swaps what is in staging with what is at a name.
pub(super) fn exchange(
    staging: &Staging,
    slot: &Path,
    parent: &OwnedFd,
    name: &OsStr,
) -> Result<(), Errno> {
    crash::point();
    if is_planted(Fault::NameForgotten) {
        return Ok(());
    }
    fs::renameat_with(staging.fd(), slot, parent, name, RenameFlags::EXCHANGE)
}

/// Takes what is at a name to a free place in staging.
pub(super) fn take(
    staging: &Staging,
    slot: &Path,
    parent: &OwnedFd,
    name: &OsStr,
) -> Result<(), Errno> {
    crash::point();
    fs::renameat_with(parent, name, staging.fd(), slot, RenameFlags::NOREPLACE)
}

pub(super) fn remove_directory(parent: &OwnedFd, name: &OsStr) -> Result<(), Errno> {
    crash::point();
    fs::unlinkat(parent, name, AtFlags::REMOVEDIR)
}

pub(super) fn mark_changed(staging: &Staging, slot: u64) -> Result<(), Errno> {
    crash::point();
    let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::CLOEXEC;
    fs::openat(staging.fd(), changed_mark(slot), flags, Mode::RUSR).map(drop)
}

/// Brings owner, attributes and mode of an open thing to what they shall be; `now` is what it has.
/// The descriptor may be one that cannot read, so the calls go by way of `/proc`, which leads to the
/// inode and nowhere else.
pub(super) fn set_attributes(fd: impl AsFd, now: &Stat, to: &Attributes) -> Result<(), Errno> {
    let fd = fd.as_fd();
    let by_proc = PathBuf::from(format!("/proc/self/fd/{}", fd.as_raw_fd()));
    let mut mode_lost = false;
    // The owner first: to change it clears set-id bits and capabilities.
    if (now.uid, now.gid) != (to.uid, to.gid) {
        crash::point();
        let (uid, gid) = (Uid::from_raw(to.uid), Gid::from_raw(to.gid));
        fs::chownat(fd, "", Some(uid), Some(gid), AtFlags::EMPTY_PATH)?;
        mode_lost = true;
    }
    for name in &to.remove_xattrs {
        crash::point();
        match fs::removexattr(&by_proc, name.as_slice()) {
            Ok(()) | Err(Errno::NODATA) => mode_lost = true,
            Err(error) => return Err(error),
        }
    }
    for xattr in &to.set_xattrs {
        crash::point();
        fs::setxattr(&by_proc, xattr.name.as_slice(), &xattr.value, XattrFlags::empty())?;
        mode_lost = true;
    }
    if now.file_type != FileType::Symlink && (mode_lost || now.mode != to.mode) {
        crash::point();
        fs::chmodat(CWD, &by_proc, Mode::from_raw_mode(to.mode), AtFlags::empty())?;
    }
    if let Some(mtime) = to.mtime {
        crash::point();
        let times = Timestamps {
            last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
            last_modification: Timespec {
                tv_sec: mtime.div_euclid(1_000_000_000),
                tv_nsec: mtime.rem_euclid(1_000_000_000),
            },
        };
        fs::utimensat(CWD, &by_proc, &times, AtFlags::empty())?;
    }
    Ok(())
}

/// Nothing more can be done now, whatever the name: better to stop and to go on from the journal
/// than to report every file.
pub(super) fn is_fatal(error: Errno) -> bool {
    matches!(
        error,
        Errno::NOSPC
            | Errno::DQUOT
            | Errno::IO
            | Errno::ROFS
            | Errno::MFILE
            | Errno::NFILE
            | Errno::NOMEM
    )
}

pub(super) fn errno(error: &io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

#[cfg(not(test))]
pub(super) mod crash {
    pub(super) fn point() {}

    #[derive(Clone, Copy)]
    pub(in crate::apply) struct Plan;

    impl Plan {
        pub(in crate::apply) fn of_this_thread() -> Self {
            Self
        }

        pub(in crate::apply) fn adopt(self) {}
    }
}

/// Stops the thread at the chosen change, as if the power had gone.
#[cfg(test)]
pub(super) mod crash {
    use std::cell::Cell;

    thread_local! {
        static CHANGES_LEFT: Cell<Option<u64>> = const { Cell::new(None) };
    }

    struct Crash;

    pub(super) fn point() {
        match CHANGES_LEFT.get() {
            None => {}
            // Not a panic, which would be shown.
            Some(0) => std::panic::resume_unwind(Box::new(Crash)),
            Some(left) => CHANGES_LEFT.set(Some(left - 1)),
        }
    }

    /// When to crash, for a thread that takes over a part of the work: each makes as many changes as
    /// this one could still make.
    #[derive(Clone, Copy)]
    pub(in crate::apply) struct Plan(Option<u64>);

    impl Plan {
        pub(in crate::apply) fn of_this_thread() -> Self {
            Self(CHANGES_LEFT.get())
        }

        pub(in crate::apply) fn adopt(self) {
            CHANGES_LEFT.set(self.0);
        }
    }

    /// `None` when it crashed before `changes` were made.
    pub(in crate::apply) fn after<T>(changes: u64, run: impl FnOnce() -> T) -> Option<T> {
        CHANGES_LEFT.set(Some(changes));
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
        CHANGES_LEFT.set(None);
        match done {
            Ok(value) => Some(value),
            Err(payload) if payload.is::<Crash>() => None,
            Err(payload) => std::panic::resume_unwind(payload),
        }
    }
}
