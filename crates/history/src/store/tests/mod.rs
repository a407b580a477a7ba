mod compaction;
mod damage;
mod space;

use std::io::Cursor;
use std::path::Path;

use proptest::prelude::*;
use rusqlite::Connection;
use tempfile::TempDir;

use super::*;
use crate::contents::{Fetch, Keep};
use crate::entry::ContentId;
use crate::error::Error;

/// A store with its database, in a directory of its own.
pub(super) struct Place {
    pub(super) directory: TempDir,
    pub(super) db: Connection,
    pub(super) store: Store,
}

pub(super) fn database(directory: &Path) -> Connection {
    let db = Connection::open(directory.join("log.db")).unwrap();
    db.pragma_update(None, "journal_mode", "wal").unwrap();
    db.execute_batch(Store::SCHEMA).unwrap();
    db
}

impl Place {
    pub(super) fn new() -> Self {
        let directory = TempDir::new().unwrap();
        let db = database(directory.path());
        let store = Store::open(directory.path(), &db).unwrap();
        Self { directory, db, store }
    }

    /// As after the end of the process.
    pub(super) fn reopen(&mut self) {
        self.store = Store::open(self.directory.path(), &self.db).unwrap();
    }

    pub(super) fn keep<B: AsRef<[u8]>>(&mut self, contents: &[B]) -> Vec<ContentId> {
        let writer = self.store.writer(&mut self.db).unwrap();
        let ids = contents.iter().map(|bytes| writer.keep(bytes.as_ref()).unwrap()).collect();
        let batch = writer.finish().unwrap();
        self.commit(&batch);
        ids
    }

    pub(super) fn commit(&mut self, batch: &Batch) {
        let tx = self.db.transaction().unwrap();
        batch.record(&tx).unwrap();
        tx.commit().unwrap();
    }

    pub(super) fn fetch(&mut self, id: ContentId) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.store.fetcher(&mut self.db).fetch(id, &mut bytes)?;
        Ok(bytes)
    }

    pub(super) fn pack_files(&self) -> Vec<std::path::PathBuf> {
        let entries = std::fs::read_dir(self.directory.path().join("packs")).unwrap();
        let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
        files.sort();
        files
    }

    fn stored(&self) -> u64 {
        self.pack_files().iter().map(|file| file.metadata().unwrap().len()).sum()
    }
}

/// Bytes that do not compress, the same for the same seed.
pub(super) fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    let mut hasher = blake3::Hasher::new();
    hasher.update(&seed.to_le_bytes());
    hasher.finalize_xof().fill(&mut bytes);
    bytes
}

#[test]
fn every_size_comes_back() {
    let mut place = Place::new();
    let mebi = 1 << 20;
    let sizes = [0, 1, 255, 262_143, 262_144, 262_145, mebi - 1, mebi, mebi + 1, 20 * mebi];
    let contents: Vec<_> = sizes.iter().map(|size| noise(*size as u64, *size)).collect();
    let kept = place.keep(&contents);
    place.reopen();
    for (id, bytes) in kept.iter().zip(&contents) {
        assert_eq!(*id, ContentId::of(bytes));
        assert!(place.fetch(*id).unwrap() == *bytes, "{} bytes", bytes.len());
    }
}

#[test]
fn a_stream_and_a_whole_are_one_content() {
    let mut place = Place::new();
    let contents = [noise(1, 0), noise(2, 1 << 20), noise(3, 5 << 20)];
    let kept = place.keep(&contents);
    let stored = place.stored();
    let writer = place.store.writer(&mut place.db).unwrap();
    for (id, bytes) in kept.iter().zip(&contents) {
        let streamed = writer.keep_stream(&mut Cursor::new(bytes)).unwrap();
        assert_eq!(streamed, (*id, bytes.len() as u64));
    }
    let batch = writer.finish().unwrap();
    place.commit(&batch);
    assert_eq!(place.stored(), stored);
}

#[test]
fn what_is_known_is_not_stored_again() {
    let mut place = Place::new();
    let bytes = noise(1, 100_000);
    place.keep(&[&bytes, &bytes]);
    let once = place.stored();
    assert!(once < 101_000);
    place.keep(&[&bytes]);
    assert_eq!(place.stored(), once);
}

#[test]
fn a_change_in_a_large_content_stores_only_its_part() {
    let mut place = Place::new();
    let mut bytes = noise(1, 20 << 20);
    let first = place.keep(&[&bytes])[0];
    let before = place.stored();
    bytes.splice(5_000_000..5_000_000, *b"a few bytes more");
    let second = place.keep(&[&bytes])[0];
    assert!(place.stored() - before < 5 << 20);
    assert!(place.fetch(second).unwrap() == bytes);
    assert!(place.fetch(first).unwrap() == noise(1, 20 << 20));
}

#[test]
fn a_dropped_writer_leaves_nothing() {
    let mut place = Place::new();
    let old = place.keep(&[noise(1, 5000)])[0];
    let stored = place.stored();
    let writer = place.store.writer(&mut place.db).unwrap();
    let id = writer.keep(&noise(2, 9 << 20)).unwrap();
    drop(writer);
    assert_eq!(place.stored(), stored);
    assert!(matches!(place.fetch(id), Err(Error::Missing(missing)) if missing == id));
    assert!(place.fetch(old).unwrap() == noise(1, 5000));
}

#[test]
fn a_killed_writer_leaves_nothing() {
    let mut place = Place::new();
    let old = place.keep(&[noise(1, 5000)])[0];
    let writer = place.store.writer(&mut place.db).unwrap();
    let id = writer.keep(&noise(2, 9 << 20)).unwrap();
    // As a kill would, this skips all tidying.
    std::mem::forget(writer);
    assert!(place.stored() > 5 << 20);

    let new = place.keep(&[noise(3, 6 << 20)])[0];
    for _ in 0..2 {
        assert!(place.fetch(old).unwrap() == noise(1, 5000));
        assert!(place.fetch(new).unwrap() == noise(3, 6 << 20));
        assert!(matches!(place.fetch(id), Err(Error::Missing(_))));
        place.reopen();
    }
    assert!(place.stored() < 7 << 20);
}

#[test]
fn a_batch_never_recorded_leaves_nothing() {
    let mut place = Place::new();
    let old = place.keep(&[noise(1, 5000)])[0];
    let writer = place.store.writer(&mut place.db).unwrap();
    writer.keep(&noise(2, 5000)).unwrap();
    let overtaken = writer.finish().unwrap();
    let new = place.keep(&[noise(3, 7000)])[0];
    let tx = place.db.transaction().unwrap();
    assert!(matches!(overtaken.record(&tx), Err(Error::Invalid(_))));
    drop(tx);
    assert!(place.fetch(old).is_ok() && place.fetch(new).is_ok());
}

#[test]
fn opening_removes_what_no_row_names() {
    let mut place = Place::new();
    let id = place.keep(&[b"kept"])[0];
    let packs = place.directory.path().join("packs");
    for stray in ["00000009.pack", "9.pack", "x.tmp"] {
        std::fs::write(packs.join(stray), b"stray").unwrap();
    }
    place.reopen();
    assert_eq!(place.pack_files(), [packs.join("00000001.pack")]);
    assert_eq!(place.fetch(id).unwrap(), b"kept");
}

#[test]
fn threads_keep_and_fetch_at_once() {
    let mut place = Place::new();
    let content = |number: u64| noise(number % 700, 1 + (number as usize % 700) * 37);
    let writer = place.store.writer(&mut place.db).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4_u64 {
            let writer = &writer;
            scope.spawn(move || {
                for number in 0..500 {
                    writer.keep(&content(thread * 131 + number)).unwrap();
                }
            });
        }
    });
    let batch = writer.finish().unwrap();
    place.commit(&batch);
    assert_eq!(place.store.usage(&place.db).unwrap().objects, 700);
    let fetcher = place.store.fetcher(&mut place.db);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for number in 0..700 {
                    let expected = content(number);
                    let mut bytes = Vec::new();
                    fetcher.fetch(ContentId::of(&expected), &mut bytes).unwrap();
                    assert!(bytes == expected);
                }
            });
        }
    });
}

#[test]
fn packs_roll() {
    let mut place = Place::new();
    let contents: Vec<_> = (0..20).map(|seed| noise(seed, 1 << 20)).collect();
    let ids = place.keep(&contents);
    assert_eq!(place.pack_files().len(), 5);
    for (id, bytes) in ids.into_iter().zip(contents) {
        assert!(place.fetch(id).unwrap() == bytes);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn batches_committed_dropped_and_reopened(
        steps in proptest::collection::vec(
            (proptest::collection::vec((0..40_u64, 0..4000_usize), 0..8), any::<bool>(), any::<bool>()),
            1..8,
        ),
    ) {
        let mut place = Place::new();
        let mut kept = std::collections::HashMap::new();
        for (contents, commit, reopen) in steps {
            let writer = place.store.writer(&mut place.db).unwrap();
            let mut batch = Vec::new();
            for (seed, length) in contents {
                let bytes = noise(seed, length);
                batch.push((writer.keep(&bytes).unwrap(), bytes));
            }
            if commit {
                let finished = writer.finish().unwrap();
                place.commit(&finished);
                kept.extend(batch);
            } else {
                drop(writer);
            }
            if reopen {
                place.reopen();
            }
            for (id, bytes) in &kept {
                prop_assert!(place.fetch(*id).unwrap() == *bytes);
            }
        }
    }
}
