//! Where paths lead: every path of every call is resolved here and nowhere else.
//!
//! A path is resolved by the kernel from one O_PATH descriptor with `RESOLVE_IN_ROOT`, as the
//! acting user, so neither `..` nor a symlink, however fast it is swapped, leads out. What changes
//! a directory works on a [`Place`]: the open parent and a final name that is never resolved again.

use std::ffi::{CString, OsStr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use nacre_wire::{ApiError, ErrorKind};
use rustix::fs::{AtFlags, Mode, OFlags, ResolveFlags, openat, openat2, readlinkat};
use rustix::io::Errno;

use super::fault::{at, invalid};

const CONFINED: ResolveFlags = ResolveFlags::IN_ROOT.union(ResolveFlags::NO_MAGICLINKS);
const PATH_MAX: usize = 4096;
const NAME_MAX: usize = 255;
/// As many as the kernel follows.
const SYMLINKS_MAX: usize = 40;
/// A rename elsewhere makes the kernel give up on a path with `..`; it asks to be called again.
const RETRIES: usize = 128;

/// The directory no call leaves, and where relative paths start in it.
#[derive(Debug)]
pub struct Root {
    fd: OwnedFd,
    workspace: PathBuf,
}

/// An open directory and a name in it.
#[derive(Debug)]
pub struct Place {
    pub parent: OwnedFd,
    pub name: CString,
    /// What the caller called it.
    pub path: PathBuf,
}

impl Root {
    pub fn open(root: &Path, workspace: &Path) -> Result<Self, ApiError> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = openat(rustix::fs::CWD, root, flags, Mode::empty()).map_err(at(root))?;
        Ok(Self { fd, workspace: Path::new("/").join(workspace) })
    }

    /// The absolute form of a path that a caller sent.
    pub fn absolute(&self, path: &Path) -> Result<PathBuf, ApiError> {
        let bytes = path.as_os_str().as_bytes();
        if bytes.is_empty() {
            return Err(invalid(path, "the path is empty"));
        }
        if bytes.contains(&0) {
            return Err(invalid(path, "the path has a NUL byte"));
        }
        let path = self.workspace.join(path);
        let bytes = path.as_os_str().as_bytes();
        if bytes.len() >= PATH_MAX || bytes.split(|b| *b == b'/').any(|name| name.len() > NAME_MAX)
        {
            return Err(invalid(&path, "the path is too long"));
        }
        Ok(path)
    }

    /// Opens what `path` (absolute) leads to.
    pub fn descend(&self, path: &Path, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
        for _ in 0..RETRIES {
            match openat2(&self.fd, path, flags | OFlags::CLOEXEC, mode, CONFINED) {
                Err(Errno::AGAIN) => {}
                done => return done,
            }
        }
        Err(Errno::AGAIN)
    }

    pub fn directory(&self, path: &Path) -> Result<OwnedFd, ApiError> {
        self.descend(path, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()).map_err(at(path))
    }

    /// The open parent of `path` (absolute) and its last name.
    pub fn place(&self, path: &Path) -> Result<Place, ApiError> {
        let (parent, name) = split(path)?;
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        let parent = self.descend(parent, flags, Mode::empty()).map_err(at(path))?;
        Ok(Place { parent, name, path: path.to_owned() })
    }

    /// Like [`Root::place`], with missing parents created.
    pub fn place_with_parents(&self, path: &Path) -> Result<Place, ApiError> {
        let (parent, name) = split(path)?;
        Ok(Place { parent: self.make_directories(parent)?, name, path: path.to_owned() })
    }

    /// The place behind the symlinks that `path` ends in, whether or not something is there.
    pub fn followed(&self, path: &Path, parents: Parents) -> Result<Place, ApiError> {
        let mut current = path.to_owned();
        for _ in 0..SYMLINKS_MAX {
            let place = match parents {
                Parents::Required => self.place(&current)?,
                Parents::Create => self.place_with_parents(&current)?,
            };
            let target = match readlinkat(&place.parent, &place.name, Vec::new()) {
                Ok(target) => target,
                Err(Errno::INVAL | Errno::NOENT) => return Ok(place),
                Err(error) => return Err(at(path)(error)),
            };
            let target = PathBuf::from(std::ffi::OsString::from_vec(target.into_bytes()));
            // Resolved again from the root, so a hostile target is confined like any path.
            current = self.absolute(&current.parent().unwrap_or(Path::new("/")).join(target))?;
        }
        Err(at(path)(Errno::LOOP))
    }

    /// `mkdir -p`, returning the last directory as an O_PATH descriptor.
    pub fn make_directories(&self, path: &Path) -> Result<OwnedFd, ApiError> {
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        let mut missing = Vec::new();
        let mut existing = path;
        let mut fd = loop {
            match self.descend(existing, flags, Mode::empty()) {
                Ok(fd) => break fd,
                Err(Errno::NOENT) if existing != Path::new("/") => {
                    let (parent, name) = split(existing)?;
                    missing.push(name);
                    existing = parent;
                }
                Err(error) => return Err(at(path)(error)),
            }
        };
        for name in missing.into_iter().rev() {
            match rustix::fs::mkdirat(&fd, &name, Mode::from_raw_mode(0o777)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(at(path)(error)),
            }
            // Just created, so a symlink here was swapped in.
            let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            fd = openat(&fd, &name, flags, Mode::empty()).map_err(at(path))?;
        }
        Ok(fd)
    }
}

/// What to do about directories on the way that do not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parents {
    Required,
    Create,
}

impl Place {
    pub fn stat(&self) -> Result<rustix::fs::Stat, Errno> {
        rustix::fs::statat(&self.parent, &self.name, AtFlags::SYMLINK_NOFOLLOW)
    }

    pub fn fd(&self) -> BorrowedFd<'_> {
        self.parent.as_fd()
    }

    /// Another name in the same directory.
    pub fn beside(&self, name: CString) -> Result<Self, ApiError> {
        let parent = self.parent.try_clone().map_err(|error| {
            ApiError::new(ErrorKind::Unavailable, format!("{}: {error}", self.path.display()))
        })?;
        let shown = OsStr::from_bytes(name.as_bytes());
        Ok(Self { parent, path: self.path.with_file_name(shown), name })
    }
}

fn split(path: &Path) -> Result<(&Path, CString), ApiError> {
    let bytes = path.as_os_str().as_bytes();
    let end = bytes.iter().rposition(|b| *b != b'/').map_or(0, |last| last + 1);
    let trimmed = &bytes[..end];
    let cut = trimmed.iter().rposition(|b| *b == b'/').map_or(0, |slash| slash + 1);
    let (parent, name) = trimmed.split_at(cut);
    if matches!(name, b"" | b"." | b"..") {
        return Err(invalid(path, "the path does not end in a name"));
    }
    let name = CString::new(name).map_err(|_| invalid(path, "the path has a NUL byte"))?;
    let parent = if parent.is_empty() { b"/" } else { parent };
    Ok((Path::new(OsStr::from_bytes(parent)), name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, expected: Option<(&str, &str)>) {
        let found = split(Path::new(path)).ok();
        let found = found.as_ref().map(|(p, n)| (p.to_str().unwrap(), n.to_str().unwrap()));
        assert_eq!(found, expected, "{path}");
    }

    #[test]
    fn a_path_splits_into_parent_and_name() {
        check("/a", Some(("/", "a")));
        check("/a/b", Some(("/a/", "b")));
        check("/a/b///", Some(("/a/", "b")));
        check("/a/../b", Some(("/a/../", "b")));
        for nameless in ["/", "///", "/a/..", "/a/.", "/a/./", "/.."] {
            check(nameless, None);
        }
    }
}
