use std::ffi::OsStr;
use std::os::fd::AsFd;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use std::{fmt, io, thread};

use rustix::fs::{FileType, OFlags, readlinkat};
use rustix::time::{ClockId, clock_gettime};

use super::about_the_name;
use super::file::{Outcome, Reader, Reading};
use super::near::{Near, Place};
use super::root::{Root, Signature, Stat, open_below};
use super::xattr::xattrs;
use crate::contents::Keep;
use crate::entry::{Content, Entry, Kind, Xattr};
use crate::error::Result;
use crate::path::TreePath;

/// What is kept of the tree, and how many work at it.
#[derive(Debug, Clone)]
pub(crate) struct Policy {
    /// In bytes. Of larger ones only that they are there is recorded.
    pub(crate) largest_file: u64,
    pub(crate) xattrs: bool,
    pub(crate) threads: usize,
}

impl Default for Policy {
    fn default() -> Self {
        Self { largest_file: u64::MAX, xattrs: true, threads: 2 }
    }
}

/// A name as it was just now.
#[derive(Debug, Clone)]
pub(crate) struct Captured {
    pub(crate) path: TreePath,
    pub(crate) now: Now,
    /// [`Signature::UNKNOWN`] when the next scan must read it again.
    pub(crate) signature: Signature,
    /// How many names the file has. With the signature's inode it tells which names are one file;
    /// [`Entry::link`] is left empty here.
    pub(crate) links: u32,
    /// As [`Signature::inode`], which is not always there.
    pub(crate) inode: u64,
    /// Somebody has it open for writing: look again at the next checkpoint, whatever events say.
    pub(crate) unsettled: bool,
    pub(crate) note: Option<Note>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Now {
    There(Entry),
    Gone,
    /// The system would not tell, the note says why. What is recorded stays.
    Unknown,
}

/// Why a name is not recorded in full.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Note {
    Torn,
    TooLarge { size: u64 },
    Unreadable { reason: String },
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Torn => f.write_str("it changed each time it was read"),
            Self::TooLarge { size } => write!(f, "its {size} bytes are more than history keeps"),
            Self::Unreadable { reason } => write!(f, "it cannot be read: {reason}"),
        }
    }
}

/// A moment of the clock that stamps files.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment(i64);

/// More than a tick of that clock, on any kernel.
const TICK: i64 = 10_000_000;

/// As [`TICK`], where only whole seconds are kept.
const SECONDS: i64 = 2_000_000_000;

impl Moment {
    pub(super) fn now() -> Self {
        let now = clock_gettime(ClockId::RealtimeCoarse);
        Self(now.tv_sec.saturating_mul(1_000_000_000).saturating_add(now.tv_nsec))
    }

    /// Whether a change from this moment on would show in what `stat` tells of times.
    pub(super) fn is_after(self, stat: &Stat) -> bool {
        let tick = if stat.signature.has_fine_stamp() { TICK } else { SECONDS };
        stat.signature.ctime < self.0 - tick
    }

    /// How long until that is so; `None` when it is, or is far away since the clock was put back.
    pub(super) fn until_settled(self, stat: &Stat) -> Option<Duration> {
        let wait = stat.signature.ctime - (self.0 - TICK) + 1;
        (1..=2 * TICK).contains(&wait).then(|| Duration::from_nanos(wait.cast_unsigned()))
    }
}

/// So many names that threads do not wait for each other, and few enough to share out evenly.
const BLOCK: usize = 64;

/// How often a name that becomes another thing while it is looked at is looked at again.
const ATTEMPTS: u32 = 4;

/// Reads what names hold now and keeps the bytes of files. Names in the order of a walk are read
/// fastest; the results come in the order of the names.
///
/// A file that cannot be read is noted; this fails only when `contents` does or when we lack memory
/// or open files ourselves.
pub(crate) fn capture(
    root: &Root,
    contents: &dyn Keep,
    policy: &Policy,
    names: &[TreePath],
) -> Result<Vec<Captured>> {
    let next = AtomicUsize::new(0);
    let blocks: Mutex<Vec<(usize, Vec<Captured>)>> = Mutex::default();
    let work = || -> Result<()> {
        let mut capturer = Capturer::new(root, contents, policy);
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(block) = names.chunks(BLOCK).nth(at) else { return Ok(()) };
            let done = capturer.block(block);
            if done.is_err() {
                // Nobody needs the rest.
                next.store(names.len(), Ordering::Relaxed);
            }
            let done = done?;
            blocks.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push((at, done));
        }
    };
    let threads = policy.threads.min(names.len().div_ceil(BLOCK)).max(1);
    thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        let mine = work();
        others.into_iter().map(join).fold(mine, Result::and)
    })?;
    let mut blocks = blocks.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    blocks.sort_unstable_by_key(|(at, _)| *at);
    Ok(blocks.into_iter().flat_map(|(_, done)| done).collect())
}

pub(super) fn join<T>(thread: thread::ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

pub(super) struct Capturer<'a> {
    near: Near<'a>,
    reader: Reader<'a>,
}

impl<'a> Capturer<'a> {
    pub(super) fn new(root: &'a Root, contents: &'a dyn Keep, policy: &'a Policy) -> Self {
        let reader = Reader { root, contents, policy, buffer: Vec::new() };
        Self { near: Near::new(root), reader }
    }

    fn block(&mut self, names: &[TreePath]) -> Result<Vec<Captured>> {
        names.iter().map(|path| self.name(path.clone(), None)).collect()
    }

    /// `sight` is a glance at the name that somebody has just had.
    pub(super) fn name(&mut self, path: TreePath, sight: Option<Sight>) -> Result<Captured> {
        let seen = match self.near.place(&path) {
            Ok(Some(place)) => look(&mut self.reader, place, sight)?,
            Ok(None) => Seen::gone(),
            Err(error) => Seen::unknown(&about_the_name(error)?),
        };
        let Seen { now, signature, links, inode, unsettled, note } = seen;
        Ok(Captured { path, now, signature, links, inode, unsettled, note })
    }
}

/// A [`Captured`] without its name.
struct Seen {
    now: Now,
    signature: Signature,
    links: u32,
    inode: u64,
    unsettled: bool,
    note: Option<Note>,
}

impl Seen {
    fn gone() -> Self {
        let (signature, unsettled) = (Signature::UNKNOWN, false);
        Self { now: Now::Gone, signature, links: 0, inode: 0, unsettled, note: None }
    }

    fn unknown(error: &io::Error) -> Self {
        let note = Some(Note::Unreadable { reason: error.to_string() });
        Self { now: Now::Unknown, note, ..Self::gone() }
    }

    fn there(root: &Root, stat: Stat, moment: Moment, kind: Kind, xattrs: Vec<Xattr>) -> Self {
        let Stat { mode, uid, gid, links, signature, .. } = stat;
        let entry = Entry { kind, mode, uid, gid, mtime: signature.mtime, link: None, xattrs };
        let inode = signature.inode;
        // Otherwise a change that comes in the same tick would not show in it.
        let trusted = root.stamps_finely(&stat) || moment.is_after(&stat);
        let signature = if trusted { signature } else { Signature::UNKNOWN };
        Self { now: Now::There(entry), signature, links, inode, unsettled: false, note: None }
    }

    /// To be read again at the next opportunity, for a reason.
    fn noted(self, note: Note) -> Self {
        Self { signature: Signature::UNKNOWN, note: Some(note), ..self }
    }

    fn unreadable(self, error: &io::Error) -> Self {
        self.noted(Note::Unreadable { reason: error.to_string() })
    }
}

/// What a name was after a moment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sight {
    pub(super) moment: Moment,
    pub(super) stat: Stat,
}

fn look(reader: &mut Reader<'_>, place: Place<'_>, mut sight: Option<Sight>) -> Result<Seen> {
    for _ in 0..ATTEMPTS {
        let Sight { moment, stat } = match sight.take() {
            Some(sight) => sight,
            None => {
                let moment = Moment::now();
                match place.stat() {
                    Ok(Some(stat)) => Sight { moment, stat: stat.comparable(reader.root) },
                    Ok(None) => return Ok(Seen::gone()),
                    Err(error) => return Ok(Seen::unknown(&about_the_name(error)?)),
                }
            }
        };
        let seen = match (stat.special(reader.root), stat.file_type) {
            (Some(special), _) => {
                Some(Seen::there(reader.root, stat, moment, Kind::Special(special), Vec::new()))
            }
            (None, FileType::Directory) => directory(reader, place, stat, moment)?,
            (None, FileType::Symlink) => symlink(reader.root, place, stat, moment)?,
            (None, _) => file(reader, place, stat, moment)?,
        };
        if let Some(seen) = seen {
            return Ok(seen);
        }
    }
    Ok(Seen::unknown(&io::Error::other("it became another thing each time it was looked at")))
}

/// `None` when it is not there any more.
fn directory(
    reader: &Reader<'_>,
    place: Place<'_>,
    stat: Stat,
    moment: Moment,
) -> Result<Option<Seen>> {
    let there = |xattrs| Seen::there(reader.root, stat, moment, Kind::Directory, xattrs);
    if !reader.policy.xattrs {
        return Ok(Some(there(Vec::new())));
    }
    let name = if place.name.is_empty() { OsStr::new(".") } else { place.name };
    let opened = open_below(place.directory, name, OFlags::RDONLY | OFlags::DIRECTORY);
    Ok(match opened.and_then(|opened| opened.map(|fd| xattrs(fd.as_fd())).transpose()) {
        Ok(xattrs) => xattrs.map(there),
        Err(error) => Some(there(Vec::new()).unreadable(&about_the_name(error)?)),
    })
}

/// `None` when it is another thing by now.
fn file(
    reader: &mut Reader<'_>,
    place: Place<'_>,
    stat: Stat,
    moment: Moment,
) -> Result<Option<Seen>> {
    let unreadable = Kind::File { size: stat.signature.size, content: Content::Unreadable };
    let Reading { stat, size, content, xattrs, writers, moment } =
        match reader.read(place, stat, moment)? {
            Outcome::Done(reading) => reading,
            Outcome::Swapped => return Ok(None),
            Outcome::Failed(error) => {
                let seen = Seen::there(reader.root, stat, moment, unreadable, Vec::new());
                return Ok(Some(seen.unreadable(&about_the_name(error)?)));
            }
        };
    let kind = Kind::File { size, content };
    let mut seen = Seen::there(reader.root, stat, moment, kind, xattrs);
    seen.unsettled = writers;
    if writers && !reader.root.mapped_writes_show() {
        seen.signature = Signature::UNKNOWN;
    }
    match content {
        Content::Torn(_) => return Ok(Some(seen.noted(Note::Torn))),
        // Its signature stays: it is only looked at again when it changes.
        Content::TooLarge => seen.note = Some(Note::TooLarge { size }),
        Content::Kept(_) | Content::Unreadable => {}
    }
    Ok(Some(seen))
}

/// `None` when it is another one by now.
fn symlink(root: &Root, place: Place<'_>, stat: Stat, moment: Moment) -> Result<Option<Seen>> {
    let target = match readlinkat(place.directory, place.name, Vec::new()) {
        Ok(target) => target.into_bytes(),
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOENT) => return Ok(None),
        Err(error) => return Ok(Some(Seen::unknown(&about_the_name(error.into())?))),
    };
    let same = place.stat().is_ok_and(|after| after == Some(stat));
    Ok(same.then(|| Seen::there(root, stat, moment, Kind::Symlink { target }, Vec::new())))
}
