//! The facts that the agent remembers: `/admin/sandboxes/memory` for the owner's programs, and
//! `/conductor/memory` by way of a sandbox for its pages.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use axum::routing::{get, put};
use axum::{Json, Router};
use http::StatusCode;
use nacre_knowledge::{ChangeFact, Library, NewFact};
use nacre_wire::ApiError;
use nacre_wire::knowledge::{self as wire, AddFact, FactInfo, FactList, Recall};
use serde::Deserialize;

use super::admin::{Asked, MOST, USUAL, read};
use super::{Knowledge, convert};
use crate::clock::now_ms;
use crate::web::Answer;

/// Who told a fact that came over the control plane.
pub(crate) const OWNER: &str = "owner";
/// Who told one that came through a sandbox: the owner at a page, or the page by itself.
pub(crate) const PAGE: &str = "page";

#[derive(Clone)]
struct Memory {
    knowledge: Arc<Knowledge>,
    source: &'static str,
}

/// Below whatever it is mounted in. What is told there is told by `source`.
pub(crate) fn router<S: Clone + Send + Sync + 'static>(
    knowledge: Arc<Knowledge>,
    source: &'static str,
) -> Router<S> {
    Router::new()
        .route("/memory", get(facts).post(add_fact))
        .route("/memory/search", get(recall))
        .route("/memory/{id}", put(change_fact).delete(delete_fact))
        .with_state(Memory { knowledge, source })
}

#[derive(Deserialize)]
struct FactsQuery {
    before: Option<i64>,
    tag: Option<String>,
    limit: Option<u32>,
}

async fn facts(
    State(Memory { knowledge, .. }): State<Memory>,
    Query(query): Query<FactsQuery>,
) -> Answer<Json<FactList>> {
    let limit = query.limit.unwrap_or(USUAL).clamp(1, MOST);
    let tag = query.tag.map(|tag| tag.to_lowercase());
    let read = move |library: &mut Library| library.facts(query.before, tag.as_deref(), limit);
    let facts: Vec<_> = knowledge.with(read).await?.into_iter().map(convert::fact).collect();
    let full = facts.len() == limit as usize;
    Ok(Json(FactList { next: facts.last().filter(|_| full).map(|fact| fact.id), facts }))
}

async fn recall(
    State(Memory { knowledge, .. }): State<Memory>,
    Query(asked): Query<Asked>,
) -> Answer<Json<Recall>> {
    let limit = asked.limit();
    Ok(Json(knowledge.recall(asked.q, limit).await?))
}

async fn add_fact(
    State(Memory { knowledge, source }): State<Memory>,
    body: Bytes,
) -> Answer<(StatusCode, Json<FactInfo>)> {
    let AddFact { text, tags } = read(&body)?;
    let fact = knowledge.remember(NewFact { text, source: source.to_owned(), tags }).await?;
    Ok((StatusCode::CREATED, Json(fact)))
}

async fn change_fact(
    State(Memory { knowledge, source }): State<Memory>,
    Path(id): Path<i64>,
    body: Bytes,
) -> Answer<Json<FactInfo>> {
    let wire::ChangeFact { text, tags } = read(&body)?;
    // Words that a page puts in are not those of who told it before.
    let source = text.as_ref().filter(|_| source == PAGE).map(|_| source.to_owned());
    let change = ChangeFact { text, tags, source };
    let fact = knowledge.with(move |library| library.change_fact(id, change, now_ms())).await?;
    knowledge.waiting.notify_one();
    Ok(Json(convert::fact(fact)))
}

async fn delete_fact(
    State(Memory { knowledge, .. }): State<Memory>,
    Path(id): Path<i64>,
) -> Answer<StatusCode> {
    knowledge.with(move |library| library.delete_fact(id)).await?;
    Ok(StatusCode::NO_CONTENT)
}

impl Knowledge {
    pub(super) async fn remember(&self, fact: NewFact) -> Result<FactInfo, ApiError> {
        let fact = self.with(move |library| library.add_fact(fact, now_ms())).await?;
        self.waiting.notify_one();
        Ok(convert::fact(fact))
    }
}
