//! The calls about the way out, `/admin/sandboxes/*egress*`.

use std::collections::{HashSet, VecDeque};
use std::convert::Infallible;
use std::sync::Arc;

use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::{Extension, Path, Query, State};
use axum::response::{IntoResponse, Response};
use http::header::CONTENT_TYPE;
use nacre_wire::egress::{
    EgressLog, EgressMode, EgressRecord, EgressRule, EgressView, SetEgressMode,
};
use nacre_wire::{ApiError, ErrorKind};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use super::access::event;
use super::control::{Answer, Shared, require_unix};
use super::{App, Entrance};
use crate::egress::log;

const USUAL: u32 = 50;
const MOST: u32 = 1000;

pub(super) async fn show(State(app): Shared, Path(name): Path<String>) -> Answer<Json<EgressView>> {
    view(&app, &name)
}

/// The pages of a sandbox share the owner's origin. A page that could open the way out for itself
/// would make the rules worthless, so they are changed on the host, or with a form that the owner sends
/// from a page of the gateway's own ([`super::board`]).
pub(super) async fn set_mode(
    State(app): Shared,
    Extension(entrance): Extension<Entrance>,
    Path(name): Path<String>,
    body: Bytes,
) -> Answer<Json<EgressView>> {
    require_unix(entrance)?;
    let SetEgressMode { mode } = read(&body)?;
    change_mode(&app, entrance, &name, mode).await?;
    view(&app, &name)
}

pub(super) async fn change_mode(
    app: &App,
    entrance: Entrance,
    name: &str,
    mode: Option<EgressMode>,
) -> Result<(), ApiError> {
    let sandbox = app.sandboxes.find(name)?;
    app.sandboxes.egress().set_mode(&sandbox.id, mode).await?;
    let shown = mode.map_or("as configured", |mode| mode.as_str());
    note(app, entrance, format!("{name}: mode {shown}")).await;
    Ok(())
}

pub(super) async fn add_rule(
    State(app): Shared,
    Extension(entrance): Extension<Entrance>,
    Path(name): Path<String>,
    body: Bytes,
) -> Answer<Json<EgressView>> {
    require_unix(entrance)?;
    put_rule(&app, entrance, &name, &read(&body)?).await?;
    view(&app, &name)
}

pub(super) async fn put_rule(
    app: &App,
    entrance: Entrance,
    name: &str,
    rule: &EgressRule,
) -> Result<(), ApiError> {
    let sandbox = app.sandboxes.find(name)?;
    app.sandboxes.egress().add_rule(&sandbox.id, rule).await?;
    let private = if rule.private { " (private too)" } else { "" };
    let what = format!("{name}: {} {}{private}", rule.effect.as_str(), rule.target);
    note(app, entrance, what).await;
    Ok(())
}

#[derive(Deserialize)]
pub(super) struct RuleQuery {
    target: String,
}

pub(super) async fn remove_rule(
    State(app): Shared,
    Extension(entrance): Extension<Entrance>,
    Path(name): Path<String>,
    Query(RuleQuery { target }): Query<RuleQuery>,
) -> Answer<Json<EgressView>> {
    require_unix(entrance)?;
    drop_rule(&app, entrance, &name, &target).await?;
    view(&app, &name)
}

pub(super) async fn drop_rule(
    app: &App,
    entrance: Entrance,
    name: &str,
    target: &str,
) -> Result<(), ApiError> {
    let sandbox = app.sandboxes.find(name)?;
    app.sandboxes.egress().remove_rule(&sandbox.id, target).await?;
    note(app, entrance, format!("{name}: no rule about {target}")).await;
    Ok(())
}

#[derive(Deserialize)]
pub(super) struct LogQuery {
    sandbox: Option<String>,
    before: Option<i64>,
    limit: Option<u32>,
    #[serde(default)]
    refused: bool,
    #[serde(default)]
    follow: bool,
}

pub(super) async fn log(State(app): Shared, Query(wanted): Query<LogQuery>) -> Answer<Response> {
    let sandbox_id = match &wanted.sandbox {
        Some(name) => Some(app.sandboxes.find(name)?.id.to_string()),
        None => None,
    };
    let log = app.sandboxes.egress().log();
    // Before the past is read, so that nothing falls in between.
    let following = wanted.follow.then(|| log.follow());
    let limit = wanted.limit.unwrap_or(USUAL).min(MOST);
    let query = log::Query {
        sandbox_id: sandbox_id.clone(),
        before: wanted.before,
        limit,
        refused: wanted.refused,
        // A follower is told of the others when they end.
        ended: wanted.follow,
    };
    let records = log.read(query).await;
    let records = records.map_err(|error| ApiError::new(ErrorKind::Internal, error))?;
    let Some(following) = following else {
        let full = u32::try_from(records.len()).is_ok_and(|read| read == limit);
        let next = records.last().filter(|_| full).map(|record| record.id);
        return Ok(Json(EgressLog { records, next, lost: log.lost() }).into_response());
    };
    let follower = Follower {
        seen: records.iter().map(|record| record.id).collect(),
        past: records.into_iter().rev().map(Arc::new).collect(),
        following,
        sandbox_id,
        refused: wanted.refused,
    };
    let lines = futures_util::stream::unfold(follower, |mut follower| async move {
        let line = follower.next().await?;
        Some((Ok::<_, Infallible>(line), follower))
    });
    let kind = [(CONTENT_TYPE, "application/x-ndjson")];
    Ok((kind, Body::from_stream(lines)).into_response())
}

/// What was, then what happens.
struct Follower {
    past: VecDeque<Arc<EgressRecord>>,
    /// Those of the past. Each ends once, and in any order.
    seen: HashSet<i64>,
    following: broadcast::Receiver<Arc<EgressRecord>>,
    sandbox_id: Option<String>,
    refused: bool,
}

impl Follower {
    async fn next(&mut self) -> Option<Bytes> {
        use nacre_wire::egress::EgressVerdict::{Cut, Refused};
        if let Some(record) = self.past.pop_front() {
            return line(&record);
        }
        loop {
            let record = match self.following.recv().await {
                Ok(record) => record,
                // A slow reader skips; what it missed can be read.
                Err(RecvError::Lagged(_)) => continue,
                Err(RecvError::Closed) => return None,
            };
            let ours = self.sandbox_id.as_ref().is_none_or(|id| *id == record.sandbox_id)
                && (!self.refused || matches!(record.verdict, Refused | Cut));
            if ours && !self.seen.contains(&record.id) {
                return line(&record);
            }
        }
    }
}

fn line(record: &EgressRecord) -> Option<Bytes> {
    let mut line = serde_json::to_vec(record).ok()?;
    line.push(b'\n');
    Some(line.into())
}

fn view(app: &App, name: &str) -> Answer<Json<EgressView>> {
    let sandbox = app.sandboxes.find(name)?;
    Ok(Json(app.sandboxes.egress().view(&sandbox.id, &sandbox.name)))
}

async fn note(app: &App, entrance: Entrance, what: String) {
    app.auth.note(event("egress_changed", entrance).saying(what)).await;
}

fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, ApiError> {
    serde_json::from_slice(body)
        .map_err(|error| ApiError::new(ErrorKind::InvalidRequest, format!("body: {error}")))
}
