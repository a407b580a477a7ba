//! The calls about one-shot runs.

use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use nacre_wire::runs::{RunInfo, RunList, StartRun};

use super::control::{Answer, Shared, parse};

pub(super) async fn list(State(app): Shared) -> Json<RunList> {
    Json(app.runs.list())
}

pub(super) async fn start(State(app): Shared, body: Bytes) -> Answer<(StatusCode, Json<RunInfo>)> {
    let wanted: StartRun = parse(&body)?;
    Ok((StatusCode::CREATED, Json(app.runs.begin(wanted)?)))
}

pub(super) async fn show(State(app): Shared, Path(id): Path<String>) -> Answer<Json<RunInfo>> {
    Ok(Json(app.runs.info(&id)?))
}

pub(super) async fn cancel(State(app): Shared, Path(id): Path<String>) -> Answer<StatusCode> {
    app.runs.cancel(&id).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn input(
    State(app): Shared,
    Path(id): Path<String>,
    body: Body,
) -> Answer<Json<RunInfo>> {
    Ok(Json(app.runs.receive(&id, body).await?))
}

pub(super) async fn events(State(app): Shared, Path(id): Path<String>) -> Answer<Response> {
    let lines = app.runs.follow(&id)?;
    Ok(stream("application/x-ndjson", Body::from_stream(lines)))
}

pub(super) async fn files(State(app): Shared, Path(id): Path<String>) -> Answer<Response> {
    let archive = app.runs.files(&id)?;
    Ok(stream("application/x-tar", Body::from_stream(archive)))
}

pub(super) async fn patch(State(app): Shared, Path(id): Path<String>) -> Answer<Response> {
    let patch = app.runs.patch(&id)?;
    Ok(stream("text/x-diff; charset=utf-8", Body::from_stream(patch)))
}

fn stream(kind: &'static str, body: Body) -> Response {
    ([(CONTENT_TYPE, kind), (CACHE_CONTROL, "no-store")], body).into_response()
}
