//! What an edition is: bytes, and a manifest that names them and is named by its own hash.
//!
//! The manifest is JSON in one form alone: keys in order, no white space, no fractions. Its BLAKE3 hash
//! is the address, so whoever has an address can tell whether what they were given is what was
//! published, without trusting who gave it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

const SCHEME: &str = "nacre:edition:";
const DIGITS: usize = 64;
/// Which manifest this is; another form would be another number.
const VERSION: u32 = 1;

/// `nacre:edition:` and the hash of a manifest.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Address(String);

impl Address {
    pub(crate) fn of(manifest: &[u8]) -> Self {
        Self(hash(manifest))
    }

    /// The hash alone.
    pub fn hash(&self) -> &str {
        &self.0
    }

    /// Enough to tell editions apart for a person.
    pub fn short(&self) -> &str {
        &self.0[..8]
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}", self.0)
    }
}

impl From<Address> for String {
    fn from(address: Address) -> Self {
        address.to_string()
    }
}

impl TryFrom<String> for Address {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

/// With the scheme or without it.
impl FromStr for Address {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let digits = text.strip_prefix(SCHEME).unwrap_or(text);
        let good = digits.len() == DIGITS
            && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        match good {
            true => Ok(Self(digits.to_owned())),
            false => {
                let shown: String = text.chars().take(100).collect();
                Err(Error::refused(format!("\"{}\" is not an address", shown.escape_debug()))
                    .or_try("an edition is named nacre:edition: and 64 hexadecimal digits"))
            }
        }
    }
}

/// Lines of an edition, from 1, both within.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lines {
    pub first: u32,
    pub last: u32,
}

/// A place in an edition: `nacre:edition:HASH#L3-L5`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Place {
    pub edition: Address,
    pub lines: Option<Lines>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let edition = &self.edition;
        match self.lines {
            None => write!(f, "{edition}"),
            Some(Lines { first, last }) if first == last => write!(f, "{edition}#L{first}"),
            Some(Lines { first, last }) => write!(f, "{edition}#L{first}-L{last}"),
        }
    }
}

impl FromStr for Place {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let Some((edition, lines)) = text.split_once('#') else {
            return Ok(Self { edition: text.parse()?, lines: None });
        };
        let lines = parse_lines(lines).ok_or_else(|| {
            Error::refused(format!("\"#{}\" names no lines", lines.escape_debug()))
                .or_try("write #L3 or #L3-L5")
        })?;
        Ok(Self { edition: edition.parse()?, lines: Some(lines) })
    }
}

pub(crate) fn parse_lines(text: &str) -> Option<Lines> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let number = |text: &str| text.strip_prefix('L')?.parse().ok();
    let lines = Lines { first: number(first)?, last: number(last)? };
    (1 <= lines.first && lines.first <= lines.last).then_some(lines)
}

/// Fields are in the order of their names: that is the form that is hashed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// A DID, or [`Manifest::LOCAL`].
    pub author: String,
    pub bytes: u64,
    pub citations: Vec<CitationOf>,
    /// Of the content, BLAKE3.
    pub content: String,
    /// As `2026-11-17T18:30:00Z`.
    pub date: String,
    /// What this is an edition of, as a path of its workspace.
    pub document: String,
    pub media_type: String,
    /// The edition of the same document before.
    pub previous: Option<Address>,
    pub title: String,
    pub version: u32,
}

/// What an edition points to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CitationOf {
    pub edition: Address,
    pub lines: Option<Lines>,
    pub quote: Option<String>,
}

impl Manifest {
    /// The author on a computer that nobody has claimed yet.
    pub const LOCAL: &'static str = "local";
    pub(crate) const VERSION: u32 = VERSION;

    pub(crate) fn to_bytes(&self) -> Result<Vec<u8>> {
        serde_json::to_vec(self).map_err(|error| Error::refused(format!("manifest: {error}")))
    }

    /// Only in the one form that it is written in.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let manifest: Self = serde_json::from_slice(bytes).ok()?;
        let same = manifest.to_bytes().is_ok_and(|again| again == bytes);
        (same && manifest.version == VERSION).then_some(manifest)
    }
}

pub(crate) fn hash(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest() -> Manifest {
        Manifest {
            author: "did:web:alice.net".to_owned(),
            bytes: 3,
            citations: vec![CitationOf {
                edition: Address::of(b"x"),
                lines: Some(Lines { first: 1, last: 2 }),
                quote: None,
            }],
            content: hash(b"abc"),
            date: "2026-11-17T18:30:00Z".to_owned(),
            document: "paper.md".to_owned(),
            media_type: "text/markdown".to_owned(),
            previous: None,
            title: "On \"shells\"\u{7}".to_owned(),
            version: VERSION,
        }
    }

    #[test]
    fn a_manifest_has_one_form() {
        let bytes = manifest().to_bytes().unwrap();
        assert_eq!(Manifest::from_bytes(&bytes), Some(manifest()));
        // Keys are sorted, which any other program can do too.
        let sorted: std::collections::BTreeMap<String, serde_json::Value> =
            serde_json::from_slice(&bytes).unwrap();
        assert_eq!(serde_json::to_vec(&sorted).unwrap(), bytes);
        let mut spaced = bytes.clone();
        spaced.push(b' ');
        assert_eq!(Manifest::from_bytes(&spaced), None);
        let other = Manifest { version: 2, ..manifest() }.to_bytes().unwrap();
        assert_eq!(Manifest::from_bytes(&other), None);
    }

    #[test]
    fn places_are_read_as_they_are_written() {
        let hash = "ab".repeat(32);
        for place in ["", "#L3", "#L3-L5"] {
            let text = format!("nacre:edition:{hash}{place}");
            assert_eq!(text.parse::<Place>().unwrap().to_string(), text);
        }
        for bad in ["#", "#L", "#L0", "#L5-L3", "#L1-2", "#L1-L2-L3", "#3"] {
            assert!(format!("nacre:edition:{hash}{bad}").parse::<Place>().is_err(), "{bad}");
        }
        for bad in ["", "nacre:edition:", "AB", &hash[1..], &hash.to_uppercase()] {
            assert!(bad.parse::<Address>().is_err(), "{bad}");
        }
        assert_eq!(hash.parse::<Address>().unwrap().to_string(), format!("nacre:edition:{hash}"));
    }
}
