//! The database, and what of it is kept in memory while it is searched.
//!
//! One [`Library`] owns `knowledge.db`. Every change is one transaction: after a crash a document, a
//! fact or an edition is there as a whole, or not at all. What is in memory follows the database and is
//! read from it when it is first needed.

mod documents;
mod editions;
mod facts;
mod pending;
mod search;
mod verify;

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, params};

pub use documents::{Known, Prepared, PreparedChunk, hash_of, prepare};
pub use editions::{Citation, Cited, Edition, EditionInfo, Publish, Published, Way};
pub use facts::{ChangeFact, Fact, NewFact, Recalled};
pub use pending::Pending;
pub use search::{Found, Hit, Query};
pub use verify::Verified;

use crate::embed;
use crate::error::{Error, Result};
use search::Memory;

/// Which form the tables have. Another program's tables are never guessed at.
const FORM: i64 = 1;
/// Rows of the write-ahead log before it is copied into the database, in pages.
const CHECKPOINT: i64 = 1000;

const SCHEMA: &str = "
    CREATE TABLE models (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE) STRICT;
    CREATE TABLE sources (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE) STRICT;
    CREATE TABLE documents (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        source INTEGER NOT NULL REFERENCES sources (id),
        path TEXT NOT NULL,
        title TEXT,
        signature TEXT NOT NULL,
        hash BLOB NOT NULL,
        bytes INTEGER NOT NULL,
        indexed_at INTEGER NOT NULL,
        UNIQUE (source, path)
    ) STRICT;
    CREATE TABLE chunks (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        document INTEGER NOT NULL REFERENCES documents (id),
        source INTEGER NOT NULL,
        first_line INTEGER NOT NULL,
        last_line INTEGER NOT NULL,
        -- Path and headings: found by word like the text, but not shown as it.
        context TEXT NOT NULL,
        text TEXT NOT NULL,
        -- 0 for a chunk that has no vector yet.
        model INTEGER NOT NULL,
        vector BLOB
    ) STRICT;
    CREATE INDEX chunks_by_document ON chunks (document);
    CREATE INDEX chunks_by_model ON chunks (model);
    CREATE VIRTUAL TABLE chunk_words USING fts5 (
        context, text, content = 'chunks', content_rowid = 'id',
        tokenize = 'porter unicode61 remove_diacritics 2'
    );
    CREATE TRIGGER chunk_added AFTER INSERT ON chunks BEGIN
        INSERT INTO chunk_words (rowid, context, text) VALUES (new.id, new.context, new.text);
    END;
    CREATE TRIGGER chunk_removed AFTER DELETE ON chunks BEGIN
        INSERT INTO chunk_words (chunk_words, rowid, context, text)
        VALUES ('delete', old.id, old.context, old.text);
    END;

    CREATE TABLE facts (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        text TEXT NOT NULL,
        source TEXT NOT NULL,
        tags TEXT NOT NULL,
        created_at INTEGER NOT NULL,
        changed_at INTEGER NOT NULL,
        model INTEGER NOT NULL,
        vector BLOB
    ) STRICT;
    CREATE VIRTUAL TABLE fact_words USING fts5 (
        text, tags, content = 'facts', content_rowid = 'id',
        tokenize = 'porter unicode61 remove_diacritics 2'
    );
    -- Without this, words of a deleted fact stay in the index until it is merged.
    INSERT INTO fact_words (fact_words, rank) VALUES ('secure-delete', 1);
    CREATE TRIGGER fact_added AFTER INSERT ON facts BEGIN
        INSERT INTO fact_words (rowid, text, tags) VALUES (new.id, new.text, new.tags);
    END;
    CREATE TRIGGER fact_removed AFTER DELETE ON facts BEGIN
        INSERT INTO fact_words (fact_words, rowid, text, tags)
        VALUES ('delete', old.id, old.text, old.tags);
    END;
    CREATE TRIGGER fact_changed AFTER UPDATE OF text, tags ON facts BEGIN
        INSERT INTO fact_words (fact_words, rowid, text, tags)
        VALUES ('delete', old.id, old.text, old.tags);
        INSERT INTO fact_words (rowid, text, tags) VALUES (new.id, new.text, new.tags);
    END;

    CREATE TABLE editions (
        number INTEGER PRIMARY KEY,
        hash TEXT NOT NULL UNIQUE,
        -- Of the link before it and this edition's hash: none can be taken out of the middle.
        link TEXT NOT NULL,
        document TEXT NOT NULL,
        manifest BLOB NOT NULL,
        content BLOB NOT NULL
    ) STRICT;
    CREATE INDEX editions_by_document ON editions (document, number);
    CREATE TABLE citations (
        citing TEXT NOT NULL,
        position INTEGER NOT NULL,
        cited TEXT NOT NULL,
        PRIMARY KEY (citing, position)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX citations_by_cited ON citations (cited);
    CREATE TRIGGER edition_stays BEFORE UPDATE ON editions BEGIN
        SELECT RAISE(ABORT, 'an edition is never changed');
    END;
    CREATE TRIGGER edition_remains BEFORE DELETE ON editions BEGIN
        SELECT RAISE(ABORT, 'an edition is never removed');
    END;
";

/// See the [module](self).
#[derive(Debug)]
pub struct Library {
    db: Connection,
    /// The model whose vectors are compared; those of others wait to be made anew.
    model: i64,
    model_name: String,
    chunks: Option<Memory>,
    facts: Option<Memory>,
}

/// How much there is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Status {
    pub documents: u64,
    pub chunks: u64,
    /// Chunks that have no vector of the model in use yet.
    pub waiting: u64,
    pub facts: u64,
    pub editions: u64,
    /// Documents by the name of their source.
    pub sources: Vec<(String, u64)>,
    pub model: String,
}

impl Library {
    /// `model` names what makes the vectors: [`embed::MODEL`], or that of a provider.
    pub fn open(path: &Path, model: &str) -> Result<Self> {
        Self::over(Connection::open(path)?, model)
    }

    fn over(db: Connection, model: &str) -> Result<Self> {
        db.busy_timeout(Duration::from_secs(5))?;
        db.pragma_update(None, "journal_mode", "WAL")?;
        db.pragma_update(None, "synchronous", "NORMAL")?;
        db.pragma_update(None, "foreign_keys", "ON")?;
        // What is deleted is overwritten.
        db.pragma_update(None, "secure_delete", "ON")?;
        db.pragma_update(None, "wal_autocheckpoint", CHECKPOINT)?;
        match db.pragma_query_value(None, "user_version", |row| row.get::<_, i64>(0))? {
            0 => db.execute_batch(&format!(
                "BEGIN IMMEDIATE; {SCHEMA} PRAGMA user_version = {FORM}; COMMIT;"
            ))?,
            FORM => {}
            other => {
                let what = format!("knowledge.db has form {other}, and this program knows {FORM}");
                return Err(Error::refused(what).or_try("use the program that wrote it"));
            }
        }
        let mut library =
            Self { db, model: 0, model_name: String::new(), chunks: None, facts: None };
        library.use_model(model)?;
        Ok(library)
    }

    /// From now on vectors are those of this model.
    pub fn use_model(&mut self, name: &str) -> Result<()> {
        self.db.execute("INSERT OR IGNORE INTO models (name) VALUES (?)", [name])?;
        let find = "SELECT id FROM models WHERE name = ?";
        self.model = self.db.query_row(find, [name], |row| row.get(0))?;
        self.model_name = name.to_owned();
        (self.chunks, self.facts) = (None, None);
        Ok(())
    }

    pub fn model(&self) -> &str {
        &self.model_name
    }

    /// Vectors nearer than this are worth showing. Only of the table in the program it is known where
    /// that is.
    fn least(&self) -> f32 {
        if self.model_name == embed::MODEL { embed::UNRELATED } else { f32::MIN_POSITIVE }
    }

    pub fn status(&self) -> Result<Status> {
        let count = |what: &str| -> Result<u64> {
            let read = self.db.query_row(what, [], |row| row.get::<_, i64>(0))?;
            Ok(u64::try_from(read).unwrap_or(0))
        };
        let mut by_source = self.db.prepare_cached(
            "SELECT name, count(*) FROM documents JOIN sources ON sources.id = source
             GROUP BY name ORDER BY name",
        )?;
        let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, unsigned(row.get(1)?)));
        let sources = by_source.query_map([], read)?.collect::<rusqlite::Result<_>>()?;
        let ready = "SELECT count(*) FROM chunks WHERE model = ?";
        let ready = self.db.query_row(ready, [self.model], |row| row.get(0))?;
        let chunks = count("SELECT count(*) FROM chunks")?;
        Ok(Status {
            documents: count("SELECT count(*) FROM documents")?,
            chunks,
            waiting: chunks.saturating_sub(unsigned(ready)),
            facts: count("SELECT count(*) FROM facts")?,
            editions: count("SELECT count(*) FROM editions")?,
            sources,
            model: self.model_name.clone(),
        })
    }

    fn source_id(&self, name: &str) -> Result<Option<i64>> {
        let mut find = self.db.prepare_cached("SELECT id FROM sources WHERE name = ?")?;
        Ok(find.query_row(params![name], |row| row.get(0)).optional()?)
    }

    /// What cannot be made again is on the disk when this returns. An index can: a power cut may take the
    /// last of it, never a half.
    fn durably<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.db.pragma_update(None, "synchronous", "FULL")?;
        let done = work(self);
        self.db.pragma_update(None, "synchronous", "NORMAL")?;
        done
    }

    /// Overwritten in the database, what was deleted may still be in its log.
    fn forget_log(&self) -> Result<()> {
        self.db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
        Ok(())
    }
}

fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
