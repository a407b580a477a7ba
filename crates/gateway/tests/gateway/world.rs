//! A world of sandboxes in memory, and the supervisor that stands behind their doors.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use async_trait::async_trait;
use axum::body::Body;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use axum::{Json, Router};
use http::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use nacre_sandbox::BoxStream;
use nacre_sandbox::fake::{Counts, FakeDriver, Guest};
use nacre_wire::client::{Client, Dial};
use nacre_wire::status::Version;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;

pub(crate) fn world() -> FakeDriver {
    FakeDriver::new(Arc::new(|guest, stream| Box::pin(serve(guest, stream))))
}

/// The inside of a sandbox, on one connection through its door.
pub(crate) async fn serve<S>(guest: Guest, stream: S)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = TowerToHyperService::new(supervisor(guest));
    let connection = hyper::server::conn::http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    let _ = connection.await;
}

/// Waits until the counts are as wanted, and fails when they never are.
pub(crate) async fn until(world: &FakeDriver, good: impl FnMut(&Counts) -> bool) {
    let waited = tokio::time::timeout(Duration::from_secs(10), world.until(good)).await;
    waited.expect("it happens within ten seconds");
}

pub(crate) async fn until_held(world: &FakeDriver) {
    until(world, |counts| !counts.held.is_empty()).await;
}

/// A supervisor that shows what reaches it.
///
/// What is on its disk under the path of a request is served, so a test can put an app there.
pub(crate) fn supervisor(guest: Guest) -> Router {
    let (asking, desk) = (guest.clone(), guest.clone());
    Router::new()
        .route("/supervisor/host", get(move || ask_host(asking.clone())))
        .route(
            "/supervisor/health",
            get(|| async { r#"{"status":"ok","uptime_ms":1,"contained_panics":0}"# }),
        )
        .route("/ws", any(move |upgrade, request| desktop(desk.clone(), upgrade, request)))
        .route(
            "/supervisor/version",
            get(|| async { r#"{"version":"9.9.9","protocol":{"oldest":1,"newest":1}}"# }),
        )
        .route("/stream", any(|request: Request<Body>| async { request.into_body() }))
        .route("/upgrade", any(upgrade))
        .route("/socket", any(web_socket))
        .fallback(move |request| show(guest.clone(), request))
}

/// What a test puts where an answer is to wait, until it puts something else there.
pub(crate) const HELD: &str = "held";

type Place = (String, String);

/// How many answers wait at a path of a sandbox.
static WAITING: LazyLock<watch::Sender<HashMap<Place, usize>>> =
    LazyLock::new(watch::Sender::default);

struct Waiting(Place);

impl Waiting {
    fn begin(guest: &Guest, path: &str) -> Self {
        let place = (guest.id.to_string(), path.to_owned());
        WAITING.send_modify(|waiting| *waiting.entry(place.clone()).or_default() += 1);
        Self(place)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        WAITING.send_modify(|waiting| *waiting.entry(self.0.clone()).or_default() -= 1);
    }
}

/// Until so many answers of a sandbox wait because of [`HELD`].
pub(crate) async fn until_waiting(id: &str, path: &str, count: usize) {
    let place = (id.to_owned(), path.to_owned());
    let mut all = WAITING.subscribe();
    let wanted = all.wait_for(|all| all.get(&place).copied().unwrap_or_default() == count);
    let waited = tokio::time::timeout(Duration::from_secs(10), wanted).await;
    assert!(waited.is_ok(), "{count} never wait at {path}");
}

async fn show(guest: Guest, request: Request<Body>) -> Response {
    let path = request.uri().path();
    let held = || guest.disk.lock().unwrap().get(path).is_some_and(|file| file == HELD.as_bytes());
    if held() {
        let _waiting = Waiting::begin(&guest, path);
        while held() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    let file = guest.disk.lock().unwrap().get(path).cloned();
    if let Some(file) = file {
        let kind = match path.rsplit_once('.').map_or("html", |(_, end)| end) {
            "js" => "text/javascript",
            "css" => "text/css; charset=utf-8",
            "wasm" => "application/wasm",
            "json" => "application/json",
            _ => "text/html; charset=utf-8",
        };
        let status = if file == b"broken" { StatusCode::BAD_GATEWAY } else { StatusCode::OK };
        return (status, [("content-type", kind)], file).into_response();
    }
    if path == "/supervisor/processes" {
        return r#"{"processes":[]}"#.into_response();
    }
    if path.starts_with("/missing") {
        return (StatusCode::NOT_FOUND, "nothing here").into_response();
    }
    let mut lines = vec![format!("{} {}", request.method(), request.uri())];
    let mut headers: Vec<_> = request
        .headers()
        .iter()
        .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
        .collect();
    headers.sort();
    lines.extend(headers);
    ([("set-cookie", "nacre_session=evil")], lines.join("\n")).into_response()
}

/// Echoes raw bytes after the switch.
async fn upgrade(mut request: Request<Body>) -> Response {
    let upgraded = hyper::upgrade::on(&mut request);
    tokio::spawn(async move {
        let (mut reader, mut writer) = tokio::io::split(TokioIo::new(upgraded.await.unwrap()));
        let _ = tokio::io::copy(&mut reader, &mut writer).await;
    });
    let headers = [("connection", "upgrade"), ("upgrade", "echo")];
    (StatusCode::SWITCHING_PROTOCOLS, headers).into_response()
}

type Upgrade = Result<WebSocketUpgrade, WebSocketUpgradeRejection>;

async fn desktop(guest: Guest, upgrade: Upgrade, request: Request<Body>) -> Response {
    match upgrade {
        Ok(upgrade) => web_socket(upgrade).await,
        Err(_) => show(guest, request).await,
    }
}

/// Echoes messages.
async fn web_socket(upgrade: WebSocketUpgrade) -> Response {
    upgrade.on_upgrade(|mut socket| async move {
        while let Some(Ok(message)) = socket.recv().await {
            if socket.send(message).await.is_err() {
                return;
            }
        }
    })
}

struct ToHost(Guest);

#[async_trait]
impl Dial for ToHost {
    async fn dial(&self) -> io::Result<BoxStream> {
        Ok(Box::new(self.0.dial_host()))
    }
}

/// As the real supervisor does it.
async fn ask_host(guest: Guest) -> Response {
    match Client::new(Arc::new(ToHost(guest)), "").get_json::<Version>("/host/version").await {
        Ok(version) => Json(version).into_response(),
        Err(error) => (StatusCode::SERVICE_UNAVAILABLE, error.to_string()).into_response(),
    }
}
