//! `/supervisor/history/*`.

use std::path::PathBuf;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{Path, RawQuery, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use http::{StatusCode, header};
use nacre_history::Query as LibQuery;
use nacre_wire::history::{
    AttendRequest, Author, Changes, CheckpointPage, HistorySettings, HistoryState, HistoryStatus,
    HistoryUsage, LabelRequest, Outcome, Verified,
};
use nacre_wire::{ApiError, ErrorKind, WirePath};
use serde::de::DeserializeOwned;
use tokio_util::io::ReaderStream;

use super::{Actions, Manner, Recorder, convert, jobs};
use crate::events::Events;
use crate::failure::Failure;
use crate::files::Query;
use crate::runtime::Runtime;

/// Checkpoints on a page when nobody says how many.
const PAGE: usize = 50;
const MOST_ON_A_PAGE: usize = 1000;
/// Changes in one answer, unless fewer are asked for.
const MOST_CHANGES: usize = 10_000;

struct Context {
    recorder: Recorder,
    actions: Actions,
}

type Known = State<Arc<Context>>;

pub fn router(recorder: Recorder, runtime: Runtime, events: Events) -> Router {
    Router::new()
        .route("/supervisor/history", get(list))
        .route("/supervisor/history/status", get(status))
        .route("/supervisor/history/checkpoints/{id}", get(show))
        .route("/supervisor/history/checkpoints/{id}/label", post(label))
        .route("/supervisor/history/diff", get(diff))
        .route("/supervisor/history/file", get(file))
        .route("/supervisor/history/attend", post(attend))
        .route("/supervisor/history/undo", post(undo))
        .route("/supervisor/history/redo", post(redo))
        .route("/supervisor/history/restore", post(restore))
        .route("/supervisor/history/usage", get(usage))
        .route("/supervisor/history/verify", post(verify))
        .route("/supervisor/history/export", get(export))
        .route("/supervisor/history/settings", get(get_settings).put(put_settings))
        .with_state(Arc::new(Context {
            actions: Actions::new(recorder.clone(), runtime, events),
            recorder,
        }))
}

async fn status(State(context): Known) -> Result<Json<HistoryStatus>, Failure> {
    let nothing = |state| {
        let (latest, checkpoints, names, quota_bytes) = (0, 0, 0, 0);
        HistoryStatus { state, latest, checkpoints, names, quota_bytes, set_aside: None }
    };
    let Some(shared) = context.recorder.shared() else {
        let why = "it was started without a place for it".to_owned();
        return Ok(Json(nothing(HistoryState::Off { why })));
    };
    let before = shared.view.state();
    let found = context.recorder.job(jobs::status).await;
    let mut status = match (found, shared.view.state()) {
        (Ok(status), _) => status,
        // A store that cannot be opened is what this call is there to tell of.
        (Err(_), refusing @ HistoryState::Refusing { .. }) => nothing(refusing),
        (Err(error), _) => return Err(error.into()),
    };
    // As it is after the look that the question caused, unless that failed.
    status.state = match shared.view.state() {
        HistoryState::Starting => before,
        now => now,
    };
    // The question may be what made the keeper open the store, and find it damaged.
    status.set_aside = shared.view.aside();
    Ok(Json(status))
}

async fn list(
    State(context): Known,
    RawQuery(query): RawQuery,
) -> Result<Json<CheckpointPage>, Failure> {
    let query = Query::parse(query.as_deref().unwrap_or_default());
    let wanted = ListQuery::read(&query)?.with_path(query.path("path"));
    let page = context.recorder.job(move |keeper, history| jobs::list(keeper, history, wanted));
    Ok(Json(page.await?))
}

/// `before`, `after`, `limit`, `since`, `until` as numbers, `path`, `labelled`, and an author as
/// `command=ID`, `conversation=ID` or `ssh=SESSION`.
pub(super) struct ListQuery {
    pub(super) query: LibQuery,
    pub(super) path: Option<WirePath>,
}

impl ListQuery {
    fn read(query: &Query) -> Result<Self, ApiError> {
        let by = [
            query.text("command")?.map(|id| Author::Command { id, line: String::new() }),
            query.text("conversation")?.map(|id| Author::Conversation { id, call: None }),
            query.text("ssh")?.map(|session| Author::Ssh { session }),
        ];
        let limit = number(query, "limit")?.map_or(PAGE, |limit: u64| {
            usize::try_from(limit).unwrap_or(MOST_ON_A_PAGE).clamp(1, MOST_ON_A_PAGE)
        });
        let query = LibQuery {
            before: number(query, "before")?,
            after: number(query, "after")?,
            by: by.into_iter().flatten().next().map(convert::author),
            within: None,
            since: number(query, "since")?,
            until: number(query, "until")?,
            labelled: query.text("labelled")?.is_some_and(|value| value != "false"),
            limit,
        };
        Ok(Self { query, path: None })
    }

    fn with_path(mut self, path: Option<PathBuf>) -> Self {
        self.path = path.map(WirePath);
        self
    }
}

async fn show(
    State(context): Known,
    Path(id): Path<u64>,
    RawQuery(query): RawQuery,
) -> Result<Json<Changes>, Failure> {
    let query = Query::parse(query.as_deref().unwrap_or_default());
    let (limit, path) = (limit(&query)?, query.path("path").map(WirePath));
    let with_diff = query.text("diff")?.is_some_and(|value| value != "false");
    let shown = context.recorder.job(move |keeper, history| {
        jobs::show(keeper, history, id, path.as_ref(), limit, with_diff)
    });
    Ok(Json(shown.await?))
}

/// From one moment to another; the second is the present unless it is given. As JSON, or as unified
/// text with `format=text`.
async fn diff(State(context): Known, RawQuery(query): RawQuery) -> Result<Response, Failure> {
    let query = Query::parse(query.as_deref().unwrap_or_default());
    let from: Option<u64> = number(&query, "from")?;
    let from = from.ok_or_else(|| bad("the query has no \"from\""))?;
    let (to, limit) = (number(&query, "to")?, limit(&query)?);
    let path = query.path("path").map(WirePath);
    let text = query.text("format")?.is_some_and(|format| format == "text");
    let changes = context
        .recorder
        .job(move |keeper, history| jobs::between(keeper, history, from, to, path.as_ref(), limit))
        .await?;
    if !text {
        return Ok(Json(changes).into_response());
    }
    let kind = [(header::CONTENT_TYPE, "text/plain; charset=utf-8")];
    Ok((kind, jobs::unified(&changes)).into_response())
}

/// The bytes of a file after a checkpoint (`at`), or of a content by its id.
async fn file(State(context): Known, RawQuery(query): RawQuery) -> Result<Response, Failure> {
    let query = Query::parse(query.as_deref().unwrap_or_default());
    let content = query.text("content")?;
    let at: Option<u64> = number(&query, "at")?;
    let path = query.path("path").map(WirePath);
    let file = context
        .recorder
        .job(move |keeper, history| jobs::file(keeper, history, path.as_ref(), at, content))
        .await?;
    stream(file, "application/octet-stream")
}

/// Somebody is at work for as long as they hold the answer, whose body says nothing and does not end.
async fn attend(State(context): Known, body: Bytes) -> Result<Response, Failure> {
    let AttendRequest { by } = parse(&body)?;
    if by.is_empty() {
        return Err(bad("nobody is named").into());
    }
    let activity = context.recorder.begin(Manner::Foreground, by).await;
    let held = futures_util::stream::once(async move {
        let _activity = activity;
        std::future::pending::<Result<Bytes, std::io::Error>>().await
    });
    Ok(Body::from_stream(held).into_response())
}

async fn undo(State(context): Known, body: Bytes) -> Result<Json<Outcome>, Failure> {
    Ok(Json(context.actions.undo(parse(&body)?).await?))
}

async fn redo(State(context): Known, body: Bytes) -> Result<Json<Outcome>, Failure> {
    Ok(Json(context.actions.redo(parse(&body)?).await?))
}

async fn restore(State(context): Known, body: Bytes) -> Result<Json<Outcome>, Failure> {
    Ok(Json(context.actions.restore(parse(&body)?).await?))
}

async fn label(
    State(context): Known,
    Path(id): Path<u64>,
    body: Bytes,
) -> Result<StatusCode, Failure> {
    let request: LabelRequest = parse(&body)?;
    context
        .recorder
        .job(move |_, history| history.label(id, request.label.as_deref()).map_err(convert::error))
        .await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn usage(State(context): Known) -> Result<Json<HistoryUsage>, Failure> {
    Ok(Json(context.recorder.job(jobs::usage).await?))
}

async fn verify(State(context): Known) -> Result<Json<Verified>, Failure> {
    Ok(Json(context.recorder.job(|_, history| jobs::verify(history)).await?))
}

/// A stream for `git fast-import`.
async fn export(State(context): Known, RawQuery(query): RawQuery) -> Result<Response, Failure> {
    let query = Query::parse(query.as_deref().unwrap_or_default());
    let branch = query.text("branch")?.unwrap_or_else(|| "nacre".to_owned());
    let file =
        context.recorder.job(move |keeper, history| jobs::export(keeper, history, &branch)).await?;
    stream(file, "application/x-git-fast-import")
}

async fn get_settings(State(context): Known) -> Result<Json<HistorySettings>, Failure> {
    Ok(Json(context.recorder.job(|keeper, _| Ok(keeper.settings.clone())).await?))
}

async fn put_settings(State(context): Known, body: Bytes) -> Result<StatusCode, Failure> {
    let new: HistorySettings = parse(&body)?;
    context.recorder.job(move |keeper, history| jobs::set(keeper, history, new)).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn stream(file: std::fs::File, kind: &'static str) -> Result<Response, Failure> {
    let length = file.metadata().map(|metadata| metadata.len()).unwrap_or(0);
    let body =
        Body::from_stream(ReaderStream::with_capacity(tokio::fs::File::from_std(file), 1 << 16));
    let headers =
        [(header::CONTENT_TYPE, kind.to_owned()), (header::CONTENT_LENGTH, length.to_string())];
    Ok((headers, body).into_response())
}

fn limit(query: &Query) -> Result<usize, ApiError> {
    let limit: Option<u64> = number(query, "limit")?;
    Ok(limit.map_or(MOST_CHANGES, |limit| usize::try_from(limit).unwrap_or(MOST_CHANGES)))
}

fn number<T: std::str::FromStr>(query: &Query, key: &str) -> Result<Option<T>, ApiError> {
    let parse = |text: String| {
        text.parse().map_err(|_| bad(&format!("\"{key}\" is not a number: \"{text}\"")))
    };
    query.text(key)?.map(parse).transpose()
}

fn bad(message: &str) -> ApiError {
    ApiError::new(ErrorKind::InvalidRequest, message)
}

/// An empty body is an empty object.
fn parse<T: DeserializeOwned>(body: &Bytes) -> Result<T, ApiError> {
    let body: &[u8] = if body.is_empty() { b"{}" } else { body };
    serde_json::from_slice(body)
        .map_err(|error| bad(&format!("the body is not as expected: {error}")))
}
