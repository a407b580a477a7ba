//! Unpacking a tar stream into a folder, and nowhere else.
//!
//! Every entry is placed beneath the folder's descriptor by the kernel, with symlinks on the way
//! refused: whether the archive brought the symlink or somebody swapped it in makes no difference.

use std::ffi::{CString, OsStr};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nacre_wire::ApiError;
use nacre_wire::files::Unpacked;
use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, ResolveFlags, Timespec, Timestamps, fchmod, futimens, linkat,
    mkdirat, openat, openat2, statat, symlinkat, unlinkat, utimensat,
};
use rustix::io::Errno;
use tar::EntryType;

use super::fault::{at, at_io, bad_request, invalid};
use super::tar_reader::{TarEntry, TarReader};
use super::upload::write_batch;

const BENEATH: ResolveFlags =
    ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS).union(ResolveFlags::NO_MAGICLINKS);
/// Directories get their mode and time when nothing more is put into them. Beyond this many they
/// get it at once, so that memory stays bounded.
const LATER: usize = 65_536;

#[derive(Debug)]
pub(crate) struct Unpacker {
    target: Arc<OwnedFd>,
    /// What the caller calls the folder.
    shown: PathBuf,
    /// The directory of the last entry: archives name neighbours one after the other.
    last_parent: Option<(Vec<u8>, Arc<OwnedFd>)>,
    directories: Vec<Directory>,
    total: Unpacked,
}

#[derive(Debug)]
struct Directory {
    path: Vec<u8>,
    mode: u32,
    modified: i64,
}

/// An entry's path, taken apart and found harmless.
struct Beneath {
    parent: Vec<u8>,
    name: CString,
}

impl Unpacker {
    pub(crate) fn new(target: OwnedFd, shown: PathBuf) -> Self {
        let total = Unpacked::default();
        Self { target: Arc::new(target), shown, last_parent: None, directories: Vec::new(), total }
    }

    pub(crate) fn unpack(mut self, mut archive: TarReader) -> Result<Unpacked, ApiError> {
        let top = self.shown.clone();
        while let Some(entry) = archive.next_entry().map_err(at_io(&top))? {
            self.entry(&entry, &mut archive)?;
            self.total.entries += 1;
        }
        self.last_parent = None;
        // Deepest first, because closing a directory to its owner hides what is below.
        for directory in std::mem::take(&mut self.directories).into_iter().rev() {
            self.finish(&directory);
        }
        Ok(self.total)
    }

    fn entry(&mut self, entry: &TarEntry, archive: &mut TarReader) -> Result<(), ApiError> {
        let shown = self.shown.join(OsStr::from_bytes(&relative(&entry.path)));
        let Some(place) = beneath(&entry.path)? else {
            // The folder itself, which is the caller's and stays as it is.
            return Ok(());
        };
        match entry.kind {
            EntryType::Regular | EntryType::Continuous => self.file(entry, &place, &shown, archive),
            EntryType::Directory => self.directory(entry, place, &shown),
            EntryType::Symlink => self.symlink(entry, &place, &shown),
            EntryType::Link => self.link(entry, &place, &shown),
            EntryType::Char | EntryType::Block | EntryType::Fifo => {
                Err(bad_request(format!("{}: devices and pipes are not unpacked", shown.display())))
            }
            EntryType::GNUSparse => {
                Err(bad_request(format!("{}: sparse entries are not understood", shown.display()))
                    .hint("pack without --sparse"))
            }
            _ => Err(bad_request(format!("{}: an entry of unknown type", shown.display()))),
        }
    }

    fn file(
        &mut self,
        entry: &TarEntry,
        place: &Beneath,
        shown: &Path,
        archive: &mut TarReader,
    ) -> Result<(), ApiError> {
        let parent = self.parent(&place.parent).map_err(at(shown))?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let file = replacing(&parent, &place.name, || {
            openat(&parent, &place.name, flags, Mode::from_raw_mode(0o600))
        })
        .map_err(at(shown))?;
        while let Some(piece) = archive.content().map_err(at_io(shown))? {
            self.total.bytes += write_batch(&file, &[piece]).map_err(at(shown))?;
        }
        fchmod(&file, Mode::from_raw_mode(entry.mode & 0o777)).map_err(at(shown))?;
        futimens(&file, &times(entry.modified)).map_err(at(shown))
    }

    fn directory(
        &mut self,
        entry: &TarEntry,
        place: Beneath,
        shown: &Path,
    ) -> Result<(), ApiError> {
        let parent = self.parent(&place.parent).map_err(at(shown))?;
        match mkdirat(&parent, &place.name, Mode::from_raw_mode(0o700)) {
            Ok(()) => {}
            Err(Errno::EXIST) if is_directory(&parent, &place.name) => {}
            Err(error) => return Err(at(shown)(error)),
        }
        let mut path = place.parent;
        if !path.is_empty() {
            path.push(b'/');
        }
        path.extend_from_slice(place.name.as_bytes());
        let directory = Directory { path, mode: entry.mode & 0o777, modified: entry.modified };
        if self.directories.len() < LATER {
            self.directories.push(directory);
        } else {
            self.finish(&directory);
        }
        Ok(())
    }

    fn symlink(&mut self, entry: &TarEntry, place: &Beneath, shown: &Path) -> Result<(), ApiError> {
        let target = entry.link.as_deref().unwrap_or_default();
        let target = CString::new(target)
            .ok()
            .filter(|target| !target.is_empty())
            .ok_or_else(|| invalid(shown, "a symlink without a target"))?;
        let parent = self.parent(&place.parent).map_err(at(shown))?;
        replacing(&parent, &place.name, || symlinkat(&target, &parent, &place.name))
            .map_err(at(shown))?;
        let _ = utimensat(&parent, &place.name, &times(entry.modified), AtFlags::SYMLINK_NOFOLLOW);
        Ok(())
    }

    /// Only to what lies in the folder too.
    fn link(&mut self, entry: &TarEntry, place: &Beneath, shown: &Path) -> Result<(), ApiError> {
        let source = beneath(entry.link.as_deref().unwrap_or_default())?
            .ok_or_else(|| invalid(shown, "a hard link without a source"))?;
        let from = self.open(&source.parent).map_err(at(shown))?;
        let parent = self.parent(&place.parent).map_err(at(shown))?;
        replacing(&parent, &place.name, || {
            linkat(&from, &source.name, &parent, &place.name, AtFlags::empty())
        })
        .map_err(at(shown))
    }

    fn parent(&mut self, path: &[u8]) -> Result<Arc<OwnedFd>, Errno> {
        if path.is_empty() {
            return Ok(self.target.clone());
        }
        if let Some((known, fd)) = &self.last_parent
            && known == path
        {
            return Ok(fd.clone());
        }
        let fd = match self.open(path) {
            Err(Errno::NOENT) => self.make(path)?,
            result => result?,
        };
        let fd = Arc::new(fd);
        self.last_parent = Some((path.to_vec(), fd.clone()));
        Ok(fd)
    }

    fn open(&self, path: &[u8]) -> Result<OwnedFd, Errno> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let path: &[u8] = if path.is_empty() { b"." } else { path };
        openat2(&self.target, path, flags, Mode::empty(), BENEATH)
    }

    fn make(&self, path: &[u8]) -> Result<OwnedFd, Errno> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut fd = self.open(b"")?;
        for name in path.split(|byte| *byte == b'/') {
            match mkdirat(&fd, name, Mode::from_raw_mode(0o777)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error),
            }
            fd = openat(&fd, name, flags, Mode::empty())?;
        }
        Ok(fd)
    }

    /// Best effort: a directory that is somebody else's keeps what it has.
    fn finish(&self, directory: &Directory) {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let path = directory.path.as_slice();
        if let Ok(fd) = openat2(&self.target, path, flags, Mode::empty(), BENEATH) {
            let _ = fchmod(&fd, Mode::from_raw_mode(directory.mode));
            let _ = futimens(&fd, &times(directory.modified));
        }
    }
}

/// `create`, once more after removing what is in the way, unless that is a directory.
fn replacing<T>(
    parent: &OwnedFd,
    name: &CString,
    create: impl Fn() -> Result<T, Errno>,
) -> Result<T, Errno> {
    match create() {
        Err(Errno::EXIST) => {
            unlinkat(parent, name, AtFlags::empty())?;
            create()
        }
        result => result,
    }
}

fn is_directory(parent: &OwnedFd, name: &CString) -> bool {
    statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory)
}

fn times(modified: i64) -> Timestamps {
    let time = Timespec { tv_sec: modified, tv_nsec: 0 };
    Timestamps { last_access: time, last_modification: time }
}

/// For messages, where joining an absolute path would hide the folder.
fn relative(path: &[u8]) -> Vec<u8> {
    let start = path.iter().position(|byte| *byte != b'/').unwrap_or(path.len());
    path[start..].to_vec()
}

/// Refuses what would lead out; `None` for the folder itself.
fn beneath(path: &[u8]) -> Result<Option<Beneath>, ApiError> {
    let shown = Path::new(OsStr::from_bytes(path));
    if path.first() == Some(&b'/') {
        return Err(invalid(shown, "an absolute path in the archive"));
    }
    if path.len() >= 4096 {
        return Err(invalid(shown, "the path is too long"));
    }
    let mut names = Vec::new();
    for name in path.split(|byte| *byte == b'/') {
        match name {
            b"" | b"." => {}
            b".." => return Err(invalid(shown, "\"..\" in the archive")),
            name if name.contains(&0) => return Err(invalid(shown, "the path has a NUL byte")),
            name => names.push(name),
        }
    }
    let Some(name) = names.pop() else { return Ok(None) };
    let name = CString::new(name).map_err(|_| invalid(shown, "the path has a NUL byte"))?;
    Ok(Some(Beneath { parent: names.join(&b'/'), name }))
}
