//! The head of an answer, if it is one of the plainest. Pure.
//!
//! That is what supervisors send, apart from upgrades. Everything else is read by hyper.

use std::mem::MaybeUninit;

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_LENGTH, TRAILER, TRANSFER_ENCODING, UPGRADE};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use super::body::Body;

/// As hyper has it.
const MOST_HEADERS: usize = 100;

pub(super) enum Read {
    /// More has to come.
    Part,
    Plain(Answer),
    Other,
}

pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Body,
    /// How many bytes the head has.
    pub(super) size: usize,
}

/// `headers` is empty; its memory is used.
pub(super) fn read(bytes: &Bytes, bodiless: bool, headers: HeaderMap) -> Read {
    let mut found = [const { MaybeUninit::uninit() }; MOST_HEADERS];
    let mut head = httparse::Response::new(&mut []);
    let config = httparse::ParserConfig::default();
    match config.parse_response_with_uninit_headers(&mut head, bytes, &mut found) {
        Ok(httparse::Status::Complete(size)) => {
            match answer(bytes, size, &head, bodiless, headers) {
                Some(answer) => Read::Plain(answer),
                None => Read::Other,
            }
        }
        Ok(httparse::Status::Partial) => Read::Part,
        Err(_) => Read::Other,
    }
}

/// `None` when anything about its end, its connection or its first line is not as usual.
fn answer(
    bytes: &Bytes,
    size: usize,
    head: &httparse::Response<'_, '_>,
    bodiless: bool,
    mut headers: HeaderMap,
) -> Option<Answer> {
    let status = StatusCode::from_u16(head.code?).ok()?;
    if head.version != Some(1) || status.is_informational() {
        return None;
    }
    if status.canonical_reason().is_none() || head.reason != status.canonical_reason() {
        return None;
    }
    let (mut length, mut chunked) = (None, false);
    for header in head.headers.iter() {
        let name = HeaderName::from_bytes(header.name.as_bytes()).ok()?;
        match name {
            CONTENT_LENGTH if length.is_none() && !chunked => length = Some(digits(header.value)?),
            TRANSFER_ENCODING if length.is_none() && !chunked => {
                chunked = header.value.eq_ignore_ascii_case(b"chunked");
                if !chunked {
                    return None;
                }
            }
            CONTENT_LENGTH | TRANSFER_ENCODING | CONNECTION | TRAILER | UPGRADE => return None,
            _ => {}
        }
        let value = HeaderValue::from_maybe_shared(bytes.slice_ref(header.value)).ok()?;
        headers.append(name, value);
    }
    let empty = matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
    let body = match (length, chunked) {
        (None, false) if bodiless || empty => Body::none(),
        (Some(_), _) if bodiless && !empty => Body::none(),
        (Some(length), _) if !empty => Body::sized(length),
        (None, true) if !bodiless && !empty => Body::chunked(),
        _ => return None,
    };
    Some(Answer { status, headers, body, size })
}

/// No sign, no space and no list.
fn digits(value: &[u8]) -> Option<u64> {
    let plain = (1..=18).contains(&value.len()) && value.iter().all(u8::is_ascii_digit);
    if plain { std::str::from_utf8(value).ok()?.parse().ok() } else { None }
}
