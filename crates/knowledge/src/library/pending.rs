//! Vectors that somebody else makes: what waits for one, and what came.

use rusqlite::{Connection, params};

use super::Library;
use crate::error::Result;
use crate::vectors::Quantised;

/// What has no vector of the model in use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pending {
    Chunk { id: i64, text: String },
    Fact { id: i64, text: String },
}

impl Pending {
    pub fn text(&self) -> &str {
        match self {
            Self::Chunk { text, .. } | Self::Fact { text, .. } => text,
        }
    }
}

impl Library {
    /// Facts first: they are few, and asked for often.
    pub fn pending(&self, most: usize) -> Result<Vec<Pending>> {
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let facts = "SELECT id, text FROM facts WHERE model <> ?1 LIMIT ?2";
        let mut found =
            read(&self.db, facts, self.model, most, |id, text| Pending::Fact { id, text })?;
        // Two halves, each of which the index on the model answers.
        for side in ["<", ">"] {
            let left = most - i64::try_from(found.len()).unwrap_or(most);
            // Headings and text, as `prepare` embeds them.
            let chunks = format!(
                "SELECT id, substr(context, instr(context, char(10)) + 1) || ' ' || text
                 FROM chunks WHERE model {side} ?1 LIMIT ?2"
            );
            let more =
                read(&self.db, &chunks, self.model, left, |id, text| Pending::Chunk { id, text });
            found.extend(more?);
        }
        Ok(found)
    }

    /// One for each of what was pending; `None` for what cannot have one, which is then not asked for
    /// again. What has gone meanwhile is left out.
    pub fn fill(&mut self, made: &[(Pending, Option<Quantised>)]) -> Result<()> {
        let transaction = self.db.transaction()?;
        for (pending, vector) in made {
            let (table, id) = match pending {
                Pending::Chunk { id, .. } => ("chunks", id),
                Pending::Fact { id, .. } => ("facts", id),
            };
            let change = format!("UPDATE {table} SET model = ?, vector = ? WHERE id = ?");
            let blob = vector.as_ref().map(Quantised::to_blob);
            transaction.prepare_cached(&change)?.execute(params![self.model, blob, id])?;
        }
        transaction.commit()?;
        for (pending, vector) in made {
            let (memory, id) = match pending {
                Pending::Chunk { id, .. } => (&mut self.chunks, id),
                Pending::Fact { id, .. } => (&mut self.facts, id),
            };
            if let Some(memory) = memory {
                memory.give(*id, vector.as_ref());
            }
        }
        Ok(())
    }
}

fn read(
    db: &Connection,
    query: &str,
    model: i64,
    most: i64,
    make: impl Fn(i64, String) -> Pending,
) -> Result<Vec<Pending>> {
    let mut statement = db.prepare_cached(query)?;
    let rows =
        statement.query_map(params![model, most], |row| Ok(make(row.get(0)?, row.get(1)?)))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}
