//! The control plane, `/admin/sandboxes*`.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{Extension, FromRequestParts, Path, Query, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, delete, get, post, put};
use axum::{Json, Router};
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::request::Parts;
use http::uri::PathAndQuery;
use http::{HeaderMap, Method, Request, StatusCode, Uri};
use nacre_wire::control::{
    CreateSandbox, GatewayStatus, SandboxInfo, SandboxList, Shutdown, Stats,
};
use nacre_wire::{ApiError, ErrorKind, WirePath};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::board::Notes;
use super::headers::Forwarded;
use super::intent::FormToken;
use super::proxy::{self, Way};
use super::{App, Entrance, access, board, egress, follow, models, reply, roles, runs, telemetry};
use crate::auth::Pass;
use crate::brain;
use crate::knowledge::{self, Scope, Writer};
use crate::observe::Via;
use crate::sandboxes::errors;
use crate::sandboxes::policy::Op;

/// The nacre command, here or elsewhere. The pages of a sandbox share the owner's origin and session, so a
/// session shows nothing of that kind.
pub(crate) struct Program;

impl<S: Sync> FromRequestParts<S> for Program {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Failure> {
        let here = parts.extensions.get::<Entrance>() == Some(&Entrance::Unix);
        let by_token =
            || parts.extensions.get::<Pass>().is_some_and(|pass| pass.session().is_none());
        if here || by_token() {
            return Ok(Self);
        }
        Err(ApiError::new(ErrorKind::Permission, "this cannot be done from a browser")
            .hint("use the nacre command")
            .into())
    }
}

/// An [`ApiError`] as a response.
pub(crate) struct Failure(ApiError);
pub(crate) type Answer<T> = Result<T, Failure>;
pub(super) type Shared = State<Arc<App>>;

impl From<ApiError> for Failure {
    fn from(error: ApiError) -> Self {
        Self(error)
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        reply::error(&self.0)
    }
}

pub(crate) fn router(app: Arc<App>) -> Router {
    let sandboxes = Router::new()
        .route("/", get(list).post(create))
        .route("/roles", get(roles::status))
        .route("/swap", post(roles::swap))
        .route("/swap/checks", get(roles::checks))
        .route("/dev", get(roles::show_dev).post(roles::create_dev).delete(roles::delete_dev))
        .route("/dev/reset", post(roles::reset_dev))
        .route("/gateway", get(status))
        .route("/gateway/sign-in-link", post(access::sign_in_link))
        .route("/gateway/setup-code", post(access::setup_code))
        .route("/gateway/shutdown", post(shutdown))
        .route("/gateway/modules", post(unpack_modules))
        .route("/metrics", get(telemetry::metrics))
        .route("/alerts", get(telemetry::alerts))
        .route("/sessions", get(access::sessions))
        .route("/sessions/{id}", delete(access::end_session))
        .route("/tokens", get(access::tokens).post(access::create_token))
        .route("/tokens/{id}", delete(access::revoke_token))
        .route("/audit", get(access::audit))
        .route("/egress/log", get(egress::log))
        .route("/providers", get(models::providers))
        .route("/providers/reload", post(models::reload))
        .route("/providers/stop", post(models::stop))
        .route("/providers/start", post(models::start))
        .route("/providers/{name}/test", post(models::test))
        .route("/policy-tokens", get(models::tokens).post(models::create_token))
        .route("/policy-tokens/{id}", delete(models::revoke_token))
        .route("/usage", get(models::usage))
        .route("/calls", get(models::calls))
        .route("/runs", get(runs::list).post(runs::start))
        .route("/runs/{id}", get(runs::show).delete(runs::cancel))
        .route("/runs/{id}/input", put(runs::input))
        .route("/runs/{id}/events", get(runs::events))
        .route("/runs/{id}/files", get(runs::files))
        .route("/runs/{id}/patch", get(runs::patch))
        .route("/{name}", get(show).delete(destroy))
        .route("/{name}/start", post(start))
        .route("/{name}/stop", post(stop))
        .route("/{name}/restart", post(restart))
        .route("/{name}/pause", post(pause))
        .route("/{name}/resume", post(resume))
        .route("/{name}/stats", get(stats))
        .route("/{name}/logs", get(logs))
        .route("/{name}/egress", get(egress::show))
        .route("/{name}/egress/mode", put(egress::set_mode))
        .route("/{name}/egress/rules", post(egress::add_rule).delete(egress::remove_rule))
        .route("/{name}/door", any(door))
        .route("/{name}/door/", any(door))
        .route("/{name}/door/{*rest}", any(door))
        .merge(board::router())
        .merge(brain::http::router(app.brain.clone()))
        .merge(knowledge::admin::router(app.knowledge.clone()))
        .merge(knowledge::writer_router(Writer {
            knowledge: app.knowledge.clone(),
            scope: Scope::Roles,
        }));
    Router::new()
        .nest("/admin/sandboxes", sandboxes)
        .layer(Extension(Notes::default()))
        .fallback(unknown)
        .method_not_allowed_fallback(wrong_method)
        .with_state(app)
}

/// A page for people who navigate there, data for everybody else.
async fn list(
    State(app): Shared,
    Extension(notes): Extension<Notes>,
    token: Option<Extension<FormToken>>,
    method: Method,
    headers: HeaderMap,
) -> Response {
    if let (true, Some(Extension(token))) = (board::wanted(&method, &headers), token) {
        return board::show(&app, &notes, &token).await;
    }
    Json(SandboxList { sandboxes: app.sandboxes.list() }).into_response()
}

async fn create(
    State(app): Shared,
    Extension(entrance): Extension<Entrance>,
    body: Bytes,
) -> Answer<(StatusCode, Json<SandboxInfo>)> {
    let wanted: CreateSandbox = parse(&body)?;
    // The pages of a sandbox share the owner's origin. A page that could choose the root
    // filesystem could choose the host's.
    if wanted.rootfs.is_some() && entrance != Entrance::Unix {
        return Err(ApiError::new(
            ErrorKind::Permission,
            "a root filesystem on the host cannot be chosen from a browser",
        )
        .hint("use nacre sandbox create --rootfs DIR on the host")
        .into());
    }
    let sandbox = app.sandboxes.create(wanted).await?;
    Ok((StatusCode::CREATED, Json(app.sandboxes.info(&sandbox))))
}

async fn show(State(app): Shared, Path(name): Path<String>) -> Answer<Json<SandboxInfo>> {
    show_named(&app, &name)
}

pub(super) fn show_named(app: &App, name: &str) -> Answer<Json<SandboxInfo>> {
    let sandbox = app.sandboxes.find(name)?;
    Ok(Json(app.sandboxes.info(&sandbox)))
}

async fn destroy(State(app): Shared, Path(name): Path<String>) -> Answer<StatusCode> {
    app.sandboxes.find(&name)?.ask(Op::Destroy).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn operate(app: &App, name: &str, op: Op) -> Answer<Json<SandboxInfo>> {
    let sandbox = app.sandboxes.find(name)?;
    sandbox.ask(op).await?;
    Ok(Json(app.sandboxes.info(&sandbox)))
}

async fn start(State(app): Shared, Path(name): Path<String>) -> Answer<Json<SandboxInfo>> {
    operate(&app, &name, Op::Start).await
}

async fn stop(State(app): Shared, Path(name): Path<String>) -> Answer<Json<SandboxInfo>> {
    operate(&app, &name, Op::Stop).await
}

async fn restart(State(app): Shared, Path(name): Path<String>) -> Answer<Json<SandboxInfo>> {
    operate(&app, &name, Op::Restart).await
}

async fn pause(State(app): Shared, Path(name): Path<String>) -> Answer<Json<SandboxInfo>> {
    operate(&app, &name, Op::Pause).await
}

async fn resume(State(app): Shared, Path(name): Path<String>) -> Answer<Json<SandboxInfo>> {
    operate(&app, &name, Op::Resume).await
}

async fn stats(State(app): Shared, Path(name): Path<String>) -> Answer<Json<Stats>> {
    let sandbox = app.sandboxes.find(&name)?;
    let stats = app.sandboxes.driver().stats(&sandbox.id).await;
    Ok(Json(stats.map_err(|error| errors::from_driver(&sandbox.name, &error))?))
}

#[derive(Deserialize)]
struct LogQuery {
    #[serde(default)]
    follow: bool,
    max_bytes: Option<u64>,
}

async fn logs(
    State(app): Shared,
    Path(name): Path<String>,
    Query(query): Query<LogQuery>,
) -> Answer<Response> {
    let sandbox = app.sandboxes.find(&name)?;
    let driver = app.sandboxes.driver().clone();
    let tail = query.max_bytes.unwrap_or(follow::TAIL_BYTES).min(16 * 1024 * 1024);
    let body = if query.follow {
        follow::stream(driver, sandbox.id.clone(), tail)
    } else {
        let logs = driver.logs(&sandbox.id, tail).await;
        Body::from(logs.map_err(|error| errors::from_driver(&sandbox.name, &error))?)
    };
    let headers = [(CONTENT_TYPE, "text/plain; charset=utf-8"), (CACHE_CONTROL, "no-store")];
    Ok((headers, body).into_response())
}

#[derive(Deserialize)]
struct DoorPath {
    name: String,
}

/// The rest of the path, as it was sent, to that sandbox's supervisor. Not for browsers: a page of one
/// sandbox would read the files of all others, and what a run has left would be shown as our own.
async fn door(
    _: Program,
    State(app): Shared,
    Extension(entrance): Extension<Entrance>,
    Path(DoorPath { name }): Path<DoorPath>,
    request: Request<Body>,
) -> Answer<Response> {
    let sandbox = app.sandboxes.find(&name)?;
    let path: PathAndQuery = behind_door(request.uri())
        .parse()
        .map_err(|_| ApiError::new(ErrorKind::InvalidRequest, "the path is malformed"))?;
    let peer = match entrance {
        Entrance::Tcp(peer) => Some(peer.ip()),
        Entrance::Unix => None,
    };
    let way = Way { observer: &app.observer, sandbox: &sandbox, via: Via::Door };
    let mut forwarded = Forwarded::by_name(app.auth.user(), peer);
    forwarded.ticket = app.tickets.make(&sandbox, request.method(), &path).await?;
    Ok(proxy::forward(way, path, forwarded, request).await)
}

/// What follows `/{name}/door`, not decoded, with the query.
fn behind_door(uri: &Uri) -> String {
    let path = uri.path().splitn(4, '/').nth(3).unwrap_or("");
    match uri.query() {
        Some(query) => format!("/{path}?{query}"),
        None => format!("/{path}"),
    }
}

async fn status(State(app): Shared) -> Json<GatewayStatus> {
    let driver = app.sandboxes.driver();
    let mut reduced = driver.capabilities().reduced;
    reduced.extend(app.desktop.reduced());
    Json(GatewayStatus {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        pid: std::process::id(),
        uptime_ms: u64::try_from(app.started.elapsed().as_millis()).unwrap_or(u64::MAX),
        url: app.url(),
        owner: app.auth.owner().map(|did| did.to_string()),
        data_dir: WirePath::from(&app.data_dir),
        driver: driver.name().to_owned(),
        reduced,
        sandboxes: app.sandboxes.list(),
    })
}

/// Returns when sandboxes see what the desktop runs on.
async fn unpack_modules(State(app): Shared) -> Answer<StatusCode> {
    app.desktop.unpack().await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn shutdown(
    State(app): Shared,
    Extension(entrance): Extension<Entrance>,
    body: Bytes,
) -> Answer<StatusCode> {
    require_unix(entrance)?;
    let wanted: Shutdown = parse(&body)?;
    app.shutdown.send_replace(Some(wanted));
    Ok(StatusCode::ACCEPTED)
}

pub(super) fn require_unix(entrance: Entrance) -> Answer<()> {
    match entrance {
        Entrance::Unix => Ok(()),
        Entrance::Tcp(_) => Err(ApiError::new(
            ErrorKind::Permission,
            "this is only answered on the gateway's unix socket",
        )
        .hint("use the nacre command on the host")
        .into()),
    }
}

/// An empty body means the defaults.
pub(super) fn parse<T: DeserializeOwned + Default>(body: &[u8]) -> Result<T, ApiError> {
    if body.is_empty() {
        return Ok(T::default());
    }
    serde_json::from_slice(body)
        .map_err(|error| ApiError::new(ErrorKind::InvalidRequest, format!("body: {error}")))
}

async fn unknown(request: Request<Body>) -> Failure {
    Failure(ApiError::new(
        ErrorKind::NotFound,
        format!("no such call: {} {}", request.method(), request.uri().path()),
    ))
}

async fn wrong_method(request: Request<Body>) -> Response {
    let mut response = unknown(request).await.into_response();
    *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_behind_the_door_is_passed_on_as_sent() {
        let cases = [
            ("/live/door", "/"),
            ("/live/door/", "/"),
            ("/live/door?x=1", "/?x=1"),
            ("/live/door/supervisor/files/stat?path=a%2Fb", "/supervisor/files/stat?path=a%2Fb"),
            ("/%6cive/door/a%20b//c", "/a%20b//c"),
        ];
        for (uri, expected) in cases {
            assert_eq!(behind_door(&uri.parse().unwrap()), expected, "{uri}");
        }
    }
}
