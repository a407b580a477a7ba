//! Takes a provider's key out of its answers: some servers repeat, in what they complain about, the header that
//! they did not like.
//!
//! Stars take its place, so that no length changes. It is found as it is written, also across pieces; what
//! encodes it otherwise is not seen. The rest passes untouched.

use axum::body::Bytes;
use bytes::BytesMut;
use http::{HeaderMap, HeaderName};

use super::key::Key;

/// A shorter one is a word that local servers are given for want of a key, and may stand anywhere.
const SHORTEST: usize = 16;
const STAR: u8 = b'*';

pub(crate) struct Mask {
    key: Key,
    /// The end of what came, as long as it may be the beginning of the key.
    held: BytesMut,
}

impl Mask {
    pub(crate) fn of(key: &Key) -> Option<Self> {
        (key.bytes().len() >= SHORTEST).then(|| Self { key: key.clone(), held: BytesMut::new() })
    }

    /// A header with the key in it says nothing that a client needs.
    pub(crate) fn clean(&self, headers: &mut HeaderMap) {
        let key = self.key.bytes();
        let named: Vec<HeaderName> = headers
            .iter()
            .filter(|(_, value)| find(value.as_bytes(), key).is_some())
            .map(|(name, _)| name.clone())
            .collect();
        for name in named {
            headers.remove(name);
        }
    }

    /// What of it may go on.
    pub(crate) fn pass(&mut self, bytes: Bytes) -> Bytes {
        let key = self.key.bytes();
        if self.held.is_empty() && find(&bytes, key).is_none() && begun(&bytes, key) == 0 {
            return bytes;
        }
        self.held.extend_from_slice(&bytes);
        let mut from = 0;
        while let Some(at) = find(&self.held[from..], key) {
            self.held[from + at..from + at + key.len()].fill(STAR);
            from += at + key.len();
        }
        let ready = self.held.len() - begun(&self.held, key);
        self.held.split_to(ready).freeze()
    }

    /// There is no more: what was held goes on after this.
    pub(crate) fn with_rest(&mut self, passed: Bytes) -> Bytes {
        let rest = self.held.split().freeze();
        match (passed.is_empty(), rest.is_empty()) {
            (_, true) => passed,
            (true, false) => rest,
            (false, false) => [passed, rest].concat().into(),
        }
    }

    pub(crate) fn holds(&self) -> usize {
        self.held.len()
    }
}

fn find(text: &[u8], key: &[u8]) -> Option<usize> {
    let (first, rest) = key.split_first()?;
    let mut from = 0;
    while let Some(at) = text[from..].iter().position(|byte| byte == first) {
        if text[from + at + 1..].starts_with(rest) {
            return Some(from + at);
        }
        from += at + 1;
    }
    None
}

/// How many bytes at the end of this are the beginning of the key, and not all of it.
fn begun(text: &[u8], key: &[u8]) -> usize {
    let most = text.len().min(key.len().saturating_sub(1));
    (1..=most).rev().find(|length| text.ends_with(&key[..*length])).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    const KEY: &str = "sk-sk-sk-0123456789";

    fn mask() -> Mask {
        Mask::of(&Key::parse(KEY).unwrap()).unwrap()
    }

    #[test]
    fn a_key_is_found_in_pieces_of_every_size() {
        let check = |text: &str, expected: &str| {
            for size in 1..text.len() + 1 {
                let mut mask = mask();
                let mut passed = Vec::new();
                for piece in text.as_bytes().chunks(size) {
                    passed.extend_from_slice(&mask.pass(Bytes::copy_from_slice(piece)));
                }
                passed.extend_from_slice(&mask.with_rest(Bytes::new()));
                assert_eq!(String::from_utf8(passed).unwrap(), expected, "in pieces of {size}");
            }
        };
        let stars = "*".repeat(KEY.len());
        check("nothing of it", "nothing of it");
        check(&format!("a {KEY} b {KEY}{KEY}"), &format!("a {stars} b {stars}{stars}"));
        check(&format!("sk-sk-{KEY}"), &format!("sk-sk-{stars}"));
        check("sk-sk-sk-012345678", "sk-sk-sk-012345678");
    }

    #[test]
    fn what_holds_nothing_of_it_passes_at_once() {
        let mut mask = mask();
        let event = Bytes::from_static(b"data: {}\n\n");
        let passed = mask.pass(event.clone());
        assert_eq!(passed.as_ptr(), event.as_ptr(), "it is not copied");
        assert_eq!(mask.pass(Bytes::from_static(b"a sk-")), "a ");
        assert_eq!(mask.holds(), 3);
        assert!(Mask::of(&Key::parse("ollama").unwrap()).is_none());
    }

    #[test]
    fn headers_that_tell_it_go() {
        let mut headers = HeaderMap::new();
        let told = HeaderValue::try_from(format!("Bearer realm=\"{KEY}\"")).unwrap();
        headers.insert(http::header::WWW_AUTHENTICATE, told);
        headers.insert(http::header::SERVER, HeaderValue::from_static("x"));
        mask().clean(&mut headers);
        assert_eq!(headers.keys().collect::<Vec<_>>(), ["server"]);
    }
}
