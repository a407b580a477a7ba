//! One request through the door: streamed both ways, upgrades as raw bytes.

use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;
use http::header::UPGRADE;
use http::uri::PathAndQuery;
use http::{HeaderName, HeaderValue, Request, StatusCode, Uri};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use nacre_wire::relay::{Answer, Raw, Upload, join};
use nacre_wire::{ApiError, ErrorKind};

use super::away::{self, Asker};
use super::cookies::Jar;
use super::headers::{self, Forwarded};
use super::reply;
use crate::observe::{Exchange, Observer, Upgrade, Via};
use crate::sandboxes::Sandbox;
use crate::sandboxes::door::DoorError;
use crate::sandboxes::errors;

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

/// `path` is what the sandbox sees, with the query.
pub(crate) async fn forward(
    way: Way<'_>,
    path: String,
    forwarded: Forwarded,
    mut request: Request<Body>,
) -> Response {
    let asked = request.uri().path_and_query().cloned().unwrap_or(PathAndQuery::from_static("/"));
    let mut exchange = Exchange::begin(way.observer, way.sandbox, way.via, request.method(), asked);
    let navigation = reply::is_navigation(request.method(), request.headers());
    headers::inward(request.headers_mut(), forwarded);
    let client = request.headers().contains_key(UPGRADE).then(|| hyper::upgrade::on(&mut request));
    exchange.user(request.headers().get(&USER));
    if client.is_some() {
        exchange.upgrading();
    }
    let mut response = match send(way, path, &mut exchange, request).await {
        Ok(Answer::Response(mut response)) => {
            exchange.answered(response.status().as_u16(), Upgrade::Refused);
            headers::outward(response.headers_mut(), false, forwarded.jar);
            response.map(|body| Body::new(exchange.watch(body)))
        }
        Ok(Answer::Switched(response, raw)) => switch(client, response, raw, exchange, forwarded.jar),
        Err(failure) => {
            let response = match failure.error.kind {
                ErrorKind::Unavailable => {
                    // A supervisor that runs may answer for itself what it could not for its app.
                    let rescue = (way.sandbox.require_running().is_ok()).then_some(forwarded.prefix);
                    away::answer(Asker { navigation, rescue }, &failure.error)
                }
                _ => reply::error(&failure.error),
            };
            exchange.answered(response.status().as_u16(), failure.upgrade);
            response
        }
    };
    response.headers_mut().insert(ROLE.clone(), HeaderValue::from_static(way.via.as_str()));
    response
}

/// Why the sandbox gave no answer, as such and as the end of an upgrade.
struct Failure {
    error: ApiError,
    upgrade: Upgrade,
}

async fn send(
    way: Way<'_>,
    path: String,
    exchange: &mut Exchange,
    mut request: Request<Body>,
) -> Result<Answer<Body>, Failure> {
    let sandbox = way.sandbox;
    let failed = |upgrade| move |error| Failure { error, upgrade };
    sandbox.require_running().map_err(failed(Upgrade::Unavailable))?;
    *request.uri_mut() = path.parse::<PathAndQuery>().map(Uri::from).map_err(|_| Failure {
        error: ApiError::new(ErrorKind::InvalidRequest, "the path is malformed"),
        upgrade: Upgrade::Refused,
    })?;
    *request.version_mut() = http::Version::HTTP_11;
    let request = Upload::of(request);
    exchange.uploading(request.body().progress());
    sandbox.door.send(request).await.map_err(|error| {
        tracing::warn!(sandbox = %sandbox.name, %error, "a proxied request failed");
        let upgrade = match error {
            DoorError::Dial(_) => Upgrade::Unavailable,
            DoorError::Http(_) => Upgrade::Broke,
        };
        Failure { error: errors::from_door(&sandbox.name, &error), upgrade }
    })
}

fn switch(
    client: Option<OnUpgrade>,
    mut response: http::Response<()>,
    raw: Raw,
    mut exchange: Exchange,
    jar: Option<Jar>,
) -> Response {
    let Some(client) = client else {
        exchange.answered(StatusCode::BAD_GATEWAY.as_u16(), Upgrade::Broke);
        let mut response = reply::error(&ApiError::new(
            ErrorKind::Unavailable,
            "the sandbox switched protocols without being asked to",
        ));
        *response.status_mut() = StatusCode::BAD_GATEWAY;
        return response;
    };
    exchange.switched();
    tokio::spawn(async move {
        match client.await {
            Ok(client) => {
                exchange.parted(join(TokioIo::new(client), raw.stream, raw.early).await);
            }
            Err(error) => tracing::debug!(%error, "an upgrade was not completed"),
        }
    });
    headers::outward(response.headers_mut(), true, jar);
    response.map(|()| Body::empty())
}
