//! Reading everything to see that it is still there, and counting it.

use std::collections::BTreeMap;
use std::io;

use rusqlite::Connection;

use super::index::{self, Place};
use super::pack::{Packs, ReadError};
use super::{Store, reader};
use crate::contents::Fetch;
use crate::entry::ContentId;
use crate::error::Result;

/// Rows of the index held in memory at a time, or those of one pack.
const ROWS: usize = 500_000;

/// A content that cannot be read, or a part of a large one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DamagedContent {
    pub(crate) id: ContentId,
    pub(crate) why: String,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) packs: u64,
    /// Of all packs, on disk.
    pub(crate) bytes: u64,
    /// Bytes on disk, about, whose contents nothing names any more. Known after a sweep.
    pub(crate) dead: u64,
    /// Objects: small contents and the parts of large ones.
    pub(crate) objects: u64,
    /// Large contents.
    pub(crate) recipes: u64,
    /// Bytes of all objects before compression.
    pub(crate) raw: u64,
}

/// What the index says of one pack.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Share {
    pub(super) objects: usize,
    pub(super) raw: u64,
}

pub(super) fn shares(db: &Connection) -> Result<BTreeMap<u32, Share>> {
    let mut shares = BTreeMap::<u32, Share>::new();
    index::each_object(db, 0, u32::MAX, |_, place| {
        let share = shares.entry(place.pack).or_default();
        share.objects += 1;
        share.raw += u64::from(place.length);
    })?;
    Ok(shares)
}

/// Runs of packs whose rows are few enough to look at together: the index is in the order of ids,
/// so every look at it reads all of it.
fn spans(shares: &BTreeMap<u32, Share>) -> Vec<(u32, u32)> {
    let mut spans: Vec<(u32, u32)> = Vec::new();
    let mut rows = 0;
    for (pack, share) in shares {
        rows += share.objects;
        match spans.last_mut() {
            Some((_, last)) if rows <= ROWS => *last = *pack,
            _ => {
                spans.push((*pack, *pack));
                rows = share.objects;
            }
        }
    }
    spans
}

/// The objects of some packs, in the order in which they lie there.
pub(super) fn objects(db: &Connection, first: u32, last: u32) -> Result<Vec<(ContentId, Place)>> {
    let mut objects = Vec::new();
    index::each_object(db, first, last, |id, place| objects.push((id, place)))?;
    objects.sort_unstable_by_key(|(_, place)| *place);
    Ok(objects)
}

pub(super) fn by_frame(
    objects: &[(ContentId, Place)],
) -> impl Iterator<Item = &[(ContentId, Place)]> {
    objects.chunk_by(|(_, one), (_, next)| (one.pack, one.frame) == (next.pack, next.frame))
}

impl Store {
    /// Reads every frame and every content. What is damaged is listed and the rest is still read.
    /// `progress` gets the bytes read and those there are.
    pub(crate) fn verify(
        &self,
        db: &mut Connection,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Vec<DamagedContent>> {
        let shares = shares(db)?;
        let raw: u64 = shares.values().map(|share| share.raw).sum();
        let total = raw.saturating_add(index::recipes(db)?.1);
        let mut done = 0;
        let mut damaged = Vec::new();
        for (first, last) in spans(&shares) {
            for frame in by_frame(&objects(db, first, last)?) {
                verify_frame(&self.packs, frame, &mut damaged);
                done += frame.iter().map(|(_, place)| u64::from(place.length)).sum::<u64>();
                progress(done, total);
            }
        }
        let mut recipes = Vec::new();
        index::each_recipe(db, |id, _| {
            recipes.push(id);
            Ok(())
        })?;
        let fetcher = self.fetcher(db);
        for id in recipes {
            let mut counted = Counted(0);
            if let Err(error) = fetcher.fetch(id, &mut counted) {
                damaged.push(DamagedContent { id, why: error.to_string() });
            }
            done += counted.0;
            progress(done.min(total), total);
        }
        Ok(damaged)
    }

    pub(crate) fn usage(&self, db: &Connection) -> Result<Usage> {
        let shares = shares(db)?;
        let mut usage = Usage { recipes: index::recipes(db)?.0, ..Usage::default() };
        for pack in index::packs(db)? {
            let share = shares.get(&pack.number).copied().unwrap_or_default();
            usage.packs += 1;
            usage.bytes = usage.bytes.saturating_add(pack.length);
            usage.objects += share.objects as u64;
            usage.raw += share.raw;
            let gone = u128::from(pack.raw.saturating_sub(share.raw));
            let dead = u128::from(pack.length) * gone / u128::from(pack.raw.max(1));
            usage.dead = usage.dead.saturating_add(dead as u64);
        }
        Ok(usage)
    }
}

fn verify_frame(packs: &Packs, objects: &[(ContentId, Place)], to: &mut Vec<DamagedContent>) {
    let Some((_, Place { pack, frame: offset, .. })) = objects.first().copied() else { return };
    let mut report = |id, error: ReadError| {
        to.push(DamagedContent { id, why: error.at(pack, offset).to_string() });
    };
    match packs.read(pack, offset) {
        Ok(frame) => {
            for (id, place) in objects {
                if let Err(bad) = reader::checked(&frame, *id, *place) {
                    report(*id, bad.into());
                }
            }
        }
        Err(error) => {
            let why = error.at(pack, offset).to_string();
            let lost = objects.iter().map(|(id, _)| DamagedContent { id: *id, why: why.clone() });
            to.extend(lost);
        }
    }
}

struct Counted(u64);

impl io::Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
