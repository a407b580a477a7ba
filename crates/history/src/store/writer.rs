//! Putting contents in, from several threads at once.

use std::collections::HashSet;
use std::io::Read;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use rusqlite::{Connection, Transaction};

use super::append::{Appender, Growth, Kind, Syncing};
use super::chunk::{self, Part};
use super::frame::{Builder, Effort};
use super::index::{self, Place};
use super::{Store, lock};
use crate::contents::Keep;
use crate::entry::ContentId;
use crate::error::{Context, Error, Result};

/// Hashing and compressing are done by the calling threads outside of any lock.
pub(crate) struct Writer<'a> {
    /// `None` when the store was empty: only what is seen here can be known.
    db: Option<Mutex<&'a mut Connection>>,
    effort: Effort,
    appender: Appender<'a>,
    /// Kept by this writer or found in the store.
    seen: Mutex<HashSet<ContentId>>,
    /// One for each thread that is at work.
    builders: Mutex<Vec<Builder>>,
    objects: Mutex<Vec<(ContentId, Place)>>,
    /// Contents that are to be objects in the end, whatever failed on the way.
    promised: AtomicUsize,
    recipes: Mutex<Vec<Recipe>>,
}

struct Recipe {
    id: ContentId,
    length: u64,
    parts: Vec<u8>,
}

/// What is written and waits to be recorded.
pub(crate) struct Batch {
    syncing: Mutex<Syncing>,
    growth: Vec<Growth>,
    objects: Vec<(ContentId, Place)>,
    recipes: Vec<Recipe>,
}

impl<'a> Writer<'a> {
    pub(super) fn new(store: &'a Store, db: &'a mut Connection, effort: Effort) -> Result<Self> {
        let appender = Appender::new(&store.packs, db, Kind::Fresh, None)?;
        let db = if index::is_empty(db)? { None } else { Some(Mutex::new(db)) };
        Ok(Self { db, ..Self::unaware(appender, effort) })
    }

    /// For a store that is empty. `None` when it is not.
    pub(super) fn first(store: &'a Store, db: &Connection, effort: Effort) -> Result<Option<Self>> {
        if !index::is_empty(db)? {
            return Ok(None);
        }
        let appender = Appender::new(&store.packs, db, Kind::Fresh, None)?;
        Ok(Some(Self::unaware(appender, effort)))
    }

    fn unaware(appender: Appender<'a>, effort: Effort) -> Self {
        Self {
            db: None,
            effort,
            appender,
            seen: Mutex::default(),
            builders: Mutex::default(),
            objects: Mutex::default(),
            promised: AtomicUsize::new(0),
            recipes: Mutex::default(),
        }
    }

    /// Contents that the caller knows to be in the store.
    pub(crate) fn knowing(self, contents: &HashSet<ContentId>) -> Self {
        lock(&self.seen).extend(contents);
        self
    }

    pub(crate) fn finish(self) -> Result<Batch> {
        self.flush_rest()?;
        let mut objects = self.objects.into_inner().unwrap_or_else(PoisonError::into_inner);
        if objects.len() != self.promised.into_inner() {
            return Err(Error::Invalid("a content was not kept".into()));
        }
        let (growth, syncing) = self.appender.finish()?;
        // In the order of the table, which is then filled page by page.
        objects.sort_unstable_by_key(|(id, _)| *id);
        let recipes = self.recipes.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok(Batch { syncing: Mutex::new(syncing), growth, objects, recipes })
    }

    /// What the threads left in their builders goes into as few frames as it can.
    fn flush_rest(&self) -> Result<()> {
        let mut left = std::mem::take(&mut *lock(&self.builders)).into_iter();
        let Some(mut first) = left.next() else { return Ok(()) };
        for mut builder in left {
            if !first.absorb(&mut builder) {
                self.flush(&mut builder)?;
            }
        }
        self.flush(&mut first)
    }

    /// Whether this caller is the one to keep the content.
    fn is_new(&self, id: ContentId) -> Result<bool> {
        if !lock(&self.seen).insert(id) {
            return Ok(false);
        }
        let Some(db) = &self.db else { return Ok(true) };
        Ok(index::object(&lock(db), &id)?.is_none())
    }

    fn keep_object(&self, id: ContentId, bytes: &[u8]) -> Result<()> {
        if !self.is_new(id)? {
            return Ok(());
        }
        self.promised.fetch_add(1, Ordering::Relaxed);
        let free = lock(&self.builders).pop();
        let mut builder = match free {
            Some(builder) => builder,
            None => Builder::new(self.effort)?,
        };
        if !builder.has_room_for(bytes.len()) {
            self.flush(&mut builder)?;
        }
        builder.push(id, bytes);
        if builder.is_full() {
            self.flush(&mut builder)?;
        }
        lock(&self.builders).push(builder);
        Ok(())
    }

    fn flush(&self, builder: &mut Builder) -> Result<()> {
        if builder.is_empty() {
            return Ok(());
        }
        let raw = builder.raw();
        let (pack, frame) = self.appender.append(builder.compress()?, raw)?;
        builder.settle(pack, frame, &mut lock(&self.objects));
        Ok(())
    }

    fn keep_parts(&self, from: &mut dyn Read) -> Result<(ContentId, u64)> {
        let mut hasher = blake3::Hasher::new();
        let mut parts = Vec::new();
        let mut length = 0;
        for cut in chunk::cut(from) {
            let bytes = cut.context(|| "read a large content".into())?.data;
            hasher.update(&bytes);
            length += bytes.len() as u64;
            let part = Part { id: ContentId::of(&bytes), length: bytes.len() as u64 };
            self.keep_object(part.id, &bytes)?;
            parts.push(part);
        }
        let id = ContentId(*hasher.finalize().as_bytes());
        // A content that is one part is that object.
        if parts.len() > 1 && self.is_new_recipe(id)? {
            let parts = chunk::encode(&parts);
            lock(&self.recipes).push(Recipe { id, length, parts });
        }
        Ok((id, length))
    }

    fn is_new_recipe(&self, id: ContentId) -> Result<bool> {
        if !lock(&self.seen).insert(id) {
            return Ok(false);
        }
        let Some(db) = &self.db else { return Ok(true) };
        Ok(index::recipe(&lock(db), &id)?.is_none())
    }
}

impl Keep for Writer<'_> {
    fn keep(&self, bytes: &[u8]) -> Result<ContentId> {
        if bytes.len() > chunk::WHOLE {
            return self.keep_parts(&mut &*bytes).map(|(id, _)| id);
        }
        let id = ContentId::of(bytes);
        if !bytes.is_empty() {
            self.keep_object(id, bytes)?;
        }
        Ok(id)
    }

    fn keep_stream(&self, from: &mut dyn Read) -> Result<(ContentId, u64)> {
        let mut head = Vec::new();
        let mut start = (&mut *from).take(chunk::WHOLE as u64 + 1);
        start.read_to_end(&mut head).context(|| "read a content".into())?;
        if head.len() <= chunk::WHOLE {
            return Ok((self.keep(&head)?, head.len() as u64));
        }
        self.keep_parts(&mut head.as_slice().chain(from))
    }
}

impl Batch {
    /// Nothing of it is there before the transaction is committed; what it names is on disk when this
    /// returns.
    pub(crate) fn record(&self, tx: &Transaction<'_>) -> Result<()> {
        for growth in &self.growth {
            growth.record(tx)?;
        }
        index::insert_objects(tx, &self.objects)?;
        for recipe in &self.recipes {
            index::insert_recipe(tx, &recipe.id, recipe.length, &recipe.parts)?;
        }
        lock(&self.syncing).wait()
    }
}
