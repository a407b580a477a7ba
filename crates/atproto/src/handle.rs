//! Handles: the names people know each other by.

use std::fmt;
use std::str::FromStr;

/// A host name in lower case, without the `@`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Handle(String);

impl Handle {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// A name for development, which no resolver knows.
    pub(crate) fn is_for_tests(&self) -> bool {
        self.0.ends_with(".test")
    }
}

impl FromStr for Handle {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let name = text.to_ascii_lowercase();
        let top = name.rsplit('.').next().unwrap_or("");
        // Names that cannot belong to anybody, by the rules of the protocol.
        let nobody =
            ["local", "arpa", "invalid", "localhost", "internal", "example", "alt", "onion"];
        let good = is_host_name(&name) && name.contains('.') && !nobody.contains(&top);
        if good { Ok(Self(name)) } else { Err(()) }
    }
}

impl fmt::Display for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Labels of letters, digits and inner dashes in lower case; the last begins with a letter, so an IPv4
/// address is none.
pub(crate) fn is_host_name(name: &str) -> bool {
    let label = |label: &str| {
        let inner = label.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-'));
        let ends = !label.starts_with('-') && !label.ends_with('-');
        (1..=63).contains(&label.len()) && inner && ends
    };
    let top = name.rsplit('.').next().unwrap_or("");
    name.len() <= 253
        && name.split('.').all(label)
        && top.bytes().next().is_some_and(|first| first.is_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_are_host_names_that_somebody_can_have() {
        for (text, handle) in
            [("alice.test", "alice.test"), ("Alice.Bsky.Social", "alice.bsky.social")]
        {
            assert_eq!(
                text.parse::<Handle>().map(|handle| handle.to_string()).as_deref(),
                Ok(handle)
            );
        }
        for bad in [
            "",
            "alice",
            "@alice.test",
            "alice..test",
            ".test",
            "a.local",
            "127.0.0.1",
            "a.example",
            "alice.test.",
            "al ice.test",
            "alice.test/x",
            "xn--\u{e9}.test",
            "-a.test",
            "a.2",
        ] {
            assert_eq!(bad.parse::<Handle>(), Err(()), "{bad}");
        }
        assert!(format!("{}.test", "a".repeat(64)).parse::<Handle>().is_err());
        assert!(format!("{}test", "a.".repeat(130)).parse::<Handle>().is_err());
    }
}
