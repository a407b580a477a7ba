use rusqlite::{Connection, OptionalExtension, params};
use serde::{Deserialize, Serialize};

use super::checkpoints::json;
use crate::checkpoint::{Author, Cause, Notes};
use crate::error::{Error, Result};

/// A restore between its first and its last touch of the tree. While there is one, nothing else is
/// recorded.
pub(crate) struct Pending<'a>(pub(crate) &'a Connection);

/// What the checkpoint of a restore will say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Restoring {
    /// The directory in `staging/`.
    pub(crate) operation: String,
    pub(crate) cause: Cause,
    pub(crate) authors: Vec<Author>,
    pub(crate) notes: Notes,
}

impl Pending<'_> {
    pub(crate) fn begin(&self, restoring: &Restoring, steps: &[u8]) -> Result<()> {
        self.0.execute(
            "insert into journal (id, restoring, steps) values (1, ?, ?)",
            params![json(restoring)?, steps],
        )?;
        Ok(())
    }

    pub(crate) fn get(&self) -> Result<Option<(Restoring, Vec<u8>)>> {
        let found: Option<(String, Vec<u8>)> = self
            .0
            .query_row("select restoring, steps from journal", [], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })
            .optional()?;
        let Some((restoring, steps)) = found else { return Ok(None) };
        let restoring = serde_json::from_str(&restoring)
            .map_err(|error| Error::damaged(format!("the journal: {error}")))?;
        Ok(Some((restoring, steps)))
    }

    /// After [`Pending::begin`] has failed: what it wrote may be on the disk all the same, and be found
    /// there after a crash. Written over, it is not.
    pub(crate) fn never_began(&self) -> Result<()> {
        self.0.execute_batch(
            "begin immediate;
             insert or replace into journal (id, restoring, steps) values (1, '', x'');
             delete from journal;
             commit",
        )?;
        Ok(())
    }

    pub(crate) fn end(&self) -> Result<()> {
        self.0.execute("delete from journal", [])?;
        Ok(())
    }
}
