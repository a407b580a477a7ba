//! `/logs/`: what the processes of `nacre.toml` print, as plain text.

use axum::Router;
use axum::extract::{Path, RawQuery, State};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue, X_CONTENT_TYPE_OPTIONS};

use crate::failure::Failure;
use crate::files::Query;
use crate::rescue::words;
use crate::runtime::{self, Runtime};

pub fn router(runtime: Runtime) -> Router {
    Router::new()
        .route("/logs", get(list))
        .route("/logs/", get(list))
        .route("/logs/{name}", get(log))
        .with_state(runtime)
}

/// A process on each line: its name, which is where its log is, and how it is.
async fn list(State(runtime): State<Runtime>) -> Response {
    let processes = runtime.list().await.processes;
    let lines: String = processes
        .iter()
        .map(|process| format!("{}\t{}\n", process.name, words::state(process.state)))
        .collect();
    let headers = [(CONTENT_TYPE, "text/plain; charset=utf-8"), (CACHE_CONTROL, "no-store")];
    plain((headers, lines).into_response())
}

async fn log(
    State(runtime): State<Runtime>,
    Path(name): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Response, Failure> {
    let query = Query::parse(query.as_deref().unwrap_or_default());
    Ok(plain(runtime::text_log(&runtime, &name, &query).await?))
}

/// A browser that guessed would wait for more of it first, and might take it for a page.
fn plain(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}
