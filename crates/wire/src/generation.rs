//! The protocol generation: one number, negotiated on every request.
//!
//! A client names the range it speaks in [`HEADER`] (`1-3`, or `2`); the supervisor answers with
//! the highest generation both speak in the same header, or with 426 and its own range. The number
//! rises only when an old peer could not understand a message; new optional fields do not raise it.

use std::fmt;
use std::str::FromStr;

use http::{HeaderMap, HeaderValue};
use serde::{Deserialize, Serialize};

pub const HEADER: &str = "nacre-protocol";
/// The oldest generation this code can speak.
pub const OLDEST: u32 = 1;
/// The generation this code prefers.
pub const CURRENT: u32 = 1;

/// An inclusive range of generations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Range {
    pub oldest: u32,
    pub newest: u32,
}

impl Range {
    pub const OURS: Self = Self { oldest: OLDEST, newest: CURRENT };

    /// The highest generation in both ranges.
    pub fn agree(self, other: Self) -> Option<u32> {
        let newest = self.newest.min(other.newest);
        (newest >= self.oldest.max(other.oldest)).then_some(newest)
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.oldest == self.newest {
            write!(f, "{}", self.newest)
        } else {
            write!(f, "{}-{}", self.oldest, self.newest)
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is not a protocol range: expected \"N\" or \"OLDEST-NEWEST\"")]
pub struct BadRange(String);

impl FromStr for Range {
    type Err = BadRange;

    fn from_str(text: &str) -> Result<Self, BadRange> {
        let bad = || BadRange(text.to_owned());
        let (oldest, newest) = text.split_once('-').unwrap_or((text, text));
        let range = Self {
            oldest: oldest.trim().parse().map_err(|_| bad())?,
            newest: newest.trim().parse().map_err(|_| bad())?,
        };
        (range.oldest >= 1 && range.oldest <= range.newest).then_some(range).ok_or_else(bad)
    }
}

/// The peer and we share no generation, or what it said makes no sense.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the other side speaks {theirs}, this side speaks {}", Range::OURS)]
pub struct Incompatible {
    pub theirs: String,
}

/// The generation to speak with whoever sent these headers. Who names none is a browser or a
/// person and takes what we have.
pub fn negotiate(headers: &HeaderMap) -> Result<u32, Incompatible> {
    let Some(header) = headers.get(HEADER) else { return Ok(CURRENT) };
    let theirs: Range = header
        .to_str()
        .ok()
        .and_then(|text| text.parse().ok())
        .ok_or_else(|| Incompatible { theirs: "an unreadable protocol range".to_owned() })?;
    let incompatible = || Incompatible { theirs: format!("protocol {theirs}") };
    Range::OURS.agree(theirs).ok_or_else(incompatible)
}

/// Says in a response what was agreed on, or, when nothing was, what we speak.
pub fn announce(headers: &mut HeaderMap, outcome: &Result<u32, Incompatible>) {
    let range = match outcome {
        Ok(agreed) => Range { oldest: *agreed, newest: *agreed },
        Err(Incompatible { .. }) => Range::OURS,
    };
    if let Ok(value) = HeaderValue::from_str(&range.to_string()) {
        headers.insert(HEADER, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(ours: &str, theirs: &str, expected: Option<u32>) {
        let (ours, theirs): (Range, Range) = (ours.parse().unwrap(), theirs.parse().unwrap());
        assert_eq!(ours.agree(theirs), expected);
        assert_eq!(theirs.agree(ours), expected);
    }

    #[test]
    fn peers_agree_on_the_newest_they_share() {
        check("1", "1", Some(1));
        check("1-3", "1", Some(1));
        check("1-3", "2-5", Some(3));
        check("3-4", "1-2", None);
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["", "0", "3-1", "x", "1-", "-1", "1-2-3"] {
            assert!(text.parse::<Range>().is_err(), "{text:?}");
        }
    }
}
