//! The rescue page, `/supervisor/rescue`: the way back when the desktop is broken.
//!
//! It is rendered here, from what the supervisor knows, and depends on nothing in the workspace. Its
//! forms do what the JSON calls do, through the same code, and need no script. What they come to is kept
//! for a while under a number that cannot be guessed ([`notes`]), so that a form can answer with a
//! redirect and a reload does nothing twice.

mod act;
mod changes;
mod notes;
mod view;
pub(crate) mod words;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, RawQuery, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, HeaderValue, LOCATION, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, StatusCode};
use nacre_wire::ApiError;
use nacre_wire::history::Changes;
use nacre_wire::processes::{ConfigError, LogLine, ProcessInfo};
use tokio::time::timeout;

use self::act::Act;
use self::notes::{Note, Notes};
use crate::failure::Failure;
use crate::files::Query;
use crate::history::Actions;
use crate::page::nonce;
use crate::runtime::{Runtime, prefix};

const CHECKPOINTS: usize = 30;
/// Files that are named of each.
const NAMES: usize = 4;
const LOG_LINES: usize = 30;
/// The page must come while history is busy, with a way to undo all the same.
const FOR_HISTORY: Duration = Duration::from_millis(1500);
/// Most of what a form asks for is done by then. The rest goes on, and the page says so.
const FOR_AN_ACT: Duration = Duration::from_secs(8);

/// What the page needs to know. Cheap to clone.
#[derive(Clone)]
pub struct Rescue(Arc<Inner>);

struct Inner {
    history: Actions,
    runtime: Runtime,
    notes: Notes,
}

impl Rescue {
    pub fn new(history: Actions, runtime: Runtime) -> Self {
        Self(Arc::new(Inner { history, runtime, notes: Notes::default() }))
    }

    /// The page in the place of one that the app could not give, and why that is so in a sentence.
    pub async fn instead(&self, headers: &HeaderMap, status: StatusCode, reason: &str) -> Response {
        let asked = Asked { reason: Some(reason), ..Asked::default() };
        self.page(headers, status, asked).await
    }

    async fn page(&self, headers: &HeaderMap, status: StatusCode, asked: Asked<'_>) -> Response {
        let nonce = match nonce() {
            Ok(nonce) => nonce,
            Err(failure) => return failure.into_response(),
        };
        let state = self.state(&asked).await;
        let html = view::render(&nonce, prefix(headers), &asked, &state);
        let mut response = (status, axum::response::Html(html)).into_response();
        let headers = response.headers_mut();
        headers.extend(policy(&nonce).map(|policy| (CONTENT_SECURITY_POLICY, policy)));
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        // A form is sent with its origin, which the gateway asks for.
        headers.insert(REFERRER_POLICY, HeaderValue::from_static("same-origin"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        response
    }

    async fn state(&self, asked: &Asked<'_>) -> Seen {
        let (processes, timeline, opened) =
            tokio::join!(self.processes(), self.timeline(), self.opened(asked.checkpoint));
        let (processes, config_error) = processes;
        let note = asked.note.as_deref().and_then(|id| self.0.notes.get(id));
        Seen { processes, config_error, timeline, opened, note }
    }

    async fn processes(&self) -> (Vec<Shown>, Option<ConfigError>) {
        let list = self.0.runtime.list().await;
        let mut shown = Vec::new();
        for info in list.processes {
            let log = self.0.runtime.log(&info.name).await;
            let log = log.map(|log| log.tail(LOG_LINES)).unwrap_or_default();
            shown.push(Shown { info, log });
        }
        (shown, list.config_error)
    }

    async fn timeline(&self) -> History {
        // One more than is shown: what is before the last of them.
        match timeout(FOR_HISTORY, self.0.history.timeline(CHECKPOINTS + 1, NAMES)).await {
            Ok(Ok(timeline)) => History::Known(timeline),
            Ok(Err(error)) => History::Unknown(error),
            Err(_) => History::Busy,
        }
    }

    async fn opened(&self, checkpoint: Option<u64>) -> Option<Result<Changes, ApiError>> {
        timeout(FOR_HISTORY, self.0.history.show(checkpoint?)).await.ok()
    }

    /// Goes on when whoever asked is gone. What it comes to is in the note.
    async fn carry_out(&self, act: Act) -> Result<String, Failure> {
        let id = self.0.notes.add(Note::Working(act.clone()))?;
        let (rescue, place) = (self.clone(), id.clone());
        let work = tokio::spawn(async move {
            let note = act.carry_out(&rescue.0.history, &rescue.0.runtime).await;
            rescue.0.notes.set(&place, note);
        });
        let _ = timeout(FOR_AN_ACT, work).await;
        Ok(id)
    }
}

/// What a request says about the page.
#[derive(Debug, Default)]
struct Asked<'a> {
    /// Why it is there in place of another.
    reason: Option<&'a str>,
    note: Option<String>,
    /// Which one to show in full.
    checkpoint: Option<u64>,
}

/// What the page shows.
struct Seen {
    processes: Vec<Shown>,
    config_error: Option<ConfigError>,
    timeline: History,
    opened: Option<Result<Changes, ApiError>>,
    note: Option<Note>,
}

struct Shown {
    info: ProcessInfo,
    log: Vec<LogLine>,
}

enum History {
    /// Newest first.
    Known(Vec<Changes>),
    Unknown(ApiError),
    /// It did not answer in time.
    Busy,
}

pub fn router(rescue: Rescue) -> Router {
    Router::new()
        .route("/supervisor/rescue", get(page))
        .route("/supervisor/rescue/{act}", post(carry_out))
        .with_state(rescue)
}

async fn page(
    State(rescue): State<Rescue>,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Result<Response, Failure> {
    let query = Query::parse(query.as_deref().unwrap_or_default());
    let (note, checkpoint) = (query.text("note")?, query.number("checkpoint", 10)?);
    let asked = Asked { reason: None, note, checkpoint };
    Ok(rescue.page(&headers, StatusCode::OK, asked).await)
}

async fn carry_out(
    State(rescue): State<Rescue>,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Failure> {
    let note = rescue.carry_out(Act::read(&name, &body)?).await?;
    let to = format!("{}/supervisor/rescue?note={note}", prefix(&headers));
    let headers = [(LOCATION, to), (CACHE_CONTROL, "no-store".to_owned())];
    Ok((StatusCode::SEE_OTHER, headers).into_response())
}

/// Only what this response carries may run or style, and it may only talk to where it came from.
fn policy(nonce: &str) -> Option<HeaderValue> {
    let policy = format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; \
         connect-src 'self'; img-src data:; base-uri 'none'; form-action 'self'; \
         frame-ancestors 'self'"
    );
    HeaderValue::from_str(&policy).ok()
}
