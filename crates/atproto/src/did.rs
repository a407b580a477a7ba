//! Decentralized identifiers, of the two methods that the AT Protocol has.

use std::fmt;
use std::str::FromStr;

use crate::handle::is_host_name;

const PLC_LENGTH: usize = 24;

/// `did:plc:...` or `did:web:host`. Compared byte for byte.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Did(String);

impl Did {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The host of a `did:web`, which is where its document is.
    pub(crate) fn web_host(&self) -> Option<&str> {
        self.0.strip_prefix("did:web:")
    }
}

impl FromStr for Did {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let good = if let Some(id) = text.strip_prefix("did:plc:") {
            id.len() == PLC_LENGTH && id.bytes().all(|b| matches!(b, b'a'..=b'z' | b'2'..=b'7'))
        } else if let Some(host) = text.strip_prefix("did:web:") {
            // A port would be written %3A, and a path with colons. Neither is allowed here.
            is_host_name(host) && host.contains('.')
        } else {
            false
        };
        if good { Ok(Self(text.to_owned())) } else { Err(()) }
    }
}

impl fmt::Display for Did {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_two_methods_and_whole_identifiers() {
        for good in ["did:plc:z72i7hdynkq6kh7aaaaaaaaa", "did:web:pc.example", "did:web:a-b.c.d"] {
            assert_eq!(good.parse::<Did>().map(|did| did.to_string()).as_deref(), Ok(good));
        }
        for bad in [
            "",
            "did:plc:",
            "did:plc:z72i7hdynkq6kh7",
            "did:plc:Z72i7hdynkq6kh7aaaaaaaaa",
            "did:plc:z72i7hdynkq6kh7aaaaaaaa1",
            "did:plc:z72i7hdynkq6kh7aaaaaaaaa ",
            "did:web:",
            "did:web:localhost",
            "did:web:pc.example:path",
            "did:web:pc.example%3A8080",
            "did:web:PC.example",
            "did:web:10.0.0.1",
            "did:web:-a.example",
            "did:key:zabc",
            "DID:plc:z72i7hdynkq6kh7aaaaaaaaa",
            "alice.example",
        ] {
            assert_eq!(bad.parse::<Did>(), Err(()), "{bad}");
        }
    }
}
