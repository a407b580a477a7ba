//! Facts that were told: kept with who told them and when, and gone when they are deleted.

use rusqlite::{OptionalExtension, Row, params};

use super::search::{Found, Query};
use super::{Library, signed, unsigned};
use crate::embed;
use crate::error::{Error, Result};
use crate::fuse::Joined;
use crate::vectors::Quantised;

const LONGEST: usize = 4096;
const MOST_TAGS: usize = 16;
const LONGEST_TAG: usize = 64;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact {
    pub id: i64,
    pub text: String,
    /// Who told it: `owner`, or the conversation and turn.
    pub source: String,
    pub tags: Vec<String>,
    pub created_at: u64,
    pub changed_at: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewFact {
    pub text: String,
    pub source: String,
    pub tags: Vec<String>,
}

/// What is not said stays.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ChangeFact {
    pub text: Option<String>,
    pub tags: Option<Vec<String>>,
    /// Who says so now.
    pub source: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Recalled {
    pub fact: Fact,
    pub found: Found,
}

const FIELDS: &str = "id, text, source, tags, created_at, changed_at";

impl Library {
    /// What is known already is not kept twice: the fact that was there gets the new tags too.
    pub fn add_fact(&mut self, new: NewFact, now: u64) -> Result<Fact> {
        let text = check_text(&new.text)?;
        let find = "SELECT id FROM facts WHERE text = ?";
        let same: Option<i64> = self.db.query_row(find, [&text], |row| row.get(0)).optional()?;
        if let Some(id) = same {
            let mut tags = self.fact(id)?.tags;
            tags.extend(new.tags);
            let change = ChangeFact { tags: Some(tags), ..ChangeFact::default() };
            return self.change_fact(id, change, now);
        }
        let (model, vector) = self.fact_vector(&text);
        let tags = write_tags(&check_tags(new.tags)?);
        let id = self.durably(|library| {
            library.db.execute(
                "INSERT INTO facts (text, source, tags, created_at, changed_at, model, vector)
                 VALUES (?1, ?2, ?3, ?4, ?4, ?5, ?6)",
                params![text, new.source, tags, signed(now), model, blob(vector.as_ref())],
            )?;
            Ok(library.db.last_insert_rowid())
        })?;
        if let Some(memory) = &mut self.facts {
            memory.insert(id, 0, vector.as_ref());
        }
        self.fact(id)
    }

    pub fn change_fact(&mut self, id: i64, change: ChangeFact, now: u64) -> Result<Fact> {
        let known = self.fact(id)?;
        let text = change.text.as_deref().map_or(Ok(known.text), check_text)?;
        let tags = write_tags(&change.tags.map_or(Ok(known.tags), check_tags)?);
        let source = change.source.unwrap_or(known.source);
        let (model, vector) = self.fact_vector(&text);
        self.durably(|library| {
            library.db.execute(
                "UPDATE facts SET text = ?, source = ?, tags = ?, changed_at = ?, model = ?, vector = ?
                 WHERE id = ?",
                params![text, source, tags, signed(now), model, blob(vector.as_ref()), id],
            )?;
            library.forget_log()
        })?;
        if let Some(memory) = &mut self.facts {
            memory.insert(id, 0, vector.as_ref());
        }
        self.fact(id)
    }

    /// Its text, its words and its vector are gone from the disk when this returns.
    pub fn delete_fact(&mut self, id: i64) -> Result<()> {
        if let Some(memory) = &mut self.facts {
            memory.remove(id);
        }
        self.durably(|library| {
            match library.db.execute("DELETE FROM facts WHERE id = ?", [id])? {
                0 => Err(no_fact(id)),
                _ => library.forget_log(),
            }
        })
    }

    pub fn fact(&self, id: i64) -> Result<Fact> {
        let read = format!("SELECT {FIELDS} FROM facts WHERE id = ?");
        let fact = self.db.prepare_cached(&read)?.query_row([id], read_fact).optional()?;
        fact.ok_or_else(|| no_fact(id))
    }

    /// Newest first, from before an id on.
    pub fn facts(&self, before: Option<i64>, tag: Option<&str>, most: u32) -> Result<Vec<Fact>> {
        let mut read = self.db.prepare_cached(&format!(
            "SELECT {FIELDS} FROM facts WHERE id < ?1 AND (?2 IS NULL OR EXISTS
             (SELECT 1 FROM json_each(tags) WHERE json_each.value = ?2)) ORDER BY id DESC LIMIT ?3"
        ))?;
        let before = before.unwrap_or(i64::MAX);
        let rows = read.query_map(params![before, tag, most], read_fact)?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    pub fn recall(&mut self, query: &Query<'_>) -> Result<Vec<Recalled>> {
        let found = self.search_facts(query)?;
        let recalled =
            |joined: Joined| Ok(Recalled { fact: self.fact(joined.id)?, found: joined.into() });
        found.into_iter().map(recalled).collect()
    }

    /// Of the table in the program at once; of another model later.
    fn fact_vector(&self, text: &str) -> (i64, Option<Quantised>) {
        match self.model_name == embed::MODEL {
            true => (self.model, Quantised::of(&embed::Table::builtin().embed(text))),
            false => (0, None),
        }
    }
}

fn read_fact(row: &Row<'_>) -> rusqlite::Result<Fact> {
    let tags: String = row.get(3)?;
    Ok(Fact {
        id: row.get(0)?,
        text: row.get(1)?,
        source: row.get(2)?,
        tags: serde_json::from_str(&tags).unwrap_or_default(),
        created_at: unsigned(row.get(4)?),
        changed_at: unsigned(row.get(5)?),
    })
}

fn no_fact(id: i64) -> Error {
    Error::not_found(format!("there is no fact {id}")).or_try("nacre memory list shows them all")
}

fn check_text(text: &str) -> Result<String> {
    let text = text.trim();
    match text.len() {
        0 => Err(Error::refused("there is nothing to remember")),
        1..=LONGEST => Ok(text.to_owned()),
        many => {
            let what = format!("{many} bytes are too long for a fact; {LONGEST} is the most");
            Err(Error::refused(what).or_try("write it to a file, and remember where it is"))
        }
    }
}

/// In the order they came in, each once.
fn check_tags(tags: Vec<String>) -> Result<Vec<String>> {
    let mut kept: Vec<String> = Vec::new();
    for tag in tags.iter().map(|tag| tag.trim().to_lowercase()).filter(|tag| !tag.is_empty()) {
        if tag.len() > LONGEST_TAG {
            return Err(Error::refused(format!("a tag has at most {LONGEST_TAG} bytes")));
        }
        if !kept.contains(&tag) {
            kept.push(tag);
        }
    }
    match kept.len() {
        0..=MOST_TAGS => Ok(kept),
        many => Err(Error::refused(format!("{many} tags are too many; {MOST_TAGS} is the most"))),
    }
}

fn write_tags(tags: &[String]) -> String {
    serde_json::Value::from(tags.to_vec()).to_string()
}

fn blob(vector: Option<&Quantised>) -> Option<Vec<u8>> {
    vector.map(Quantised::to_blob)
}
