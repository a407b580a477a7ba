//! Documents come, change and go.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension, params};

use super::{Library, signed};
use crate::chunk;
use crate::embed::{self, Table};
use crate::error::Result;
use crate::vectors::Quantised;

/// A document that was read, cut and embedded: what takes time, and needs no library.
#[derive(Debug, Clone, PartialEq)]
pub struct Prepared {
    pub hash: [u8; 32],
    pub bytes: u64,
    pub title: Option<String>,
    pub chunks: Vec<PreparedChunk>,
    /// Whether the table in the program has made the vectors.
    pub embedded: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct PreparedChunk {
    pub first_line: u32,
    pub last_line: u32,
    pub context: String,
    pub text: String,
    /// Absent when somebody else is to make it, or when there is nothing that it could say.
    pub vector: Option<Quantised>,
}

/// What is known of a document that was indexed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    /// What it looked like from outside.
    pub signature: String,
    pub hash: [u8; 32],
}

/// Without a table, vectors are left for later.
pub fn prepare(name: &str, text: &str, table: Option<&Table>) -> Prepared {
    let chunks = chunk::chunks(text).into_iter().map(|chunk| {
        let own = &text[chunk.range.clone()];
        let headings = chunk.headings.join(" > ");
        // Words of the name would be in every chunk of the document, so the meaning is taken without it.
        let vector =
            table.and_then(|table| Quantised::of(&table.embed(&format!("{headings} {own}"))));
        PreparedChunk {
            first_line: chunk.first_line,
            last_line: chunk.last_line,
            context: format!("{name}\n{headings}"),
            text: own.to_owned(),
            vector,
        }
    });
    Prepared {
        hash: hash_of(text.as_bytes()),
        bytes: text.len() as u64,
        title: chunk::title(text),
        chunks: chunks.collect(),
        embedded: table.is_some(),
    }
}

/// What [`Known::hash`] and [`Prepared::hash`] are of.
pub fn hash_of(bytes: &[u8]) -> [u8; 32] {
    *blake3::hash(bytes).as_bytes()
}

impl Library {
    /// Takes the place of what was known under this path.
    pub fn put(
        &mut self,
        source: &str,
        path: &str,
        signature: &str,
        document: &Prepared,
        now: u64,
    ) -> Result<()> {
        let model = self.model_for(document);
        let transaction = self.db.transaction()?;
        let placed =
            place(&transaction, model, &Placing { source, path, signature, document, now })?;
        transaction.commit()?;
        self.placed(&placed, document);
        Ok(())
    }

    /// What was placed is committed, and searched from now on.
    pub(super) fn placed(&mut self, placed: &Placed, document: &Prepared) {
        let Some(memory) = &mut self.chunks else { return };
        placed.removed.iter().for_each(|id| memory.remove(*id));
        for (id, chunk) in placed.added.iter().zip(&document.chunks) {
            let vector = chunk.vector.as_ref().filter(|_| placed.model != 0);
            memory.insert(*id, placed.source, vector);
        }
    }

    /// The model in use, or none when its vectors are of another.
    pub(super) fn model_for(&self, document: &Prepared) -> i64 {
        if self.takes(document) { self.model } else { 0 }
    }

    /// Whether its vectors are of the model in use.
    fn takes(&self, document: &Prepared) -> bool {
        document.embedded && self.model_name == embed::MODEL
    }

    /// The content is as it was, only its outside has changed.
    pub fn touch(&mut self, source: &str, path: &str, signature: &str) -> Result<()> {
        let Some(source) = self.source_id(source)? else { return Ok(()) };
        let change = "UPDATE documents SET signature = ? WHERE source = ? AND path = ?";
        self.db.execute(change, params![signature, source, path])?;
        Ok(())
    }

    pub fn known(&self, source: &str) -> Result<HashMap<String, Known>> {
        let Some(source) = self.source_id(source)? else { return Ok(HashMap::new()) };
        let read = "SELECT path, signature, hash FROM documents WHERE source = ?";
        let mut statement = self.db.prepare_cached(read)?;
        let rows = statement.query_map([source], |row| {
            Ok((row.get(0)?, Known { signature: row.get(1)?, hash: row.get(2)? }))
        })?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    pub fn known_one(&self, source: &str, path: &str) -> Result<Option<Known>> {
        let Some(source) = self.source_id(source)? else { return Ok(None) };
        let read = "SELECT signature, hash FROM documents WHERE source = ? AND path = ?";
        let mut statement = self.db.prepare_cached(read)?;
        let known =
            |row: &rusqlite::Row<'_>| Ok(Known { signature: row.get(0)?, hash: row.get(1)? });
        Ok(statement.query_row(params![source, path], known).optional()?)
    }

    /// Paths with titles, in order, from after a path on.
    pub fn documents(
        &self,
        source: &str,
        after: &str,
        most: u32,
    ) -> Result<Vec<(String, Option<String>)>> {
        let Some(source) = self.source_id(source)? else { return Ok(Vec::new()) };
        let mut statement = self.db.prepare_cached(
            "SELECT path, title FROM documents WHERE source = ? AND path > ? ORDER BY path LIMIT ?",
        )?;
        let rows = statement
            .query_map(params![source, after, most], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// The document, and everything below it if it was a folder. Gives how many there were.
    pub fn remove(&mut self, source: &str, path: &str) -> Result<usize> {
        let Some(source) = self.source_id(source)? else { return Ok(0) };
        // '0' follows '/': what begins with the path and a slash is between the two.
        let mut find = self.db.prepare_cached(
            "SELECT path FROM documents WHERE source = ?1
             AND (path = ?2 OR (path > ?2 || '/' AND path < ?2 || '0'))",
        )?;
        let paths = find.query_map(params![source, path], |row| row.get(0))?;
        let paths = paths.collect::<rusqlite::Result<Vec<String>>>()?;
        drop(find);
        self.remove_all(source, &paths)?;
        Ok(paths.len())
    }

    pub fn remove_source(&mut self, name: &str) -> Result<()> {
        let Some(source) = self.source_id(name)? else { return Ok(()) };
        let mut find = self.db.prepare_cached("SELECT path FROM documents WHERE source = ?")?;
        let paths = find.query_map([source], |row| row.get(0))?;
        let paths = paths.collect::<rusqlite::Result<Vec<String>>>()?;
        drop(find);
        self.remove_all(source, &paths)?;
        self.db.execute("DELETE FROM sources WHERE id = ?", [source])?;
        Ok(())
    }

    pub fn sources(&self) -> Result<Vec<String>> {
        let mut read = self.db.prepare_cached("SELECT name FROM sources ORDER BY name")?;
        let rows = read.query_map([], |row| row.get(0))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    fn remove_all(&mut self, source: i64, paths: &[String]) -> Result<()> {
        let transaction = self.db.transaction()?;
        let mut removed = Vec::new();
        for path in paths {
            removed.extend(remove_chunks(&transaction, source, path)?);
            transaction
                .prepare_cached("DELETE FROM documents WHERE source = ? AND path = ?")?
                .execute(params![source, path])?;
        }
        transaction.commit()?;
        if let Some(memory) = &mut self.chunks {
            removed.iter().for_each(|id| memory.remove(*id));
        }
        Ok(())
    }
}

/// What is to be known under a path.
pub(super) struct Placing<'a> {
    pub(super) source: &'a str,
    pub(super) path: &'a str,
    pub(super) signature: &'a str,
    pub(super) document: &'a Prepared,
    pub(super) now: u64,
}

/// Chunks that went and came.
pub(super) struct Placed {
    source: i64,
    model: i64,
    removed: Vec<i64>,
    added: Vec<i64>,
}

/// Within somebody's transaction.
pub(super) fn place(db: &Connection, model: i64, placing: &Placing<'_>) -> Result<Placed> {
    let Placing { source, path, signature, document, now } = placing;
    db.execute("INSERT OR IGNORE INTO sources (name) VALUES (?)", [source])?;
    let find = "SELECT id FROM sources WHERE name = ?";
    let source: i64 = db.query_row(find, [source], |row| row.get(0))?;
    let removed = remove_chunks(db, source, path)?;
    let id: i64 = db
        .prepare_cached(
            "INSERT INTO documents (source, path, title, signature, hash, bytes, indexed_at)
             VALUES (?, ?, ?, ?, ?, ?, ?)
             ON CONFLICT (source, path) DO UPDATE SET title = excluded.title,
             signature = excluded.signature, hash = excluded.hash, bytes = excluded.bytes,
             indexed_at = excluded.indexed_at RETURNING id",
        )?
        .query_row(
            params![
                source,
                path,
                document.title,
                signature,
                document.hash,
                signed(document.bytes),
                signed(*now)
            ],
            |row| row.get(0),
        )?;
    let insert = |chunk| insert_chunk(db, id, source, model, chunk);
    let added = document.chunks.iter().map(insert).collect::<Result<_>>()?;
    Ok(Placed { source, model, removed, added })
}

fn remove_chunks(db: &Connection, source: i64, path: &str) -> Result<Vec<i64>> {
    let mut delete = db.prepare_cached(
        "DELETE FROM chunks WHERE document =
         (SELECT id FROM documents WHERE source = ? AND path = ?) RETURNING id",
    )?;
    let ids = delete.query_map(params![source, path], |row| row.get(0))?;
    Ok(ids.collect::<rusqlite::Result<_>>()?)
}

fn insert_chunk(
    db: &Connection,
    document: i64,
    source: i64,
    model: i64,
    chunk: &PreparedChunk,
) -> Result<i64> {
    let mut insert = db.prepare_cached(
        "INSERT INTO chunks (document, source, first_line, last_line, context, text, model, vector)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
    )?;
    let vector = chunk.vector.as_ref().filter(|_| model != 0).map(Quantised::to_blob);
    Ok(insert.insert(params![
        document,
        source,
        chunk.first_line,
        chunk.last_line,
        chunk.context,
        chunk.text,
        model,
        vector,
    ])?)
}
