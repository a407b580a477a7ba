//! By word and by meaning.

use std::collections::HashMap;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, params};

use super::{Library, unsigned};
use crate::error::Result;
use crate::fuse::{Joined, fuse};
use crate::vectors::{Matrix, Quantised};
use crate::words;

/// How many of each ranking are joined.
const CANDIDATES: usize = 100;
/// Of how many passages the words of a question may be together, and how many are ranked at most: of a word
/// that is in more, the newest. Words that are nearly everywhere tell nothing and cost the most.
const RANKED: usize = 5_000;
const SNIPPET: usize = 300;

#[derive(Debug, Clone, Copy, Default)]
pub struct Query<'q> {
    pub text: &'q str,
    /// What the model in use makes of it; without it words alone decide.
    pub vector: Option<&'q [f32]>,
    /// Only these; everywhere when empty.
    pub sources: &'q [String],
    pub limit: usize,
}

/// A passage of a document.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    pub source: String,
    pub path: String,
    pub title: Option<String>,
    pub first_line: u32,
    pub last_line: u32,
    /// Outermost first, with ` > ` between.
    pub headings: String,
    pub snippet: String,
    pub found: Found,
}

/// How good, and by what.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Found {
    pub score: f64,
    pub by_word: bool,
    pub by_meaning: bool,
}

impl From<Joined> for Found {
    fn from(Joined { score, by_word, by_meaning, .. }: Joined) -> Self {
        Self { score, by_word, by_meaning }
    }
}

/// What a search looks at without asking the database.
#[derive(Debug, Default)]
pub(super) struct Memory {
    groups: HashMap<i64, i64>,
    matrix: Matrix,
}

impl Memory {
    pub(super) fn insert(&mut self, id: i64, group: i64, vector: Option<&Quantised>) {
        self.groups.insert(id, group);
        self.give(id, vector);
    }

    /// A vector for what is known.
    pub(super) fn give(&mut self, id: i64, vector: Option<&Quantised>) {
        self.matrix.remove(id);
        if let (Some(vector), Some(group)) = (vector, self.groups.get(&id)) {
            self.matrix.insert(id, *group, vector);
        }
    }

    pub(super) fn remove(&mut self, id: i64) {
        self.groups.remove(&id);
        self.matrix.remove(id);
    }

    fn read(db: &Connection, query: &str, model: i64) -> Result<Self> {
        let mut memory = Self::default();
        let mut statement = db.prepare(query)?;
        let mut rows = statement.query([model])?;
        while let Some(row) = rows.next()? {
            let vector = match row.get_ref(2)? {
                ValueRef::Blob(blob) => Quantised::from_blob(blob),
                _ => None,
            };
            memory.insert(row.get(0)?, row.get(1)?, vector.as_ref());
        }
        Ok(memory)
    }
}

/// What words are looked for in.
pub(super) struct Words {
    pub(super) table: &'static str,
    /// What a match in each column is worth.
    pub(super) weights: &'static str,
}

pub(super) const CHUNKS: Words = Words { table: "chunk_words", weights: "0.5, 1.0" };
pub(super) const FACTS: Words = Words { table: "fact_words", weights: "1.0, 2.0" };

impl Library {
    pub fn search(&mut self, query: &Query<'_>) -> Result<Vec<Hit>> {
        let mut wanted = Vec::new();
        for name in query.sources {
            wanted.extend(self.source_id(name)?);
        }
        if !query.sources.is_empty() && wanted.is_empty() {
            return Ok(Vec::new());
        }
        if self.chunks.is_none() {
            let all = "SELECT id, source, CASE model WHEN ? THEN vector END FROM chunks";
            self.chunks = Some(Memory::read(&self.db, all, self.model)?);
        }
        let Some(memory) = &self.chunks else { return Ok(Vec::new()) };
        let good = |group: i64| wanted.is_empty() || wanted.contains(&group);
        let joined = joined(&self.db, &CHUNKS, memory, query, self.least(), good)?;
        joined.iter().map(|joined| self.hit(joined, query.text)).collect()
    }

    pub(super) fn search_facts(&mut self, query: &Query<'_>) -> Result<Vec<Joined>> {
        if self.facts.is_none() {
            let all = "SELECT id, 0, CASE model WHEN ? THEN vector END FROM facts";
            self.facts = Some(Memory::read(&self.db, all, self.model)?);
        }
        let Some(memory) = &self.facts else { return Ok(Vec::new()) };
        joined(&self.db, &FACTS, memory, query, self.least(), |_| true)
    }

    fn hit(&self, joined: &Joined, question: &str) -> Result<Hit> {
        let mut read = self.db.prepare_cached(
            "SELECT sources.name, documents.path, documents.title, first_line, last_line, context, text
             FROM chunks JOIN documents ON documents.id = document
             JOIN sources ON sources.id = documents.source WHERE chunks.id = ?",
        )?;
        let hit = read.query_row([joined.id], |row| {
            let context: String = row.get(5)?;
            let text: String = row.get(6)?;
            Ok(Hit {
                source: row.get(0)?,
                path: row.get(1)?,
                title: row.get(2)?,
                first_line: row.get(3)?,
                last_line: row.get(4)?,
                headings: context.split_once('\n').map_or("", |(_, under)| under).to_owned(),
                snippet: snippet(&text, question),
                found: (*joined).into(),
            })
        })?;
        Ok(hit)
    }
}

fn joined(
    db: &Connection,
    words: &Words,
    memory: &Memory,
    query: &Query<'_>,
    least: f32,
    good: impl Fn(i64) -> bool,
) -> Result<Vec<Joined>> {
    let by_word = by_word(db, words, query.text, |id| {
        memory.groups.get(&id).is_some_and(|group| good(*group))
    })?;
    let vector = query.vector.and_then(Quantised::of);
    let near = vector.map(|vector| memory.matrix.nearest(&vector, CANDIDATES, least, &good));
    let by_meaning: Vec<_> = near.unwrap_or_default().iter().map(|near| near.id).collect();
    Ok(fuse(&by_word, &by_meaning, query.limit))
}

fn by_word(
    db: &Connection,
    words: &Words,
    question: &str,
    good: impl Fn(i64) -> bool,
) -> Result<Vec<i64>> {
    let terms = words::terms(question);
    let chosen = rare(db, words, &terms)?;
    if chosen.is_empty() {
        return Ok(Vec::new());
    }
    // The inner limit bounds what is ranked, when a single word is too common.
    let Words { table, weights } = words;
    let mut statement = db.prepare_cached(&format!(
        "SELECT id FROM (SELECT rowid AS id, bm25({table}, {weights}) AS place FROM {table}
         WHERE {table} MATCH ? ORDER BY rowid DESC LIMIT ?) ORDER BY place, id"
    ))?;
    let mut rows = statement.query(params![words::any(&chosen), signed_size(RANKED)])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let id = row.get(0)?;
        if good(id) {
            found.push(id);
        }
        if found.len() == CANDIDATES {
            break;
        }
    }
    Ok(found)
}

/// The rarest words of a question, as many as can be ranked together; one at least, if any is known.
fn rare<'t>(db: &Connection, words: &Words, terms: &'t [String]) -> Result<Vec<&'t str>> {
    let table = words.table;
    let mut count = db.prepare_cached(&format!(
        "SELECT count(*) FROM (SELECT 1 FROM {table} WHERE {table} MATCH ? LIMIT ?)"
    ))?;
    let mut counted = Vec::new();
    for term in terms {
        let most = signed_size(RANKED);
        let times = count.query_row(params![words::quoted(term), most], |row| row.get(0))?;
        counted.push((unsigned(times), term.as_str()));
    }
    counted.retain(|(times, _)| *times > 0);
    counted.sort_by_key(|(times, _)| *times);
    let mut sum = 0;
    let fits = |(times, _): &(u64, &str)| {
        let first = sum == 0;
        sum += times;
        first || sum <= RANKED as u64
    };
    Ok(counted.into_iter().take_while(fits).map(|(_, term)| term).collect())
}

fn signed_size(size: usize) -> i64 {
    i64::try_from(size).unwrap_or(i64::MAX)
}

/// A part of the text around the first word that was asked for, in one line.
fn snippet(text: &str, question: &str) -> String {
    let terms = words::terms(question);
    let plain: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let parts = || plain.split(|c: char| !c.is_alphanumeric());
    let place = |word: &str| word.as_ptr() as usize - plain.as_ptr() as usize;
    let matched = parts().find(|word| terms.contains(&word.to_lowercase())).map_or(0, place);
    let before = plain[..matched].char_indices().rev().nth(SNIPPET / 3).map_or(0, |(at, _)| at);
    let mut shown: String = plain[before..].chars().take(SNIPPET).collect();
    if before + shown.len() < plain.len() {
        shown.push('…');
    }
    if before > 0 {
        shown.insert(0, '…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snippet_shows_what_was_asked_for() {
        let long = format!("{}the Needle is{}", "hay ".repeat(200), " hay".repeat(200));
        let shown = snippet(&long, "needle?");
        assert!(shown.contains("the Needle is"), "{shown}");
        assert!(shown.starts_with('…') && shown.ends_with('…'), "{shown}");
        assert!(shown.chars().count() <= SNIPPET + 2);
        assert_eq!(snippet("a\n  b", "x"), "a b");
        assert_eq!(snippet("ßä日", "日"), "ßä日");
    }
}
