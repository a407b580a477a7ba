//! The way up: what a sandbox may ask of its host.
//!
//! While a supervisor runs, one task accepts the connections it opens and answers HTTP on them; the
//! task of the sandbox holds it and lets go of it when the sandbox stops. Who asks is known from
//! where the connection came in, never from what it says. Root of the sandbox decides what comes,
//! so everything here is bounded.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::Extension;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use http::{Request, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use nacre_sandbox::{BoxStream, Driver, Error, SandboxId};
use nacre_wire::generation::{self, Incompatible, Range};
use nacre_wire::status::Version;
use nacre_wire::{ApiError, ErrorKind};
use tokio::task::JoinSet;
use tokio_util::task::AbortOnDropHandle;
use tower::ServiceExt;

use crate::web::reply;

/// Connections one sandbox may hold open; the next waits until one of them ends.
const CONNECTIONS: usize = 256;
/// A connection that says nothing is let go.
const HEADER_TIMEOUT: Duration = Duration::from_secs(30);
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// The sandbox that asks.
#[derive(Debug, Clone)]
pub(crate) struct Guest(SandboxId);

/// Serves the sandbox until it stops or the handle is dropped.
pub(crate) fn serve(driver: Arc<dyn Driver>, id: SandboxId) -> AbortOnDropHandle<()> {
    AbortOnDropHandle::new(tokio::spawn(accept(driver, id)))
}

async fn accept(driver: Arc<dyn Driver>, id: SandboxId) {
    let router = router(Guest(id.clone()));
    let mut connections = JoinSet::new();
    let mut pause = FIRST_PAUSE;
    loop {
        while connections.try_join_next().is_some() {}
        if connections.len() >= CONNECTIONS {
            connections.join_next().await;
        }
        match driver.accept(&id).await {
            Ok(stream) => {
                pause = FIRST_PAUSE;
                connections.spawn(connection(stream, router.clone()));
            }
            // It has stopped; the next start brings the next task.
            Err(Error::State { .. } | Error::NotFound(_)) => return,
            Err(error) => {
                tracing::warn!(%id, %error, "cannot accept a connection from a sandbox");
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        }
    }
}

async fn connection(stream: BoxStream, router: Router) {
    let service = service_fn(move |request: Request<Incoming>| {
        let router = router.clone();
        async move { Ok::<_, Infallible>(respond(router, request.map(Body::new)).await) }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades()
        .await;
    if let Err(error) = served {
        tracing::debug!(%error, "a connection from a sandbox ended early");
    }
}

async fn respond(router: Router, request: Request<Body>) -> Response {
    let outcome = generation::negotiate(request.headers());
    let mut response = match &outcome {
        Ok(_) => match router.oneshot(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        },
        Err(error) => reply::error(&incompatible(error)),
    };
    generation::announce(response.headers_mut(), &outcome);
    response
}

fn incompatible(Incompatible { theirs }: &Incompatible) -> ApiError {
    let message = format!("the supervisor speaks {theirs}, this host speaks {}", Range::OURS);
    ApiError::new(ErrorKind::Incompatible, message).hint("restart the sandbox to update it")
}

fn router(guest: Guest) -> Router {
    Router::new()
        .route("/host/version", get(version))
        .fallback(unknown)
        .method_not_allowed_fallback(wrong_method)
        .layer(Extension(guest))
}

async fn version(Extension(Guest(id)): Extension<Guest>) -> Json<Version> {
    tracing::debug!(%id, "asked for the host's version");
    Json(Version { version: env!("CARGO_PKG_VERSION").to_owned(), protocol: Range::OURS })
}

async fn unknown(request: Request<Body>) -> Response {
    let message = format!("no such call: {} {}", request.method(), request.uri().path());
    reply::error(&ApiError::new(ErrorKind::NotFound, message))
}

async fn wrong_method(request: Request<Body>) -> Response {
    let mut response = unknown(request).await.into_response();
    *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt;
    use nacre_sandbox::fake::{FakeDriver, Guest as Inside};
    use nacre_wire::control::SandboxState;
    use nacre_wire::error::ErrorBody;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
    use tokio::sync::mpsc;
    use tokio::time::timeout;

    async fn ask(method: &str, path: &str, protocol: &str) -> (StatusCode, String, Vec<u8>) {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(generation::HEADER, protocol)
            .body(Body::empty())
            .unwrap();
        let router = router(Guest("sb-1".parse().unwrap()));
        let (parts, body) = respond(router, request).await.into_parts();
        let spoken = parts.headers[generation::HEADER].to_str().unwrap().to_owned();
        (parts.status, spoken, body.collect().await.unwrap().to_bytes().to_vec())
    }

    #[tokio::test]
    async fn the_version_is_told_to_whoever_understands_it() {
        let (status, spoken, body) = ask("GET", "/host/version", "1-9").await;
        assert_eq!((status, spoken.as_str()), (StatusCode::OK, "1"));
        let version: Version = serde_json::from_slice(&body).unwrap();
        let expected =
            Version { version: env!("CARGO_PKG_VERSION").to_owned(), protocol: Range::OURS };
        assert_eq!(version, expected);
    }

    #[tokio::test]
    async fn what_is_not_offered_is_an_error_with_a_kind() {
        let cases = [
            ("GET", "/host/version", "7-9", 426, ErrorKind::Incompatible),
            ("GET", "/host/nothing", "1", 404, ErrorKind::NotFound),
            ("GET", "/admin/sandboxes", "1", 404, ErrorKind::NotFound),
            ("POST", "/host/version", "1", 405, ErrorKind::NotFound),
        ];
        for (method, path, protocol, status, kind) in cases {
            let answer = ask(method, path, protocol).await;
            let error: ErrorBody = serde_json::from_slice(&answer.2).unwrap();
            assert_eq!((answer.0.as_u16(), error.error.kind), (status, kind), "{method} {path}");
        }
    }

    /// A sandbox that runs, from the driver's side and from inside.
    async fn running(id: &SandboxId) -> (FakeDriver, Inside) {
        let (sender, mut receiver) = mpsc::unbounded_channel();
        let driver = FakeDriver::new(Arc::new(move |inside, _| {
            let _ = sender.send(inside);
            Box::pin(std::future::ready(()))
        }));
        driver.put(id, SandboxState::Running);
        driver.dial(id).await.unwrap();
        (driver, receiver.recv().await.unwrap())
    }

    async fn is_answered(stream: &mut DuplexStream) -> bool {
        let request = b"GET /host/version HTTP/1.1\r\nhost: host\r\n\r\n";
        stream.write_all(request).await.unwrap();
        let mut start = [0; 12];
        let read = timeout(Duration::from_secs(1), stream.read_exact(&mut start)).await;
        read.is_ok_and(|read| read.is_ok() && &start == b"HTTP/1.1 200")
    }

    #[tokio::test(start_paused = true)]
    async fn a_sandbox_that_hoards_connections_waits_for_its_own() {
        let id: SandboxId = "sb-1".parse().unwrap();
        let (driver, inside) = running(&id).await;
        let _serving = serve(Arc::new(driver), id);
        let mut held: Vec<_> = (0..CONNECTIONS).map(|_| inside.dial_host()).collect();
        for stream in &mut held {
            assert!(is_answered(stream).await);
        }
        let mut next = inside.dial_host();
        assert!(!is_answered(&mut next).await, "as many as one may hold are open");
        held.pop();
        assert!(is_answered(&mut next).await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_says_nothing_is_let_go() {
        let id: SandboxId = "sb-1".parse().unwrap();
        let (driver, inside) = running(&id).await;
        let _serving = serve(Arc::new(driver), id);
        let mut silent = inside.dial_host();
        let ended = timeout(HEADER_TIMEOUT * 2, silent.read(&mut [0; 8])).await;
        assert_eq!(ended.unwrap().unwrap(), 0);
    }

    #[tokio::test]
    async fn it_ends_with_the_sandbox() {
        let id: SandboxId = "sb-1".parse().unwrap();
        let (driver, inside) = running(&id).await;
        let serving = serve(Arc::new(driver.clone()), id.clone());
        let mut open = inside.dial_host();
        assert!(is_answered(&mut open).await);
        driver.crash(&id);
        serving.await.unwrap();
        let mut rest = Vec::new();
        // What was under way is cut off, not left waiting.
        timeout(Duration::from_secs(10), open.read_to_end(&mut rest)).await.unwrap().unwrap();
    }
}
