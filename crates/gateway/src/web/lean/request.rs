//! The head of a request, if it is one of the plainest. Pure.
//!
//! Read by the parser that hyper uses, with its settings, into the same types, so that it has the same
//! reading here and there. What is not plain is not refused: hyper gets it, as it came.

use std::mem::MaybeUninit;

use bytes::Bytes;
use http::header::{
    AUTHORIZATION, CONNECTION, CONTENT_LENGTH, EXPECT, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, Version};

/// As hyper has it.
const MOST_HEADERS: usize = 100;

#[expect(clippy::large_enum_variant, reason = "it is taken apart where it is made")]
pub(super) enum Read {
    /// More has to come.
    Part,
    /// So many bytes are its head, and it has no body.
    Plain(Parts, usize),
    Other,
}

/// `headers` is empty; its memory is used.
pub(super) fn read(bytes: &Bytes, headers: HeaderMap) -> Read {
    // Empty lines before a request are taken by some and not by others.
    if bytes.first().is_some_and(|byte| !byte.is_ascii_uppercase()) {
        return Read::Other;
    }
    let mut found = [const { MaybeUninit::uninit() }; MOST_HEADERS];
    let mut head = httparse::Request::new(&mut []);
    match head.parse_with_uninit_headers(bytes, &mut found) {
        Ok(httparse::Status::Complete(size)) => match parts(bytes, &head, headers) {
            Some(parts) => Read::Plain(parts, size),
            None => Read::Other,
        },
        Ok(httparse::Status::Partial) => Read::Part,
        Err(_) => Read::Other,
    }
}

fn parts(bytes: &Bytes, head: &httparse::Request<'_, '_>, mut headers: HeaderMap) -> Option<Parts> {
    let method = match head.method? {
        "GET" => Method::GET,
        "HEAD" => Method::HEAD,
        _ => return None,
    };
    let target = head.path.filter(|target| target.starts_with('/') && target.is_ascii())?;
    if head.version != Some(1) {
        return None;
    }
    let uri = Uri::from_maybe_shared(bytes.slice_ref(target.as_bytes())).ok()?;
    for header in head.headers.iter() {
        let name = HeaderName::from_bytes(header.name.as_bytes()).ok()?;
        if !is_plain(&name, header.value) {
            return None;
        }
        let value = HeaderValue::from_maybe_shared(bytes.slice_ref(header.value)).ok()?;
        headers.append(name, value);
    }
    let (mut parts, ()) = Request::new(()).into_parts();
    parts.method = method;
    parts.uri = uri;
    parts.version = Version::HTTP_11;
    parts.headers = headers;
    Some(parts)
}

/// Nothing that says where the request ends, what becomes of the connection or what must happen first,
/// and no token: one that is wrong is counted, and that must happen once.
fn is_plain(name: &HeaderName, value: &[u8]) -> bool {
    match *name {
        CONNECTION => value.eq_ignore_ascii_case(b"keep-alive"),
        AUTHORIZATION | CONTENT_LENGTH | EXPECT | TE | TRAILER | TRANSFER_ENCODING | UPGRADE => {
            false
        }
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: &str =
        "GET /a?b HTTP/1.1\r\nHost: x\r\nCookie: c=d\r\nConnection: keep-alive\r\n\r\n";

    fn read(text: &str) -> Read {
        super::read(&Bytes::copy_from_slice(text.as_bytes()), HeaderMap::new())
    }

    #[test]
    fn a_plain_head_is_read_whole() {
        let Read::Plain(parts, size) = read(&format!("{PLAIN}GET /next")) else {
            panic!("not plain")
        };
        assert_eq!(
            (size, parts.method, parts.version),
            (PLAIN.len(), Method::GET, Version::HTTP_11)
        );
        assert_eq!(parts.uri, "/a?b");
        assert_eq!(
            (&parts.headers["host"], parts.headers.len()),
            (&HeaderValue::from_static("x"), 3)
        );
    }

    #[test]
    fn a_part_of_it_is_waited_for() {
        for size in 0..PLAIN.len() {
            assert!(matches!(read(&PLAIN[..size]), Read::Part), "{:?}", &PLAIN[..size]);
        }
    }

    #[test]
    fn what_has_more_to_it_is_left_to_hyper() {
        for name in [
            "content-length",
            "transfer-encoding",
            "te",
            "trailer",
            "expect",
            "upgrade",
            "authorization",
        ] {
            let head = PLAIN.replace("Cookie", name);
            assert!(matches!(read(&head), Read::Other), "{head}");
        }
        for (from, to) in [
            ("GET", "POST"),
            ("GET", "get"),
            ("GET", "\r\nGET"),
            ("1.1", "1.0"),
            ("/a", "*"),
            ("/a", "http://x/a"),
            ("/a", "/\u{e9}"),
            ("keep-alive", "close"),
            ("keep-alive", "keep-alive, x-a"),
            ("Host:", "Host :"),
        ] {
            let head = PLAIN.replace(from, to);
            assert!(matches!(read(&head), Read::Other), "{head}");
        }
    }
}
