//! The owner's calls: `/admin/sandboxes/{memory,knowledge,publications}`.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, FromRequestParts, Path, Query, State};
use axum::routing::{get, post, put};
use axum::{Json, Router};
use http::StatusCode;
use http::request::Parts;
use nacre_knowledge::{ChangeFact, NewFact};
use nacre_wire::knowledge::{
    self as wire, AddFact, CitationInfo, CiteRequest, EditionInfo, EditionList, EditionView,
    FactInfo, FactList, KnowledgeStatus, PublishRequest, Recall, SearchAnswer, VerifyReport,
};
use nacre_wire::{ApiError, ErrorKind};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::publish::LARGEST;
use super::{Knowledge, convert};
use crate::auth::Pass;
use crate::clock::now_ms;
use crate::web::{Answer, Entrance, Failure};

const USUAL: u32 = 50;
const MOST: u32 = 1000;
const USUAL_FOUND: usize = 10;
const MOST_FOUND: usize = 100;
/// An edition as JSON, with what escaping adds.
const LARGEST_BODY: usize = 3 * LARGEST as usize;
/// Who told a fact that came over the control plane.
const OWNER: &str = "owner";

type Shared = State<Arc<Knowledge>>;

/// Below `/admin/sandboxes`.
pub(crate) fn router<S>(knowledge: Arc<Knowledge>) -> Router<S> {
    Router::new()
        .route("/memory", get(facts).post(add_fact))
        .route("/memory/search", get(recall))
        .route("/memory/{id}", put(change_fact).delete(delete_fact))
        .route("/knowledge", get(status))
        .route("/knowledge/search", get(search))
        .route("/publications", get(publications).post(publish))
        .route("/publications/verify", get(verify))
        .route("/publications/cite", post(cite))
        .route("/publications/{edition}", get(edition))
        .layer(DefaultBodyLimit::max(LARGEST_BODY))
        .with_state(knowledge)
}

/// The nacre command, here or elsewhere. The pages of a sandbox share the owner's origin: one that could
/// change what the agent remembers would speak to it for ever after, and one that could publish would do
/// so in the owner's name.
struct Program;

impl<S: Sync> FromRequestParts<S> for Program {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Failure> {
        let here = parts.extensions.get::<Entrance>() == Some(&Entrance::Unix);
        let by_token =
            || parts.extensions.get::<Pass>().is_some_and(|pass| pass.session().is_none());
        if here || by_token() {
            return Ok(Self);
        }
        Err(ApiError::new(ErrorKind::Permission, "this cannot be done from a browser")
            .hint("use the nacre command")
            .into())
    }
}

#[derive(Deserialize)]
struct FactsQuery {
    before: Option<i64>,
    tag: Option<String>,
    limit: Option<u32>,
}

async fn facts(
    State(knowledge): Shared,
    Query(query): Query<FactsQuery>,
) -> Answer<Json<FactList>> {
    let limit = query.limit.unwrap_or(USUAL).clamp(1, MOST);
    let tag = query.tag.map(|tag| tag.to_lowercase());
    let read = move |library: &mut nacre_knowledge::Library| {
        library.facts(query.before, tag.as_deref(), limit)
    };
    let facts: Vec<_> = knowledge.with(read).await?.into_iter().map(convert::fact).collect();
    let full = facts.len() == limit as usize;
    Ok(Json(FactList { next: facts.last().filter(|_| full).map(|fact| fact.id), facts }))
}

async fn add_fact(
    _: Program,
    State(knowledge): Shared,
    body: Bytes,
) -> Answer<(StatusCode, Json<FactInfo>)> {
    let AddFact { text, tags } = read(&body)?;
    let fact = knowledge.remember(NewFact { text, source: OWNER.to_owned(), tags }).await?;
    Ok((StatusCode::CREATED, Json(fact)))
}

async fn change_fact(
    _: Program,
    State(knowledge): Shared,
    Path(id): Path<i64>,
    body: Bytes,
) -> Answer<Json<FactInfo>> {
    let wire::ChangeFact { text, tags } = read(&body)?;
    let change = ChangeFact { text, tags };
    let fact = knowledge.with(move |library| library.change_fact(id, change, now_ms())).await?;
    knowledge.waiting.notify_one();
    Ok(Json(convert::fact(fact)))
}

async fn delete_fact(
    _: Program,
    State(knowledge): Shared,
    Path(id): Path<i64>,
) -> Answer<StatusCode> {
    knowledge.with(move |library| library.delete_fact(id)).await?;
    Ok(StatusCode::NO_CONTENT)
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

async fn recall(State(knowledge): Shared, Query(asked): Query<Asked>) -> Answer<Json<Recall>> {
    let limit = asked.limit();
    Ok(Json(knowledge.recall(asked.q, limit).await?))
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
    pub(super) async fn remember(&self, fact: NewFact) -> Result<FactInfo, ApiError> {
        let fact = self.with(move |library| library.add_fact(fact, now_ms())).await?;
        self.waiting.notify_one();
        Ok(convert::fact(fact))
    }

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

fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, ApiError> {
    serde_json::from_slice(body)
        .map_err(|error| ApiError::new(ErrorKind::InvalidRequest, format!("body: {error}")))
}
