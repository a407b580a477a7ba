//! One directory of a pass.

use std::collections::HashMap;
use std::ffi::{CStr, CString, OsStr};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, Stat, fstat, linkat, mkdirat, openat, statat, unlinkat,
};
use rustix::io::Errno;

use super::record::{Directory, Seen, Signature};
use super::{Cloner, Linked, entry, lock};
use crate::{Result, Step};

/// A change within this time of another may leave the same times behind: the clock ticks at 100 Hz
/// on the slowest kernels.
const TICK: Duration = Duration::from_millis(25);

/// The same directory on both sides.
pub(super) struct Pair {
    pub(super) from: OwnedFd,
    pub(super) to: OwnedFd,
}

/// A directory to look at.
pub(super) struct Job {
    parent: Arc<Pair>,
    /// `None` for the top, which is open already.
    name: Option<CString>,
    path: PathBuf,
}

/// What one entry led to.
enum Outcome {
    Kept(Seen),
    Copied(Seen),
    /// Gone, or not for a copy.
    Nothing,
}

impl Job {
    pub(super) fn top(pair: Arc<Pair>) -> Self {
        Self { parent: pair, name: None, path: PathBuf::new() }
    }
}

impl Cloner {
    /// Brings the copy of one directory up to date; `more` are those in it. Returns how many names
    /// were not as they were.
    pub(super) fn visit(&self, job: &Job, more: &mut Vec<Job>) -> Result<u64> {
        let Some(pair) = self.open_pair(job)? else { return Ok(0) };
        let looking = || format!("look at {}", job.path.display());
        let stat = fstat(&pair.from).step(looking)?;
        let before = lock(&self.records).take(&job.path);
        let same_attributes = before
            .as_ref()
            .is_some_and(|before| Signature::of(&before.stat) == Signature::of(&stat));
        if !same_attributes {
            entry::attributes(pair.from.as_fd(), pair.to.as_fd()).step(looking)?;
        }
        let mut before = before.map(|before| before.entries).unwrap_or_default();
        let mut now = HashMap::new();
        let mut changed = 0;
        for name in list(&pair.from).step(looking)? {
            let os_name = OsStr::from_bytes(name.to_bytes()).to_owned();
            if job.name.is_none() && self.leave_out.contains(&os_name) {
                continue;
            }
            let path = job.path.join(&os_name);
            let old = before.remove(&os_name);
            let outcome = self
                .bring_up_to_date(&pair, &name, &path, old, more)
                .map_err(|error| named(error, &path))?;
            match outcome {
                Outcome::Nothing => {}
                Outcome::Kept(seen) => drop(now.insert(os_name, seen)),
                Outcome::Copied(seen) => {
                    changed += 1;
                    now.insert(os_name, seen);
                }
            }
        }
        changed += before.len() as u64;
        for (name, old) in before {
            self.remove(&pair, &name, &job.path.join(&name), old)?;
        }
        lock(&self.records).put(job.path.clone(), Directory { stat, entries: now });
        Ok(changed)
    }

    fn open_pair(&self, job: &Job) -> Result<Option<Arc<Pair>>> {
        let Some(name) = &job.name else { return Ok(Some(job.parent.clone())) };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let from = match openat(&job.parent.from, name, flags, Mode::empty()) {
            Ok(from) => from,
            // Gone meanwhile, or something else by now: the next pass sees what.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(None),
            Err(error) => return Err(error).step(|| format!("open {}", job.path.display())),
        };
        let step = || format!("make {}", job.path.display());
        match mkdirat(&job.parent.to, name, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error).step(step),
        }
        let to = openat(&job.parent.to, name, flags, Mode::empty()).step(step)?;
        Ok(Some(Arc::new(Pair { from, to })))
    }

    fn bring_up_to_date(
        &self,
        pair: &Arc<Pair>,
        name: &CStr,
        path: &Path,
        old: Option<Seen>,
        more: &mut Vec<Job>,
    ) -> io::Result<Outcome> {
        let stat = match statat(&pair.from, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(Errno::NOENT) => {
                if let Some(old) = old {
                    self.remove(pair, OsStr::from_bytes(name.to_bytes()), path, old)
                        .map_err(|error| error.source)?;
                }
                return Ok(Outcome::Nothing);
            }
            Err(error) => return Err(error.into()),
        };
        let signature = Signature::of(&stat);
        let is_directory = signature.kind() == FileType::Directory;
        if let Some(old) = old {
            let same_directory = is_directory
                && old.signature.kind() == FileType::Directory
                && old.signature.inode() == signature.inode();
            if same_directory {
                more.push(Job::below(pair, name, path));
                return Ok(Outcome::Kept(Seen { signature, hot: false }));
            }
            if !is_directory && old.signature == signature && !old.hot {
                return Ok(Outcome::Kept(old));
            }
            self.remove(pair, OsStr::from_bytes(name.to_bytes()), path, old)
                .map_err(|error| error.source)?;
        }
        if is_directory {
            more.push(Job::below(pair, name, path));
            return Ok(Outcome::Copied(Seen { signature, hot: false }));
        }
        let copied = self.copy(pair, name, path, &stat)?;
        Ok(copied.map_or(Outcome::Nothing, Outcome::Copied))
    }

    /// Makes what is not a directory. `None` when there is nothing to make.
    fn copy(&self, pair: &Pair, name: &CStr, path: &Path, stat: &Stat) -> io::Result<Option<Seen>> {
        let (from, to) = (pair.from.as_fd(), pair.to.as_fd());
        let plain = Seen { signature: Signature::of(stat), hot: is_fresh(stat) };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile if stat.st_nlink > 1 => self.link_or_copy(pair, name, path, stat),
            FileType::RegularFile => self.copy_file(pair, name),
            FileType::Symlink => Ok(entry::symlink(from, to, name, stat)?.then_some(plain)),
            _ if entry::is_whiteout(stat) => {
                entry::whiteout(to, name, stat)?;
                Ok(Some(plain))
            }
            _ => {
                lock(&self.left_out).push(path.to_owned());
                Ok(None)
            }
        }
    }

    fn copy_file(&self, pair: &Pair, name: &CStr) -> io::Result<Option<Seen>> {
        let try_sharing = self.shares.load(Ordering::Relaxed);
        let copied = entry::file(pair.from.as_fd(), pair.to.as_fd(), name, try_sharing)?;
        let Some(copied) = copied else { return Ok(None) };
        let bytes = copied.stat.st_size.max(0).unsigned_abs();
        if copied.shared {
            self.shared_bytes.fetch_add(bytes, Ordering::Relaxed);
        } else if bytes > 0 {
            self.shares.store(false, Ordering::Relaxed);
        }
        self.progress.add(bytes);
        let hot = copied.writers || is_fresh(&copied.stat);
        Ok(Some(Seen { signature: Signature::of(&copied.stat), hot }))
    }

    /// One of several names of a file. The names of the copy are those of one file too. They are
    /// remembered with what the copy was made from, so that a later pass renews all or none.
    fn link_or_copy(
        &self,
        pair: &Pair,
        name: &CStr,
        path: &Path,
        stat: &Stat,
    ) -> io::Result<Option<Seen>> {
        // Held while copying: the other name may be looked at by another thread right now.
        let mut links = lock(&self.links);
        let key = (stat.st_dev, stat.st_ino);
        if let Some(first) = links.get(&key) {
            match linkat(&self.top.to, &first.path, &pair.to, name, AtFlags::empty()) {
                Ok(()) => {
                    return Ok(Some(Seen { signature: first.signature, hot: first.hot }));
                }
                // Its path is too long for one call: a copy of its own is better than none.
                Err(Errno::NAMETOOLONG | Errno::MLINK) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let copied = self.copy_file(pair, name)?;
        if let Some(Seen { signature, hot }) = copied {
            links.insert(key, Linked { path: path.to_owned(), signature, hot });
        }
        Ok(copied)
    }

    /// Takes a name out of the copy.
    fn remove(&self, pair: &Pair, name: &OsStr, path: &Path, old: Seen) -> Result<()> {
        let step = || format!("renew {}", path.display());
        if old.signature.kind() != FileType::Directory {
            return match unlinkat(&pair.to, name, AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => Ok(()),
                Err(error) => Err(error).step(step),
            };
        }
        lock(&self.records).forget(path);
        remove_tree(pair.to.as_fd(), name).step(step)
    }
}

impl Job {
    fn below(parent: &Arc<Pair>, name: &CStr, path: &Path) -> Self {
        Self { parent: parent.clone(), name: Some(name.to_owned()), path: path.to_owned() }
    }
}

fn remove_tree(parent: std::os::fd::BorrowedFd<'_>, name: &OsStr) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = match openat(parent, name, flags, Mode::empty()) {
        Ok(directory) => directory,
        // Its directory was never made: it was gone before we came to it.
        Err(Errno::NOENT) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    for entry in list(&directory)? {
        match unlinkat(&directory, &entry, AtFlags::empty()) {
            Ok(()) => {}
            Err(Errno::ISDIR | Errno::PERM) => {
                remove_tree(directory.as_fd(), OsStr::from_bytes(entry.to_bytes()))?;
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(unlinkat(parent, name, AtFlags::REMOVEDIR)?)
}

fn list(directory: &OwnedFd) -> io::Result<Vec<CString>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
            names.push(entry.file_name().to_owned());
        }
    }
    Ok(names)
}

/// It changed so lately that it may change again without another sign of it.
fn is_fresh(stat: &Stat) -> bool {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::RealtimeCoarse);
    let nanoseconds =
        |seconds: i64, rest: i64| i128::from(seconds) * 1_000_000_000 + i128::from(rest);
    let changed = nanoseconds(stat.st_ctime, i64::try_from(stat.st_ctime_nsec).unwrap_or(0));
    let age = nanoseconds(now.tv_sec, now.tv_nsec) - changed;
    age < i128::try_from(TICK.as_nanos()).unwrap_or(0)
}

fn named(source: io::Error, path: &Path) -> crate::Error {
    crate::Error { step: format!("copy {}", path.display()), source }
}
