//! Whole trees: copying and removing, by descriptors, never through a symlink.

use std::ffi::{CStr, CString, OsStr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use nacre_wire::files::FileKind;
use nacre_wire::{ApiError, ErrorKind};
use rustix::fs::{
    AtFlags, Mode, OFlags, Timespec, Timestamps, copy_file_range, fchmod, fstat, futimens,
    ioctl_ficlone, mkdirat, openat, readlinkat, renameat, statat, symlinkat, unlinkat,
};
use rustix::io::Errno;

use super::directory::{names, open_directory};
use super::draft::temporary_name;
use super::fault::{at, bad_request, invalid};
use super::read::regular;
use super::version::kind;

/// Each level holds a descriptor or two.
const DEEPEST: usize = 256;

fn deeper(depth: usize, path: &Path) -> Result<usize, ApiError> {
    if depth >= DEEPEST {
        return Err(invalid(path, "directories are nested too deeply"));
    }
    Ok(depth + 1)
}

fn below(path: &Path, name: &CStr) -> PathBuf {
    path.join(OsStr::from_bytes(name.to_bytes()))
}

/// Removes `name` in `parent` with all that is in it.
pub(crate) fn remove(parent: BorrowedFd<'_>, name: &CStr, path: &Path) -> Result<(), ApiError> {
    let mut removal = Removal { top: parent, waiting: vec![name.to_owned()] };
    while let Some(name) = removal.waiting.pop() {
        removal.level(parent, &name, path, 0)?;
    }
    Ok(())
}

struct Removal<'a> {
    top: BorrowedFd<'a>,
    /// What lay too deep to reach with one descriptor per level and was moved to the top.
    waiting: Vec<CString>,
}

impl Removal<'_> {
    fn level(
        &mut self,
        parent: BorrowedFd<'_>,
        name: &CStr,
        path: &Path,
        depth: usize,
    ) -> Result<(), ApiError> {
        match unlinkat(parent, name, AtFlags::empty()) {
            Ok(()) => return Ok(()),
            // Linux says "is a directory"; some filesystems keep to POSIX's "not permitted".
            Err(Errno::ISDIR | Errno::PERM) => {}
            Err(error) => return Err(at(path)(error)),
        }
        if depth == DEEPEST {
            let aside = temporary_name()?;
            renameat(parent, name, self.top, &aside).map_err(at(path))?;
            self.waiting.push(aside);
            return Ok(());
        }
        let directory = open_directory(parent, name).map_err(at(path))?;
        for child in names(&directory).map_err(at(path))? {
            match self.level(directory.as_fd(), &child, &below(path, &child), depth + 1) {
                Err(error) if error.kind != ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        unlinkat(parent, name, AtFlags::REMOVEDIR).map_err(at(path))
    }
}

/// One copy in progress: what must not be copied into itself.
#[derive(Debug, Default)]
pub(crate) struct Copier {
    top: Option<(u64, u64)>,
}

impl Copier {
    /// Copies `name` in `from` to a new entry `to_name` in `to`.
    pub(crate) fn copy(
        &mut self,
        from: (BorrowedFd<'_>, &CStr),
        to: (BorrowedFd<'_>, &CStr),
        path: &Path,
    ) -> Result<(), ApiError> {
        self.level(from, to, path, 0)
    }

    fn level(
        &mut self,
        (from, name): (BorrowedFd<'_>, &CStr),
        (to, to_name): (BorrowedFd<'_>, &CStr),
        path: &Path,
        depth: usize,
    ) -> Result<(), ApiError> {
        let stat = statat(from, name, AtFlags::SYMLINK_NOFOLLOW).map_err(at(path))?;
        match kind(&stat) {
            FileKind::File => copy_file(path, from, name, to, to_name),
            FileKind::Symlink => readlinkat(from, name, Vec::new())
                .and_then(|target| symlinkat(target, to, to_name))
                .map_err(at(path)),
            FileKind::Directory => {
                if self.top == Some((stat.st_dev, stat.st_ino)) {
                    return Err(invalid(path, "a directory cannot be copied into itself"));
                }
                let source = open_directory(from, name).map_err(at(path))?;
                self.directory(&source, (to, to_name), path, deeper(depth, path)?)
            }
            FileKind::Fifo => rustix::fs::mknodat(
                to,
                to_name,
                rustix::fs::FileType::Fifo,
                Mode::from_raw_mode(stat.st_mode & 0o777),
                0,
            )
            .map_err(at(path)),
            // Means nothing without the process that listens on it.
            FileKind::Socket => Ok(()),
            FileKind::BlockDevice | FileKind::CharDevice | FileKind::Unknown => {
                Err(bad_request(format!("{}: a device cannot be copied", path.display())))
            }
        }
    }

    fn directory(
        &mut self,
        source: &OwnedFd,
        (to, to_name): (BorrowedFd<'_>, &CStr),
        path: &Path,
        depth: usize,
    ) -> Result<(), ApiError> {
        mkdirat(to, to_name, Mode::from_raw_mode(0o700)).map_err(at(path))?;
        let made = open_directory(to, to_name).map_err(at(path))?;
        if self.top.is_none() {
            let top = fstat(&made).map_err(at(path))?;
            self.top = Some((top.st_dev, top.st_ino));
        }
        for child in names(source).map_err(at(path))? {
            let (from, to) = ((source.as_fd(), child.as_c_str()), (made.as_fd(), child.as_c_str()));
            match self.level(from, to, &below(path, &child), depth) {
                Err(error) if error.kind != ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        let stat = fstat(source).map_err(at(path))?;
        keep(&made, &stat).map_err(at(path))
    }
}

fn copy_file(
    path: &Path,
    from: BorrowedFd<'_>,
    name: &CStr,
    to: BorrowedFd<'_>,
    to_name: &CStr,
) -> Result<(), ApiError> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let source = openat(from, name, flags, Mode::empty()).map_err(at(path))?;
    let source = regular(path, source)?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let made = openat(to, to_name, flags, Mode::from_raw_mode(0o600)).map_err(at(path))?;
    copy_content(&source.fd, &made).and_then(|()| keep(&made, &source.stat)).map_err(at(path))
}

/// Shares the blocks where the filesystem can, copies in the kernel where it cannot.
fn copy_content(source: &OwnedFd, target: &OwnedFd) -> Result<(), Errno> {
    const AT_ONCE: usize = 1 << 30;
    if ioctl_ficlone(target, source).is_ok() {
        return Ok(());
    }
    loop {
        match copy_file_range(source, None, target, None, AT_ONCE) {
            Ok(0) => return Ok(()),
            Ok(_) | Err(Errno::INTR) => {}
            Err(Errno::XDEV | Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP | Errno::PERM) => {
                return copy_through(source, target);
            }
            Err(error) => return Err(error),
        }
    }
}

/// From wherever both files stand to the end.
fn copy_through(source: &OwnedFd, target: &OwnedFd) -> Result<(), Errno> {
    let mut buffer = vec![0; 256 * 1024];
    loop {
        let count = rustix::io::read(source, &mut buffer[..])?;
        if count == 0 {
            return Ok(());
        }
        let mut rest = &buffer[..count];
        while !rest.is_empty() {
            rest = &rest[rustix::io::write(target, rest)?..];
        }
    }
}

/// Mode (without set-id bits, which belong to the owner of the original) and modification time.
fn keep(made: &OwnedFd, stat: &rustix::fs::Stat) -> Result<(), Errno> {
    fchmod(made, Mode::from_raw_mode(stat.st_mode & 0o1777))?;
    let modified = Timespec { tv_sec: stat.st_mtime, tv_nsec: stat.st_mtime_nsec as i64 };
    futimens(made, &Timestamps { last_access: modified, last_modification: modified })
}

/// A copy that is removed unless it is moved into place.
#[derive(Debug)]
pub(crate) struct Scratch<'a> {
    pub parent: BorrowedFd<'a>,
    pub name: CString,
}

impl Drop for Scratch<'_> {
    fn drop(&mut self) {
        // Missing once it was moved into place.
        let _ = remove(self.parent, &self.name, Path::new(""));
    }
}
