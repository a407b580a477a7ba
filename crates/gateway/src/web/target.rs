//! What a request asks for, read once, before anything is decided. Pure.
//!
//! The owner is decided on the very bytes that the sandbox then sees. So whatever two programs
//! could read differently is refused here: nothing is repaired, and nothing is decoded after the
//! decision.

use std::borrow::Cow;

use http::header::{CONTENT_LENGTH, HOST, TRANSFER_ENCODING};
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderValue, Method, Uri, Version};
use nacre_wire::{ApiError, ErrorKind};
use percent_encoding::percent_decode_str;

use crate::routes::{self, Owner, Row};

/// A request target that has one reading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) row: &'static Row,
    /// Path and query as the owner sees them: a role's prefix is cut off.
    pub(crate) path: PathAndQuery,
    /// Whom the client asked for: `Host`, or what HTTP/2 has instead.
    pub(crate) host: Option<HeaderValue>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("only paths are answered here, not whole addresses")]
    NotAPath,
    #[error("the path has segments that point elsewhere")]
    Dots,
    #[error("the path has an empty segment at its start")]
    DoubleSlash,
    #[error("the path has a backslash")]
    Backslash,
    #[error("the path has a control character")]
    Control,
    #[error("the path has a percent sign that encodes nothing")]
    Encoding,
    #[error("the path can be read as one that somebody else answers")]
    Ambiguous,
    #[error("the request names more than one host")]
    Hosts,
    #[error("the length of the body is told in more than one way")]
    Framing,
}

impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> Self {
        let error = Self::new(ErrorKind::InvalidRequest, refusal.to_string());
        match refusal {
            Refusal::Ambiguous => error.hint("write it in lower case, without encoding slashes"),
            _ => error,
        }
    }
}

pub(crate) fn read(
    method: &Method,
    version: Version,
    uri: &Uri,
    headers: &HeaderMap,
) -> Result<Target, Refusal> {
    // HTTP/2 always names the authority; in HTTP/1 only a proxy is asked that way.
    let named = if version == Version::HTTP_2 { uri.authority() } else { None };
    if method == Method::CONNECT || (named.is_none() && uri.authority().is_some()) {
        return Err(Refusal::NotAPath);
    }
    let host = one_host(named.map(|authority| authority.as_str()), headers)?;
    check_framing(headers)?;
    let row = check_path(uri.path())?;
    let whole = uri.path_and_query().cloned().unwrap_or(PathAndQuery::from_static("/"));
    let path = match row.owner {
        Owner::Role(role) if !role.prefix().is_empty() => without(role.prefix(), &whole)?,
        Owner::Role(_) | Owner::Gateway(_) => whole,
    };
    if path.as_str().starts_with("//") {
        return Err(Refusal::DoubleSlash);
    }
    Ok(Target { row, path, host })
}

fn without(prefix: &str, whole: &PathAndQuery) -> Result<PathAndQuery, Refusal> {
    let rest = whole.as_str().strip_prefix(prefix).unwrap_or(whole.as_str());
    PathAndQuery::try_from(rest).map_err(|_| Refusal::NotAPath)
}

/// Who owns the path, if every reader of it agrees.
pub(crate) fn check_path(path: &str) -> Result<&'static Row, Refusal> {
    if !path.starts_with('/') {
        return Err(Refusal::NotAPath);
    }
    if path.starts_with("//") {
        return Err(Refusal::DoubleSlash);
    }
    let row = routes::decide(path);
    if is_plain(path) {
        return Ok(row);
    }
    if !is_well_encoded(path) {
        return Err(Refusal::Encoding);
    }
    let decoded = Cow::from(percent_decode_str(path));
    if decoded.iter().any(u8::is_ascii_control) {
        return Err(Refusal::Control);
    }
    if decoded.contains(&b'\\') {
        return Err(Refusal::Backslash);
    }
    if decoded.split(|byte| *byte == b'/').any(|segment| matches!(segment, b"." | b"..")) {
        return Err(Refusal::Dots);
    }
    if routes::decide(&laxly(&decoded)).owner != row.owner {
        return Err(Refusal::Ambiguous);
    }
    Ok(row)
}

/// Nothing in it that anybody would read as something else.
fn is_plain(path: &str) -> bool {
    let plain = |byte: u8| {
        byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'/' | b'-' | b'_')
    };
    path.bytes().all(plain) && !path.contains("//")
}

fn is_well_encoded(path: &str) -> bool {
    path.split('%').skip(1).all(|rest| {
        rest.as_bytes().get(..2).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    })
}

/// As the most forgiving server would read it: decoded, slashes merged, in lower case.
fn laxly(decoded: &[u8]) -> String {
    let mut path = String::with_capacity(decoded.len());
    for c in String::from_utf8_lossy(decoded).chars() {
        if c != '/' || !path.ends_with('/') {
            path.push(c.to_ascii_lowercase());
        }
    }
    path
}

fn one_host(named: Option<&str>, headers: &HeaderMap) -> Result<Option<HeaderValue>, Refusal> {
    let mut hosts = headers.get_all(HOST).iter();
    match (named, hosts.next(), hosts.next()) {
        (_, Some(_), Some(_)) => Err(Refusal::Hosts),
        (Some(named), Some(host), None)
            if !host.as_bytes().eq_ignore_ascii_case(named.as_bytes()) =>
        {
            Err(Refusal::Hosts)
        }
        (_, Some(host), None) => Ok(Some(host.clone())),
        (Some(named), None, _) => {
            HeaderValue::from_str(named).map(Some).map_err(|_| Refusal::Hosts)
        }
        (None, None, _) => Ok(None),
    }
}

/// hyper refuses lengths that differ, and of a length beside `chunked` it keeps the latter alone
/// and closes the connection. It takes any list that ends in `chunked`, though, and the body of
/// one with more in it would be passed on still encoded.
fn check_framing(headers: &HeaderMap) -> Result<(), Refusal> {
    let mut encodings = headers.get_all(TRANSFER_ENCODING).iter();
    let good = match (encodings.next(), encodings.next()) {
        (None, _) => headers.get_all(CONTENT_LENGTH).iter().count() <= 1,
        (Some(only), None) => {
            only.as_bytes().eq_ignore_ascii_case(b"chunked")
                && !headers.contains_key(CONTENT_LENGTH)
        }
        (Some(_), Some(_)) => false,
    };
    if good { Ok(()) } else { Err(Refusal::Framing) }
}

#[cfg(test)]
#[path = "target_tests.rs"]
mod tests;
