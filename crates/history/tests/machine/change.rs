//! What programs do to files, and which names an observer would hear of.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, lchown, symlink};
use std::path::{Path, PathBuf};

use nacre_history::TreePath;
use proptest::prelude::*;
use proptest::sample::Index;
use rustix::fs::{CWD, Mode, RenameFlags, XattrFlags};

/// Where: one of the names there are, or any other.
#[derive(Debug, Clone)]
pub(crate) enum Where {
    Known(Index),
    New(Vec<Vec<u8>>),
}

#[derive(Debug, Clone)]
pub(crate) enum Change {
    Write(Where, u8, u16),
    /// As editors do: a new file takes the place of the old.
    Replace(Where, u8),
    Append(Where, u8),
    Truncate(Where),
    WriteMapped(Where, u8),
    Chmod(Where, u32),
    Chown(Where, u32),
    Note(Where, Option<u8>),
    Symlink(Where, u8),
    HardLink(Where, Where),
    Remove(Where),
    MakeDirectory(Where),
    /// A file becomes a directory and the other way round.
    BecomeOther(Where),
    Rename(Where, Where),
    /// Through a third name, one call after the other.
    Exchange(Where, Where),
    GitInit(Where),
    Fifo(Where),
    Socket(Where),
}

pub(crate) fn any_where() -> impl Strategy<Value = Where> {
    let name = prop::sample::select(vec![
        b"a".to_vec(),
        b"b".to_vec(),
        b"c".to_vec(),
        b"n m\n".to_vec(),
        b"\xff\xfe".to_vec(),
    ]);
    prop_oneof![
        3 => any::<Index>().prop_map(Where::Known),
        1 => prop::collection::vec(name, 1..4).prop_map(Where::New),
    ]
}

pub(crate) fn any_change() -> impl Strategy<Value = Change> {
    let mode = prop::sample::select(vec![0o644, 0o755, 0o600, 0, 0o500, 0o4755, 0o1777]);
    let at = any_where;
    prop_oneof![
        6 => (at(), any::<u8>(), 0..9000_u16).prop_map(|(at, seed, size)| Change::Write(at, seed, size)),
        2 => (at(), any::<u8>()).prop_map(|(at, seed)| Change::Replace(at, seed)),
        2 => (at(), any::<u8>()).prop_map(|(at, seed)| Change::Append(at, seed)),
        1 => at().prop_map(Change::Truncate),
        1 => (at(), any::<u8>()).prop_map(|(at, seed)| Change::WriteMapped(at, seed)),
        2 => (at(), mode).prop_map(|(at, mode)| Change::Chmod(at, mode)),
        1 => (at(), 0..3_u32).prop_map(|(at, owner)| Change::Chown(at, owner)),
        1 => (at(), any::<Option<u8>>()).prop_map(|(at, note)| Change::Note(at, note)),
        2 => (at(), any::<u8>()).prop_map(|(at, to)| Change::Symlink(at, to)),
        3 => (at(), at()).prop_map(|(from, to)| Change::HardLink(from, to)),
        3 => at().prop_map(Change::Remove),
        2 => at().prop_map(Change::MakeDirectory),
        2 => at().prop_map(Change::BecomeOther),
        4 => (at(), at()).prop_map(|(from, to)| Change::Rename(from, to)),
        2 => (at(), at()).prop_map(|(one, other)| Change::Exchange(one, other)),
        1 => at().prop_map(Change::GitInit),
        1 => at().prop_map(Change::Fifo),
        1 => at().prop_map(Change::Socket),
    ]
}

pub(crate) fn place(names: &[PathBuf], at: &Where) -> PathBuf {
    match at {
        Where::Known(index) if !names.is_empty() => index.get(names).clone(),
        Where::Known(_) => PathBuf::from("a"),
        Where::New(names) => names.iter().cloned().map(OsString::from_vec).collect(),
    }
}

/// Makes changes and collects the names that events would tell.
pub(crate) struct Program<'a> {
    pub(crate) root: &'a Path,
    pub(crate) names: Vec<PathBuf>,
    pub(crate) dirty: &'a mut BTreeSet<TreePath>,
}

impl Program<'_> {
    /// Refuses a name below a link: what happens there is heard of under another name.
    fn place(&self, at: &Where) -> io::Result<PathBuf> {
        let at = place(&self.names, at);
        let is_link = |path: PathBuf| path.symlink_metadata().is_ok_and(|found| found.is_symlink());
        match at.ancestors().skip(1).any(|parent| is_link(self.root.join(parent))) {
            true => Err(io::ErrorKind::InvalidInput.into()),
            false => Ok(at),
        }
    }

    fn touch(&mut self, name: &Path) {
        self.dirty.insert(TreePath::parse(name).unwrap());
    }

    /// Directories for a name, as `mkdir -p` makes them. An observer of new directories looks into
    /// them himself and needs the topmost only, but hears of each.
    fn parents(&mut self, name: &Path) -> io::Result<()> {
        for parent in name.ancestors().skip(1).collect::<Vec<_>>().into_iter().rev() {
            if !parent.as_os_str().is_empty() && self.root.join(parent).symlink_metadata().is_err()
            {
                fs::create_dir(self.root.join(parent))?;
                self.touch(parent);
            }
        }
        Ok(())
    }

    /// What the system refuses, such as a file below a file, is no change.
    pub(crate) fn make(&mut self, change: &Change) {
        let _ = self.attempt(change);
    }

    fn attempt(&mut self, change: &Change) -> io::Result<()> {
        match change {
            Change::Write(at, seed, size) => {
                let at = self.prepared(at)?;
                let mut options = OpenOptions::new();
                let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
                options.write(true).create(true).truncate(true).custom_flags(flags);
                let mut file = options.open(self.root.join(&at))?;
                file.write_all(&bytes(*seed, usize::from(*size)))?;
                self.touch(&at);
            }
            Change::Replace(at, seed) => {
                let at = self.prepared(at)?;
                let new = at.with_extension("tmp~");
                fs::write(self.root.join(&new), bytes(*seed, 100))?;
                let renamed = fs::rename(self.root.join(&new), self.root.join(&at));
                self.touch(&new);
                self.touch(&at);
                renamed?;
            }
            Change::Append(at, seed) => {
                let at = self.place(at)?;
                let mut file = self.open(&at)?;
                file.write_all(&bytes(*seed, 50))?;
                self.touch(&at);
            }
            Change::Truncate(at) => {
                let at = self.place(at)?;
                self.open(&at)?.set_len(1)?;
                self.touch(&at);
            }
            Change::WriteMapped(at, seed) => self.write_mapped(at, *seed)?,
            Change::Chmod(at, mode) => {
                let at = self.place(at)?;
                if !self.root.join(&at).symlink_metadata()?.is_symlink() {
                    fs::set_permissions(self.root.join(&at), fs::Permissions::from_mode(*mode))?;
                    self.touch(&at);
                }
            }
            Change::Chown(at, owner) => {
                let at = self.place(at)?;
                lchown(self.root.join(&at), Some(*owner), Some(*owner))?;
                self.touch(&at);
            }
            Change::Note(at, note) => self.note(at, *note)?,
            Change::Symlink(at, to) => {
                let at = self.prepared(at)?;
                symlink(["a", "../b", "/nowhere"][usize::from(to % 3)], self.root.join(&at))?;
                self.touch(&at);
            }
            Change::HardLink(from, to) => {
                let (from, to) = (self.place(from)?, self.prepared(to)?);
                if self.root.join(&from).symlink_metadata()?.is_file() {
                    fs::hard_link(self.root.join(&from), self.root.join(&to))?;
                    // Nobody hears of the old name, and a new one that is written through and removed
                    // again before history looks has no trace: that is left to the next full scan.
                    self.touch(&from);
                    self.touch(&to);
                }
            }
            Change::Remove(at) => {
                let at = self.place(at)?;
                self.remove(&at)?;
            }
            Change::MakeDirectory(at) => {
                let at = self.prepared(at)?;
                fs::create_dir(self.root.join(&at))?;
                self.touch(&at);
            }
            Change::BecomeOther(at) => self.become_other(at)?,
            Change::Rename(from, to) => {
                let (from, to) = (self.place(from)?, self.prepared(to)?);
                fs::rename(self.root.join(&from), self.root.join(&to))?;
                self.touch(&from);
                self.touch(&to);
            }
            Change::Exchange(one, other) => self.exchange(one, other)?,
            Change::GitInit(at) => self.git_init(at)?,
            Change::Fifo(at) => {
                let at = self.place(at)?.join("pipe");
                self.parents(&at)?;
                let kind = rustix::fs::FileType::Fifo;
                rustix::fs::mknodat(CWD, self.root.join(&at), kind, Mode::RUSR, 0)?;
                self.touch(&at);
            }
            Change::Socket(at) => {
                let at = self.place(at)?.join("pipe");
                self.parents(&at)?;
                let kind = rustix::fs::FileType::Socket;
                rustix::fs::mknodat(CWD, self.root.join(&at), kind, Mode::RUSR, 0)?;
                self.touch(&at);
            }
        }
        Ok(())
    }

    fn prepared(&mut self, at: &Where) -> io::Result<PathBuf> {
        let at = self.place(at)?;
        self.parents(&at)?;
        Ok(at)
    }

    /// Follows no link: what it leads to is another name.
    fn open(&self, at: &Path) -> io::Result<File> {
        let mut options = OpenOptions::new();
        let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
        let file = options.read(true).append(true).custom_flags(flags).open(self.root.join(at))?;
        match file.metadata()?.is_file() {
            true => Ok(file),
            false => Err(io::ErrorKind::InvalidInput.into()),
        }
    }

    fn write_mapped(&mut self, at: &Where, seed: u8) -> io::Result<()> {
        let at = self.place(at)?;
        let mut options = OpenOptions::new();
        options.read(true).write(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
        let file = options.open(self.root.join(&at))?;
        let length = file.metadata()?.len();
        if !file.metadata()?.is_file() || length == 0 {
            return Ok(());
        }
        let length = usize::try_from(length).unwrap();
        let (protection, fd) = (libc::PROT_READ | libc::PROT_WRITE, file.as_raw_fd());
        // SAFETY: a fresh mapping of the whole file, written within its length and unmapped after.
        unsafe {
            let null = std::ptr::null_mut();
            let map = libc::mmap(null, length, protection, libc::MAP_SHARED, fd, 0);
            assert_ne!(map, libc::MAP_FAILED);
            map.cast::<u8>().add(length / 2).write(seed);
            libc::munmap(map, length);
        }
        self.touch(&at);
        Ok(())
    }

    fn note(&mut self, at: &Where, note: Option<u8>) -> io::Result<()> {
        let at = self.place(at)?;
        let path = self.root.join(&at);
        if path.symlink_metadata()?.is_symlink() {
            return Ok(());
        }
        match note {
            Some(note) => rustix::fs::lsetxattr(&path, "user.note", &[note], XattrFlags::empty())?,
            None => rustix::fs::lremovexattr(&path, "user.note")?,
        }
        self.touch(&at);
        Ok(())
    }

    fn remove(&mut self, at: &Path) -> io::Result<()> {
        let path = self.root.join(at);
        match path.symlink_metadata()?.is_dir() {
            true => fs::remove_dir_all(&path)?,
            false => fs::remove_file(&path)?,
        }
        self.touch(at);
        Ok(())
    }

    fn become_other(&mut self, at: &Where) -> io::Result<()> {
        let at = self.place(at)?;
        let was_directory = self.root.join(&at).symlink_metadata()?.is_dir();
        self.remove(&at)?;
        if was_directory {
            return fs::write(self.root.join(&at), "was a directory");
        }
        fs::create_dir(self.root.join(&at))?;
        fs::write(self.root.join(&at).join("a"), "below what was a file")
    }

    fn exchange(&mut self, one: &Where, other: &Where) -> io::Result<()> {
        let (one, other) = (self.place(one)?, self.place(other)?);
        let third = PathBuf::from("third~");
        let rename = |from: &Path, to: &Path| {
            let (from, to) = (self.root.join(from), self.root.join(to));
            rustix::fs::renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE)
        };
        rename(&one, &third)?;
        if rename(&other, &one).is_err() {
            return Ok(rename(&third, &one)?);
        }
        // Its parent may have moved along.
        let done = rename(&third, &other);
        for name in [&one, &other, &third] {
            self.dirty.insert(TreePath::parse(name).unwrap());
        }
        Ok(done?)
    }

    fn git_init(&mut self, at: &Where) -> io::Result<()> {
        let at = self.place(at)?.join(".git");
        for name in ["objects/ab/cd", "refs/heads/main", "HEAD", "index.lock"] {
            let name = at.join(name);
            self.parents(&name)?;
            fs::write(self.root.join(&name), name.as_os_str().as_encoded_bytes())?;
            self.touch(&name);
        }
        fs::rename(self.root.join(at.join("index.lock")), self.root.join(at.join("index")))?;
        self.touch(&at.join("index"));
        Ok(())
    }
}

fn bytes(seed: u8, size: usize) -> Vec<u8> {
    (0..size).map(|at| seed.wrapping_mul(31).wrapping_add((at / 7) as u8)).collect()
}
