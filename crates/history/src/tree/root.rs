use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, StatxAttributes, StatxFlags, openat,
    openat2, statx,
};
use rustix::io::Errno;
use rustix::path::Arg;

use crate::entry::Special;
use crate::path::TreePath;

/// The top of the tree. Whoever else writes in it may swap directories for links at any moment, so
/// every path is resolved from here by the kernel, without following a link and without leaving.
#[derive(Debug)]
pub(crate) struct Root {
    directory: OwnedFd,
    device: u64,
    mapped_writes_show: bool,
    fine_stamps: bool,
}

/// What the kernel takes as a path in one call, less than it really does.
const LONGEST_PATH: usize = 4000;

/// Filesystems where a page that was written out is write-protected again, so that the next store
/// through a mapping changes the file's ctime. Not so on tmpfs, which has nowhere to write pages to,
/// nor on overlayfs, where `sync_file_range` does not reach the file below.
const MAPPED_WRITES_SHOW: [u64; 3] = [EXT4, XFS, BTRFS];

/// Filesystems that, from Linux 6.13 on, stamp a change anew once the last stamp was looked at, however
/// soon it comes.
const FINE_STAMPS: [u64; 4] = [EXT4, XFS, BTRFS, TMPFS];

const EXT4: u64 = 0xef53;
const XFS: u64 = 0x5846_5342;
const BTRFS: u64 = 0x9123_683e;
const TMPFS: u64 = 0x0102_1994;

/// What the kernel says about a name, itself and not what it points to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) file_type: FileType,
    /// Permission bits with set-id and sticky.
    pub(crate) mode: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) links: u32,
    pub(crate) device: u64,
    /// Something is mounted on this name.
    pub(crate) mounted: bool,
    pub(crate) signature: Signature,
}

/// Changes when a file does. Nothing is concluded from one that is [`Signature::UNKNOWN`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Signature {
    pub(crate) inode: u64,
    pub(crate) size: u64,
    /// Nanoseconds since 1970.
    pub(crate) mtime: i64,
    pub(crate) ctime: i64,
}

impl Signature {
    pub(crate) const UNKNOWN: Self = Self { inode: 0, size: 0, mtime: 0, ctime: 0 };

    /// Some filesystems (ext4 with small inodes) keep only whole seconds.
    pub(crate) fn has_fine_stamp(&self) -> bool {
        self.ctime % 1_000_000_000 != 0
    }
}

impl Stat {
    pub(crate) fn is_directory(&self) -> bool {
        self.file_type == FileType::Directory
    }

    /// `None` for what is recorded with its content.
    pub(crate) fn special(&self, root: &Root) -> Option<Special> {
        match self.file_type {
            _ if self.mounted => Some(Special::MountPoint),
            FileType::Directory if self.device != root.device => Some(Special::MountPoint),
            FileType::Socket => Some(Special::Socket),
            FileType::Fifo => Some(Special::Fifo),
            FileType::BlockDevice => Some(Special::BlockDevice),
            FileType::RegularFile | FileType::Directory | FileType::Symlink => None,
            FileType::CharacterDevice | FileType::Unknown => Some(Special::CharacterDevice),
        }
    }

    /// As it is compared: what happens in another filesystem is no change of the name it is mounted
    /// on.
    pub(crate) fn comparable(self, root: &Root) -> Self {
        if self.special(root) != Some(Special::MountPoint) {
            return self;
        }
        let signature = Signature { size: 0, mtime: 0, ctime: 0, ..self.signature };
        Self { signature, ..self }
    }
}

impl Root {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = openat(CWD, path, flags, Mode::empty())?;
        let device = stat_at(&directory, c"")?.map_or(0, |stat| stat.device);
        let kind = rustix::fs::fstatfs(&directory)?.f_type as u64;
        let mapped_writes_show = MAPPED_WRITES_SHOW.contains(&kind);
        let fine_stamps = FINE_STAMPS.contains(&kind) && kernel_is_at_least((6, 13));
        Ok(Self { directory, device, mapped_writes_show, fine_stamps })
    }

    /// Whether writing a file out makes later stores through mappings change its ctime.
    pub(crate) fn mapped_writes_show(&self) -> bool {
        self.mapped_writes_show
    }

    /// Whether a write that begins after a file was looked at shows in its ctime for sure.
    pub(crate) fn stamps_finely(&self, stat: &Stat) -> bool {
        self.fine_stamps && stat.signature.has_fine_stamp()
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }

    fn top(&self) -> io::Result<Option<Stat>> {
        let stat = stat_at(&self.directory, c"")?;
        Ok(stat.map(|stat| Stat { mounted: false, ..stat }))
    }

    /// `None` when there is nothing, or a parent is not a directory.
    pub(crate) fn stat(&self, path: &TreePath) -> io::Result<Option<Stat>> {
        let (Some(name), Some(parent)) = (path.name(), path.parent()) else {
            return self.top();
        };
        match self.place(&parent)? {
            Some(parent) => stat_at(&parent, name),
            None => Ok(None),
        }
    }

    /// Opens a directory to read it and to act in it. `None` when there is none.
    pub(crate) fn directory(&self, path: &TreePath) -> io::Result<Option<OwnedFd>> {
        self.open_at(path, OFlags::RDONLY | OFlags::DIRECTORY)
    }

    /// As [`Root::directory`], to name what is in it: needs no permission to read it.
    pub(crate) fn place(&self, path: &TreePath) -> io::Result<Option<OwnedFd>> {
        self.open_at(path, OFlags::PATH | OFlags::DIRECTORY)
    }

    /// Opens what is at `path`, unless that is a link. `None` when there is nothing, or it is in
    /// another filesystem.
    pub(crate) fn open_at(&self, path: &TreePath, flags: OFlags) -> io::Result<Option<OwnedFd>> {
        if path.key().len() < LONGEST_PATH {
            return open_below(&self.directory, path.to_path(), flags);
        }
        let mut place: Option<OwnedFd> = None;
        let mut part = PathBuf::new();
        for name in path.names() {
            if part.as_os_str().len() + 1 + name.len() >= LONGEST_PATH {
                let from = place.as_ref().unwrap_or(&self.directory);
                let Some(next) = open_below(from, &part, OFlags::PATH | OFlags::DIRECTORY)? else {
                    return Ok(None);
                };
                place = Some(next);
                part.clear();
            }
            part.push(name);
        }
        open_below(place.as_ref().unwrap_or(&self.directory), part, flags)
    }
}

fn kernel_is_at_least(version: (u32, u32)) -> bool {
    let name = rustix::system::uname();
    let release = name.release().to_string_lossy();
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse::<u32>);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor) >= version,
        _ => false,
    }
}

/// Opens what is below `directory`, without following a link and without leaving it or its
/// filesystem. `None` when there is no such thing.
pub(crate) fn open_below(
    directory: impl AsFd,
    path: impl Arg,
    flags: OFlags,
) -> io::Result<Option<OwnedFd>> {
    let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
    let opened = path.into_with_c_str(|path| {
        loop {
            match openat2(&directory, path, flags, Mode::empty(), resolve) {
                // A rename somewhere on the way; the kernel could not tell whether we left.
                Err(Errno::AGAIN | Errno::INTR) => {}
                result => return result,
            }
        }
    });
    match opened {
        Ok(fd) => Ok(Some(fd)),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV | Errno::NAMETOOLONG) => {
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

/// Stats `name` in `directory`; the empty name is the directory itself.
pub(crate) fn stat_at(directory: impl AsFd, name: impl Arg) -> io::Result<Option<Stat>> {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::EMPTY_PATH | AtFlags::NO_AUTOMOUNT;
    match statx(directory, name, flags, StatxFlags::BASIC_STATS) {
        Ok(found) => {
            let time = |time: rustix::fs::StatxTimestamp| {
                time.tv_sec.saturating_mul(1_000_000_000).saturating_add(time.tv_nsec.into())
            };
            Ok(Some(Stat {
                file_type: FileType::from_raw_mode(found.stx_mode.into()),
                mode: u32::from(found.stx_mode) & 0o7777,
                uid: found.stx_uid,
                gid: found.stx_gid,
                links: found.stx_nlink,
                mounted: found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT),
                device: u64::from(found.stx_dev_major) << 32 | u64::from(found.stx_dev_minor),
                signature: Signature {
                    inode: found.stx_ino,
                    size: found.stx_size,
                    mtime: time(found.stx_mtime),
                    ctime: time(found.stx_ctime),
                },
            }))
        }
        Err(Errno::NOENT | Errno::NOTDIR | Errno::NAMETOOLONG) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    fn path(text: &str) -> TreePath {
        TreePath::parse(Path::new(text)).unwrap()
    }

    #[test]
    fn no_link_is_followed_and_no_parent_left() {
        let around = tempfile::tempdir().unwrap();
        let top = around.path().join("top");
        fs::create_dir_all(top.join("real")).unwrap();
        fs::write(around.path().join("outside"), "x").unwrap();
        fs::write(top.join("real/file"), "x").unwrap();
        symlink("real", top.join("inner")).unwrap();
        symlink("..", top.join("up")).unwrap();
        let root = Root::open(&top).unwrap();
        assert!(root.stat(&path("real/file")).unwrap().is_some());
        for nothing in ["inner/file", "up/outside", "none", "real/file/below", "none/below"] {
            assert_eq!(root.stat(&path(nothing)).unwrap(), None, "{nothing}");
        }
        assert_eq!(root.stat(&path("inner")).unwrap().unwrap().file_type, FileType::Symlink);
        assert!(root.open_at(&path("inner"), OFlags::RDONLY).unwrap().is_none());
        assert!(root.stat(&TreePath::root()).unwrap().unwrap().is_directory());
    }
}
