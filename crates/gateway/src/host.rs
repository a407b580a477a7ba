//! The way up: what a sandbox may ask of its host.
//!
//! While a supervisor runs, one task accepts the connections it opens and answers HTTP on them; the
//! task of the sandbox holds it and lets go of it when the sandbox stops. Who asks is known from
//! where the connection came in, never from what it says. Root of the sandbox decides what comes,
//! so everything here is bounded.
//!
//! | Call | What it gives |
//! |---|---|
//! | `GET /host/version` | who we are |
//! | `POST /host/environment` | variables for every command ([`nacre_wire::models`]) |
//! | `GET /host/provider` | a connection that leads to models |
//! | `GET /host/conversations` | what happens in conversations ([`nacre_wire::conductor`]) |
//! | `/host/conductor/*`, `/host/writer/*` | what came through the door ([`crate::relayed`]) |

use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::Extension;
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, post};
use axum::{Json, Router};
use http::{Request, StatusCode, header};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::upgrade::Upgraded;
use hyper_util::rt::{TokioIo, TokioTimer};
use nacre_sandbox::{BoxStream, Driver, Error, SandboxId};
use nacre_wire::generation::{self, Incompatible, Range};
use nacre_wire::models::AskEnvironment;
use nacre_wire::status::Version;
use nacre_wire::{ApiError, ErrorKind};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tower::ServiceExt;

use crate::egress::{self, Egress};
use crate::provider::{Models, inside};
use crate::relayed::{self, Relayed, Tickets};
use crate::sandboxes::label::Label;
use crate::web::reply;

/// Connections one sandbox may hold open; the next waits until one of them ends.
const CONNECTIONS: usize = 1024;
/// A connection that says nothing is let go.
const HEADER_TIMEOUT: Duration = Duration::from_secs(30);
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// What sandboxes reach on their way up, besides us.
#[derive(Clone)]
pub(crate) struct Services {
    pub(crate) models: Arc<Models>,
    pub(crate) egress: Egress,
    pub(crate) relayed: Relayed,
    pub(crate) tickets: Tickets,
}

/// The sandbox that asks, and what there is for it.
#[derive(Clone)]
pub(crate) struct Guest {
    id: SandboxId,
    name: Label,
    /// The one-shot run that the sandbox was made for.
    run: Option<Arc<str>>,
    egress: Egress,
    models: Arc<inside::Guest>,
    relayed: Relayed,
    tickets: Tickets,
    /// Cancelled when the sandbox stops: what became of its connections ends too.
    stopped: CancellationToken,
}

impl Guest {
    pub(crate) fn new(
        id: SandboxId,
        name: Label,
        run: Option<Arc<str>>,
        services: &Services,
    ) -> Self {
        let Services { models, egress, relayed, tickets } = services.clone();
        let stopped = CancellationToken::new();
        let models = inside::Guest::new(models, id.as_str(), run.clone(), stopped.clone());
        Self { id, name, run, egress, models, relayed, tickets, stopped }
    }

    pub(crate) fn id(&self) -> &SandboxId {
        &self.id
    }

    /// What people call it now.
    pub(crate) fn name(&self) -> Arc<str> {
        self.name.get()
    }

    pub(crate) fn run(&self) -> Option<&str> {
        self.run.as_deref()
    }

    pub(crate) fn egress(&self) -> &Egress {
        &self.egress
    }

    pub(crate) fn relayed(&self) -> &Relayed {
        &self.relayed
    }

    pub(crate) fn tickets(&self) -> &Tickets {
        &self.tickets
    }
}

/// While it is held, a sandbox is answered.
pub(crate) struct WayUp {
    task: AbortOnDropHandle<()>,
    /// Whether the supervisor has what its commands are to know.
    told: watch::Receiver<bool>,
}

impl WayUp {
    /// Returns when the sandbox has stopped.
    #[cfg_attr(not(test), expect(dead_code, reason = "the driver says so elsewhere"))]
    pub(crate) async fn ended(self) {
        let _ = self.task.await;
    }

    /// Returns when it has.
    pub(crate) async fn told(&mut self) {
        let _ = self.told.wait_for(|told| *told).await;
    }
}

/// Serves the sandbox until it stops or the handle is dropped.
pub(crate) fn serve(driver: Arc<dyn Driver>, guest: Guest) -> WayUp {
    let told = guest.models.told();
    WayUp { task: AbortOnDropHandle::new(tokio::spawn(accept(driver, guest))), told }
}

async fn accept(driver: Arc<dyn Driver>, guest: Guest) {
    let id = guest.id.clone();
    let _stopped = guest.stopped.clone().drop_guard();
    let router = router(guest);
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
        .route("/host/egress", get(egress::open))
        .route("/host/environment", post(environment))
        .route("/host/provider", get(provider))
        .route("/host/conversations", get(conversations))
        .route("/host/conductor/{*rest}", any(relayed::answer))
        .route("/host/writer", any(relayed::answer))
        .route("/host/writer/", any(relayed::answer))
        .route("/host/writer/{*rest}", any(relayed::answer))
        .fallback(unknown)
        .method_not_allowed_fallback(wrong_method)
        .layer(Extension(guest))
}

async fn version(Extension(guest): Extension<Guest>) -> Json<Version> {
    tracing::debug!(id = %guest.id, "asked for the host's version");
    Json(Version {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        protocol: Range::OURS,
        relays: Vec::new(),
    })
}

async fn environment(Extension(guest): Extension<Guest>, body: Bytes) -> Response {
    let asked = match body.is_empty() {
        true => Ok(AskEnvironment::default()),
        false => serde_json::from_slice(&body),
    };
    let told = match asked {
        Ok(asked) => guest.models.environment(asked).await,
        Err(error) => Err(ApiError::new(ErrorKind::InvalidRequest, format!("body: {error}"))),
    };
    told.map_or_else(|error| reply::error(&error), |told| Json(told).into_response())
}

async fn provider(Extension(guest): Extension<Guest>, request: Request<Body>) -> Response {
    guest.models.connect(request)
}

async fn conversations(Extension(guest): Extension<Guest>) -> Response {
    guest.relayed.news()
}

/// Whether the request is for that protocol: to be looked at before anything is done for it.
pub(crate) fn asks_for(request: &Request<Body>, protocol: &'static str) -> Result<(), ApiError> {
    let asked = request.headers().get(header::UPGRADE);
    if asked.is_some_and(|asked| asked.as_bytes() == protocol.as_bytes()) {
        return Ok(());
    }
    let message = format!("{} carries {protocol}", request.uri().path());
    let error = ApiError::new(ErrorKind::InvalidRequest, message);
    Err(error.hint(format!("ask with `upgrade: {protocol}`")))
}

/// Answers 101 and hands the connection on as raw bytes, when that is what was asked for. It ends
/// with the sandbox.
pub(crate) fn switch<F>(
    mut request: Request<Body>,
    protocol: &'static str,
    serve: impl FnOnce(TokioIo<Upgraded>) -> F + Send + 'static,
) -> Response
where
    F: Future<Output = ()> + Send,
{
    if let Err(error) = asks_for(&request, protocol) {
        return reply::error(&error);
    }
    let stopped = request.extensions().get::<Guest>().map(|guest| guest.stopped.clone());
    let upgrading = hyper::upgrade::on(&mut request);
    let serving = async move {
        if let Ok(upgraded) = upgrading.await {
            serve(TokioIo::new(upgraded)).await;
        }
    };
    tokio::spawn(stopped.unwrap_or_default().run_until_cancelled_owned(serving));
    let headers =
        [(header::CONNECTION, "upgrade".to_owned()), (header::UPGRADE, protocol.to_owned())];
    (StatusCode::SWITCHING_PROTOCOLS, headers).into_response()
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

    async fn guest(data_dir: &std::path::Path, id: &SandboxId) -> Guest {
        let store = crate::store::Store::open(&data_dir.join("control.db")).unwrap();
        let egress = Egress::start(Default::default(), store.clone(), data_dir).await.unwrap();
        let models = Models::start(data_dir, Default::default(), None, store).await.unwrap();
        let (relayed, tickets) = (Relayed::default(), Tickets::new().unwrap());
        let services = Services { models, egress, relayed, tickets };
        Guest::new(id.clone(), Label::new("live"), None, &services)
    }

    async fn ask(method: &str, path: &str, protocol: &str) -> (StatusCode, String, Vec<u8>) {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(generation::HEADER, protocol)
            .body(Body::empty())
            .unwrap();
        let dir = tempfile::tempdir().unwrap();
        let router = router(guest(dir.path(), &"sb-1".parse().unwrap()).await);
        let (parts, body) = respond(router, request).await.into_parts();
        let spoken = parts.headers[generation::HEADER].to_str().unwrap().to_owned();
        (parts.status, spoken, body.collect().await.unwrap().to_bytes().to_vec())
    }

    #[tokio::test]
    async fn the_version_is_told_to_whoever_understands_it() {
        let (status, spoken, body) = ask("GET", "/host/version", "1-9").await;
        assert_eq!((status, spoken.as_str()), (StatusCode::OK, "1"));
        let version: Version = serde_json::from_slice(&body).unwrap();
        let expected = Version {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            protocol: Range::OURS,
            relays: Vec::new(),
        };
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
        let dir = tempfile::tempdir().unwrap();
        let _serving = serve(Arc::new(driver), guest(dir.path(), &id).await);
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
        let dir = tempfile::tempdir().unwrap();
        let _serving = serve(Arc::new(driver), guest(dir.path(), &id).await);
        let mut silent = inside.dial_host();
        let ended = timeout(HEADER_TIMEOUT * 2, silent.read(&mut [0; 8])).await;
        assert_eq!(ended.unwrap().unwrap(), 0);
    }

    #[tokio::test]
    async fn it_ends_with_the_sandbox() {
        let id: SandboxId = "sb-1".parse().unwrap();
        let (driver, inside) = running(&id).await;
        let dir = tempfile::tempdir().unwrap();
        let serving = serve(Arc::new(driver.clone()), guest(dir.path(), &id).await);
        let mut open = inside.dial_host();
        assert!(is_answered(&mut open).await);
        driver.crash(&id);
        serving.ended().await;
        let mut rest = Vec::new();
        // What was under way is cut off, not left waiting.
        timeout(Duration::from_secs(10), open.read_to_end(&mut rest)).await.unwrap().unwrap();
    }
}
