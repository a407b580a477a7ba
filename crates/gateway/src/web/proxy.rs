//! One request through the door: streamed both ways, upgrades as raw bytes.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::response::Response;
use http::header::UPGRADE;
use http::request::Parts;
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue, Request, StatusCode, Uri};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use nacre_wire::relay::{Answer, Joined, Raw, Upload};
use nacre_wire::{ApiError, ErrorKind};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use super::away::{self, Asker};
use super::headers::{self, Forwarded};
use super::lean::{Ahead, Begun};
use super::reply;
use super::socket::{self, Early, Protocol};
use crate::observe::{Exchange, Observer, Upgrade, Via};
use crate::sandboxes::Sandbox;
use crate::sandboxes::door::{Door, DoorError};
use crate::sandboxes::errors;
use crate::sandboxes::roles::{Ends, Tie};

/// Says who answered, or should have: `live`, `dev` or `door`.
static ROLE: HeaderName = HeaderName::from_static("x-nacre-role");
static USER: HeaderName = HeaderName::from_static("x-nacre-user");

/// Which sandbox a request goes to, and as what.
#[derive(Clone, Copy)]
pub(crate) struct Way<'a> {
    pub(crate) observer: &'a Arc<Observer>,
    pub(crate) sandbox: &'a Arc<Sandbox>,
    pub(crate) via: Via,
}

impl Way<'_> {
    /// Makes of a client's head what the sandbox may see. The target is left for whoever sends it.
    pub(crate) fn inward(self, forwarded: &Forwarded, parts: &mut Parts) -> Exchange {
        let asked = parts.uri.path_and_query().cloned().unwrap_or(PathAndQuery::from_static("/"));
        let mut exchange =
            Exchange::begin(self.observer, self.sandbox, self.via, &parts.method, asked);
        headers::inward(&mut parts.headers, forwarded);
        exchange.user(parts.headers.get(&USER));
        exchange
    }

    /// Says who answered.
    pub(crate) fn sign(self, headers: &mut HeaderMap) {
        headers.insert(ROLE.clone(), HeaderValue::from_static(self.via.as_str()));
    }
}

/// `path` is what the sandbox sees, with the query.
pub(crate) async fn forward(
    way: Way<'_>,
    path: PathAndQuery,
    forwarded: Forwarded,
    request: Request<Body>,
) -> Response {
    let (mut parts, body) = request.into_parts();
    let navigation = reply::is_navigation(&parts.method, &parts.headers);
    // Absent for who asked for this sandbox on the unix socket.
    let tie = parts.extensions.remove::<Tie>();
    let begun = parts.extensions.remove::<Begun>();
    let mut exchange = way.inward(&forwarded, &mut parts);
    if let Some(begun) = &begun {
        exchange.began_at(begun.at);
    }
    let protocol = Protocol::of(&parts.headers);
    let mut request = Request::from_parts(parts, body);
    let client = request.headers().contains_key(UPGRADE).then(|| hyper::upgrade::on(&mut request));
    if client.is_some() {
        exchange.upgrading();
    }
    let mut response = match send(way, path, &mut exchange, request, begun).await {
        Ok(Answer::Response(mut response)) => {
            exchange.answered(response.status().as_u16(), Upgrade::Refused);
            headers::outward(response.headers_mut(), false, forwarded.jar);
            response.map(|body| Body::new(exchange.watch(body)))
        }
        Ok(Answer::Switched(mut response, raw)) => match client {
            Some(client) => {
                headers::outward(response.headers_mut(), true, forwarded.jar);
                exchange.switched();
                tokio::spawn(tunnel(client, raw, protocol, tie, exchange));
                response.map(|()| Body::empty())
            }
            None => {
                exchange.answered(StatusCode::BAD_GATEWAY.as_u16(), Upgrade::Broke);
                switched_unasked()
            }
        },
        Err(failure) => {
            let response = match failure.error.kind {
                ErrorKind::Unavailable => {
                    // A supervisor that runs may answer for itself what it could not for its app.
                    let rescue =
                        (way.sandbox.require_running().is_ok()).then_some(forwarded.prefix);
                    away::answer(Asker { navigation, rescue }, &failure.error)
                }
                _ => reply::error(&failure.error),
            };
            exchange.answered(response.status().as_u16(), failure.upgrade);
            response
        }
    };
    way.sign(response.headers_mut());
    response
}

/// Why the sandbox gave no answer, as such and as the end of an upgrade.
struct Failure {
    error: ApiError,
    upgrade: Upgrade,
}

async fn send(
    way: Way<'_>,
    path: PathAndQuery,
    exchange: &mut Exchange,
    mut request: Request<Body>,
    begun: Option<Begun>,
) -> Result<Answer<Body>, Failure> {
    let sandbox = way.sandbox;
    let failed = |upgrade| move |error| Failure { error, upgrade };
    if begun.is_none() {
        sandbox.require_running().map_err(failed(Upgrade::Unavailable))?;
    }
    *request.uri_mut() = Uri::from(path);
    *request.version_mut() = http::Version::HTTP_11;
    let request = Upload::of(request);
    exchange.uploading(request.body().progress());
    let answer = match begun.and_then(|begun| begun.take()) {
        Some(stream) => Door::go_on(stream, request).await,
        None => sandbox.door.send(request).await,
    };
    answer.map_err(|error| {
        tracing::warn!(sandbox = %sandbox.name, %error, "a proxied request failed");
        let upgrade = match error {
            DoorError::Dial(_) => Upgrade::Unavailable,
            DoorError::Http(_) => Upgrade::Broke,
        };
        Failure { error: errors::from_door(&sandbox.name, &error), upgrade }
    })
}

fn switched_unasked() -> Response {
    let error = "the sandbox switched protocols without being asked to";
    let mut response = reply::error(&ApiError::new(ErrorKind::Unavailable, error));
    *response.status_mut() = StatusCode::BAD_GATEWAY;
    response
}

/// Joins the two ends until both are done, the role moves or the session ends.
async fn tunnel(
    client: OnUpgrade,
    raw: Raw,
    protocol: Protocol,
    tie: Option<Tie>,
    mut exchange: Exchange,
) {
    let upgraded = match client.await {
        Ok(upgraded) => upgraded,
        Err(error) => {
            tracing::debug!(%error, "an upgrade was not completed");
            return;
        }
    };
    // An idle one is small when nothing is left of what spoke HTTP.
    let joined = match upgraded.downcast::<TokioIo<Ahead<TcpStream>>>() {
        Ok(parts) => {
            let (stream, early) = parts.io.into_inner().into_parts(parts.read_buf);
            join(stream, early, raw, protocol, tie).await
        }
        Err(upgraded) => join(TokioIo::new(upgraded), Bytes::new(), raw, protocol, tie).await,
    };
    exchange.parted(joined);
}

/// Without a tie, nothing but its two sides ends it.
async fn join<C>(client: C, early: Bytes, raw: Raw, protocol: Protocol, tie: Option<Tie>) -> Joined
where
    C: AsyncRead + AsyncWrite + Unpin,
{
    // Even when empty it can hold on to a large piece of memory.
    let early = if early.is_empty() { Bytes::new() } else { early };
    let early = Early { client: early, sandbox: raw.early };
    let (ends, _open) = match tie {
        Some(tie) => (tie.ends, tie.health.map(|health| health.open_socket())),
        None => (Ends::default(), None),
    };
    socket::join(client, raw.stream, early, protocol, ends).await
}
