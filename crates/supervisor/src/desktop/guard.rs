//! The guard: a script of the supervisor's own that pages of the desktop run before anything of
//! their own, and that offers a way back when they break.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use axum::response::Response;
use http::header::{
    ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, ETAG, HeaderValue,
    IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED, RANGE,
};
use http::{HeaderMap, StatusCode};
use http_body_util::BodyExt;
use hyper::body::{Frame, SizeHint};

use super::html::first_place;

/// So much of a page is looked through for where a script goes; one that has no place up to there
/// goes without.
const MOST: usize = 1 << 20;
/// Beyond this, only when there is twice as much: looking again at every piece would take ever longer.
const EAGER: usize = 16 * 1024;

/// Asks for a page that can be read and is whole.
pub(crate) fn ask_plainly(headers: &mut HeaderMap) {
    for name in [IF_NONE_MATCH, IF_MODIFIED_SINCE, RANGE] {
        headers.remove(name);
    }
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
}

/// The answer to a navigation, with the guard in it when it is a page.
pub(crate) async fn guarded(response: Response, prefix: &str) -> Response {
    if !is_plain_page(response.status(), response.headers()) {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let body = insert(body, &script(prefix)).await;
    // These were about what the app sent. The length is found again in the body.
    for name in [CONTENT_LENGTH, ETAG, LAST_MODIFIED] {
        parts.headers.remove(name);
    }
    Response::from_parts(parts, body)
}

fn is_plain_page(status: StatusCode, headers: &HeaderMap) -> bool {
    let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    let is_html = text(CONTENT_TYPE).is_some_and(|kind| {
        let kind = kind.split(';').next().unwrap_or_default().trim();
        kind.eq_ignore_ascii_case("text/html")
    });
    let is_plain = text(CONTENT_ENCODING).is_none_or(|coding| coding == "identity");
    let has_body = !matches!(
        status,
        StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED | StatusCode::PARTIAL_CONTENT
    );
    is_html && is_plain && has_body && !status.is_informational()
}

fn script(prefix: &str) -> String {
    format!("<script src=\"{prefix}/supervisor/guard.js\" data-nacre-guard></script>")
}

/// The page with the guard in it.
pub(super) fn inserted(html: &str, prefix: &str) -> String {
    let place = first_place(html, true).unwrap_or(0);
    format!("{}{}{}", &html[..place], script(prefix), &html[place..])
}

/// Reads until it is known where the script goes; the rest flows as it comes.
async fn insert(mut body: Body, script: &str) -> Body {
    let mut begun = Vec::new();
    let mut enough = 0;
    let place = loop {
        let frame = body.frame().await;
        let ended = frame.is_none();
        match frame {
            Some(Ok(frame)) => {
                // Or trailers, which nothing follows.
                if let Ok(data) = frame.into_data() {
                    begun.extend_from_slice(&data);
                }
            }
            // Who reads on finds it broken.
            Some(Err(error)) => {
                return Continued { begun: begun.into(), rest: Err(Some(error)) }.into();
            }
            None => {}
        }
        if begun.len() < enough && !ended {
            continue;
        }
        enough = if begun.len() < EAGER { 0 } else { begun.len() * 2 };
        let place = place(&begun, ended);
        if place.is_some() || ended || begun.len() > MOST {
            break place;
        }
    };
    if let Some(place) = place {
        begun.splice(place..place, script.bytes());
    }
    Continued { begun: begun.into(), rest: Ok(body) }.into()
}

/// In bytes that may end within a character.
fn place(begun: &[u8], ended: bool) -> Option<usize> {
    let readable = match std::str::from_utf8(begun) {
        Ok(text) => text,
        // Another encoding looks like this too, and has tags before anything that is not ASCII.
        Err(error) => std::str::from_utf8(&begun[..error.valid_up_to()]).unwrap_or_default(),
    };
    first_place(readable, ended)
}

/// A body of which a part was read already.
struct Continued {
    begun: Bytes,
    rest: Result<Body, Option<axum::Error>>,
}

impl From<Continued> for Body {
    fn from(body: Continued) -> Self {
        Self::new(body)
    }
}

impl hyper::body::Body for Continued {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if !self.begun.is_empty() {
            return Poll::Ready(Some(Ok(Frame::data(std::mem::take(&mut self.begun)))));
        }
        match &mut self.rest {
            Ok(rest) => Pin::new(rest).poll_frame(cx),
            Err(error) => Poll::Ready(error.take().map(Err)),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.begun.is_empty() && self.rest.as_ref().is_ok_and(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        let begun = self.begun.len() as u64;
        let rest = self.rest.as_ref().map(Body::size_hint).unwrap_or_default();
        let mut hint = SizeHint::new();
        hint.set_lower(begun + rest.lower());
        if let Some(upper) = rest.upper() {
            hint.set_upper(begun + upper);
        }
        hint
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::to_bytes;
    use futures_util::stream;
    use hyper::body::Body as _;

    const SCRIPT: &str = "<script src=\"/dev/supervisor/guard.js\" data-nacre-guard></script>";

    fn page(kind: &str, pieces: &[&'static [u8]]) -> Response {
        let pieces: Vec<_> = pieces.iter().map(|piece| Ok::<_, std::io::Error>(*piece)).collect();
        let response = Response::builder().header(CONTENT_TYPE, kind).header(ETAG, "\"a\"");
        response.body(Body::from_stream(stream::iter(pieces))).unwrap()
    }

    async fn check(kind: &str, pieces: &[&'static [u8]], expected: &str) {
        let response = guarded(page(kind, pieces), "/dev").await;
        let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
        let expected = expected.replace('|', SCRIPT);
        assert_eq!(String::from_utf8_lossy(&body), expected, "{kind}");
    }

    #[tokio::test]
    async fn a_page_gets_the_script_however_it_comes() {
        check("text/html", &[b"<html><head><b>"], "<html><head>|<b>").await;
        check("Text/HTML; charset=utf-8", &[b"<html><he", b"ad>", b"<b>"], "<html><head>|<b>")
            .await;
        check("text/html", &[b"<!doctype html>", b"", b"caf\xc3", b"\xa9"], "<!doctype html>café|")
            .await;
        check("text/html", &[], "|").await;
        check("text/plain", &[b"<head>"], "<head>").await;
        check("application/json", &[b"{}"], "{}").await;
    }

    #[tokio::test]
    async fn what_was_said_of_the_page_is_not_said_of_the_other() {
        let html = "<head></head>";
        let response = Response::builder()
            .header(CONTENT_TYPE, "text/html")
            .header(CONTENT_LENGTH, html.len())
            .header(ETAG, "\"a\"")
            .body(Body::from(html))
            .unwrap();
        let response = guarded(response, "/dev").await;
        assert!(!response.headers().contains_key(ETAG));
        let length = (html.len() + SCRIPT.len()) as u64;
        assert_eq!(response.body().size_hint().exact(), Some(length));
    }

    #[tokio::test]
    async fn a_page_without_a_place_is_passed_on_as_it_is() {
        let long: &'static [u8] = " ".repeat(MOST + 10).into_bytes().leak();
        check("text/html", &[long, b"<head>"], &format!("{}<head>", " ".repeat(MOST + 10))).await;
        let mut packed = page("text/html", &[b"<head>"]);
        packed.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("br"));
        let body = guarded(packed, "/dev").await.into_body();
        assert_eq!(to_bytes(body, 100).await.unwrap(), "<head>");
    }

    #[tokio::test]
    async fn a_page_that_breaks_off_is_broken() {
        let pieces = [Ok("<he"), Err(std::io::Error::other("gone"))];
        let response = Response::builder().header(CONTENT_TYPE, "text/html");
        let response = response.body(Body::from_stream(stream::iter(pieces))).unwrap();
        assert!(to_bytes(guarded(response, "").await.into_body(), 100).await.is_err());
    }
}
