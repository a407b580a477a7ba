//! Giving back the space of contents that nothing names any more.
//!
//! A sweep drops the rows of what is dead and the packs that hold nothing else. What then lies in
//! packs with little life in them is copied to the end of the store, one pack at a time:
//!
//! ```text
//! copy ─> fdatasync ─> one transaction: rows moved, old pack's row gone ─> unlink
//! ```
//!
//! Before the commit the copy is what nobody recorded; after it the old pack is what no row names.
//! Either goes when the store is opened.

use std::collections::{BTreeMap, HashSet};

use rusqlite::Connection;

use super::append::Appender;
use super::frame::Builder;
use super::index::{self, PackRow};
use super::verify::{Share, by_frame, objects};
use super::{COLD, HOT, Store, chunk, lock, reader};
use crate::entry::ContentId;
use crate::error::Result;

/// Rewritten when less of its contents than this is live, in percent.
const LIVELY: u64 = 60;

/// Frames smaller than this on average are worth joining: those of many small checkpoints are, those
/// that were filled when they were written are not.
const LOOSE: u64 = HOT.target as u64 / 2;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Freed {
    /// Objects and recipes dropped.
    pub(crate) contents: u64,
    pub(crate) packs: u64,
    pub(crate) bytes: u64,
    /// Packs with damage in them, which are left as they are.
    pub(crate) damaged: u64,
}

/// What a sweep did, and the packs that are worth [`Store::rewrite`].
#[derive(Debug)]
pub(crate) struct Swept {
    pub(crate) freed: Freed,
    pub(crate) worth: Vec<u32>,
}

impl Store {
    /// `live` is asked of whole contents, never of the parts of large ones alone: those live with
    /// the contents that are made of them.
    pub(crate) fn compact(
        &self,
        db: &mut Connection,
        live: &dyn Fn(&ContentId) -> bool,
    ) -> Result<Freed> {
        let Swept { mut freed, worth } = self.sweep(db, live)?;
        for pack in worth {
            let more = self.rewrite(db, pack)?;
            freed.packs += more.packs;
            freed.bytes += more.bytes;
            freed.damaged += more.damaged;
        }
        Ok(freed)
    }

    /// The quick half of [`Store::compact`].
    pub(crate) fn sweep(
        &self,
        db: &mut Connection,
        live: &dyn Fn(&ContentId) -> bool,
    ) -> Result<Swept> {
        let (dead_recipes, parts) = sort_recipes(db, live)?;
        let mut dead = Vec::new();
        let mut left = BTreeMap::<u32, Share>::new();
        index::each_object(db, 0, u32::MAX, |id, place| {
            if live(&id) || parts.contains(&id) {
                let share = left.entry(place.pack).or_default();
                share.objects += 1;
                share.raw += u64::from(place.length);
            } else {
                dead.push(id);
            }
        })?;
        let packs = index::packs(db)?;
        let (kept, emptied): (Vec<_>, Vec<_>) =
            packs.into_iter().partition(|pack| left.contains_key(&pack.number));
        let tx = db.transaction()?;
        index::delete_recipes(&tx, &dead_recipes)?;
        index::delete_objects(&tx, &dead)?;
        for pack in &emptied {
            index::delete_pack(&tx, pack.number)?;
        }
        tx.commit()?;
        let contents = (dead.len() + dead_recipes.len()) as u64;
        let mut freed = Freed { contents, ..Freed::default() };
        for pack in emptied {
            self.forget(pack.number)?;
            freed.packs += 1;
            freed.bytes += pack.length;
        }
        Ok(Swept { freed, worth: worth(&kept, &left) })
    }

    /// Copies what is live in a pack to the end of the store and removes the pack. With damage in
    /// it, it stays: a later reader can still say where the damage is.
    pub(crate) fn rewrite(&self, db: &mut Connection, pack: u32) -> Result<Freed> {
        let Some(old) = index::packs(db)?.into_iter().find(|row| row.number == pack) else {
            return Ok(Freed::default());
        };
        let objects = objects(db, pack, pack)?;
        let appender = Appender::new(&self.packs, db, Some(pack))?;
        let mut builder = Builder::new(COLD)?;
        let mut moved = Vec::with_capacity(objects.len());
        let mut flush = |builder: &mut Builder| -> Result<()> {
            if !builder.is_empty() {
                let raw = builder.raw();
                let (pack, frame) = appender.append(builder.compress()?, raw)?;
                builder.settle(pack, frame, &mut moved);
            }
            Ok(())
        };
        for group in by_frame(&objects) {
            let Some((_, place)) = group.first() else { continue };
            let Ok(frame) = self.packs.read(pack, place.frame) else { return Ok(LEFT) };
            for (id, place) in group {
                let Ok(bytes) = reader::checked(&frame, *id, *place) else { return Ok(LEFT) };
                if !builder.has_room_for(bytes.len()) {
                    flush(&mut builder)?;
                }
                builder.push(*id, bytes);
            }
        }
        flush(&mut builder)?;
        let growth = appender.finish()?;
        moved.sort_unstable_by_key(|(id, _)| *id);
        let tx = db.transaction()?;
        for growth in &growth {
            growth.record(&tx)?;
        }
        index::move_objects(&tx, &moved)?;
        index::delete_pack(&tx, pack)?;
        tx.commit()?;
        self.forget(pack)?;
        let grown: u64 = growth.iter().map(|growth| growth.bytes()).sum();
        Ok(Freed { packs: 1, bytes: old.length.saturating_sub(grown), ..Freed::default() })
    }

    /// Removes a pack that no row names.
    fn forget(&self, pack: u32) -> Result<()> {
        lock(&self.cache).clear();
        self.packs.remove(pack)
    }
}

const LEFT: Freed = Freed { contents: 0, packs: 0, bytes: 0, damaged: 1 };

/// The recipes that are dead, and the parts of those that are not.
fn sort_recipes(
    db: &Connection,
    live: &dyn Fn(&ContentId) -> bool,
) -> Result<(Vec<ContentId>, HashSet<ContentId>)> {
    let mut dead = Vec::new();
    let mut parts = HashSet::new();
    index::each_recipe(db, |id, recipe| {
        if live(&id) {
            parts.extend(chunk::decode(recipe)?.into_iter().map(|part| part.id));
        } else {
            dead.push(id);
        }
        Ok(())
    })?;
    Ok((dead, parts))
}

/// The newest pack is still growing: that its frames are small says nothing yet.
fn worth(packs: &[PackRow], left: &BTreeMap<u32, Share>) -> Vec<u32> {
    let newest = packs.last().map(|pack| pack.number);
    let is_worth = |pack: &&PackRow| {
        let live = left.get(&pack.number).map_or(0, |share| share.raw);
        let sparse = u128::from(live) * 100 < u128::from(pack.raw) * u128::from(LIVELY);
        let loose = pack.frames > 1 && pack.raw / pack.frames < LOOSE;
        sparse || (loose && Some(pack.number) != newest)
    };
    packs.iter().filter(is_worth).map(|pack| pack.number).collect()
}
