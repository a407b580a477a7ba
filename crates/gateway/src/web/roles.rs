//! The calls about `live` and `dev`.

use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::{Query, State};
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt;
use http::StatusCode;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use nacre_wire::control::SandboxInfo;
use nacre_wire::roles::{DevMade, RolesStatus};
use serde::Deserialize;

use super::control::{Answer, Shared, parse, show_named};
use super::reply::{self, UNBUFFERED};
use crate::routes::Role;
use crate::sandboxes::dev::IfThere;
use crate::sandboxes::looking::{Seen, Viewer};
use crate::sandboxes::swap::Refusal;

#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct Forced {
    force: bool,
}

pub(super) async fn status(State(app): Shared) -> Answer<Json<RolesStatus>> {
    Ok(Json(app.sandboxes.roles_status().await?))
}

pub(super) async fn show_dev(State(app): Shared) -> Answer<Json<SandboxInfo>> {
    show_named(&app, Role::Dev.as_str())
}

pub(super) async fn create_dev(State(app): Shared) -> Answer<(StatusCode, Json<DevMade>)> {
    let made = app.sandboxes.make_dev(IfThere::Refuse).await?;
    Ok((StatusCode::CREATED, Json(made)))
}

pub(super) async fn reset_dev(
    State(app): Shared,
    Query(Forced { force }): Query<Forced>,
) -> Answer<(StatusCode, Json<DevMade>)> {
    let made = app.sandboxes.make_dev(IfThere::Replace { force }).await?;
    Ok((StatusCode::CREATED, Json(made)))
}

pub(super) async fn delete_dev(
    State(app): Shared,
    Query(Forced { force }): Query<Forced>,
) -> Answer<StatusCode> {
    app.sandboxes.delete_dev(force).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn swap(State(app): Shared, body: Bytes) -> Answer<Response> {
    match app.sandboxes.swap(parse(&body)?).await {
        Ok(swapped) => Ok(Json(swapped).into_response()),
        Err(refusal) => Ok(refused(refusal)),
    }
}

/// A line for each check as it ends, and one with what they come to.
pub(super) async fn checks(State(app): Shared) -> Answer<Response> {
    let seen = app.sandboxes.look(Viewer::Program)?;
    let lines = seen.map(|seen| {
        let line = match &seen {
            Seen::Check(check) => serde_json::to_vec(check),
            Seen::Verdict(verdict) => serde_json::to_vec(verdict),
        };
        line.map(|mut line| {
            line.push(b'\n');
            line
        })
    });
    let headers = [(CONTENT_TYPE, "application/x-ndjson"), (CACHE_CONTROL, "no-store")];
    Ok((headers, [UNBUFFERED], Body::from_stream(lines)).into_response())
}

fn refused(refusal: Refusal) -> Response {
    match refusal {
        Refusal::Error(error) => reply::error(&error),
        Refusal::Checks(refused) => {
            (StatusCode::CONFLICT, [(CACHE_CONTROL, "no-store")], Json(refused)).into_response()
        }
    }
}
