//! The control plane as pages: plain HTML and forms, from the gateway itself, so that they work when
//! every sandbox is dead and without scripts.
//!
//! | Page | What it is for |
//! |---|---|
//! | `/admin/sandboxes` | what there is, and what can be done with it |
//! | `/admin/sandboxes/promote` | the checks of a swap as they are made, and the swap |
//! | `/admin/sandboxes/network` | what sandboxes may reach, and did |
//! | `/admin/sandboxes/models` | who is asked, the switch, and what it cost today |
//! | `/admin/sandboxes/runs/new` | a task for a run of its own, and the runs that can be ended |
//!
//! Every form goes to `/admin/sandboxes/page` ([`acts`]) and carries the token of its session.

mod acts;
mod layout;
mod models;
mod network;
mod promote;
mod runs;
mod view;

use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::extract::FromRequestParts;
use axum::response::Response;
use axum::routing::{get, post};
use http::request::Parts;
use http::{HeaderMap, StatusCode};
use nacre_wire::control::{SandboxInfo, Stats};
use nacre_wire::{ApiError, ErrorKind};

use super::control::Failure;
use super::intent::{self, FormToken};
use super::{App, reply};
use layout::{Forms, Place};

/// What the last form came to, for the next view of a page.
#[derive(Debug, Clone, Default)]
pub(super) struct Notes(Arc<Mutex<Option<Note>>>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Note {
    ok: bool,
    text: String,
}

impl Notes {
    fn put(&self, note: Note) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(note);
    }

    fn take(&self) -> Option<Note> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Somebody who looks at a page. A script has no use for one: the token of the forms is not for it.
struct Person {
    token: FormToken,
    /// Their browser says so. One that says nothing is let in too, but may not open anything.
    certain: bool,
}

impl Person {
    fn forms(&self, from: Place) -> Forms {
        Forms { token: self.token.as_str().to_owned(), from }
    }
}

impl<S: Sync> FromRequestParts<S> for Person {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Failure> {
        match parts.extensions.get::<FormToken>() {
            Some(token) if !intent::is_from_script(&parts.headers) => {
                Ok(Self { token: token.clone(), certain: intent::is_certain(&parts.headers) })
            }
            Some(_) | None => {
                Err(ApiError::new(ErrorKind::Permission, "this page is not for scripts")
                    .hint("open it in a browser")
                    .into())
            }
        }
    }
}

/// A sandbox and what it uses.
struct Line {
    info: SandboxInfo,
    stats: Stats,
}

pub(super) fn router() -> Router<Arc<App>> {
    Router::new()
        .route("/page", post(acts::act))
        .route("/promote", get(promote::show))
        .route("/network", get(network::show))
        .route("/models", get(models::show))
        .route("/runs/new", get(runs::show))
}

/// Whether a request for the list wants it as a page. A script gets data.
pub(super) fn wanted(method: &http::Method, headers: &HeaderMap) -> bool {
    reply::is_navigation(method, headers) && !intent::is_from_script(headers)
}

pub(super) async fn show(app: &App, notes: &Notes, token: &FormToken) -> Response {
    let roles = match app.sandboxes.roles_status().await {
        Ok(roles) => roles,
        Err(error) => return reply::error(&error),
    };
    let mut lines = Vec::new();
    for info in app.sandboxes.list() {
        let found = app.sandboxes.find(&info.id);
        let stats = match found {
            Ok(sandbox) => app.sandboxes.driver().stats(&sandbox.id).await.unwrap_or_default(),
            Err(_) => Stats::default(),
        };
        lines.push(Line { info, stats });
    }
    let html = view::page(&view::Page {
        roles: &roles,
        lines: &lines,
        alerts: &app.observer.alerts(),
        note: notes.take(),
        forms: Forms { token: token.as_str().to_owned(), from: Place::Board },
    });
    reply::form_page(StatusCode::OK, html)
}
