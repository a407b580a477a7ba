//! Sending a call, again where that is safe: before the first byte of an answer has gone on, and
//! only when the provider has not begun with it or has said that it did not.

use std::time::Duration;

use axum::body::{Body, Bytes};
use http::header::RETRY_AFTER;
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri};
use nacre_wire::relay::{Answer, Download};

use super::format::{Reason, Refusal};
use super::tally::Tally;
use super::upstream::{Broken, Upstream};

const AGAIN: u32 = 2;
/// A provider that wants a longer pause is taken at its word: the client is told.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
const UNREACHABLE_PAUSE: Duration = Duration::from_millis(200);
/// Models may think for long before they say anything.
const PATIENCE: Duration = Duration::from_secs(20 * 60);

/// What is sent, as often as it takes.
pub(crate) struct Message {
    pub(crate) method: Method,
    pub(crate) uri: Uri,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Message {
    fn request(&self) -> Request<Body> {
        // Without a body there is none, not one of no bytes.
        let body = if self.body.is_empty() { Body::empty() } else { Body::from(self.body.clone()) };
        let mut request = Request::new(body);
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = self.uri.clone();
        *request.headers_mut() = self.headers.clone();
        request
    }
}

pub(crate) async fn send(
    upstream: &Upstream,
    message: &Message,
    tally: &mut Tally,
) -> Result<Response<Download<Body>>, Refusal> {
    for attempt in 0.. {
        tally.sent();
        let answer = tokio::time::timeout(PATIENCE, upstream.send(message.request())).await;
        let pause = match answer {
            Err(_) => return Err(unreachable("it did not answer")),
            Ok(Ok(Answer::Switched(..))) => return Err(unreachable("it switched protocols")),
            Ok(Ok(Answer::Response(response))) => {
                match pause(response.status(), response.headers()) {
                    Some(pause) if attempt < AGAIN => {
                        tally.unused();
                        pause
                    }
                    Some(_) | None => return Ok(response),
                }
            }
            Ok(Err(Broken { error, sent })) => {
                if !sent {
                    tally.unused();
                }
                if sent || attempt >= AGAIN {
                    return Err(unreachable(&error));
                }
                UNREACHABLE_PAUSE
            }
        };
        tokio::time::sleep(pause).await;
    }
    Err(unreachable("it did not answer"))
}

fn unreachable(why: impl std::fmt::Display) -> Refusal {
    Refusal::new(Reason::Upstream, format!("the provider cannot be reached: {why}"))
}

/// How long to wait before it is asked again, when it says so and that is soon.
fn pause(status: StatusCode, headers: &HeaderMap) -> Option<Duration> {
    let overloaded = matches!(status.as_u16(), 429 | 503 | 529);
    let number = |name: &str| headers.get(name)?.to_str().ok()?.trim().parse::<u64>().ok();
    let wanted = number("retry-after-ms").map(Duration::from_millis);
    let wanted = wanted.or_else(|| number(RETRY_AFTER.as_str()).map(Duration::from_secs))?;
    (overloaded && wanted <= LONGEST_PAUSE).then_some(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderName, HeaderValue};

    #[test]
    fn only_a_short_pause_that_was_asked_for_is_made() {
        let check =
            |status: u16, headers: &[(&'static str, &'static str)], expected: Option<u64>| {
                let headers = headers
                    .iter()
                    .map(|(name, value)| {
                        (HeaderName::from_static(name), HeaderValue::from_static(value))
                    })
                    .collect();
                let status = StatusCode::from_u16(status).unwrap();
                assert_eq!(
                    pause(status, &headers),
                    expected.map(Duration::from_millis),
                    "{status} {headers:?}"
                );
            };
        check(429, &[("retry-after", "1")], Some(1000));
        check(529, &[("retry-after-ms", "20"), ("retry-after", "1")], Some(20));
        check(503, &[("retry-after", "0")], Some(0));
        check(503, &[("retry-after", "60")], None);
        check(429, &[], None);
        check(429, &[("retry-after", "Wed, 21 Oct 2026 07:28:00 GMT")], None);
        check(500, &[("retry-after", "1")], None);
        check(200, &[("retry-after", "1")], None);
    }
}
