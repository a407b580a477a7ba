//! Heads as bytes, line by line as hyper writes them.

use std::cell::RefCell;
use std::time::SystemTime;

use http::header::{DATE, TRANSFER_ENCODING};
use http::{HeaderMap, Method, StatusCode};

/// Room for most heads. From 1032 bytes on, glibc's malloc takes longer.
const USUAL: usize = 1000;

thread_local! {
    static DATE_NOW: RefCell<Dated> = RefCell::default();
}

/// The date as headers have it, made once a second.
#[derive(Default)]
struct Dated {
    second: u64,
    text: String,
}

impl Dated {
    fn now(&mut self) -> &str {
        let now = SystemTime::now();
        let since = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        if self.second != since.as_secs() || self.text.is_empty() {
            self.second = since.as_secs();
            self.text = httpdate::fmt_http_date(now);
        }
        &self.text
    }
}

pub(super) fn request(method: &Method, target: &str, headers: &HeaderMap) -> Vec<u8> {
    let mut head = Vec::with_capacity(USUAL);
    head.extend_from_slice(method.as_str().as_bytes());
    head.push(b' ');
    head.extend_from_slice(target.as_bytes());
    head.extend_from_slice(b" HTTP/1.1\r\n");
    lines(headers, &mut head);
    head.extend_from_slice(b"\r\n");
    head
}

/// What is still missing of the head of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) chunked: bool,
    /// No other request is answered on this connection.
    pub(super) last: bool,
}

pub(super) fn answer(
    status: StatusCode,
    headers: &HeaderMap,
    frame: Frame,
    more: usize,
) -> Vec<u8> {
    let mut head = Vec::with_capacity(USUAL + more);
    head.extend_from_slice(b"HTTP/1.1 ");
    head.extend_from_slice(status.as_str().as_bytes());
    head.push(b' ');
    head.extend_from_slice(status.canonical_reason().unwrap_or_default().as_bytes());
    head.extend_from_slice(b"\r\n");
    debug_assert!(!headers.contains_key(TRANSFER_ENCODING));
    lines(headers, &mut head);
    if !headers.contains_key(DATE) {
        head.extend_from_slice(b"date: ");
        DATE_NOW.with_borrow_mut(|date| head.extend_from_slice(date.now().as_bytes()));
        head.extend_from_slice(b"\r\n");
    }
    if frame.chunked {
        head.extend_from_slice(b"transfer-encoding: chunked\r\n");
    }
    if frame.last {
        head.extend_from_slice(b"connection: close\r\n");
    }
    head.extend_from_slice(b"\r\n");
    head
}

fn lines(headers: &HeaderMap, head: &mut Vec<u8>) {
    for (name, value) in headers {
        head.extend_from_slice(name.as_str().as_bytes());
        head.extend_from_slice(b": ");
        head.extend_from_slice(value.as_bytes());
        head.extend_from_slice(b"\r\n");
    }
}
