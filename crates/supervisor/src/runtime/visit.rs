//! One request to the app that owns the pages, and what stands in for it when it cannot answer.
//!
//! ```text
//! ready ─▶ the app ─▶ its answer; with the guard, when it is a page that is to have one
//!   │         └─ 404 or a failure at the root of a guarded app ─▶ the rescue page
//!   └─ not ─▶ a program: 503
//!             a person:  the waiting page; at the root of a guarded app the built copy
//! ```

use std::time::Duration;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::header::{HeaderMap, HeaderValue, RETRY_AFTER};
use http::uri::PathAndQuery;
use http::{Method, Request, StatusCode, Uri};
use nacre_wire::processes::ProcessState;
use nacre_wire::{ApiError, ErrorKind};
use tokio::time::timeout;

use super::mount::{FORWARDED_PREFIX, prefix};
use super::proxy::{Broken, exchange_holding, is_navigation};
use super::usage::Hold;
use super::{App, waiting};
use crate::desktop::{self, Guarded, Reason};
use crate::failure::Failure;
use crate::rescue::Rescue;

/// How long somebody in front of the desktop waits for it to say anything. One that hung a moment ago
/// has less.
const PATIENCE: Duration = Duration::from_millis(1500);
const LITTLE_PATIENCE: Duration = Duration::from_millis(500);
const SOON: HeaderValue = HeaderValue::from_static("1");

/// What has to be known of a request when it is gone.
struct Asked {
    method: Method,
    headers: HeaderMap,
    /// By somebody who looks at what comes.
    to_look: bool,
    at_root: bool,
}

impl Asked {
    fn of(request: &Request<Body>) -> Self {
        Self {
            to_look: is_navigation(request.method(), request.headers()),
            at_root: request.uri().path() == "/",
            method: request.method().clone(),
            headers: request.headers().clone(),
        }
    }
}

pub(super) async fn answer(app: &App, rescue: &Rescue, request: Request<Body>) -> Response {
    let asked = Asked::of(&request);
    if app.entry.info.state != ProcessState::Ready {
        return not_ready(app, &asked);
    }
    let request = match prepared(app, &asked, request) {
        Ok(request) => request,
        Err(error) => return Failure(error).into_response(),
    };
    let hold = match app.entry.mount.is_root() {
        // It stays whether or not it is used.
        true => Hold::of_nothing(),
        false => app.entry.usage.hold(),
    };
    let exchanged = exchange_holding(app.port, request, hold);
    let answered = if app.entry.spec.guard && asked.to_look && asked.at_root {
        let hangs = app.entry.info.responding == Some(false);
        let patience = if hangs { LITTLE_PATIENCE } else { PATIENCE };
        match timeout(patience, exchanged).await {
            Ok(answered) => answered,
            Err(_) => return broken(rescue, &asked, "the desktop does not answer").await,
        }
    } else {
        exchanged.await
    };
    match answered {
        Ok(response) => looked_after(app, rescue, &asked, response).await,
        Err(Broken::Unreachable) => not_ready(app, &asked),
        // An app that ends while it is asked is soon back, and so should be the page.
        Err(Broken::Off(_)) if asked.to_look => not_ready(app, &asked),
        Err(Broken::Off(error)) => {
            let message = format!("the app broke off its answer: {error}");
            let mut response = Failure::new(ErrorKind::Unavailable, message).into_response();
            *response.status_mut() = StatusCode::BAD_GATEWAY;
            response
        }
    }
}

/// As this instance should see it.
fn prepared(
    app: &App,
    asked: &Asked,
    mut request: Request<Body>,
) -> Result<Request<Body>, ApiError> {
    if app.entry.spec.guard && asked.to_look {
        desktop::ask_plainly(request.headers_mut());
    }
    let mount = &app.entry.mount;
    if !mount.is_root() {
        let path = request.uri().path_and_query().map_or("/", PathAndQuery::as_str);
        let path = mount.put_back(path);
        let path =
            path.ok_or_else(|| ApiError::new(ErrorKind::InvalidPath, "the path cannot be read"))?;
        *request.uri_mut() = Uri::from(path);
        // It is in the path; one that adds it again would lead elsewhere.
        request.headers_mut().remove(FORWARDED_PREFIX);
    }
    Ok(request)
}

/// What the guard makes of an answer.
async fn looked_after(app: &App, rescue: &Rescue, asked: &Asked, response: Response) -> Response {
    if !app.entry.spec.guard || !asked.to_look {
        return response;
    }
    let status = response.status();
    if asked.at_root && (status == StatusCode::NOT_FOUND || status.is_server_error()) {
        return broken(rescue, asked, &format!("the desktop answers with {status}")).await;
    }
    // An answer without a body has no place for a script.
    if asked.method != Method::GET {
        return response;
    }
    desktop::guarded(response, prefix(&asked.headers)).await
}

/// In place of a desktop that answers, but not with a page.
async fn broken(rescue: &Rescue, asked: &Asked, why: &str) -> Response {
    rescue.instead(&asked.headers, StatusCode::SERVICE_UNAVAILABLE, why).await
}

/// A page for a person who came to see the app, an error for a program.
fn not_ready(app: &App, asked: &Asked) -> Response {
    let entry = &app.entry;
    if asked.to_look && asked.at_root && entry.spec.guard {
        return desktop::page(prefix(&asked.headers), Reason::of(entry), Guarded::Yes);
    }
    let mut response = if asked.to_look {
        waiting::page(entry, &asked.headers)
    } else {
        let message = format!("the app is not ready: {}", waiting::in_words(&entry.info));
        let error = ApiError::new(ErrorKind::Unavailable, message)
            .hint(format!("its log is at /supervisor/processes/{}/log", entry.info.name));
        Failure(error).into_response()
    };
    response.headers_mut().insert(RETRY_AFTER, SOON);
    response
}
