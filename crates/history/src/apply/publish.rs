//! Swaps the new for the old, from a journal, as often as it takes.
//!
//! The order: files go; emptied directories go, deepest first; directories come, top down; files
//! come; owners and modes are set, of directories last and deepest first, because a directory may
//! forbid what is to be done in it. Files come and go in any order, and so several threads see to them.

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use rustix::fs::OFlags;
use rustix::io::Errno;

use super::at::{self, Obstacle, Staging, further_slot, slot};
use super::journal::{Action, Attributes, Journal, Record};
use super::{Outcome, Reason};
use crate::error::{Context, Result};
use crate::path::TreePath;
use crate::tree::{Root, Stat};

/// To start a thread takes as long as to put some files in their places.
const WORTH_A_THREAD: usize = if cfg!(test) { 2 } else { 64 };

/// How often a name is tried that someone else changes at the same time.
const TRIES: u32 = 50;

/// Brings the tree to what the journal says; [`sync`] is to follow. When it fails or the process ends,
/// it is to be called again with the same journal, and reaches the same end.
pub(crate) fn publish(
    root: &Root,
    staging: &Path,
    journal: &Journal,
    threads: usize,
) -> Result<Outcome> {
    let staging = Staging::open(staging)?;
    let touched = journal.records.iter().filter_map(Record::placed_inode).collect();
    let mut publisher = Publisher {
        root,
        staging: &staging,
        journal,
        left: journal.left.iter().cloned().collect(),
        blocked: HashSet::new(),
        touched: &Mutex::new(touched),
        parent: None,
    };
    publisher.run(threads)?;
    Ok(Outcome { left: publisher.left.into_iter().collect() })
}

/// What was published is on disk when this returns.
pub(crate) fn sync(staging: &Path) -> Result<()> {
    Staging::open(staging)?.sync()
}

struct Publisher<'a> {
    root: &'a Root,
    staging: &'a Staging,
    journal: &'a Journal,
    left: BTreeMap<TreePath, Reason>,
    /// Slots with which nothing more is to be done.
    blocked: HashSet<u64>,
    /// Inodes whose change time is ours: linked, displaced or adjusted here.
    touched: &'a Mutex<HashSet<u64>>,
    /// Names that share a parent come one after the other and share its descriptor.
    parent: Option<(TreePath, Option<Arc<OwnedFd>>)>,
}

/// Why a step goes no further.
enum Stop {
    Left(Reason),
    Fatal(io::Error),
}

impl From<Reason> for Stop {
    fn from(reason: Reason) -> Self {
        Self::Left(reason)
    }
}

impl From<Errno> for Stop {
    fn from(error: Errno) -> Self {
        match error {
            fatal if at::is_fatal(fatal) => Self::Fatal(fatal.into()),
            Errno::XDEV | Errno::BUSY => Self::Left(Reason::Special),
            other => Self::Left(Reason::Refused(other.raw_os_error())),
        }
    }
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        at::errno(&error).into()
    }
}

type Done = Result<(), Stop>;

impl<'a> Publisher<'a> {
    fn run(&mut self, threads: usize) -> Result<()> {
        let journal = self.journal;
        let mut by_parent: Vec<(Option<TreePath>, &Record)> =
            journal.records.iter().map(|record| (record.path.parent(), record)).collect();
        by_parent.sort_by(|one, other| one.0.cmp(&other.0));
        let by_parent: Vec<&Record> = by_parent.into_iter().map(|(_, record)| record).collect();
        let deepest_first = || journal.records.iter().rev();

        self.share(&by_parent, threads, Self::remove_file)?;
        self.each(deepest_first(), Self::remove_directory)?;
        self.each(journal.records.iter(), Self::place_directory)?;
        self.share(&by_parent, threads, Self::place_file)?;
        self.each(by_parent.iter().copied(), Self::adjust_file)?;
        self.each(deepest_first(), Self::finish_directory)
    }

    /// For what can be done in any order.
    fn share(
        &mut self,
        records: &[&Record],
        threads: usize,
        act: fn(&mut Self, &Record) -> Done,
    ) -> Result<()> {
        if threads <= 1 || records.len() < WORTH_A_THREAD {
            return self.each(records.iter().copied(), act);
        }
        let crash = at::crash::Plan::of_this_thread();
        let part = |records: &[&Record], mut part: Self| -> Result<Self> {
            crash.adopt();
            part.each(records.iter().copied(), act).map(|()| part)
        };
        let parts = records.chunks(records.len().div_ceil(threads));
        thread::scope(|scope| {
            let parts: Vec<_> = parts
                .map(|records| {
                    let own = self.part();
                    scope.spawn(move || part(records, own))
                })
                .collect();
            parts.into_iter().map(join).try_for_each(|part| part.map(|part| self.absorb(part)))
        })
    }

    /// One that does a part of the work.
    fn part(&self) -> Self {
        let (left, blocked) = (BTreeMap::new(), self.blocked.clone());
        Self { left, blocked, parent: None, ..*self }
    }

    fn absorb(&mut self, part: Self) {
        self.left.extend(part.left);
        self.blocked.extend(part.blocked);
    }

    fn each<'r>(
        &mut self,
        records: impl Iterator<Item = &'r Record>,
        act: impl Fn(&mut Self, &Record) -> Done,
    ) -> Result<()> {
        self.parent = None;
        for record in records {
            if self.blocked.contains(&record.slot) {
                continue;
            }
            match act(self, record) {
                Ok(()) => {}
                Err(Stop::Left(reason)) => {
                    self.blocked.insert(record.slot);
                    self.left.insert(record.path.clone(), reason);
                }
                Err(Stop::Fatal(error)) => {
                    return Err(error).context(|| format!("restore {}", record.path));
                }
            }
        }
        Ok(())
    }

    fn parent(&mut self, path: &TreePath) -> Result<Option<Arc<OwnedFd>>, Stop> {
        let Some(parent) = path.parent() else { return Ok(None) };
        match &self.parent {
            Some((cached, fd)) if *cached == parent => Ok(fd.clone()),
            _ => {
                let fd = self.root.directory(&parent)?.map(Arc::new);
                self.parent = Some((parent, fd.clone()));
                Ok(fd)
            }
        }
    }

    fn remove_file(&mut self, record: &Record) -> Done {
        if record.action != Action::Remove || record.was_directory {
            return Ok(());
        }
        let slot = slot(record.slot);
        let taken = at::stat(self.staging.fd(), &slot)?;
        let Some(parent) = self.parent(&record.path)? else {
            let gone = taken.is_some() || self.parent_goes(&record.path);
            return if gone { Ok(()) } else { Err(Reason::NoParent.into()) };
        };
        let name = name_of(record)?;
        if let Some(taken) = taken {
            // An earlier run was here; what is at the name now came later and stays.
            return self.give_back(&taken, &slot, &parent, name);
        }
        self.take_away(record, &parent, name)
    }

    /// Frees a name.
    fn take_away(&mut self, record: &Record, parent: &OwnedFd, name: &OsStr) -> Done {
        for _ in 0..TRIES {
            let Some(found) = at::stat(parent, name)? else { return Ok(()) };
            match at::obstacle(self.root, &found) {
                Some(Obstacle::Special) => return Err(Reason::Special.into()),
                Some(Obstacle::Directory) => remove_empty(parent, name)?,
                None => {
                    self.note_change(record, &found)?;
                    self.displace(record, parent, name)?;
                }
            }
        }
        Err(Reason::Changed.into())
    }

    fn displace(&mut self, record: &Record, parent: &OwnedFd, name: &OsStr) -> Done {
        for further in 0.. {
            let slot = match further {
                0 => slot(record.slot),
                _ => further_slot(record.slot, further),
            };
            match at::take(self.staging, &slot, parent, name) {
                Ok(()) => {
                    let Some(taken) = at::stat(self.staging.fd(), &slot)? else { return Ok(()) };
                    return self.give_back(&taken, &slot, parent, name);
                }
                Err(Errno::EXIST) => {}
                Err(Errno::NOENT) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Undoes a move that took something else than was looked at a moment before.
    fn give_back(&self, taken: &Stat, slot: &Path, parent: &OwnedFd, name: &OsStr) -> Done {
        let reason = match at::obstacle(self.root, taken) {
            None => return Ok(()),
            Some(Obstacle::Special) => Reason::Special,
            Some(Obstacle::Directory) => Reason::Changed,
        };
        at::put(self.staging, slot, parent, name)?;
        Err(reason.into())
    }

    fn remove_directory(&mut self, record: &Record) -> Done {
        let inode = match record.action {
            _ if !record.was_directory => return Ok(()),
            Action::PlaceDirectory { .. } | Action::Adjust(_) => return Ok(()),
            Action::Place { inode } => Some(inode),
            Action::Remove => None,
        };
        let Some(parent) = self.parent(&record.path)? else {
            let gone = self.parent_goes(&record.path);
            return if gone { Ok(()) } else { Err(Reason::NoParent.into()) };
        };
        let name = name_of(record)?;
        match inode {
            None => self.take_away(record, &parent, name),
            Some(inode) if self.waits(record, inode)? => match at::stat(&parent, name)? {
                Some(found) if found.is_directory() && found.special(self.root).is_none() => {
                    remove_empty(&parent, name)
                }
                _ => Ok(()),
            },
            Some(_) => Ok(()),
        }
    }

    /// Whether the new thing is still in staging. When it is not, an earlier run has placed it, and
    /// whatever is at its name by now was done to it later.
    fn waits(&self, record: &Record, inode: u64) -> Result<bool, Stop> {
        let waiting = at::stat(self.staging.fd(), slot(record.slot))?;
        Ok(waiting.is_some_and(|waiting| waiting.signature.inode == inode))
    }

    fn place_directory(&mut self, record: &Record) -> Done {
        match record.action {
            Action::PlaceDirectory { inode, .. } => self.place(record, inode),
            Action::Remove | Action::Place { .. } | Action::Adjust(_) => Ok(()),
        }
    }

    fn place_file(&mut self, record: &Record) -> Done {
        match record.action {
            Action::Place { inode } => self.place(record, inode),
            Action::Remove | Action::PlaceDirectory { .. } | Action::Adjust(_) => Ok(()),
        }
    }

    fn place(&mut self, record: &Record, inode: u64) -> Done {
        let Some(parent) = self.parent(&record.path)? else {
            return Err(Reason::NoParent.into());
        };
        let name = name_of(record)?;
        let slot = slot(record.slot);
        for _ in 0..TRIES {
            let found = at::stat(&parent, name)?;
            if !self.waits(record, inode)? {
                let placed = found.is_some_and(|found| found.signature.inode == inode);
                return if placed { self.swap_back(&slot, &parent, name) } else { Ok(()) };
            }
            let Some(found) = found else {
                match at::put(self.staging, &slot, &parent, name) {
                    Ok(()) => return Ok(()),
                    Err(Errno::EXIST) => continue,
                    Err(error) => return Err(error.into()),
                }
            };
            if found.signature.inode == inode {
                return Ok(());
            }
            match at::obstacle(self.root, &found) {
                Some(Obstacle::Special) => return Err(Reason::Special.into()),
                // Someone made it meanwhile. It will do for what comes into it.
                Some(Obstacle::Directory) if record.places_directory() => return Ok(()),
                Some(Obstacle::Directory) => remove_empty(&parent, name)?,
                None => {
                    self.note_change(record, &found)?;
                    match at::exchange(self.staging, &slot, &parent, name) {
                        Ok(()) => return self.swap_back(&slot, &parent, name),
                        Err(Errno::NOENT) => {}
                        Err(error) => return Err(error.into()),
                    }
                }
            }
        }
        Err(Reason::Changed.into())
    }

    /// Undoes a swap that took out something else than was looked at a moment before.
    fn swap_back(&self, slot: &Path, parent: &OwnedFd, name: &OsStr) -> Done {
        let Some(taken) = at::stat(self.staging.fd(), slot)? else { return Ok(()) };
        let reason = match at::obstacle(self.root, &taken) {
            None => return Ok(()),
            Some(Obstacle::Special) => Reason::Special,
            Some(Obstacle::Directory) => Reason::Changed,
        };
        at::exchange(self.staging, slot, parent, name)?;
        Err(reason.into())
    }

    /// Remembers beyond a crash that a file is not as recorded, when only its change time tells.
    fn note_change(&mut self, record: &Record, found: &Stat) -> Done {
        let (is, was) = (found.signature, record.signature);
        let first = self.touch(is.inode);
        let renewed = (is.inode, is.size, is.mtime) == (was.inode, was.size, was.mtime);
        if first && renewed && is.ctime != was.ctime {
            at::mark_changed(self.staging, record.slot)?;
        }
        Ok(())
    }

    /// Whether it is the first time.
    fn touch(&self, inode: u64) -> bool {
        self.touched.lock().unwrap_or_else(PoisonError::into_inner).insert(inode)
    }

    fn adjust_file(&mut self, record: &Record) -> Done {
        let Action::Adjust(attributes) = &record.action else { return Ok(()) };
        if record.was_directory {
            return Ok(());
        }
        self.touch(record.signature.inode);
        self.set_attributes(record, attributes, |found| {
            let (is, was) = (found.signature, record.signature);
            (is.inode, is.size, is.mtime) == (was.inode, was.size, was.mtime)
        })
    }

    fn finish_directory(&mut self, record: &Record) -> Done {
        let (attributes, inode) = match &record.action {
            Action::PlaceDirectory { inode, attributes } => (attributes, *inode),
            Action::Adjust(attributes) if record.was_directory => {
                (attributes, record.signature.inode)
            }
            Action::Adjust(_) | Action::Remove | Action::Place { .. } => return Ok(()),
        };
        self.set_attributes(record, attributes, |found| found.signature.inode == inode)
    }

    /// Only on the very thing that was recorded or made: under its name there may be another by now,
    /// and to open that to its new owner could be what someone wants.
    fn set_attributes(
        &self,
        record: &Record,
        attributes: &Attributes,
        is_it: impl Fn(&Stat) -> bool,
    ) -> Done {
        let Some(fd) = self.root.open_at(&record.path, OFlags::PATH)? else {
            return Err(Reason::Changed.into());
        };
        match at::stat(&fd, "")? {
            Some(found) if is_it(&found) => Ok(at::set_attributes(&fd, &found, attributes)?),
            Some(_) | None => Err(Reason::Changed.into()),
        }
    }

    /// Whether a directory above is itself to go, so that an earlier run may have removed it.
    fn parent_goes(&self, path: &TreePath) -> bool {
        let records = &self.journal.records;
        path.ancestors().any(|above| {
            let found = records.binary_search_by(|record| record.path.cmp(&above));
            found.is_ok_and(|found| match records[found].action {
                Action::Remove | Action::Place { .. } => records[found].was_directory,
                Action::PlaceDirectory { .. } | Action::Adjust(_) => false,
            })
        })
    }
}

impl Record {
    fn placed_inode(&self) -> Option<u64> {
        match self.action {
            Action::Place { inode } | Action::PlaceDirectory { inode, .. } => Some(inode),
            Action::Remove | Action::Adjust(_) => None,
        }
    }

    fn places_directory(&self) -> bool {
        match self.action {
            Action::PlaceDirectory { .. } => true,
            Action::Remove | Action::Place { .. } | Action::Adjust(_) => false,
        }
    }
}

fn join<T>(thread: thread::ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// The root itself is never placed and never removed.
fn name_of(record: &Record) -> Result<&OsStr, Stop> {
    record.path.name().ok_or(Stop::Left(Reason::Special))
}

fn remove_empty(parent: &OwnedFd, name: &OsStr) -> Done {
    match at::remove_directory(parent, name) {
        // Gone, or a file by now: the caller looks again.
        Ok(()) | Err(Errno::NOENT | Errno::NOTDIR) => Ok(()),
        Err(Errno::NOTEMPTY | Errno::EXIST) => Err(Reason::NotEmpty.into()),
        Err(error) => Err(error.into()),
    }
}
