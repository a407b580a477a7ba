//! The owner's calls: `/admin/sandboxes/{memory,knowledge,publications}`.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, FromRequestParts, Path, Query, Request, State};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use http::{Method, StatusCode};
use nacre_wire::knowledge::{
    CitationInfo, CiteRequest, EditionInfo, EditionList, EditionView, KnowledgeStatus,
    PublishRequest, SearchAnswer, VerifyReport,
};
use nacre_wire::{ApiError, ErrorKind};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::publish::LARGEST;
use super::{Knowledge, convert, memory};
use crate::web::{Answer, Program};

pub(super) const USUAL: u32 = 50;
pub(super) const MOST: u32 = 1000;
const USUAL_FOUND: usize = 10;
const MOST_FOUND: usize = 100;
/// An edition as JSON, with what escaping adds.
const LARGEST_BODY: usize = 3 * LARGEST as usize;

type Shared = State<Arc<Knowledge>>;

/// Below `/admin/sandboxes`.
pub(crate) fn router<S: Clone + Send + Sync + 'static>(knowledge: Arc<Knowledge>) -> Router<S> {
    Router::new()
        .route("/knowledge", get(status))
        .route("/knowledge/search", get(search))
        .route("/publications", get(publications).post(publish))
        .route("/publications/verify", get(verify))
        .route("/publications/cite", post(cite))
        .route("/publications/{edition}", get(edition))
        .layer(DefaultBodyLimit::max(LARGEST_BODY))
        .with_state(knowledge.clone())
        .merge(memory::router(knowledge, memory::OWNER).route_layer(from_fn(changed_by_programs)))
}

/// A page that could publish would do so in the owner's name, and what it tells the agent to remember is
/// not told by the owner ([`memory::PAGE`]).
async fn changed_by_programs(request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    let reads = matches!(parts.method, Method::GET | Method::HEAD);
    if !reads && let Err(failure) = Program::from_request_parts(&mut parts, &()).await {
        return failure.into_response();
    }
    next.run(Request::from_parts(parts, body)).await
}

#[derive(Deserialize)]
pub(super) struct Asked {
    pub(super) q: String,
    #[serde(rename = "in")]
    within: Option<String>,
    limit: Option<usize>,
}

impl Asked {
    pub(super) fn limit(&self) -> usize {
        self.limit.unwrap_or(USUAL_FOUND).clamp(1, MOST_FOUND)
    }
}

async fn search(
    State(knowledge): Shared,
    Query(asked): Query<Asked>,
) -> Answer<Json<SearchAnswer>> {
    let limit = asked.limit();
    let sources = match &asked.within {
        Some(name) => vec![knowledge.source_of(name)?],
        None => Vec::new(),
    };
    Ok(Json(knowledge.search(asked.q, sources, limit).await?))
}

async fn status(State(knowledge): Shared) -> Answer<Json<KnowledgeStatus>> {
    Ok(Json(knowledge.status().await?))
}

#[derive(Deserialize)]
struct EditionsQuery {
    document: Option<String>,
    before: Option<u64>,
    limit: Option<u32>,
}

async fn publications(
    State(knowledge): Shared,
    Query(query): Query<EditionsQuery>,
) -> Answer<Json<EditionList>> {
    let limit = query.limit.unwrap_or(USUAL).clamp(1, MOST);
    Ok(Json(knowledge.editions(query.document, query.before, limit).await?))
}

async fn publish(
    _: Program,
    State(knowledge): Shared,
    body: Bytes,
) -> Answer<(StatusCode, Json<EditionInfo>)> {
    let wanted: PublishRequest = read(&body)?;
    let edition = knowledge.publish(wanted).await?;
    let status = if edition.new == Some(true) { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, Json(edition)))
}

async fn verify(State(knowledge): Shared) -> Answer<Json<VerifyReport>> {
    Ok(Json(convert::verified(knowledge.with(|library| library.verify()).await?)))
}

async fn cite(State(knowledge): Shared, body: Bytes) -> Answer<Json<CitationInfo>> {
    let wanted: CiteRequest = read(&body)?;
    Ok(Json(convert::citation(knowledge.cite(wanted).await?)))
}

async fn edition(State(knowledge): Shared, Path(which): Path<String>) -> Answer<Json<EditionView>> {
    Ok(Json(knowledge.edition_view(which).await?))
}

impl Knowledge {
    pub(super) async fn editions(
        &self,
        document: Option<String>,
        before: Option<u64>,
        limit: u32,
    ) -> Result<EditionList, ApiError> {
        let read = move |library: &mut nacre_knowledge::Library| {
            library.editions(document.as_deref(), before, limit)
        };
        let editions: Vec<_> = self.with(read).await?.iter().map(convert::edition).collect();
        let full = editions.len() == limit as usize;
        let next = editions.last().filter(|_| full).map(|edition| edition.number);
        Ok(EditionList { editions, next })
    }
}

pub(super) fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, ApiError> {
    serde_json::from_slice(body)
        .map_err(|error| ApiError::new(ErrorKind::InvalidRequest, format!("body: {error}")))
}
