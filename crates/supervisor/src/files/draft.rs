//! A new version of a file, written beside the old one and then put in its place at once.
//!
//! ```text
//! Draft::begin ── write ── write ── publish ──► the file
//!       └────────────┴────────┴── dropped ────► nothing
//! ```

use std::ffi::CString;
use std::os::fd::OwnedFd;
use std::path::Path;

use nacre_wire::files::Stat;
use nacre_wire::{ApiError, ErrorKind};
use rustix::fs::{
    Access, AtFlags, Gid, Mode, OFlags, RenameFlags, Uid, accessat, fchmod, fchown, fdatasync,
    fstat, fsync, openat, renameat, renameat_with, unlinkat,
};
use rustix::io::Errno;

use super::fault::{at, bad_request};
use super::identity::act_as;
use super::root::{Parents, Place, Root};
use super::session::Session;
use super::version::{Version, describe, kind};
use nacre_wire::files::FileKind;

/// What must be true of the old version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Condition {
    Always,
    /// `If-None-Match: *`
    Absent,
    /// `If-Match: *`
    Present,
    /// `If-Match: "..."`; a version that cannot be understood never was.
    Version(Option<Version>),
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct WriteOptions {
    pub condition: Condition,
    pub mode: Option<u32>,
    pub parents: Parents,
    pub sync: bool,
}

/// Removes itself unless it is published.
#[derive(Debug)]
pub(crate) struct Draft {
    session: Session,
    target: Place,
    temporary: CString,
    pub file: OwnedFd,
    options: WriteOptions,
    kept: bool,
}

const PREFIX: &[u8] = b".nacre-";
const RANDOM_DIGITS: usize = 16;

/// Whether `name` is one that [`temporary_name`] gives.
pub(crate) fn is_temporary(name: &[u8]) -> bool {
    name.strip_prefix(PREFIX).is_some_and(|digits| {
        digits.len() == RANDOM_DIGITS && digits.iter().all(u8::is_ascii_hexdigit)
    })
}

/// A name nobody else uses, hidden and recognisable when a crash leaves it behind.
pub(crate) fn temporary_name() -> Result<CString, ApiError> {
    let mut random = [0u8; 8];
    // SAFETY: the pointer and length describe a live buffer.
    let got = unsafe { libc::getrandom(random.as_mut_ptr().cast(), random.len(), 0) };
    if got != random.len() as isize {
        return Err(ApiError::new(ErrorKind::Internal, "the kernel gave no random bytes"));
    }
    let name = format!(".nacre-{:016x}", u64::from_ne_bytes(random));
    CString::new(name).map_err(|error| ApiError::new(ErrorKind::Internal, error.to_string()))
}

impl Draft {
    /// Runs on a thread that acts as the session's user, as all of a draft's methods do.
    pub(crate) fn begin(
        session: Session,
        root: &Root,
        path: &Path,
        options: WriteOptions,
    ) -> Result<Self, ApiError> {
        let target = root.followed(path, options.parents)?;
        let old = match target.stat() {
            Ok(stat) => Some(stat),
            Err(Errno::NOENT) => None,
            Err(error) => return Err(at(path)(error)),
        };
        check(path, options.condition, old.as_ref())?;
        if let Some(old) = &old {
            writable(&target, old)?;
        }
        let temporary = temporary_name()?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let file = openat(&target.parent, &temporary, flags, Mode::from_raw_mode(0o600))
            .map_err(at(path))?;
        let draft = Self { session, target, temporary, file, options, kept: false };
        draft.take_after(old.as_ref()).map_err(at(path))?;
        Ok(draft)
    }

    fn take_after(&self, old: Option<&rustix::fs::Stat>) -> Result<(), Errno> {
        if let Some(old) = old {
            let new = fstat(&self.file)?;
            if (old.st_uid, old.st_gid) != (new.st_uid, new.st_gid) {
                // Only root can keep another owner; a user who may replace the file owns the new
                // one.
                let (uid, gid) = (Uid::from_raw(old.st_uid), Gid::from_raw(old.st_gid));
                let _ = fchown(&self.file, Some(uid), Some(gid));
            }
        }
        let kept = old.map(|old| old.st_mode & 0o777);
        let mode = self.options.mode.or(kept).unwrap_or(0o644);
        fchmod(&self.file, Mode::from_raw_mode(mode))
    }

    pub(crate) fn publish(mut self) -> Result<Stat, ApiError> {
        let path = self.target.path.clone();
        if self.options.sync {
            fdatasync(&self.file).map_err(at(&path))?;
        }
        self.take_place()?;
        self.kept = true;
        if self.options.sync {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            openat(&self.target.parent, c".", flags, Mode::empty())
                .and_then(fsync)
                .map_err(at(&path))?;
        }
        let stat = fstat(&self.file).map_err(at(&path))?;
        Ok(describe(&path, &stat, None))
    }

    fn take_place(&self) -> Result<(), ApiError> {
        let (parent, name) = (&self.target.parent, &self.target.name);
        let files = self.session.files.clone();
        let _alone = files.publishing();
        let result = match self.options.condition {
            Condition::Always => renameat(parent, &self.temporary, parent, name),
            Condition::Absent => {
                renameat_with(parent, &self.temporary, parent, name, RenameFlags::NOREPLACE)
            }
            Condition::Present => self.exchange().and_then(|()| self.discard()),
            Condition::Version(version) => return self.replace(version),
        };
        result.map_err(|error| match (error, self.options.condition) {
            (Errno::EXIST, Condition::Absent) => conflict(&self.target.path, "it exists already"),
            (Errno::NOENT, Condition::Present) => conflict(&self.target.path, "it does not exist"),
            (error, _) => at(&self.target.path)(error),
        })
    }

    /// Swaps first and looks afterwards, because between a look and a swap somebody else may
    /// write. What was displaced is either the expected version or goes back where it was.
    fn replace(&self, expected: Option<Version>) -> Result<(), ApiError> {
        let path = &self.target.path;
        let old = self.target.stat().ok();
        check(path, Condition::Version(expected), old.as_ref())?;
        self.exchange().map_err(|error| match error {
            Errno::NOENT => conflict(path, "it does not exist"),
            error => at(path)(error),
        })?;
        let displaced = self.at_temporary().map_err(at(path))?;
        if expected.is_some_and(|version| version.same_content(Version::of(&displaced))) {
            return self.discard().map_err(at(path));
        }
        self.exchange().map_err(at(path))?;
        let own = fstat(&self.file).map_err(at(path))?.st_ino;
        if self.at_temporary().map_err(at(path))?.st_ino != own {
            // Somebody wrote between the two swaps: theirs is the newest, so it stays.
            self.exchange().map_err(at(path))?;
        }
        Err(conflict(path, "it is another version"))
    }

    fn exchange(&self) -> Result<(), Errno> {
        let (parent, name) = (&self.target.parent, &self.target.name);
        renameat_with(parent, &self.temporary, parent, name, RenameFlags::EXCHANGE)
    }

    fn at_temporary(&self) -> Result<rustix::fs::Stat, Errno> {
        rustix::fs::statat(&self.target.parent, &self.temporary, AtFlags::SYMLINK_NOFOLLOW)
    }

    fn discard(&self) -> Result<(), Errno> {
        unlinkat(&self.target.parent, &self.temporary, AtFlags::empty())
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if self.kept {
            return;
        }
        let removed = act_as(&self.session.user).map(|_acting| self.discard());
        if let Ok(Err(error)) = removed {
            tracing::warn!(%error, path = %self.target.path.display(), "a draft was left behind");
        }
    }
}

/// Replacing needs what writing would have needed, not only a writable directory.
fn writable(target: &Place, old: &rustix::fs::Stat) -> Result<(), ApiError> {
    let path = &target.path;
    match kind(old) {
        FileKind::File => {}
        FileKind::Directory => return Err(at(path)(Errno::ISDIR)),
        _ => return Err(bad_request(format!("{}: not a regular file", path.display()))),
    }
    let flags = AtFlags::EACCESS | AtFlags::SYMLINK_NOFOLLOW;
    accessat(&target.parent, &target.name, Access::WRITE_OK, flags).map_err(at(path))
}

fn check(
    path: &Path,
    condition: Condition,
    old: Option<&rustix::fs::Stat>,
) -> Result<(), ApiError> {
    match (condition, old) {
        (Condition::Always, _) | (Condition::Absent, None) | (Condition::Present, Some(_)) => {
            Ok(())
        }
        (Condition::Absent, Some(_)) => Err(conflict(path, "it exists already")),
        (Condition::Present | Condition::Version(_), None) => {
            Err(conflict(path, "it does not exist"))
        }
        (Condition::Version(expected), Some(old)) if expected == Some(Version::of(old)) => Ok(()),
        (Condition::Version(_), Some(_)) => Err(conflict(path, "it is another version")),
    }
}

pub(crate) fn conflict(path: &Path, why: &str) -> ApiError {
    ApiError::new(ErrorKind::Conflict, format!("{}: {why}", path.display()))
        .hint("read it again and repeat the change on what is there now")
}
