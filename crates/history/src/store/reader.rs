//! Getting contents out again.

use std::collections::{HashMap, HashSet, VecDeque};
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::Connection;

use super::frame::Bad;
use super::index::{self, Found, Place};
use super::pack::ReadError;
use super::{Store, chunk, lock};
use crate::contents::Fetch;
use crate::entry::ContentId;
use crate::error::{Context, Error, Result};

/// Bytes of frames kept for the next content that lies in them.
const CACHE: usize = 8 << 20;
const CACHED_FRAMES: usize = 128;
/// A frame with one large part is not asked for twice.
const CACHED_FRAME: usize = CACHE / 8;

/// A pack and an offset in it.
type Key = (u32, u64);

/// Frames lately read, the newest last.
#[derive(Default)]
pub(super) struct Cache {
    frames: VecDeque<(Key, Arc<Vec<u8>>)>,
    bytes: usize,
}

impl Cache {
    fn get(&self, key: Key) -> Option<Arc<Vec<u8>>> {
        let found = self.frames.iter().rev().find(|(cached, _)| *cached == key);
        found.map(|(_, frame)| Arc::clone(frame))
    }

    fn put(&mut self, key: Key, frame: &Arc<Vec<u8>>) {
        if frame.len() > CACHED_FRAME || self.get(key).is_some() {
            return;
        }
        self.bytes += frame.len();
        self.frames.push_back((key, Arc::clone(frame)));
        while self.bytes > CACHE || self.frames.len() > CACHED_FRAMES {
            let Some((_, oldest)) = self.frames.pop_front() else { return };
            self.bytes -= oldest.len();
        }
    }

    /// Numbers of packs that are gone may be given again.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

impl Store {
    fn frame(&self, pack: u32, offset: u64) -> Result<Arc<Vec<u8>>, ReadError> {
        if let Some(frame) = lock(&self.cache).get((pack, offset)) {
            return Ok(frame);
        }
        let frame = Arc::new(self.packs.read(pack, offset)?);
        lock(&self.cache).put((pack, offset), &frame);
        Ok(frame)
    }

    /// Hands over the bytes of one object, once they are known to be right.
    fn object<T>(&self, id: ContentId, place: Place, take: impl FnOnce(&[u8]) -> T) -> Result<T> {
        let found = self.frame(place.pack, place.frame);
        let frame = found.map_err(|error| error.at(place.pack, place.frame))?;
        let bytes = checked(&frame, id, place)
            .map_err(|bad| ReadError::Bad(bad).at(place.pack, place.frame))?;
        Ok(take(bytes))
    }
}

/// The bytes of an object in its frame.
pub(super) fn checked(frame: &[u8], id: ContentId, place: Place) -> Result<&[u8], Bad> {
    let start = place.start as usize;
    let end = start.checked_add(place.length as usize).ok_or(Bad::Outside)?;
    let bytes = frame.get(start..end).ok_or(Bad::Outside)?;
    match ContentId::of(bytes) == id {
        true => Ok(bytes),
        false => Err(Bad::Content),
    }
}

/// Reads what is committed. Several threads fetch at once.
pub(crate) struct Fetcher<'a> {
    store: &'a Store,
    db: Mutex<&'a mut Connection>,
    /// Of those that were said to be wanted.
    places: HashMap<ContentId, Place>,
}

impl<'a> Fetcher<'a> {
    pub(super) fn new(store: &'a Store, db: &'a mut Connection) -> Self {
        Self { store, db: Mutex::new(db), places: HashMap::new() }
    }

    /// Looks up where contents lie that will be fetched, in the order of the table: neighbours there
    /// are read together, and threads that fetch do not wait for the database.
    pub(crate) fn expecting(mut self, mut ids: Vec<ContentId>) -> Result<Self> {
        ids.sort_unstable();
        ids.dedup();
        let db = self.db.get_mut().unwrap_or_else(PoisonError::into_inner);
        for id in ids {
            // What is in parts or missing is found to be so when it is fetched.
            if let Some(place) = index::object(db, &id)? {
                self.places.insert(id, place);
            }
        }
        Ok(self)
    }

    /// Of the expected ones those that are in the store.
    pub(crate) fn found(self) -> HashSet<ContentId> {
        self.places.into_keys().collect()
    }
}

impl Fetch for Fetcher<'_> {
    fn fetch(&self, id: ContentId, to: &mut dyn Write) -> Result<()> {
        match self.places.get(&id) {
            Some(place) => self.store.object(id, *place, |bytes| write(id, bytes, to))?,
            None => fetch(self.store, &self.db, id, to),
        }
    }
}

fn write(id: ContentId, bytes: &[u8], to: &mut dyn Write) -> Result<()> {
    to.write_all(bytes).context(|| format!("write content {id}"))
}

pub(super) fn fetch(
    store: &Store,
    db: &Mutex<&mut Connection>,
    id: ContentId,
    to: &mut dyn Write,
) -> Result<()> {
    // Nothing is stored for a content without bytes.
    if id == ContentId::of(&[]) {
        return Ok(());
    }
    let mut write = |bytes: &[u8]| write(id, bytes, to);
    // Bound first, so that the lock is not held while packs are read.
    let found = index::find(&lock(db), &id)?;
    let recipe = match found {
        Found::Whole(place) => return store.object(id, place, write)?,
        Found::Recipe(recipe) => recipe,
    };
    let mut hasher = blake3::Hasher::new();
    for part in chunk::decode(&recipe)? {
        let place = index::object(&lock(db), &part.id)?;
        let place = place.ok_or_else(|| lost(id, part.id))?;
        store.object(part.id, place, |bytes| {
            hasher.update(bytes);
            write(bytes)
        })??;
    }
    match *hasher.finalize().as_bytes() == id.0 {
        true => Ok(()),
        false => Err(Error::damaged(format!("content {id} is not what was kept"))),
    }
}

fn lost(id: ContentId, part: ContentId) -> Error {
    Error::damaged(format!("part {part} of content {id} is not in the store"))
}
