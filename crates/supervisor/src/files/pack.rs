//! A folder or file as a tar stream, produced a buffer at a time.
//!
//! Between two buffers the walk is a value that waits, not a thread that sleeps.

use std::collections::HashMap;
use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use nacre_wire::ApiError;
use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, Stat, fstat, fstatfs, openat, readlinkat, statat,
};
use rustix::io::Errno;
use tar::{EntryType, Header};

use super::directory::{for_each_name, open_directory};
use super::fault::{at, bad_request, invalid};
use super::root::Root;

const BLOCK: usize = 512;
/// How much one buffer holds before it is sent.
pub(crate) const CHUNK: usize = 512 * 1024;
/// Each level holds a descriptor.
const DEEPEST: usize = 256;
const SYSFS_MAGIC: i64 = 0x6265_6572;
/// Longest name a header holds without an extension.
const NAME_FIELD: usize = 100;

#[derive(Debug)]
pub(crate) struct Packer {
    levels: Vec<Level>,
    file: Option<OpenFile>,
    /// First path of each file with several, by device and inode.
    links: HashMap<(u64, u64), Vec<u8>>,
    shown: PathBuf,
}

#[derive(Debug)]
struct Level {
    directory: OwnedFd,
    names: std::vec::IntoIter<(CString, FileType)>,
    /// Path in the archive, ending in a slash unless it is the top.
    prefix: Vec<u8>,
}

#[derive(Debug)]
struct OpenFile {
    fd: OwnedFd,
    remaining: u64,
    size: u64,
}

impl Packer {
    /// Paths in the archive are relative to a folder; a file has its own name.
    pub(crate) fn start(root: &Root, path: &Path) -> Result<Self, ApiError> {
        let mut packer =
            Self { levels: Vec::new(), file: None, links: HashMap::new(), shown: path.to_owned() };
        match root.directory(path) {
            Ok(directory) => packer.enter(directory, Vec::new())?,
            Err(error) if error.kind == nacre_wire::ErrorKind::NotDirectory => {
                let place = root.followed(path, super::root::Parents::Required)?;
                let kind = FileType::from_raw_mode(place.stat().map_err(at(path))?.st_mode);
                if kind != FileType::RegularFile {
                    return Err(bad_request(format!("{}: not a file or folder", path.display())));
                }
                let names = vec![(place.name, kind)].into_iter();
                packer.levels.push(Level { directory: place.parent, names, prefix: Vec::new() });
            }
            Err(error) => return Err(error),
        }
        Ok(packer)
    }

    /// Adds to `out` until it is full. `false` when the archive is complete.
    pub(crate) fn fill(&mut self, out: &mut Vec<u8>) -> Result<bool, ApiError> {
        while out.len() < CHUNK {
            if self.file.is_some() {
                self.content(out).map_err(at(&self.shown))?;
            } else if !self.advance(out)? {
                out.resize(out.len() + 2 * BLOCK, 0);
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn enter(&mut self, directory: OwnedFd, prefix: Vec<u8>) -> Result<(), ApiError> {
        if self.levels.len() >= DEEPEST {
            return Err(invalid(&self.shown, "directories are nested too deeply"));
        }
        let magic = fstatfs(&directory).map_err(at(&self.shown))?.f_type;
        let mut names = Vec::new();
        // What the kernel makes up on the spot is not worth carrying away.
        if magic != rustix::fs::PROC_SUPER_MAGIC && magic != SYSFS_MAGIC {
            for_each_name(&directory, |name, kind| names.push((name.to_owned(), kind)))
                .map_err(at(&self.shown))?;
            names.sort_unstable_by(|(left, _): &(CString, FileType), (right, _)| left.cmp(right));
        }
        self.levels.push(Level { directory, names: names.into_iter(), prefix });
        Ok(())
    }

    /// Takes the next entry. `false` when there is none left.
    fn advance(&mut self, out: &mut Vec<u8>) -> Result<bool, ApiError> {
        let Some(level) = self.levels.last_mut() else { return Ok(false) };
        let Some((name, kind)) = level.names.next() else {
            self.levels.pop();
            return Ok(true);
        };
        let mut path = level.prefix.clone();
        path.extend_from_slice(name.to_bytes());
        match self.entry(&name, kind, path, out) {
            // Gone since the directory was read.
            Err(error) if error.kind == nacre_wire::ErrorKind::NotFound => Ok(true),
            result => result.map(|()| true),
        }
    }

    fn entry(
        &mut self,
        name: &CStr,
        kind: FileType,
        path: Vec<u8>,
        out: &mut Vec<u8>,
    ) -> Result<(), ApiError> {
        let Some(level) = self.levels.last() else { return Ok(()) };
        let parent = level.directory.as_fd();
        let shown = self.shown.join(Path::new(std::ffi::OsStr::from_bytes(&path)));
        let stat_name = || statat(parent, name, AtFlags::SYMLINK_NOFOLLOW);
        let kind = match kind {
            FileType::Unknown => FileType::from_raw_mode(stat_name().map_err(at(&shown))?.st_mode),
            kind => kind,
        };
        match kind {
            FileType::RegularFile => {
                let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
                let fd = openat(parent, name, flags, Mode::empty()).map_err(at(&shown))?;
                let stat = fstat(&fd).map_err(at(&shown))?;
                // Swapped for something else since the directory was read.
                if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile {
                    self.file(fd, &stat, path, out);
                }
            }
            FileType::Directory => {
                let fd = open_directory(parent, name).map_err(at(&shown))?;
                let stat = fstat(&fd).map_err(at(&shown))?;
                let mut prefix = path;
                prefix.push(b'/');
                header(out, EntryType::Directory, &prefix, &stat, 0, None);
                self.enter(fd, prefix)?;
            }
            FileType::Symlink => {
                let stat = stat_name().map_err(at(&shown))?;
                let target = readlinkat(parent, name, Vec::new()).map_err(at(&shown))?;
                header(out, EntryType::Symlink, &path, &stat, 0, Some(target.to_bytes()));
            }
            // They mean nothing outside of the machine they are on.
            FileType::Fifo
            | FileType::Socket
            | FileType::CharacterDevice
            | FileType::BlockDevice
            | FileType::Unknown => {}
        }
        Ok(())
    }

    fn file(&mut self, fd: OwnedFd, stat: &Stat, path: Vec<u8>, out: &mut Vec<u8>) {
        if stat.st_nlink > 1 {
            let identity = (stat.st_dev, stat.st_ino);
            if let Some(first) = self.links.get(&identity) {
                header(out, EntryType::Link, &path, stat, 0, Some(first));
                return;
            }
            self.links.insert(identity, path.clone());
        }
        let size = stat.st_size as u64;
        header(out, EntryType::Regular, &path, stat, size, None);
        if size > 0 {
            self.file = Some(OpenFile { fd, remaining: size, size });
        }
    }

    fn content(&mut self, out: &mut Vec<u8>) -> Result<(), Errno> {
        let Some(file) = &mut self.file else { return Ok(()) };
        // The longest piece that fits; small files are read whole even when the buffer is
        // nearly full, which costs less than a second read.
        let room = (CHUNK.saturating_sub(out.len())).max(64 * 1024) as u64;
        let length = file.remaining.min(room) as usize;
        out.reserve(length + BLOCK);
        let start = out.len();
        let spare = &mut out.spare_capacity_mut()[..length];
        let read = rustix::io::read(&file.fd, spare)?.0.len();
        if read == 0 {
            // It became shorter; its header is sent, so zeros take the place of the rest.
            out.resize(start + length, 0);
            file.remaining -= length as u64;
        } else {
            // SAFETY: the kernel initialised `read` bytes after the first `start`.
            unsafe { out.set_len(start + read) };
            file.remaining -= read as u64;
        }
        if file.remaining == 0 {
            let padding = file.size.next_multiple_of(BLOCK as u64) - file.size;
            out.resize(out.len() + padding as usize, 0);
            self.file = None;
        }
        Ok(())
    }
}

fn header(
    out: &mut Vec<u8>,
    kind: EntryType,
    path: &[u8],
    stat: &Stat,
    size: u64,
    link: Option<&[u8]>,
) {
    let mut header = Header::new_gnu();
    if let Some(link) = link {
        if link.len() > NAME_FIELD {
            extension(out, EntryType::GNULongLink, link);
        }
        fit(&mut header.as_old_mut().linkname, link);
    }
    if path.len() > NAME_FIELD {
        extension(out, EntryType::GNULongName, path);
    }
    fit(&mut header.as_old_mut().name, path);
    header.set_entry_type(kind);
    header.set_mode(stat.st_mode & 0o7777);
    header.set_uid(u64::from(stat.st_uid));
    header.set_gid(u64::from(stat.st_gid));
    header.set_mtime(stat.st_mtime.max(0) as u64);
    header.set_size(size);
    header.set_cksum();
    out.extend_from_slice(header.as_bytes());
}

/// GNU's way to carry a name of any length: an entry before the entry.
fn extension(out: &mut Vec<u8>, kind: EntryType, name: &[u8]) {
    let mut header = Header::new_gnu();
    fit(&mut header.as_old_mut().name, b"././@LongLink");
    header.set_entry_type(kind);
    header.set_mode(0o644);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header.set_size(name.len() as u64 + 1);
    header.set_cksum();
    out.extend_from_slice(header.as_bytes());
    out.extend_from_slice(name);
    let padding = (name.len() + 1).next_multiple_of(BLOCK) - name.len();
    out.resize(out.len() + padding, 0);
}

fn fit(field: &mut [u8], value: &[u8]) {
    let length = value.len().min(field.len());
    field[..length].copy_from_slice(&value[..length]);
}
