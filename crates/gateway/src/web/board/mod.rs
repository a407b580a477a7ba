//! The control plane as a page: plain HTML and forms, from the gateway itself, so that it works when
//! every sandbox is dead and without scripts.

mod view;

use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Extension, State};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use http::header::{CACHE_CONTROL, LOCATION};
use http::{HeaderMap, StatusCode};
use nacre_wire::control::{SandboxInfo, Stats};
use nacre_wire::roles::SwapRequest;
use nacre_wire::{ApiError, ErrorKind};

use super::form::Form;
use super::intent::{self, FormToken};
use super::{App, reply};
use crate::sandboxes::dev::IfThere;
use crate::sandboxes::policy::Op;
use crate::sandboxes::swap::Refusal;

/// What the last form came to, for the next view of the page.
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

/// A sandbox and what it uses.
struct Line {
    info: SandboxInfo,
    stats: Stats,
}

pub(super) fn router() -> Router<Arc<App>> {
    Router::new().route("/page", post(act))
}

/// Whether a request for the list wants it as a page. A script gets data: the token of the forms is
/// not for it.
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
    let token = token.as_str().to_owned();
    let html = view::page(&view::Page {
        roles: &roles,
        lines: &lines,
        alerts: &app.observer.alerts(),
        note: notes.take(),
        token,
    });
    let mut response = reply::page(StatusCode::OK, html);
    // Without a referrer a browser would not name the origin of a form either.
    let policy = http::HeaderValue::from_static("same-origin");
    response.headers_mut().insert("referrer-policy", policy);
    response
}

/// A form was sent.
async fn act(
    State(app): State<Arc<App>>,
    Extension(notes): Extension<Notes>,
    token: Option<Extension<FormToken>>,
    body: Bytes,
) -> Response {
    let form = Form::parse(&body);
    let token = token.as_ref().map(|Extension(token)| token.as_str());
    if token.is_none() || form.field("token") != token {
        return reply::error(
            &ApiError::new(ErrorKind::Permission, "this form is not from the page of this session")
                .hint("open /admin/sandboxes again"),
        );
    }
    let (ok, text) = match carry_out(&app, &form).await {
        Ok(text) => (true, text),
        Err(error) => (false, with_hint(&error)),
    };
    notes.put(Note { ok, text });
    let to = [(LOCATION, "/admin/sandboxes"), (CACHE_CONTROL, "no-store")];
    (StatusCode::SEE_OTHER, to).into_response()
}

fn with_hint(error: &ApiError) -> String {
    match &error.hint {
        Some(hint) => format!("{}. {hint}", error.message),
        None => error.message.clone(),
    }
}

async fn carry_out(app: &App, form: &Form) -> Result<String, ApiError> {
    let sandboxes = &app.sandboxes;
    let name = form.text("name");
    let operate = async |ops: &[Op], done: &str| {
        let sandbox = sandboxes.find(name)?;
        for op in ops {
            sandbox.ask(*op).await?;
        }
        Ok(format!("{} {done}", sandbox.name))
    };
    match form.field("action") {
        Some("start") => operate(&[Op::Start], "has started").await,
        Some("stop") => operate(&[Op::Stop], "has stopped").await,
        Some("restart") => operate(&[Op::Stop, Op::Start], "has started again").await,
        Some("resume") => operate(&[Op::Resume], "goes on").await,
        Some("create-dev") => made(sandboxes.make_dev(IfThere::Refuse).await?),
        Some("reset-dev") => {
            require_sure(form)?;
            made(sandboxes.make_dev(IfThere::Replace { force: false }).await?)
        }
        Some("delete-dev") => {
            require_sure(form)?;
            sandboxes.delete_dev(false).await.map(|()| "dev is removed".to_owned())
        }
        Some("swap") => swap(app, SwapRequest::default()).await,
        Some("rollback") => swap(app, SwapRequest { rollback: true, force: false }).await,
        other => Err(ApiError::new(
            ErrorKind::InvalidRequest,
            format!("no such action: \"{}\"", other.unwrap_or("").escape_debug()),
        )),
    }
}

fn made(made: nacre_wire::roles::DevMade) -> Result<String, ApiError> {
    let seconds = made.copy.took_ms as f64 / 1000.0;
    Ok(format!("dev is a copy of live: {} names in {seconds:.1} s", made.copy.names))
}

async fn swap(app: &App, wanted: SwapRequest) -> Result<String, ApiError> {
    match app.sandboxes.swap(wanted).await {
        Ok(_) if wanted.rollback => Ok("what was live before is live again".to_owned()),
        Ok(_) => Ok("what was dev is live, and what was live is dev".to_owned()),
        Err(Refusal::Error(error)) => Err(error),
        Err(Refusal::Checks(refused)) => Err(refused.error),
    }
}

fn require_sure(form: &Form) -> Result<(), ApiError> {
    if form.field("sure").is_some() {
        return Ok(());
    }
    Err(ApiError::new(ErrorKind::InvalidRequest, "nothing was done: the box was not ticked"))
}
