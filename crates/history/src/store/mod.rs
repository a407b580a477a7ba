//! Where the bytes of files are kept: append-only packs, and tables that say what lies where.
//!
//! ```text
//! keep ─> hash ─ known? ─ no ─> frame of several contents ─ full ─> compress ─> end of a pack
//! finish ─> what is left ─> Batch ─ record ─> the caller's transaction ─ fdatasync ─> its commit
//! ```
//!
//! Invariants: a pack's bytes below the length in table `pack` never change; a row is committed
//! only after the bytes it names are on disk; a pack is removed only after the commit that leaves
//! no row naming it. So whatever is in `packs/` and in no row was never recorded, and goes when the
//! store is opened. Nothing is given out that does not hash to its id.

mod append;
mod chunk;
mod compact;
mod frame;
mod index;
mod pack;
mod reader;
#[cfg(test)]
mod tests;
mod verify;
mod writer;

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rusqlite::Connection;

use crate::entry::ContentId;
use crate::error::{Error, Result};
use frame::Effort;
use pack::{Listed, Packs};
use reader::Cache;
pub(crate) use reader::Fetcher;
pub(crate) use writer::{Batch, Writer};

/// All of a frame has to be read for one file in it. Larger ones take less room.
const FRAME: usize = 32 << 10;

/// While the owner waits.
const FRESH: Effort = Effort { level: 1, target: FRAME };

/// For what is rewritten, mostly while nobody waits. Shorter, since an undo of files that lie apart
/// decompresses a whole frame for each.
const PRESSED: Effort = Effort { level: 9, target: 20 << 10 };

/// And for what many small checkpoints wrote: often the same few files again and again, which take
/// little room side by side.
const JOINED: Effort = Effort { level: 9, target: 8 * FRAME };

/// The packs. What is in them is known to the caller's database, which one process opens at a time;
/// whoever holds it mutably is the only writer.
pub(crate) struct Store {
    packs: Packs,
    cache: Mutex<Cache>,
}

impl Store {
    /// Tables that the caller makes before [`Store::open`].
    pub(crate) const SCHEMA: &str = index::SCHEMA;

    /// Clears away what was written and never recorded.
    pub(crate) fn open(directory: &Path, db: &Connection) -> Result<Self> {
        index::prepare(db)?;
        let packs = Packs::open(directory)?;
        let rows = index::packs(db)?;
        for Listed { name, number } in packs.list()? {
            let row = rows.iter().find(|row| Some(row.number) == number);
            match row {
                Some(row) => packs.cut(row.number, row.length)?,
                None => packs.remove_name(&name)?,
            }
        }
        Ok(Self { packs, cache: Mutex::default() })
    }

    /// Keeps the contents of one checkpoint. Dropped before [`Writer::finish`] and
    /// [`Batch::record`], it leaves nothing that anybody sees.
    pub(crate) fn writer<'a>(&'a self, db: &'a mut Connection) -> Result<Writer<'a>> {
        Writer::new(self, db, FRESH)
    }

    /// As [`Store::writer`], for a store without contents: nothing is looked up, and the database is
    /// free meanwhile. `None` when there are contents.
    pub(crate) fn first_writer(&self, db: &Connection) -> Result<Option<Writer<'_>>> {
        Writer::first(self, db, FRESH)
    }

    pub(crate) fn has(&self, db: &Connection, id: &ContentId) -> Result<bool> {
        // Nothing is kept of nothing.
        if *id == ContentId::of(b"") {
            return Ok(true);
        }
        match index::find(db, id) {
            Ok(_) => Ok(true),
            Err(Error::Missing(_)) => Ok(false),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn fetcher<'a>(&'a self, db: &'a mut Connection) -> Fetcher<'a> {
        Fetcher::new(self, db)
    }
}

/// Nothing behind these locks is left half-changed by a panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
