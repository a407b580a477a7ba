//! `/writer/*`: documents, editions and who cites whom, as pages for people and as data for programs.
//!
//! Nothing here changes anything. What a document says is never run: pages have no scripts and what
//! is published is given out in a way that no browser takes for a page of this computer.

use std::sync::Arc;

use axum::extract::{Path, Query, State};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use axum::{Json, Router};
use http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use nacre_knowledge::Edition;
use nacre_knowledge::edition::Address;
use nacre_wire::knowledge::{
    CitationEdge, CitationGraph, DocumentInfo, DocumentList, SearchAnswer,
};
use nacre_wire::{ApiError, ErrorKind};
use serde::Deserialize;

use super::admin::Asked;
use super::{Knowledge, PUBLICATIONS, pages, publish, which};
use crate::routes::Role;
use crate::web::{Answer, reply};

const NEWEST: u32 = 20;
const PAGE: u32 = 200;
const MOST_EDGES: u32 = 10_000;
/// What has a hash for a name is the same for ever.
const FOR_EVER: &str = "private, max-age=31536000, immutable";
/// For content that somebody wrote: nothing in it may load, run or act as this computer.
const CAGE: &str = "default-src 'none'; sandbox; frame-ancestors 'none'; base-uri 'none'";

/// Whose documents are shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Those of live, then of dev: for the owner.
    Roles,
    /// Those of this sandbox alone, by id: for who asks from inside of it.
    Sandbox(String),
}

/// What the pages are made of.
#[derive(Clone)]
pub(crate) struct Writer {
    pub(crate) knowledge: Arc<Knowledge>,
    pub(crate) scope: Scope,
}

/// Paths begin with `/writer`; links in pages are relative, so it can stand below anything.
pub(crate) fn writer_router<S>(writer: Writer) -> Router<S> {
    Router::new()
        .route("/writer", get(slash))
        .route("/writer/", get(home))
        .route("/writer/documents", get(documents))
        .route("/writer/documents/{*path}", get(document))
        .route("/writer/editions", get(editions))
        .route("/writer/editions/{edition}", get(edition))
        .route("/writer/editions/{edition}/content", get(content))
        .route("/writer/editions/{edition}/manifest", get(manifest))
        .route("/writer/editions/{edition}/references", get(references))
        .route("/writer/graph", get(graph))
        .route("/writer/search", get(search))
        .with_state(writer)
}

impl Writer {
    /// Ids of the sandboxes whose documents are shown.
    fn sandboxes(&self) -> Vec<String> {
        match (&self.scope, self.knowledge.places.get()) {
            (Scope::Sandbox(id), _) => vec![id.clone()],
            (Scope::Roles, None) => Vec::new(),
            (Scope::Roles, Some(places)) => {
                let roles = [Role::Live, Role::Dev].into_iter();
                let sandboxes = roles.filter_map(|role| places.sandboxes.by_role(role));
                sandboxes.map(|sandbox| sandbox.id.to_string()).collect()
            }
        }
    }

    async fn list(&self, after: String) -> Result<DocumentList, ApiError> {
        let sandboxes = self.sandboxes();
        let read = move |library: &mut nacre_knowledge::Library| {
            let mut all = Vec::new();
            for id in sandboxes {
                let found = library.documents(&id, &after, PAGE + 1)?;
                all.extend(found.into_iter().map(|(path, title)| (path, id.clone(), title)));
            }
            all.sort();
            Ok(all)
        };
        let mut found = self.knowledge.with(read).await?;
        let more = found.len() > PAGE as usize;
        found.truncate(PAGE as usize);
        let info = |(path, id, title): (String, String, Option<String>)| DocumentInfo {
            source: self.knowledge.name_of(&id),
            path,
            title,
        };
        Ok(DocumentList { documents: found.into_iter().map(info).collect(), more })
    }

    async fn edition(&self, which: &str) -> Result<Edition, ApiError> {
        let address: Address = which.parse().map_err(super::desk::plain)?;
        self.knowledge.with(move |library| library.edition(&address)).await
    }
}

/// Relative, so that a prefix stays.
async fn slash() -> Redirect {
    Redirect::permanent("writer/")
}

fn wants_page(method: &Method, headers: &HeaderMap) -> bool {
    reply::is_navigation(method, headers)
}

async fn home(
    State(writer): State<Writer>,
    method: Method,
    headers: HeaderMap,
) -> Answer<Response> {
    let editions = writer.knowledge.editions(None, None, NEWEST).await?;
    if !wants_page(&method, &headers) {
        return Ok(Json(editions).into_response());
    }
    Ok(page(pages::home(&editions)))
}

#[derive(Deserialize)]
struct After {
    #[serde(default)]
    after: String,
}

async fn documents(
    State(writer): State<Writer>,
    Query(After { after }): Query<After>,
    method: Method,
    headers: HeaderMap,
) -> Answer<Response> {
    let list = writer.list(after).await?;
    if !wants_page(&method, &headers) {
        return Ok(Json(list).into_response());
    }
    Ok(page(pages::documents(&list)))
}

#[derive(Deserialize)]
struct From {
    /// A sandbox by its name.
    sandbox: Option<String>,
}

/// Only what is indexed: this is no way to other files.
async fn document(
    State(writer): State<Writer>,
    Path(path): Path<String>,
    Query(From { sandbox }): Query<From>,
    method: Method,
    headers: HeaderMap,
) -> Answer<Response> {
    let gone = || ApiError::new(ErrorKind::NotFound, format!("there is no document {path}"));
    let wanted = sandbox.map(|name| writer.knowledge.source_of(&name)).transpose()?;
    let sandboxes = writer.sandboxes().into_iter();
    let sandboxes: Vec<_> =
        sandboxes.filter(|id| wanted.as_ref().is_none_or(|wanted| wanted == id)).collect();
    let document = path.clone();
    let find = move |library: &mut nacre_knowledge::Library| {
        for id in sandboxes {
            if library.known_one(&id, &document)?.is_some() {
                return Ok(Some(id));
            }
        }
        Ok(None)
    };
    let id = writer.knowledge.with(find).await?.ok_or_else(gone)?;
    let bytes = writer.knowledge.read_file(&id, &path, which::LARGEST).await?;
    let text = which::text(bytes).ok_or_else(gone)?;
    if !wants_page(&method, &headers) {
        let plain = HeaderValue::from_static("text/plain; charset=utf-8");
        return Ok(caged(plain, "no-store", text.into_bytes()));
    }
    let editions = writer.knowledge.editions(Some(path.clone()), None, NEWEST).await?;
    Ok(page(pages::document(&path, &text, &editions)))
}

#[derive(Deserialize)]
struct Before {
    before: Option<u64>,
}

async fn editions(
    State(writer): State<Writer>,
    Query(Before { before }): Query<Before>,
    method: Method,
    headers: HeaderMap,
) -> Answer<Response> {
    let list = writer.knowledge.editions(None, before, PAGE).await?;
    if !wants_page(&method, &headers) {
        return Ok(Json(list).into_response());
    }
    Ok(page(pages::editions(&list)))
}

async fn edition(
    State(writer): State<Writer>,
    Path(which): Path<String>,
    method: Method,
    headers: HeaderMap,
) -> Answer<Response> {
    let view = writer.knowledge.edition_view(which).await?;
    if !wants_page(&method, &headers) {
        return Ok(Json(view).into_response());
    }
    Ok(page(pages::edition(&view)))
}

async fn content(
    State(writer): State<Writer>,
    Path(which): Path<String>,
    headers: HeaderMap,
) -> Answer<Response> {
    let edition = writer.edition(&which).await?;
    let shown = shown_as(&edition.info.manifest.media_type);
    let tag = edition.info.manifest.content.clone();
    Ok(for_ever(&headers, &tag, shown, edition.content))
}

async fn manifest(
    State(writer): State<Writer>,
    Path(which): Path<String>,
    headers: HeaderMap,
) -> Answer<Response> {
    let edition = writer.edition(&which).await?;
    let kind = HeaderValue::from_static("application/json");
    Ok(for_ever(&headers, edition.info.address.hash(), kind, edition.manifest))
}

async fn references(State(writer): State<Writer>, Path(which): Path<String>) -> Answer<Response> {
    let edition = writer.edition(&which).await?;
    let read = move |library: &mut nacre_knowledge::Library| library.references(&edition);
    let lines = publish::numbered(&writer.knowledge.with(read).await?);
    let text: String = lines.into_iter().map(|line| line + "\n").collect();
    let kind = HeaderValue::from_static("text/markdown; charset=utf-8");
    Ok(caged(kind, "no-cache", text.into_bytes()))
}

async fn graph(
    State(writer): State<Writer>,
    method: Method,
    headers: HeaderMap,
) -> Answer<Response> {
    let edges = writer.knowledge.with(|library| library.graph(MOST_EDGES)).await?;
    let edges = edges.into_iter().map(|edge| CitationEdge {
        citing: edge.citing.to_string(),
        cited: edge.cited.to_string(),
    });
    let graph = CitationGraph { edges: edges.collect() };
    if !wants_page(&method, &headers) {
        return Ok(Json(graph).into_response());
    }
    Ok(page(pages::graph(&graph)))
}

async fn search(
    State(writer): State<Writer>,
    Query(asked): Query<Asked>,
    method: Method,
    headers: HeaderMap,
) -> Answer<Response> {
    let limit = asked.limit();
    let mut sources = writer.sandboxes();
    sources.push(PUBLICATIONS.to_owned());
    let found: SearchAnswer = writer.knowledge.search(asked.q.clone(), sources, limit).await?;
    if !wants_page(&method, &headers) {
        return Ok(Json(found).into_response());
    }
    Ok(page(pages::search(&asked.q, &found)))
}

fn page(html: String) -> Response {
    reply::page(StatusCode::OK, html)
}

/// What a browser would run is shown as text, and what it does not know is a download.
fn shown_as(media_type: &str) -> HeaderValue {
    let shown = match media_type {
        "text/markdown" => "text/markdown; charset=utf-8",
        text if text.starts_with("text/") => "text/plain; charset=utf-8",
        "application/json" => "application/json",
        "image/png" => "image/png",
        "image/jpeg" => "image/jpeg",
        "application/pdf" => "application/pdf",
        _ => "application/octet-stream",
    };
    HeaderValue::from_static(shown)
}

fn for_ever(asked: &HeaderMap, tag: &str, kind: HeaderValue, bytes: Vec<u8>) -> Response {
    let tag = format!("\"{tag}\"");
    let known = asked.get_all(IF_NONE_MATCH).iter().any(|known| known.as_bytes() == tag.as_bytes());
    let mut response = match known {
        true => caged(kind, FOR_EVER, Vec::new()),
        false => caged(kind, FOR_EVER, bytes),
    };
    if known {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    }
    if let Ok(tag) = HeaderValue::try_from(tag) {
        response.headers_mut().insert(ETAG, tag);
    }
    response
}

fn caged(kind: HeaderValue, keep: &'static str, bytes: Vec<u8>) -> Response {
    let download = kind == "application/octet-stream";
    let mut response = bytes.into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, kind);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(keep));
    headers.insert("content-security-policy", HeaderValue::from_static(CAGE));
    headers.insert("x-content-type-options", HeaderValue::from_static("nosniff"));
    headers.insert("referrer-policy", HeaderValue::from_static("no-referrer"));
    if download {
        headers.insert(CONTENT_DISPOSITION, HeaderValue::from_static("attachment"));
    }
    response
}
