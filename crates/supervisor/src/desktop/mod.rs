//! The desktop: the copy of it that the supervisor carries, its source for the workspace, and what
//! keeps somebody in front of it when the one in the workspace is broken.
//!
//! ```text
//! /                    the app of [runtime]; its pages get the guard, when it is to have one
//!    └─ not ready ───▶ built: the copy that the binary carries, which says so
//!    └─ broken ──────▶ broken: the way to the rescue page
//! /supervisor/desktop/ built, always
//! ```
//! Who owns the pages is for [`crate::runtime`] to say; nothing here keeps any state.

mod built;
mod guard;
mod health;
mod html;
mod seed;

use std::path::PathBuf;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, State};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::{get, post};
use http::header::{CACHE_CONTROL, LOCATION, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderMap, StatusCode};
use tokio::sync::Mutex;

pub(crate) use built::{Guarded, Reason, page};
pub(crate) use guard::{ask_plainly, guarded};

use crate::failure::Failure;
use crate::history::Recorder;
use crate::runtime::{Mount, Pages, Runtime, prefix};
use crate::users::User;

/// What the calls need to know.
#[derive(Clone)]
pub struct Context {
    pub workspace: PathBuf,
    /// Whom the source belongs to, and who looks for modules.
    pub user: User,
    pub recorder: Recorder,
    pub runtime: Runtime,
}

struct Desktop {
    context: Context,
    /// One at a time.
    seeding: Mutex<()>,
}

type Known = State<Arc<Desktop>>;

pub fn router(context: Context) -> Router {
    Router::new()
        .route("/", get(first))
        .route("/supervisor/desktop", get(slash))
        .route("/supervisor/desktop/", get(chosen))
        .route("/supervisor/desktop/health", get(health::health))
        .route("/supervisor/desktop/seed", post(seed::seed))
        .route("/supervisor/desktop/{*name}", get(file))
        .with_state(Arc::new(Desktop { context, seeding: Mutex::new(()) }))
}

/// At the root when no app owns it.
async fn first(State(desktop): Known, headers: HeaderMap) -> Result<Response, Failure> {
    let (reason, guarded) = match desktop.context.runtime.pages(&Mount::of(&headers)).await? {
        Pages::Built => (Reason::Chosen, Guarded::No),
        Pages::Nobody => (Reason::Nothing, Guarded::No),
        // An app that came in this moment is about to be there.
        Pages::App(_) => (Reason::Starting, Guarded::Yes),
        Pages::Unknown => (Reason::Failed, Guarded::Yes),
    };
    Ok(page(prefix(&headers), reason, guarded))
}

/// Who came to this address wants this copy and no other.
async fn chosen(headers: HeaderMap) -> Response {
    page(prefix(&headers), Reason::Chosen, Guarded::No)
}

async fn slash() -> Response {
    // Relative, so that it holds wherever this is mounted.
    (StatusCode::TEMPORARY_REDIRECT, [(LOCATION, "desktop/")]).into_response()
}

async fn file(Path(name): Path<String>, headers: HeaderMap) -> Result<Response, Failure> {
    built::file(&name, &headers)
}

/// In place of a desktop that answers, but not with a page. `why` is half a sentence.
pub(crate) fn broken(headers: &HeaderMap, why: &str) -> Response {
    let html = format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>The desktop is broken</title>\
         </head><body><main><h1>The desktop is broken</h1><p>{}.</p>\
         <p><a href=\"{}/supervisor/rescue\">Take back what was changed</a></p></main></body></html>",
        crate::runtime::escape(why),
        prefix(headers),
    );
    let kept = [(CACHE_CONTROL, "no-store"), (X_CONTENT_TYPE_OPTIONS, "nosniff")];
    (StatusCode::SERVICE_UNAVAILABLE, kept, Html(html)).into_response()
}
