//! One question to a sandbox, with an end to everything.

use std::borrow::Cow;

use axum::body::{Body, Bytes};
use http::header::{
    ACCEPT, ACCEPT_ENCODING, CONNECTION, CONTENT_TYPE, HOST, LOCATION, SEC_WEBSOCKET_ACCEPT,
    SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use http::{HeaderMap, Request, StatusCode};
use http_body_util::BodyExt;
use nacre_wire::generation;
use nacre_wire::relay::{self, Download, Upload};
use nacre_wire::roles::Evidence;

use super::PATIENCE;
use crate::sandboxes::Sandbox;

/// Kept of a body; enough to find what a page or a script refers to.
const KEPT: usize = 4 << 20;
/// A larger one is not read to its end.
const LARGEST: u64 = 256 << 20;
const EXCERPT: usize = 200;
/// The example of RFC 6455, section 1.3.
const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";
const ACCEPTED: &str = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    Data,
    Page,
    Asset,
    WebSocket,
}

pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) content_type: Option<String>,
    pub(super) location: Option<String>,
    pub(super) body: Bytes,
    accepted: bool,
}

/// The whole answer, or what is wrong with it.
pub(super) async fn ask(sandbox: &Sandbox, path: &str, wanted: Wanted) -> Result<Answer, String> {
    let request = request(path, wanted)?;
    let answer = async {
        match sandbox.door.send(Upload::of(request)).await.map_err(|error| error.to_string())? {
            relay::Answer::Response(response) => read(response).await,
            // Dropping the rest closes the connection; the handshake is all that was asked for.
            relay::Answer::Switched(response, _) => Ok(Answer::of(&response)),
        }
    };
    match tokio::time::timeout(PATIENCE, answer).await {
        Ok(answer) => answer,
        Err(_) => Err(format!("no whole answer within {} s", PATIENCE.as_secs())),
    }
}

fn request(path: &str, wanted: Wanted) -> Result<Request<Body>, String> {
    let mut request = Request::get(path)
        .header(HOST, "localhost")
        .header(ACCEPT_ENCODING, "identity")
        .header("x-nacre-user", "owner")
        .header("x-forwarded-host", "localhost")
        .header("x-forwarded-proto", "http");
    request = match wanted {
        Wanted::Data => request.header(generation::HEADER, generation::Range::OURS.to_string()),
        Wanted::Page => request.header(ACCEPT, "text/html"),
        Wanted::Asset => request.header(ACCEPT, "*/*"),
        Wanted::WebSocket => request
            .header(CONNECTION, "upgrade")
            .header(UPGRADE, "websocket")
            .header(SEC_WEBSOCKET_VERSION, "13")
            .header(SEC_WEBSOCKET_KEY, KEY),
    };
    request.body(Body::empty()).map_err(|_| "its address is malformed".to_owned())
}

async fn read(response: http::Response<Download<Body>>) -> Result<Answer, String> {
    let mut answer = Answer::of(&response);
    let mut body = response.into_body();
    let (mut kept, mut length) = (Vec::new(), 0_u64);
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| format!("it broke off: {error}"))?;
        let Ok(data) = frame.into_data() else { continue };
        length = length.saturating_add(data.len() as u64);
        if length > LARGEST {
            break;
        }
        kept.extend_from_slice(&data[..data.len().min(KEPT - kept.len())]);
    }
    answer.body = kept.into();
    Ok(answer)
}

fn is_accepted(headers: &HeaderMap) -> bool {
    let upgrade = headers.get(UPGRADE).and_then(|value| value.to_str().ok());
    upgrade.is_some_and(|value| value.eq_ignore_ascii_case("websocket"))
        && headers.get(SEC_WEBSOCKET_ACCEPT).is_some_and(|value| value == ACCEPTED)
}

impl Answer {
    /// Without what it holds.
    fn of<B>(response: &http::Response<B>) -> Self {
        let headers = response.headers();
        let text =
            |name| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        Self {
            status: response.status(),
            content_type: text(CONTENT_TYPE),
            location: text(LOCATION),
            body: Bytes::new(),
            accepted: is_accepted(headers),
        }
    }

    pub(super) fn is_websocket(&self) -> bool {
        self.status == StatusCode::SWITCHING_PROTOCOLS && self.accepted
    }

    pub(super) fn is_of(&self, types: &[&str]) -> bool {
        let essence = self.content_type.as_deref().unwrap_or("").split(';').next().unwrap_or("");
        types.iter().any(|wanted| essence.trim().eq_ignore_ascii_case(wanted))
    }

    pub(super) fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.body)
    }

    pub(super) fn evidence(&self, url: &str, problem: &str) -> Evidence {
        let excerpt: String = self.text().chars().take(EXCERPT).collect();
        Evidence {
            url: url.to_owned(),
            problem: problem.to_owned(),
            status: Some(self.status.as_u16()),
            content_type: self.content_type.clone(),
            excerpt: (!excerpt.trim().is_empty()).then_some(excerpt),
        }
    }
}
