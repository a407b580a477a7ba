//! Memory, knowledge and publications of this computer.
//!
//! ```text
//!  live, dev ── watch, files (door) ─▶ follow ─▶ prepare ─┐
//!  tools of the agent ─────────────────────────────────────┼▶ desk: one thread, knowledge.db
//!  /admin/sandboxes/{memory,knowledge,publications} ───────┤
//!  /conductor/memory ──────────────────────────────────────┤
//!  /writer/* ──────────────────────────────────────────────┘
//!  embeddings ─▶ a provider, when one is configured ─▶ desk
//! ```
//! [`Knowledge`] owns all of it. Nobody waits for an index: documents are read, cut and embedded
//! elsewhere, and the thread of the database only writes them down.

pub(crate) mod admin;
mod config;
mod convert;
mod desk;
mod embeddings;
mod follow;
mod ignored;
mod look;
pub(crate) mod memory;
mod pages;
mod publish;
mod tools;
mod which;
mod writer;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use nacre_knowledge::{Library, Query, embed};
use nacre_wire::ApiError;
use nacre_wire::knowledge::{KnowledgeStatus, Recall, SearchAnswer};
use tokio::sync::Notify;

pub use config::{EmbeddingModel, KnowledgeConfig, RawKnowledgeConfig};
pub(crate) use tools::toolboxes;
pub(crate) use writer::{Scope, Writer, writer_router};

use crate::auth::Auth;
use crate::provider::Models;
use crate::sandboxes::Sandboxes;
use desk::Desk;
use follow::Followed;

const FILE: &str = "knowledge.db";
/// The source that editions are found under.
const PUBLICATIONS: &str = "publications";

pub(crate) struct Knowledge {
    config: KnowledgeConfig,
    desk: Desk,
    models: Arc<Models>,
    /// Something waits for a vector of a provider.
    waiting: Notify,
    /// What each sandbox's follower has come to, by id.
    followed: Mutex<BTreeMap<String, Followed>>,
    places: OnceLock<Places>,
}

/// What there is only after the sandboxes are.
struct Places {
    sandboxes: Sandboxes,
    auth: Arc<Auth>,
}

impl Knowledge {
    pub(crate) fn start(
        data_dir: &Path,
        config: KnowledgeConfig,
        models: Arc<Models>,
    ) -> std::io::Result<Arc<Self>> {
        let model =
            config.embeddings.as_ref().map_or(embed::MODEL.to_owned(), EmbeddingModel::name);
        let file = data_dir.join(FILE);
        let waiting = Notify::new();
        if file.exists() {
            // The model may have been another when it was written.
            waiting.notify_one();
        }
        Ok(Arc::new(Self {
            desk: Desk::start(&file, model)?,
            config,
            models,
            waiting,
            followed: Mutex::default(),
            places: OnceLock::new(),
        }))
    }

    /// From now on sandboxes have names and the owner is known.
    pub(crate) fn settle(&self, sandboxes: Sandboxes, auth: Arc<Auth>) {
        // Only the first counts, and there is no second.
        let _ = self.places.set(Places { sandboxes, auth });
    }

    /// What goes on until it is dropped.
    pub(crate) async fn keep(self: Arc<Self>) {
        tokio::join!(follow::keep(self.clone()), embeddings::keep(self.clone()));
    }

    pub(crate) fn close(&self) {
        self.desk.close();
    }

    async fn with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Library) -> nacre_knowledge::Result<T> + Send + 'static,
    ) -> Result<T, ApiError> {
        self.desk.with(work).await
    }

    /// Passages of these sources; of all when there are none.
    pub(crate) async fn search(
        &self,
        text: String,
        sources: Vec<String>,
        limit: usize,
    ) -> Result<SearchAnswer, ApiError> {
        let (vector, note) = self.meaning(&text).await;
        let hits = self.with(move |library| {
            let vector = vector.as_deref();
            library.search(&Query { text: &text, vector, sources: &sources, limit })
        });
        let hits = hits.await?.into_iter().map(|hit| convert::hit(hit, |id| self.name_of(id)));
        Ok(SearchAnswer { hits: hits.collect(), note })
    }

    pub(crate) async fn recall(&self, text: String, limit: usize) -> Result<Recall, ApiError> {
        let (vector, note) = self.meaning(&text).await;
        let facts = self.with(move |library| {
            let vector = vector.as_deref();
            library.recall(&Query { text: &text, vector, sources: &[], limit })
        });
        let facts = facts.await?.into_iter().map(convert::recalled);
        Ok(Recall { facts: facts.collect(), note })
    }

    pub(crate) async fn status(&self) -> Result<KnowledgeStatus, ApiError> {
        let status = self.with(|library| library.status()).await?;
        let followed = self.followed().clone();
        Ok(convert::status(status, &followed, |id| self.name_of(id)))
    }

    fn followed(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Followed>> {
        self.followed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What people call a source: the sandbox's name, while there is one.
    fn name_of(&self, source: &str) -> String {
        let sandbox = self.places.get().and_then(|places| places.sandboxes.find(source).ok());
        sandbox.map_or_else(|| source.to_owned(), |sandbox| sandbox.name.clone())
    }

    /// The source of that name.
    fn source_of(&self, name: &str) -> Result<String, ApiError> {
        match (name, self.places.get()) {
            (PUBLICATIONS, _) | (_, None) => Ok(name.to_owned()),
            (name, Some(places)) => Ok(places.sandboxes.find(name)?.id.to_string()),
        }
    }

    /// The owner, or the mark of a computer that has none.
    fn author(&self) -> String {
        let owner = self.places.get().and_then(|places| places.auth.owner());
        let local = nacre_knowledge::edition::Manifest::LOCAL;
        owner.map_or_else(|| local.to_owned(), |did| did.to_string())
    }
}
