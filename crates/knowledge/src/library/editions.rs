//! Editions: made once, checked whenever they are read, and joined by what they cite.

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::documents::{Placing, Prepared, place, prepare};
use super::{Library, unsigned};
use crate::date;
use crate::edition::{Address, CitationOf, Lines, Manifest, Place, hash};
use crate::embed::{self, Table};
use crate::error::{Error, Result};
use crate::passage;

/// The source that editions are indexed under.
const SOURCE: &str = "publications";
const LARGEST: usize = 4 << 20;
const LONGEST_TITLE: usize = 300;
const MOST_CITATIONS: usize = 1000;

/// What is to be published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Publish {
    pub author: String,
    pub title: String,
    /// A path, or another name that its next edition will have too.
    pub document: String,
    pub media_type: String,
    pub content: Vec<u8>,
    /// Besides those that are in the text.
    pub citations: Vec<CitationOf>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Published {
    pub info: EditionInfo,
    /// False when this very edition was there already.
    pub new: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EditionInfo {
    pub number: u64,
    pub address: Address,
    pub manifest: Manifest,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edition {
    pub info: EditionInfo,
    /// As it is hashed.
    pub manifest: Vec<u8>,
    pub content: Vec<u8>,
}

/// A citation that was checked, and how it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Citation {
    pub of: CitationOf,
    pub cited: Manifest,
    /// `[^1a2b3c4d-3-5]`
    pub mark: String,
    /// The same with what it stands for.
    pub note: String,
    pub reference: String,
}

/// One edge of the graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cited {
    pub citing: Address,
    pub cited: Address,
}

/// Along the arrows of the graph, or against them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    Cites,
    CitedBy,
}

impl Library {
    /// Nothing is published that cites what is not there.
    pub fn publish(&mut self, publish: Publish, now: u64) -> Result<Published> {
        check(&publish)?;
        let text = std::str::from_utf8(&publish.content).ok();
        let mut citations = publish.citations;
        for found in text.map(passage::extract).unwrap_or_default() {
            if !citations.contains(&found) {
                citations.push(found);
            }
        }
        if citations.len() > MOST_CITATIONS {
            return Err(Error::refused(format!("more than {MOST_CITATIONS} citations")));
        }
        let citations = citations.iter().map(|of| Ok(self.cite(of)?.of)).collect::<Result<_>>()?;
        let previous = self.latest(&publish.document)?;
        let mut manifest = Manifest {
            author: publish.author,
            bytes: publish.content.len() as u64,
            citations,
            content: hash(&publish.content),
            date: date::of_ms(now),
            document: publish.document,
            media_type: publish.media_type,
            previous: None,
            title: passage::plain(&publish.title),
            version: Manifest::VERSION,
        };
        if let Some(previous) = previous {
            if same_edition(&previous.manifest, &manifest) {
                return Ok(Published { info: previous, new: false });
            }
            manifest.previous = Some(previous.address);
        }
        let table = (self.model_name == embed::MODEL).then(Table::builtin);
        let name = format!("{} {}", manifest.title, manifest.document);
        let document = text.map(|text| prepare(&name, text, table));
        let keep =
            |library: &mut Self| library.keep(manifest, &publish.content, document.as_ref(), now);
        Ok(Published { info: self.durably(keep)?, new: true })
    }

    /// In one transaction with what it is found by: an edition that exists is found.
    fn keep(
        &mut self,
        manifest: Manifest,
        content: &[u8],
        document: Option<&Prepared>,
        now: u64,
    ) -> Result<EditionInfo> {
        let bytes = manifest.to_bytes()?;
        let address = Address::of(&bytes);
        let path = address.to_string();
        let placing = |document| {
            let (source, path, signature) = (SOURCE, path.as_str(), manifest.content.as_str());
            (document, Placing { source, path, signature, document, now })
        };
        let placing = document.map(placing);
        let model = document.map_or(0, |document| self.model_for(document));
        let transaction = self.db.transaction()?;
        let (number, before) = last(&transaction)?;
        let number = number + 1;
        transaction.execute(
            "INSERT INTO editions (number, hash, link, document, manifest, content)
             VALUES (?, ?, ?, ?, ?, ?)",
            params![
                number,
                address.hash(),
                link(&before, address.hash()),
                manifest.document,
                bytes,
                content
            ],
        )?;
        for (position, citation) in manifest.citations.iter().enumerate() {
            transaction.execute(
                "INSERT INTO citations (citing, position, cited) VALUES (?, ?, ?)",
                params![
                    address.hash(),
                    i64::try_from(position).unwrap_or(i64::MAX),
                    citation.edition.hash()
                ],
            )?;
        }
        let placed = match placing {
            Some((document, placing)) => Some((place(&transaction, model, &placing)?, document)),
            None => None,
        };
        transaction.commit()?;
        if let Some((placed, document)) = placed {
            self.placed(&placed, document);
        }
        Ok(EditionInfo { number: unsigned(number), address, manifest })
    }

    /// Checked to be what was published.
    pub fn edition(&self, address: &Address) -> Result<Edition> {
        let read = "SELECT number, hash, manifest, content FROM editions WHERE hash = ?";
        let mut statement = self.db.prepare_cached(read)?;
        let row = |row: &Row<'_>| {
            Ok((row.get(0)?, row.get(1)?, row.get::<_, Vec<u8>>(2)?, row.get::<_, Vec<u8>>(3)?))
        };
        let row = statement.query_row([address.hash()], row).optional()?;
        let (number, hash, manifest, content) = row.ok_or_else(|| no_edition(address))?;
        checked(number, hash, manifest, content)
    }

    /// An address, the beginning of its hash, or a document, whose latest edition is meant.
    pub fn find_edition(&self, which: &str) -> Result<Edition> {
        if let Ok(address) = which.parse::<Address>() {
            return self.edition(&address);
        }
        let hash = which.strip_prefix("nacre:edition:").unwrap_or(which);
        let digits = hash.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if digits && (4..64).contains(&hash.len()) {
            let mut find = self
                .db
                .prepare_cached("SELECT hash FROM editions WHERE substr(hash, 1, ?) = ? LIMIT 2")?;
            let many = i64::try_from(hash.len()).unwrap_or(64);
            let found = find.query_map(params![many, hash], |row| row.get::<_, String>(0))?;
            match found.collect::<rusqlite::Result<Vec<_>>>()?.as_slice() {
                [one] => return self.edition(&one.parse()?),
                [] => {}
                [..] => {
                    let what = format!("\"{hash}\" begins more than one address");
                    return Err(Error::refused(what).or_try("write more of it"));
                }
            }
        }
        match self.latest(which)? {
            Some(info) => self.edition(&info.address),
            None => {
                let shown: String = which.chars().take(100).collect();
                let what = format!("there is no edition \"{}\"", shown.escape_debug());
                Err(Error::not_found(what).or_try("nacre publications shows them all"))
            }
        }
    }

    /// Newest first, from before a number on; of one document, or of all.
    pub fn editions(
        &self,
        document: Option<&str>,
        before: Option<u64>,
        most: u32,
    ) -> Result<Vec<EditionInfo>> {
        let mut read = self.db.prepare_cached(
            "SELECT number, hash, manifest FROM editions
             WHERE number < ? AND (?2 IS NULL OR document = ?2) ORDER BY number DESC LIMIT ?",
        )?;
        let before = before.map_or(i64::MAX, super::signed);
        let rows = read.query_map(params![before, document, most], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get::<_, Vec<u8>>(2)?))
        })?;
        rows.map(|row| row.map_err(Error::from).and_then(|(n, hash, bytes)| info(n, hash, &bytes)))
            .collect()
    }

    fn latest(&self, document: &str) -> Result<Option<EditionInfo>> {
        Ok(self.editions(Some(document), None, 1)?.pop())
    }

    /// That what is cited exists and says what is quoted. Lines that were not named are found.
    pub fn cite(&self, of: &CitationOf) -> Result<Citation> {
        let edition = self.edition(&of.edition)?;
        let lines = match (&of.quote, of.lines) {
            (None, None) => None,
            (None, Some(lines)) => Some(self.line_range(&edition, lines)?),
            (Some(quote), lines) => Some(quoted(&edition, quote, lines)?),
        };
        let quote = of.quote.as_deref().map(passage::plain);
        let of = CitationOf { edition: of.edition.clone(), lines, quote };
        let cited = edition.info.manifest;
        let (mark, note) = passage::footnote(&of, &cited);
        let reference = passage::reference(&of, &cited);
        Ok(Citation { of, cited, mark, note, reference })
    }

    fn line_range(&self, edition: &Edition, lines: Lines) -> Result<Lines> {
        let text = text(edition)?;
        let many = text.lines().count();
        if usize::try_from(lines.last).is_ok_and(|last| last <= many) {
            return Ok(lines);
        }
        let place = Place { edition: edition.info.address.clone(), lines: Some(lines) };
        Err(Error::refused(format!("{place} is beyond its {many} lines")))
    }

    /// What an edition cites, in its order.
    pub fn references(&self, edition: &Edition) -> Result<Vec<Citation>> {
        edition.info.manifest.citations.iter().map(|of| self.cite(of)).collect()
    }

    /// Neighbours in the graph, each once, by number.
    pub fn neighbours(&self, address: &Address, way: Way) -> Result<Vec<EditionInfo>> {
        let (there, here) = match way {
            Way::Cites => ("cited", "citing"),
            Way::CitedBy => ("citing", "cited"),
        };
        let mut read = self.db.prepare_cached(&format!(
            "SELECT number, hash, manifest FROM editions
             WHERE hash IN (SELECT {there} FROM citations WHERE {here} = ?) ORDER BY number"
        ))?;
        let rows = read.query_map([address.hash()], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get::<_, Vec<u8>>(2)?))
        })?;
        rows.map(|row| row.map_err(Error::from).and_then(|(n, hash, bytes)| info(n, hash, &bytes)))
            .collect()
    }

    /// The whole graph, in the order of publication; at most so many edges.
    pub fn graph(&self, most: u32) -> Result<Vec<Cited>> {
        let mut read = self.db.prepare_cached(
            "SELECT DISTINCT citing, cited FROM citations JOIN editions ON hash = citing
             ORDER BY number, position LIMIT ?",
        )?;
        let rows = read.query_map([most], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let edges = rows.collect::<rusqlite::Result<Vec<(String, String)>>>()?;
        edges
            .into_iter()
            .map(|(citing, cited)| Ok(Cited { citing: citing.parse()?, cited: cited.parse()? }))
            .collect()
    }
}

fn check(publish: &Publish) -> Result<()> {
    let plain = |text: &str| !text.is_empty() && !text.chars().any(char::is_control);
    if publish.content.is_empty() {
        return Err(Error::refused("there is nothing in it to publish"));
    }
    if publish.content.len() > LARGEST {
        return Err(Error::refused(format!("an edition has at most {LARGEST} bytes")));
    }
    let title = passage::plain(&publish.title);
    if title.is_empty() || title.chars().count() > LONGEST_TITLE {
        return Err(Error::refused(format!("a title has 1 to {LONGEST_TITLE} characters")));
    }
    if !plain(&publish.document) || !plain(&publish.media_type) || !plain(&publish.author) {
        return Err(Error::refused("author, document and media type are one line each"));
    }
    Ok(())
}

/// But for the date, and what came before.
fn same_edition(known: &Manifest, new: &Manifest) -> bool {
    let undated =
        |manifest: &Manifest| Manifest { date: String::new(), previous: None, ..manifest.clone() };
    undated(known) == undated(new)
}

fn quoted(edition: &Edition, quote: &str, lines: Option<Lines>) -> Result<Lines> {
    let text = text(edition)?;
    let address = &edition.info.address;
    let within = match lines {
        None => text,
        Some(lines) => passage::lines(text, lines).unwrap_or(""),
    };
    let found = passage::find(within, quote).ok_or_else(|| {
        let shown: String = passage::plain(quote).chars().take(100).collect();
        let place = Place { edition: address.clone(), lines };
        Error::refused(format!("\"{shown}\" does not stand in {place}"))
            .or_try("quote it exactly as it stands there; only white space may differ")
    })?;
    let above = lines.map_or(0, |lines| lines.first - 1);
    Ok(Lines { first: found.first + above, last: found.last + above })
}

fn text(edition: &Edition) -> Result<&str> {
    std::str::from_utf8(&edition.content).map_err(|_| {
        Error::refused(format!("{} is not text", edition.info.address))
            .or_try("cite it as a whole, without lines and quote")
    })
}

pub(super) fn info(number: i64, hash: String, bytes: &[u8]) -> Result<EditionInfo> {
    let address: Address = hash.parse()?;
    if Address::of(bytes) != address {
        return Err(Error::Damaged(format!("the manifest of {address} was changed")));
    }
    let manifest = Manifest::from_bytes(bytes)
        .ok_or_else(|| Error::Damaged(format!("the manifest of {address} cannot be read")))?;
    Ok(EditionInfo { number: unsigned(number), address, manifest })
}

pub(super) fn checked(
    number: i64,
    name: String,
    manifest: Vec<u8>,
    content: Vec<u8>,
) -> Result<Edition> {
    let info = info(number, name, &manifest)?;
    if hash(&content) != info.manifest.content {
        return Err(Error::Damaged(format!("the content of {} was changed", info.address)));
    }
    Ok(Edition { info, manifest, content })
}

/// Number and link of the last edition; zero and nothing when there is none.
fn last(db: &Connection) -> Result<(i64, String)> {
    let read = "SELECT number, link FROM editions ORDER BY number DESC LIMIT 1";
    let last = db.query_row(read, [], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
    Ok(last.unwrap_or_default())
}

pub(super) fn link(before: &str, hash: &str) -> String {
    crate::edition::hash(format!("{before}{hash}").as_bytes())
}

fn no_edition(address: &Address) -> Error {
    Error::not_found(format!("there is no edition {address}"))
        .or_try("nacre publications shows them all")
}
