//! Where the next frame goes. Frames are only ever added at the end of the newest pack of their kind:
//! those of checkpoints in one, those that were pressed in another.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use rusqlite::{Connection, Transaction};
use rustix::fs::fsync;

use super::index::{self, PackRow};
use super::lock;
use super::pack::Packs;
use crate::error::{Context, Result};
use crate::planted::{Fault, is_planted};

const SMALLEST: u64 = 4 << 20;
const LARGEST: u64 = 64 << 20;

/// What takes long to sync is synced while the rows about it are written.
const LARGE: u64 = 8 << 20;

/// Packs written by one batch that are not yet synced. More are synced on the way.
const UNSYNCED: usize = 32;

/// A pack is full at a small part of the store, so that to rewrite one takes little room.
fn limit(total: u64) -> u64 {
    (total / 32).clamp(SMALLEST, LARGEST)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// As checkpoints write them.
    Fresh,
    Pressed,
}

pub(super) struct Appender<'a> {
    packs: &'a Packs,
    kind: Kind,
    tail: Mutex<Tail>,
}

struct Tail {
    /// Bytes of the whole store.
    total: u64,
    next: u32,
    /// Whether frames may still be added to the last of the touched.
    appending: bool,
    created: bool,
    touched: Vec<Touched>,
}

struct Touched {
    growth: Growth,
    /// `None` once synced.
    file: Option<Arc<File>>,
}

/// What a batch adds to one pack.
#[derive(Debug, Clone, Copy)]
pub(super) struct Growth {
    number: u32,
    /// Where the pack ended before; `None` for a new one.
    from: Option<u64>,
    end: u64,
    raw: u64,
    frames: u64,
    kind: Kind,
}

impl Growth {
    pub(super) fn record(&self, tx: &Transaction<'_>) -> Result<()> {
        let Self { number, from, end, raw, frames, kind } = *self;
        let row = PackRow { number, length: end, raw, frames, pressed: kind == Kind::Pressed };
        match from {
            Some(from) => index::extend_pack(tx, from, row),
            None => index::insert_pack(tx, row),
        }
    }

    /// Bytes of the pack that were not there before.
    pub(super) fn bytes(&self) -> u64 {
        self.end - self.from.unwrap_or(0)
    }
}

impl<'a> Appender<'a> {
    /// Starts where the database says that the store ends, whatever may lie in the files after
    /// that, and never in the pack `avoid`.
    pub(super) fn new(
        packs: &'a Packs,
        db: &Connection,
        kind: Kind,
        avoid: Option<u32>,
    ) -> Result<Self> {
        let rows = index::packs(db)?;
        let total = rows.iter().fold(0_u64, |total, row| total.saturating_add(row.length));
        let next = rows.last().map_or(1, |row| row.number.saturating_add(1));
        let mut tail = Tail { total, next, appending: false, created: false, touched: Vec::new() };
        if let Some(row) = rows.iter().rfind(|row| row.pressed == (kind == Kind::Pressed))
            && row.length < limit(total)
            && Some(row.number) != avoid
            && let Some(file) = whole(packs, row)
        {
            let (number, end) = (row.number, row.length);
            let growth = Growth { number, from: Some(end), end, raw: 0, frames: 0, kind };
            tail.touched.push(Touched { growth, file: Some(Arc::new(file)) });
            tail.appending = true;
        }
        Ok(Self { packs, kind, tail: Mutex::new(tail) })
    }

    /// Gives the pack and the offset of the frame. It is durable after [`Appender::finish`].
    pub(super) fn append(&self, frame: &[u8], raw: u64) -> Result<(u32, u64)> {
        let (file, number, offset) =
            lock(&self.tail).reserve(self.packs, self.kind, frame.len(), raw)?;
        file.write_all_at(frame, offset).context(|| format!("write pack {number}"))?;
        Ok((number, offset))
    }

    /// The second is to be waited for before the first is committed.
    pub(super) fn finish(mut self) -> Result<(Vec<Growth>, Syncing)> {
        let packs = self.packs;
        let tail = self.tail.get_mut().unwrap_or_else(PoisonError::into_inner);
        let unsynced = tail.touched.iter().filter(|touched| touched.file.is_some());
        let large = unsynced.map(|touched| touched.growth.bytes()).sum::<u64>() >= LARGE;
        let directory = tail.created.then(|| packs.directory()).transpose()?;
        if !large {
            sync(&mut tail.touched, directory.as_ref())?;
        }
        let mut touched = std::mem::take(&mut tail.touched);
        let growth = touched.iter().map(|touched| touched.growth);
        let growth = growth.filter(|growth| growth.bytes() > 0).collect();
        let begin = || std::thread::spawn(move || sync(&mut touched, directory.as_ref()));
        Ok((growth, Syncing(large.then(begin))))
    }
}

/// Bytes on their way to the disk.
pub(super) struct Syncing(Option<JoinHandle<Result<()>>>);

impl Syncing {
    pub(super) fn wait(&mut self) -> Result<()> {
        match self.0.take().map(JoinHandle::join) {
            None => Ok(()),
            Some(Ok(synced)) => synced,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
        }
    }
}

/// What cannot be synced gives its space back.
fn sync(touched: &mut [Touched], directory: Option<&OwnedFd>) -> Result<()> {
    let synced = touched.iter_mut().try_for_each(Touched::sync).and_then(|()| match directory {
        Some(directory) => fsync(directory).context(|| "sync packs".into()),
        None => Ok(()),
    });
    if synced.is_err() {
        for Touched { growth, file } in touched {
            // Whatever stays is cut off when the store is opened.
            let _ = file.as_ref().map(|file| file.set_len(growth.from.unwrap_or(0)));
        }
    }
    synced
}

/// What was not finished gives its space back at once: there may be none left.
impl Drop for Appender<'_> {
    fn drop(&mut self) {
        let tail = self.tail.get_mut().unwrap_or_else(PoisonError::into_inner);
        for Touched { growth, .. } in tail.touched.drain(..) {
            // Whatever stays is cut off when the store is opened.
            let _ = match growth.from {
                Some(from) => self.packs.cut(growth.number, from),
                None => self.packs.remove(growth.number),
            };
        }
    }
}

/// A pack that lost its end is left alone: what is added after a gap would be counted as there.
fn whole(packs: &Packs, row: &PackRow) -> Option<File> {
    let file = packs.writable(row.number).ok()?;
    (file.metadata().ok()?.len() >= row.length).then_some(file)
}

impl Tail {
    fn reserve(
        &mut self,
        packs: &Packs,
        kind: Kind,
        length: usize,
        raw: u64,
    ) -> Result<(Arc<File>, u32, u64)> {
        let full = self.touched.last().is_none_or(|last| last.growth.end >= limit(self.total));
        if !self.appending || full {
            self.roll(packs, kind)?;
        }
        let last = self.touched.last_mut().filter(|last| last.file.is_some());
        let Some(Touched { growth, file: Some(file) }) = last else {
            return Err(crate::error::Error::Invalid("no pack is open".into()));
        };
        let offset = growth.end;
        growth.end += length as u64;
        growth.raw += raw;
        growth.frames += 1;
        self.total += length as u64;
        Ok((Arc::clone(file), growth.number, offset))
    }

    fn roll(&mut self, packs: &Packs, kind: Kind) -> Result<()> {
        self.sync_some()?;
        let number = self.next;
        let file = Arc::new(packs.create(number)?);
        self.next = number.saturating_add(1);
        (self.created, self.appending) = (true, true);
        let growth = Growth { number, from: None, end: 0, raw: 0, frames: 0, kind };
        self.touched.push(Touched { growth, file: Some(file) });
        Ok(())
    }

    fn sync_some(&mut self) -> Result<()> {
        let unsynced = self.touched.iter().filter(|touched| touched.file.is_some()).count();
        if unsynced < UNSYNCED {
            return Ok(());
        }
        self.touched.iter_mut().filter(|touched| touched.is_idle()).try_for_each(Touched::sync)
    }
}

impl Touched {
    /// Nobody is writing to it.
    fn is_idle(&self) -> bool {
        self.file.as_ref().is_some_and(|file| Arc::strong_count(file) == 1)
    }

    fn sync(&mut self) -> Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        if self.growth.bytes() > 0 && !is_planted(Fault::PackNotSynced) {
            file.sync_data().context(|| format!("sync pack {}", self.growth.number))?;
        }
        self.file = None;
        Ok(())
    }
}
