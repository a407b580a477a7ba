//! Giving back space: that of contents that nothing names any more, and that of haste.
//!
//! A sweep drops the rows of what is dead and the packs that hold nothing else. Two kinds of packs are
//! then worth rewriting, one at a time: those with little life in them, and those that checkpoints
//! wrote in a hurry, once nobody waits ([`Store::tidy`]).
//!
//! ```text
//! copy ─> fdatasync ─> one transaction: rows moved, old pack's row gone ─> unlink
//! ```
//!
//! Before the commit the copy is what nobody recorded; after it the old pack is what no row names.
//! Either goes when the store is opened.

use std::collections::{BTreeMap, HashSet};

use rusqlite::Connection;

use super::append::{Appender, Kind};
use super::frame::{Builder, Effort};
use super::index::{self, PackRow};
use super::verify::{Share, by_frame, objects};
use super::{FRESH, JOINED, PRESSED, Store, chunk, lock, reader};
use crate::entry::ContentId;
use crate::error::Result;

/// Rewritten when less of its contents than this is live, in percent.
const LIVELY: u64 = 60;

/// Frames that were filled and yet take more than this of what they hold, in percent, are not worth
/// pressing.
const DENSE: u64 = 90;

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
            let more = self.rewrite(db, pack, &mut || true)?.unwrap_or_default();
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

    /// Presses one pack that checkpoints have filled; nothing is lost when `go_on`, asked again and
    /// again, gives it up. Says whether there may be more to do.
    pub(crate) fn tidy(
        &self,
        db: &mut Connection,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<bool> {
        let packs = index::packs(db)?;
        // To the last of them checkpoints still add.
        let mut fresh = packs.iter().filter(|pack| !pack.pressed);
        let (Some(pack), Some(_)) = (fresh.next(), fresh.next()) else { return Ok(false) };
        if is_dense(pack) {
            index::set_pressed(db, pack.number)?;
            return Ok(true);
        }
        match self.rewrite(db, pack.number, go_on)? {
            // Damage is not to be come back to again and again.
            Some(done) if done.damaged > 0 => index::set_pressed(db, pack.number)?,
            Some(_) | None => {}
        }
        Ok(true)
    }

    /// Copies what is live in a pack to the end of the store and removes the pack. With damage in
    /// it, it stays: a later reader can still say where the damage is. `None` when `go_on` said no.
    pub(crate) fn rewrite(
        &self,
        db: &mut Connection,
        pack: u32,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<Option<Freed>> {
        let Some(old) = index::packs(db)?.into_iter().find(|row| row.number == pack) else {
            return Ok(Some(Freed::default()));
        };
        let objects = objects(db, pack, pack)?;
        let appender = Appender::new(&self.packs, db, Kind::Pressed, Some(pack))?;
        let mut builder = Builder::new(effort(&old))?;
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
            if !go_on() {
                return Ok(None);
            }
            let Some((_, place)) = group.first() else { continue };
            let Ok(frame) = self.packs.read(pack, place.frame) else { return Ok(Some(LEFT)) };
            for (id, place) in group {
                let Ok(bytes) = reader::checked(&frame, *id, *place) else { return Ok(Some(LEFT)) };
                if !builder.has_room_for(bytes.len()) {
                    flush(&mut builder)?;
                }
                builder.push(*id, bytes);
            }
        }
        flush(&mut builder)?;
        let (growth, mut syncing) = appender.finish()?;
        syncing.wait()?;
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
        let bytes = old.length.saturating_sub(grown);
        Ok(Some(Freed { packs: 1, bytes, ..Freed::default() }))
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

/// Those with little life in them.
fn worth(packs: &[PackRow], left: &BTreeMap<u32, Share>) -> Vec<u32> {
    let is_sparse = |pack: &&PackRow| {
        let live = left.get(&pack.number).map_or(0, |share| share.raw);
        u128::from(live) * 100 < u128::from(pack.raw) * u128::from(LIVELY)
    };
    packs.iter().filter(is_sparse).map(|pack| pack.number).collect()
}

/// Whether its frames hold about as much as they may, and not what small checkpoints wrote.
fn is_filled(pack: &PackRow) -> bool {
    let target = if pack.pressed { PRESSED.target } else { FRESH.target };
    pack.raw / pack.frames.max(1) >= target as u64 / 2
}

fn is_dense(pack: &PackRow) -> bool {
    is_filled(pack) && u128::from(pack.length) * 100 > u128::from(pack.raw) * u128::from(DENSE)
}

fn effort(pack: &PackRow) -> Effort {
    if is_filled(pack) { PRESSED } else { JOINED }
}
