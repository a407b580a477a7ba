//! One name: a file, a link, or what overlayfs puts where something was removed.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{
    AtFlags, FileType, Gid, Mode, OFlags, Stat, Timespec, Timestamps, Uid, chownat, fchmod, fchown,
    fgetxattr, flistxattr, fremovexattr, fsetxattr, futimens, mknodat, openat, readlinkat,
    symlinkat, utimensat,
};
use rustix::io::Errno;

use super::data;

/// The largest list of attributes, and the largest attribute, that Linux has.
const LARGEST: usize = 64 * 1024;

/// A file as it was when it was copied.
pub(super) struct Copied {
    pub(super) stat: Stat,
    pub(super) writers: bool,
    pub(super) shared: bool,
}

/// Copies a file that is not there yet. `None` when it is not a file any more.
pub(super) fn file(
    from: BorrowedFd<'_>,
    to: BorrowedFd<'_>,
    name: &CStr,
    try_sharing: bool,
) -> io::Result<Option<Copied>> {
    // Without a wait: somebody may just have put a pipe there.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let source = match openat(from, name, flags | OFlags::CLOEXEC, Mode::empty()) {
        Ok(source) => source,
        Err(Errno::NOENT | Errno::LOOP | Errno::NXIO) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let stat = rustix::fs::fstat(&source)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Ok(None);
    }
    let writers = data::may_have_writers(&source, stat.st_uid);
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let copy = openat(to, name, flags, Mode::RUSR | Mode::WUSR)?;
    let shared =
        stat.st_size > 0 && try_sharing && data::share(source.as_fd(), copy.as_fd())?.is_some();
    if !shared && stat.st_size > 0 {
        data::copy(source.as_fd(), copy.as_fd(), &stat)?;
    }
    attributes(source.as_fd(), copy.as_fd())?;
    dress(&copy, &stat)?;
    Ok(Some(Copied { stat, writers, shared }))
}

/// `false` when it is not a link any more.
pub(super) fn symlink(
    from: BorrowedFd<'_>,
    to: BorrowedFd<'_>,
    name: &CStr,
    stat: &Stat,
) -> io::Result<bool> {
    let target: CString = match readlinkat(from, name, Vec::new()) {
        Ok(target) => target,
        Err(Errno::NOENT | Errno::INVAL) => return Ok(false),
        Err(error) => return Err(error.into()),
    };
    symlinkat(target.as_c_str(), to, name)?;
    own(to, name, stat)?;
    Ok(true)
}

/// A device of number 0 is overlayfs' sign that a name of the layer below is gone.
pub(super) fn is_whiteout(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::CharacterDevice && stat.st_rdev == 0
}

pub(super) fn whiteout(to: BorrowedFd<'_>, name: &CStr, stat: &Stat) -> io::Result<()> {
    mknodat(to, name, FileType::CharacterDevice, Mode::from_raw_mode(stat.st_mode), 0)?;
    own(to, name, stat)
}

/// Owner and times of what cannot be opened.
fn own(to: BorrowedFd<'_>, name: &CStr, stat: &Stat) -> io::Result<()> {
    let (owner, group) = (Uid::from_raw(stat.st_uid), Gid::from_raw(stat.st_gid));
    chownat(to, name, Some(owner), Some(group), AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(utimensat(to, name, &times(stat), AtFlags::SYMLINK_NOFOLLOW)?)
}

/// Owner, mode and times. The mode comes after the owner, who is new and would lose its bits.
pub(super) fn dress(to: impl AsFd, stat: &Stat) -> io::Result<()> {
    fchown(&to, Some(Uid::from_raw(stat.st_uid)), Some(Gid::from_raw(stat.st_gid)))?;
    fchmod(&to, Mode::from_raw_mode(stat.st_mode))?;
    Ok(futimens(&to, &times(stat))?)
}

fn times(stat: &Stat) -> Timestamps {
    let time = |seconds, nanoseconds: u64| Timespec {
        tv_sec: seconds,
        tv_nsec: i64::try_from(nanoseconds).unwrap_or(0),
    };
    Timestamps {
        last_access: time(stat.st_atime, stat.st_atime_nsec),
        last_modification: time(stat.st_mtime, stat.st_mtime_nsec),
    }
}

/// Makes the extended attributes of `to` those of `from`.
pub(super) fn attributes(from: BorrowedFd<'_>, to: BorrowedFd<'_>) -> io::Result<()> {
    let (wanted, had) = (names(from)?, names(to)?);
    for name in had.iter().filter(|name| !wanted.contains(name)) {
        tolerate(name, fremovexattr(to, name.as_c_str()))?;
    }
    for name in &wanted {
        let mut value = vec![0; LARGEST];
        let length = match fgetxattr(from, name.as_c_str(), &mut value[..]) {
            Ok(length) => length,
            // Removed meanwhile, or not for us to read.
            Err(Errno::NODATA | Errno::OPNOTSUPP) => continue,
            Err(error) => {
                tolerate(name, Err(error))?;
                continue;
            }
        };
        let set = fsetxattr(to, name.as_c_str(), &value[..length], rustix::fs::XattrFlags::empty());
        tolerate(name, set)?;
    }
    Ok(())
}

fn names(file: BorrowedFd<'_>) -> io::Result<Vec<CString>> {
    // Nearly every file has none or few.
    let mut few = [0_u8; 512];
    let mut many;
    let list = match flistxattr(file, &mut few[..]) {
        Ok(length) => &few[..length],
        Err(Errno::OPNOTSUPP) => return Ok(Vec::new()),
        Err(Errno::RANGE) => {
            many = vec![0; LARGEST];
            let length = flistxattr(file, &mut many[..])?;
            &many[..length]
        }
        Err(error) => return Err(error.into()),
    };
    let names = list.split(|byte| *byte == 0).filter(|name| !name.is_empty());
    Ok(names.filter_map(|name| CString::new(name).ok()).collect())
}

/// What the host's own security module writes, and what a user namespace may not set, stays behind.
fn tolerate(name: &CStr, done: rustix::io::Result<()>) -> io::Result<()> {
    let systems = [&b"security."[..], b"trusted."];
    let foreign = systems.iter().any(|prefix| name.to_bytes().starts_with(prefix));
    match done {
        Err(Errno::PERM | Errno::OPNOTSUPP | Errno::ACCESS) if foreign => Ok(()),
        other => Ok(other?),
    }
}
