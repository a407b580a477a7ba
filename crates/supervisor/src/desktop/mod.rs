//! The desktop: the copy of it that the supervisor carries, its source for the workspace, and what
//! keeps somebody in front of it when the one in the workspace is broken.
//!
//! ```text
//! /                    the app of [runtime]; its pages get the guard, when it is to have one
//!    └─ not ready ───▶ built: the copy that the binary carries, which says so
//!    └─ broken ──────▶ the rescue page
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
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use http::header::LOCATION;
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
    let reason = match desktop.context.runtime.pages(&Mount::of(&headers)).await? {
        Pages::Built => Reason::Chosen,
        Pages::Nobody => Reason::Nothing,
        // An app that came in this moment is about to be there.
        Pages::App(_) => Reason::Starting,
        Pages::Unknown => Reason::Failed,
    };
    // Which also gives way to an app as soon as there is one.
    Ok(page(prefix(&headers), reason, Guarded::Yes))
}

/// Who came to this address wants this copy and no other.
async fn chosen(headers: HeaderMap) -> Response {
    page(prefix(&headers), Reason::Nothing, Guarded::No)
}

async fn slash() -> Response {
    // Relative, so that it holds wherever this is mounted.
    (StatusCode::TEMPORARY_REDIRECT, [(LOCATION, "desktop/")]).into_response()
}

async fn file(Path(name): Path<String>, headers: HeaderMap) -> Result<Response, Failure> {
    built::file(&name, &headers)
}
