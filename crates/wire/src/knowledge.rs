//! Memory, knowledge and publications, below `/admin/sandboxes`.
//!
//! | Call | What it does |
//! |---|---|
//! | `GET /admin/sandboxes/memory` | [`FactList`], newest first |
//! | `POST /admin/sandboxes/memory` | [`AddFact`] -> [`FactInfo`] |
//! | `GET /admin/sandboxes/memory/search?q=Q` | [`Recall`] |
//! | `PUT /admin/sandboxes/memory/{id}` | [`ChangeFact`] -> [`FactInfo`] |
//! | `DELETE /admin/sandboxes/memory/{id}` | gone, also from the disk |
//! | `GET /admin/sandboxes/knowledge` | [`KnowledgeStatus`] |
//! | `GET /admin/sandboxes/knowledge/search?q=Q` | [`SearchAnswer`] |
//! | `GET /admin/sandboxes/publications` | [`EditionList`], newest first |
//! | `POST /admin/sandboxes/publications` | [`PublishRequest`] -> [`EditionInfo`] |
//! | `GET /admin/sandboxes/publications/verify` | [`VerifyReport`] |
//! | `POST /admin/sandboxes/publications/cite` | [`CiteRequest`] -> [`CitationInfo`] |
//! | `GET /admin/sandboxes/publications/{edition}` | [`EditionView`] |
//!
//! What `/writer/*` gives to programs has the same types, and `/conductor/memory*` is memory for pages.

use serde::{Deserialize, Serialize};

/// Something that was told, and by whom.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct FactInfo {
    pub id: i64,
    pub text: String,
    /// `owner`, `page` for what a page told or reworded, or the conversation and the call that told it.
    pub source: String,
    pub tags: Vec<String>,
    /// Unix milliseconds.
    pub created_at: u64,
    pub changed_at: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct FactList {
    pub facts: Vec<FactInfo>,
    /// Pass as `before` for the next page; absent on the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AddFact {
    pub text: String,
    #[serde(default)]
    pub tags: Vec<String>,
}

/// What is absent stays as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ChangeFact {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<String>>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Recall {
    /// Best first.
    pub facts: Vec<RecalledFact>,
    /// Why meaning was left out, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RecalledFact {
    #[serde(flatten)]
    pub fact: FactInfo,
    pub score: f64,
    pub by_word: bool,
    pub by_meaning: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct KnowledgeStatus {
    pub documents: u64,
    pub chunks: u64,
    /// Chunks that are found by word only, until the model in use has seen them.
    pub waiting: u64,
    pub facts: u64,
    pub editions: u64,
    /// What makes the vectors.
    pub model: String,
    pub sources: Vec<KnowledgeSource>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct KnowledgeSource {
    /// A sandbox by its name, or `publications`.
    pub name: String,
    pub documents: u64,
    /// For a sandbox: whether its files have been looked through since it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current: Option<bool>,
    /// Why some or all of it is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SearchAnswer {
    /// Best first.
    pub hits: Vec<SearchHit>,
    /// Why meaning was left out, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SearchHit {
    /// A sandbox by its name, or `publications`.
    pub source: String,
    /// From the workspace, or the address of an edition.
    pub path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    pub first_line: u32,
    pub last_line: u32,
    /// The headings above it, outermost first.
    pub headings: String,
    pub snippet: String,
    pub score: f64,
    pub by_word: bool,
    pub by_meaning: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DocumentInfo {
    /// A sandbox by its name.
    pub source: String,
    pub path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DocumentList {
    pub documents: Vec<DocumentInfo>,
    /// There are more; pass the last path as `after`.
    pub more: bool,
}

/// What is known of an edition without its content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct EditionInfo {
    /// `nacre:edition:` and the hash of its manifest.
    pub address: String,
    /// The how manieth publication of this computer it is.
    pub number: u64,
    pub title: String,
    /// A DID, or `local` on a computer that nobody has claimed.
    pub author: String,
    /// `2026-11-17T18:30:00Z`
    pub date: String,
    pub document: String,
    pub media_type: String,
    pub bytes: u64,
    /// BLAKE3 of the content.
    pub content: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<String>,
    /// Places in other editions.
    pub citations: Vec<String>,
    /// False when it had been published already, unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new: Option<bool>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct EditionList {
    pub editions: Vec<EditionInfo>,
    /// Pass as `before` for the next page; absent on the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
}

/// An edition and what surrounds it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct EditionView {
    pub edition: EditionInfo,
    /// What it cites, as a reader sees it.
    pub references: Vec<String>,
    pub cites: Vec<String>,
    pub cited_by: Vec<String>,
    /// The content, if it is text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// A file of a sandbox, or a text that is sent along.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PublishRequest {
    /// What it is an edition of: a path from the workspace.
    pub path: String,
    pub title: String,
    /// Whose file it is, by name; `live` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<String>,
    /// Instead of the file's content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// By the ending of the path when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CiteRequest {
    /// `nacre:edition:HASH`, with `#L3-L5` for lines.
    pub edition: String,
    /// Must stand there; only white space may differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quote: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CitationInfo {
    /// The edition and the lines.
    pub place: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quote: Option<String>,
    /// `[^1a2b3c4d-3-5]`, for the text.
    pub mark: String,
    /// The footnote that belongs to it.
    pub note: String,
    pub reference: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct VerifyReport {
    pub editions: u64,
    /// Follows from all of them in order. Written down elsewhere, it tells later whether any is gone.
    pub head: String,
    /// What is wrong; empty when all is as it was published.
    pub problems: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CitationGraph {
    pub edges: Vec<CitationEdge>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CitationEdge {
    pub citing: String,
    pub cited: String,
}
