//! `/supervisor/exec` and `/supervisor/commands`.

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::{Path, Query, State};
use axum::response::Response;
use axum::routing::{get, post};
use axum::{Json, Router};
use futures_util::{StreamExt, stream};
use http::{StatusCode, header};
use nacre_wire::exec::{CommandInfo, CommandList, ExecRequest, SignalRequest, TtySize};
use nacre_wire::{ApiError, ErrorKind};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::commands::Commands;
use super::input::Fed;
use super::output::{Event, Output, Reader};
use super::socket;
use crate::failure::Failure;

type Upgrade = Result<WebSocketUpgrade, WebSocketUpgradeRejection>;

pub fn router(commands: Arc<Commands>) -> Router {
    Router::new()
        .route("/supervisor/exec", get(exec))
        .route("/supervisor/commands", get(list).post(start))
        .route("/supervisor/commands/{id}", get(show).delete(remove))
        .route("/supervisor/commands/{id}/attach", get(attach))
        .route("/supervisor/commands/{id}/signal", post(signal))
        .route("/supervisor/commands/{id}/input", post(input))
        .route("/supervisor/commands/{id}/resize", post(resize))
        .route("/supervisor/commands/{id}/output", get(output))
        .with_state(commands)
}

type Known = State<Arc<Commands>>;

async fn exec(State(commands): Known, upgrade: Upgrade) -> Result<Response, Failure> {
    Ok(socket::exec(commands, upgraded(upgrade)?))
}

async fn attach(
    State(commands): Known,
    Path(id): Path<String>,
    upgrade: Upgrade,
) -> Result<Response, Failure> {
    Ok(socket::attach(commands.get(&id)?, upgraded(upgrade)?))
}

async fn list(State(commands): Known) -> Json<CommandList> {
    Json(CommandList { commands: commands.list() })
}

/// Without a socket to follow it, a command started here is always detached.
async fn start(
    State(commands): Known,
    body: Bytes,
) -> Result<(StatusCode, Json<CommandInfo>), Failure> {
    let request = ExecRequest { detach: true, ..parse(&body)? };
    let command = commands.run_detached(request).await?;
    Ok((StatusCode::CREATED, Json(command.info())))
}

async fn show(
    State(commands): Known,
    Path(id): Path<String>,
) -> Result<Json<CommandInfo>, Failure> {
    Ok(Json(commands.get(&id)?.info()))
}

async fn remove(State(commands): Known, Path(id): Path<String>) -> Result<StatusCode, Failure> {
    commands.remove(&id).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn signal(
    State(commands): Known,
    Path(id): Path<String>,
    body: Bytes,
) -> Result<StatusCode, Failure> {
    commands.get(&id)?.signal(&parse::<SignalRequest>(&body)?.signal)?;
    Ok(StatusCode::NO_CONTENT)
}

async fn resize(
    State(commands): Known,
    Path(id): Path<String>,
    body: Bytes,
) -> Result<StatusCode, Failure> {
    commands.get(&id)?.resize(parse::<TtySize>(&body)?)?;
    Ok(StatusCode::NO_CONTENT)
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct InputQuery {
    eof: bool,
}

async fn input(
    State(commands): Known,
    Path(id): Path<String>,
    query: Result<Query<InputQuery>, axum::extract::rejection::QueryRejection>,
    body: Body,
) -> Result<StatusCode, Failure> {
    let Query(query) = query.map_err(bad_query)?;
    let command = commands.get(&id)?;
    let mut body = body.into_data_stream();
    while let Some(piece) = body.next().await {
        let piece = piece.map_err(|error| {
            Failure::new(ErrorKind::InvalidRequest, format!("input broke off: {error}"))
        })?;
        if command.input.write(&piece).await == Fed::Closed {
            let message = format!("command {id} takes no input");
            return Err(Failure::new(ErrorKind::Unavailable, message));
        }
    }
    if query.eof {
        command.input.finish().await;
    }
    Ok(StatusCode::NO_CONTENT)
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct OutputQuery {
    follow: bool,
}

/// Both streams as they came. Who follows too slowly misses bytes; the WebSocket says how many.
async fn output(
    State(commands): Known,
    Path(id): Path<String>,
    query: Result<Query<OutputQuery>, axum::extract::rejection::QueryRejection>,
) -> Result<Response, Failure> {
    let Query(OutputQuery { follow }) = query.map_err(bad_query)?;
    let command = commands.get(&id)?;
    let body = if follow { followed(&command.output) } else { command.output.recent().into() };
    let mut response = Response::new(body);
    let octets = header::HeaderValue::from_static("application/octet-stream");
    response.headers_mut().insert(header::CONTENT_TYPE, octets);
    Ok(response)
}

fn followed(output: &Arc<Output>) -> Body {
    Body::from_stream(stream::unfold(Reader::joining(output), |mut reader| async move {
        loop {
            match reader.next().await {
                Event::Output(bytes) => {
                    return Some((Ok::<_, Infallible>(bytes.slice(1..)), reader));
                }
                Event::Gap(_) => {}
                Event::Exit(_) => return None,
            }
        }
    }))
}

fn upgraded(upgrade: Upgrade) -> Result<WebSocketUpgrade, Failure> {
    upgrade.map_err(|rejection| {
        let error = ApiError::new(ErrorKind::InvalidRequest, rejection.body_text().to_lowercase());
        Failure(error.hint("this address is a WebSocket"))
    })
}

fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, Failure> {
    serde_json::from_slice(body).map_err(|error| {
        Failure::new(ErrorKind::InvalidRequest, format!("the body is not understood: {error}"))
    })
}

fn bad_query(rejection: axum::extract::rejection::QueryRejection) -> Failure {
    Failure::new(ErrorKind::InvalidRequest, rejection.body_text().to_lowercase())
}
