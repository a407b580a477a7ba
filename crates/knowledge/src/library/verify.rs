//! Whether everything that was published is still what it was.

use rusqlite::Row;

use super::Library;
use super::editions::{checked, link};
use crate::error::{Error, Result};

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Verified {
    pub editions: u64,
    /// Follows from every edition in order: whoever wrote it down before can tell that nothing of what
    /// was there then is missing.
    pub head: String,
    /// What is wrong, in words.
    pub problems: Vec<String>,
}

impl Library {
    /// Reads all of it.
    pub fn verify(&self) -> Result<Verified> {
        let mut found = Verified::default();
        let mut read = self.db.prepare(
            "SELECT number, hash, link, document, manifest, content FROM editions ORDER BY number",
        )?;
        let mut rows = read.query([])?;
        while let Some(row) = rows.next()? {
            found.editions += 1;
            // A value of another type than it was written with is damage too, not an error of ours.
            let problem = self.look_at(row, found.editions, &mut found.head);
            let problem = problem.unwrap_or_else(|error| Some(error.to_string()));
            found.problems.extend(problem);
        }
        let strays =
            "SELECT count(*) FROM citations WHERE citing NOT IN (SELECT hash FROM editions)";
        let strays: i64 = self.db.query_row(strays, [], |row| row.get(0))?;
        if strays > 0 {
            found.problems.push(format!("{strays} citations belong to no edition"));
        }
        Ok(found)
    }

    fn look_at(&self, row: &Row<'_>, expected: u64, head: &mut String) -> Result<Option<String>> {
        let number: i64 = row.get(0)?;
        let hash: String = row.get(1)?;
        let own: String = row.get(2)?;
        let wanted = link(head, &hash);
        head.clone_from(&wanted);
        let edition = match checked(number, hash, row.get(4)?, row.get(5)?) {
            Ok(edition) => edition,
            Err(Error::Damaged(what)) => return Ok(Some(what)),
            Err(other) => return Err(other),
        };
        let address = &edition.info.address;
        if own != wanted || edition.info.number != expected {
            return Ok(Some(format!("{address} does not follow the one before it")));
        }
        if row.get::<_, String>(3)? != edition.info.manifest.document {
            return Ok(Some(format!("{address} is listed under another document")));
        }
        let mut cited = self
            .db
            .prepare_cached("SELECT cited FROM citations WHERE citing = ? ORDER BY position")?;
        let cited = cited.query_map([address.hash()], |row| row.get::<_, String>(0))?;
        let cited = cited.collect::<rusqlite::Result<Vec<_>>>()?;
        let named = edition.info.manifest.citations.iter().map(|of| of.edition.hash());
        if !named.eq(cited.iter().map(String::as_str)) {
            return Ok(Some(format!("what {address} cites was changed")));
        }
        for of in &edition.info.manifest.citations {
            if let Err(error @ (Error::NotFound { .. } | Error::Refused { .. })) = self.cite(of) {
                return Ok(Some(format!("{address} cites what is not there: {error}")));
            }
        }
        Ok(None)
    }
}
