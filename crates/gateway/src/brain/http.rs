//! `/conductor/*`: what [`nacre_wire::conductor`] describes.

use axum::body::Bytes;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::{Path, Query, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use http::{HeaderMap, StatusCode, header};
use nacre_wire::conductor::{
    ChangeConversation, ConversationInfo, ConversationList, CreateConversation, ModelChoices,
    PlanList, SaidList, SendMessage, Sent, UndoneList,
};
use nacre_wire::{ApiError, ErrorKind};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::conversation::Request;
use super::{Brain, stream};
use crate::web::reply;

struct Failure(ApiError);
type Answer<T> = Result<T, Failure>;

impl From<ApiError> for Failure {
    fn from(error: ApiError) -> Self {
        Self(error)
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        reply::error(&self.0)
    }
}

/// For whichever place it is mounted in.
pub(crate) fn router<S: Clone + Send + Sync + 'static>(brain: Brain) -> Router<S> {
    Router::new()
        .route("/conductor/conversations", get(list).post(create))
        .route("/conductor/conversations/{id}", get(show).patch(change).delete(remove))
        .route("/conductor/conversations/{id}/messages", post(send))
        .route("/conductor/conversations/{id}/stop", post(stop))
        .route("/conductor/conversations/{id}/approve", post(approve))
        .route("/conductor/conversations/{id}/fork", post(fork))
        .route("/conductor/conversations/{id}/undo", post(undo))
        .route("/conductor/conversations/{id}/events", get(events))
        .route("/conductor/search", get(search))
        .route("/conductor/models", get(models))
        .route("/conductor/plans", get(plans))
        .with_state(brain)
}

async fn list(State(brain): State<Brain>) -> Json<ConversationList> {
    Json(ConversationList { conversations: brain.list() })
}

async fn create(
    State(brain): State<Brain>,
    body: Bytes,
) -> Answer<(StatusCode, Json<ConversationInfo>)> {
    let wanted: CreateConversation = parse(&body)?;
    Ok((StatusCode::CREATED, Json(brain.create(wanted).await?)))
}

async fn show(
    State(brain): State<Brain>,
    Path(id): Path<String>,
) -> Answer<Json<ConversationInfo>> {
    Ok(Json(brain.show(&id)?))
}

async fn change(
    State(brain): State<Brain>,
    Path(id): Path<String>,
    body: Bytes,
) -> Answer<Json<ConversationInfo>> {
    let wanted: ChangeConversation = parse(&body)?;
    brain.ask(&id, |reply| Request::Change { wanted: wanted.clone(), reply }).await?;
    Ok(Json(brain.show(&id)?))
}

async fn remove(State(brain): State<Brain>, Path(id): Path<String>) -> Answer<StatusCode> {
    brain.ask(&id, |reply| Request::Delete { reply }).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn send(
    State(brain): State<Brain>,
    Path(id): Path<String>,
    body: Bytes,
) -> Answer<(StatusCode, Json<Sent>)> {
    let SendMessage { text } = parse(&body)?;
    let sent = brain.ask(&id, |reply| Request::Send { text: text.clone(), reply }).await?;
    Ok((StatusCode::ACCEPTED, Json(sent)))
}

async fn stop(State(brain): State<Brain>, Path(id): Path<String>) -> Answer<StatusCode> {
    brain.ask(&id, |reply| Request::Stop { reply }).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn approve(
    State(brain): State<Brain>,
    Path(id): Path<String>,
    body: Bytes,
) -> Answer<StatusCode> {
    let answer: nacre_wire::conductor::Approve = parse(&body)?;
    brain.ask(&id, |reply| Request::Approve { answer: answer.clone(), reply }).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn fork(
    State(brain): State<Brain>,
    Path(id): Path<String>,
    body: Bytes,
) -> Answer<(StatusCode, Json<ConversationInfo>)> {
    Ok((StatusCode::CREATED, Json(brain.fork(&id, parse(&body)?).await?)))
}

async fn undo(
    State(brain): State<Brain>,
    Path(id): Path<String>,
    body: Bytes,
) -> Answer<Json<UndoneList>> {
    let wanted: nacre_wire::conductor::UndoConversation = parse(&body)?;
    let undone = brain.ask(&id, |reply| Request::Undo { wanted: wanted.clone(), reply }).await?;
    Ok(Json(undone))
}

#[derive(Deserialize)]
struct EventsQuery {
    after: Option<u64>,
    follow: Option<bool>,
}

type Upgrade = Result<WebSocketUpgrade, WebSocketUpgradeRejection>;

/// As server-sent events, or as a WebSocket when one is asked for.
async fn events(
    State(brain): State<Brain>,
    Path(id): Path<String>,
    Query(EventsQuery { after, follow }): Query<EventsQuery>,
    headers: HeaderMap,
    upgrade: Upgrade,
) -> Answer<Response> {
    // A browser that reconnects says where it was by itself, and the address still says where it began.
    let after = last_event(&headers).or(after).unwrap_or(0);
    let log = brain.log(&id).await?;
    let reader = stream::Reader::new(log, after, follow.unwrap_or(true));
    if !headers.contains_key(header::UPGRADE) {
        return Ok(stream::server_sent(reader));
    }
    match upgrade {
        Ok(upgrade) => Ok(upgrade.on_upgrade(move |socket| stream::socket(reader, socket))),
        Err(rejection) => {
            let message = rejection.body_text().to_lowercase();
            Err(ApiError::new(ErrorKind::InvalidRequest, message).into())
        }
    }
}

#[derive(Deserialize)]
struct SearchQuery {
    q: String,
}

async fn search(
    State(brain): State<Brain>,
    Query(SearchQuery { q }): Query<SearchQuery>,
) -> Answer<Json<SaidList>> {
    Ok(Json(brain.search(&q).await?))
}

async fn models(State(brain): State<Brain>) -> Json<ModelChoices> {
    Json(brain.models())
}

#[derive(Deserialize)]
struct PlansQuery {
    role: Option<String>,
}

async fn plans(
    State(brain): State<Brain>,
    Query(PlansQuery { role }): Query<PlansQuery>,
) -> Answer<Json<PlanList>> {
    Ok(Json(brain.plans(role.as_deref()).await?))
}

fn last_event(headers: &HeaderMap) -> Option<u64> {
    headers.get("last-event-id")?.to_str().ok()?.trim().parse().ok()
}

/// An empty body is an empty object.
fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, ApiError> {
    let body: &[u8] = if body.is_empty() { b"{}" } else { body };
    serde_json::from_slice(body)
        .map_err(|error| ApiError::new(ErrorKind::InvalidRequest, format!("body: {error}")))
}
