//! `/supervisor/processes`.

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, RawQuery, State};
use axum::response::Response;
use axum::routing::{get, post};
use axum::{Json, Router};
use bytes::{BufMut, Bytes, BytesMut};
use futures_util::stream;
use http::{HeaderValue, header};
use nacre_wire::processes::{LogLine, ProcessInfo, ProcessList};
use nacre_wire::{ApiError, ErrorKind};
use tokio::sync::watch;

use super::Runtime;
use super::log::{Found, Log};
use super::manager::Order;
use crate::failure::Failure;
use crate::files::Query;

/// Lines in one piece of a body.
const PIECE: usize = 256;

pub fn router(runtime: Runtime) -> Router {
    Router::new()
        .route("/supervisor/processes", get(list))
        .route("/supervisor/processes/{name}/start", post(start))
        .route("/supervisor/processes/{name}/stop", post(stop))
        .route("/supervisor/processes/{name}/restart", post(restart))
        .route("/supervisor/processes/{name}/log", get(log))
        .with_state(runtime)
}

type Ordered = Result<Json<ProcessInfo>, Failure>;

async fn list(State(runtime): State<Runtime>) -> Json<ProcessList> {
    Json(runtime.list().await)
}

async fn start(State(runtime): State<Runtime>, Path(name): Path<String>) -> Ordered {
    Ok(Json(runtime.order(&name, Order::Start).await?))
}

async fn stop(State(runtime): State<Runtime>, Path(name): Path<String>) -> Ordered {
    Ok(Json(runtime.order(&name, Order::Stop).await?))
}

async fn restart(State(runtime): State<Runtime>, Path(name): Path<String>) -> Ordered {
    Ok(Json(runtime.order(&name, Order::Restart).await?))
}

async fn log(
    State(runtime): State<Runtime>,
    Path(name): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Response, Failure> {
    let query = Query::parse(query.as_deref().unwrap_or_default());
    let format = Format::parse(query.text("format")?.as_deref())?;
    stream_log(&runtime, &name, &query, format).await
}

/// The log as people read it.
pub(crate) async fn text_log(
    runtime: &Runtime,
    name: &str,
    query: &Query,
) -> Result<Response, Failure> {
    stream_log(runtime, name, query, Format::Text).await
}

async fn stream_log(
    runtime: &Runtime,
    name: &str,
    query: &Query,
    format: Format,
) -> Result<Response, Failure> {
    let after = query.number("after", 10)?.unwrap_or(0);
    let follow = query.flag("follow")?;
    let log = runtime.log(name).await?;
    let reader = Reader { news: log.news(), log, after, format };
    let mut response =
        Response::new(Body::from_stream(stream::unfold(reader, move |reader| async move {
            let (piece, reader) = reader.piece(follow).await?;
            Some((Ok::<_, Infallible>(piece), reader))
        })));
    response.headers_mut().insert(header::CONTENT_TYPE, format.media_type());
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Json,
    Text,
}

impl Format {
    fn parse(text: Option<&str>) -> Result<Self, ApiError> {
        match text {
            None | Some("json") => Ok(Self::Json),
            Some("text") => Ok(Self::Text),
            Some(other) => {
                let message = format!("\"format={other}\" is not json or text");
                Err(ApiError::new(ErrorKind::InvalidRequest, message))
            }
        }
    }

    fn media_type(self) -> HeaderValue {
        match self {
            Self::Json => HeaderValue::from_static("application/x-ndjson"),
            Self::Text => HeaderValue::from_static("text/plain; charset=utf-8"),
        }
    }

    fn write(self, lines: &[LogLine]) -> Bytes {
        let mut piece = BytesMut::new();
        for line in lines {
            match self {
                Self::Json => {
                    // A line of numbers and text is always JSON.
                    piece.put_slice(&serde_json::to_vec(line).unwrap_or_default());
                }
                Self::Text => piece.put_slice(line.text.as_bytes()),
            }
            piece.put_u8(b'\n');
        }
        piece.freeze()
    }
}

struct Reader {
    log: Arc<Log>,
    news: watch::Receiver<u64>,
    after: u64,
    format: Format,
}

impl Reader {
    async fn piece(mut self, follow: bool) -> Option<(Bytes, Self)> {
        loop {
            self.news.mark_unchanged();
            match self.log.after(self.after, PIECE) {
                Found::Lines(lines) => {
                    self.after = lines.last().map_or(self.after, |line| line.seq);
                    return Some((self.format.write(&lines), self));
                }
                Found::Nothing if follow => self.news.changed().await.ok()?,
                Found::Nothing | Found::End => return None,
            }
        }
    }
}
