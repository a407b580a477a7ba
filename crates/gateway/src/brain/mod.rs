//! Conversations with an agent that has its brain here and acts on a sandbox through its door.
//!
//! ```text
//!  /conductor/* ─▶ http ─▶ Brain: who is there ─▶ Request ─▶ conversation: one task each, while awake
//!                            │                                │ turn: Agent over Acting ─▶ door
//!                            └ index: what is known           └ memory: journal ─▶ log ─▶ followers
//! ```
//! A conversation is a journal that is only ever appended to, and a small file beside it. It is awake
//! while somebody speaks with it or follows it; then one task owns both, and everybody else sends it a
//! [`conversation::Request`]. A turn is a task of its own that nobody's connection holds: it ends when it
//! is done, is stopped or reaches a limit. What follows a conversation reads the log at its own pace.

mod acting;
mod aside;
mod choices;
pub(crate) mod config;
mod conversation;
mod entry;
pub(crate) mod http;
mod index;
mod log;
mod memory;
mod news;
mod permission;
mod policy;
mod search;
mod stream;
mod turn;
mod undo;
mod undoing;
mod whereabouts;

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::body::Bytes;
use axum::response::Response;
use nacre_wire::conductor::{
    ConversationInfo, CreateConversation, ForkConversation, ForkedFrom, Notice,
};
use nacre_wire::{ApiError, ErrorKind};
use tokio::sync::oneshot;

use config::ConversationsConfig;
use conversation::{Handle, Reply, Request};
use entry::{Entry, recover};
use index::{Index, Meta};
use log::Log;
use news::News;
pub(crate) use turn::Extra;

use crate::clock::now_ms;
use crate::provider::Models;
use crate::sandboxes::Sandboxes;
use crate::secret::random_id;

/// A request that finds its conversation falling asleep wakes it again.
const TRIES: usize = 3;

/// What a brain is made of.
pub(crate) struct Parts {
    pub(crate) data_dir: PathBuf,
    /// Where the gateway itself answers: models are asked by the way that everybody takes.
    pub(crate) socket: PathBuf,
    pub(crate) config: ConversationsConfig,
    pub(crate) sandboxes: Sandboxes,
    pub(crate) models: Arc<Models>,
    /// Tools besides those of a body and a plan, made for each turn.
    pub(crate) extra: Vec<Extra>,
}

/// Cheap to clone; all clones share it.
#[derive(Clone)]
pub(crate) struct Brain(Arc<Inner>);

struct Inner {
    index: Index,
    socket: PathBuf,
    config: ConversationsConfig,
    sandboxes: Sandboxes,
    models: Arc<Models>,
    extra: Vec<Extra>,
    news: News,
    table: Mutex<BTreeMap<String, Entry>>,
}

impl Brain {
    /// Turns that were under way when the last process ended are said to be interrupted.
    pub(crate) async fn start(parts: Parts) -> io::Result<Self> {
        let Parts { data_dir, socket, config, sandboxes, models, extra } = parts;
        let news = News::default();
        let opening = tokio::task::spawn_blocking(move || {
            let (index, mut all) = Index::open(&data_dir)?;
            all.iter_mut().filter(|meta| meta.working).for_each(|meta| recover(&index, meta));
            Ok::<_, io::Error>((index, all))
        });
        let (index, all) = opening.await.map_err(io::Error::other)??;
        let cut_off = all.iter().filter(|meta| meta.undoing.is_some());
        let cut_off: Vec<String> = cut_off.map(|meta| meta.id.clone()).collect();
        let entry = |meta: Meta| (meta.id.clone(), Entry { meta, awake: None });
        let table = Mutex::new(all.into_iter().map(entry).collect());
        let inner = Inner { index, socket, config, sandboxes, models, extra, news, table };
        let brain = Self(Arc::new(inner));
        cut_off.into_iter().for_each(|id| undoing::finish_later(&brain, id));
        Ok(brain)
    }

    pub(crate) fn list(&self) -> Vec<ConversationInfo> {
        let mut all: Vec<_> = self.0.table().values().map(Entry::info).collect();
        all.sort_by(|a, b| (b.updated_at, &b.id).cmp(&(a.updated_at, &a.id)));
        all
    }

    pub(crate) fn show(&self, id: &str) -> Result<ConversationInfo, ApiError> {
        self.0.table().get(id).map(Entry::info).ok_or_else(|| unknown(id))
    }

    pub(crate) async fn create(
        &self,
        wanted: CreateConversation,
    ) -> Result<ConversationInfo, ApiError> {
        policy::check_role(wanted.role.as_deref())?;
        if let Some(model) = &wanted.model {
            policy::model(model)?;
        }
        let now = now_ms();
        let meta = Meta {
            id: fresh_id()?,
            title: wanted.title.as_deref().map(policy::title).unwrap_or_default(),
            created_at: now,
            updated_at: now,
            role: wanted.role,
            mode: wanted.mode.unwrap_or_default(),
            model: wanted.model,
            parent: None,
            working: false,
            undoing: None,
            seq: 0,
            steps: 0,
            input_tokens: 0,
            output_tokens: 0,
            dollars: None,
        };
        self.add(meta, Vec::new()).await
    }

    /// A conversation of its own with the events of another, up to one of them.
    pub(crate) async fn fork(
        &self,
        id: &str,
        wanted: ForkConversation,
    ) -> Result<ConversationInfo, ApiError> {
        let log = self.log(id).await?;
        let original = self.0.table().get(id).map(|entry| entry.meta.clone());
        let original = original.ok_or_else(|| unknown(id))?;
        let last = log.last();
        let at = wanted.at.unwrap_or(last);
        if at > last {
            let message = format!("there is no event {at}: the last one is {last}");
            return Err(ApiError::new(ErrorKind::InvalidRequest, message));
        }
        let title = match &wanted.title {
            Some(title) => policy::title(title),
            None => original.title.clone(),
        };
        let now = now_ms();
        let meta = Meta {
            id: fresh_id()?,
            title,
            created_at: now,
            updated_at: now,
            parent: Some(ForkedFrom { id: id.to_owned(), seq: at }),
            working: false,
            undoing: None,
            seq: at,
            steps: 0,
            input_tokens: 0,
            output_tokens: 0,
            dollars: None,
            ..original
        };
        self.add(meta, log.until(at)).await
    }

    /// To its end, also when whoever asked for it goes away meanwhile.
    async fn add(&self, meta: Meta, lines: Vec<Bytes>) -> Result<ConversationInfo, ApiError> {
        let adding = tokio::spawn(self.clone().add_now(meta, lines));
        adding.await.map_err(|error| ApiError::new(ErrorKind::Internal, error.to_string()))?
    }

    async fn add_now(
        self,
        mut meta: Meta,
        lines: Vec<Bytes>,
    ) -> Result<ConversationInfo, ApiError> {
        let index = self.0.index.clone();
        let adding = tokio::task::spawn_blocking(move || {
            index.begin(&meta.id, &lines)?;
            if let Some(parent) = &meta.parent {
                index.aside(&parent.id).share_with(&index.aside(&meta.id))?;
            }
            // A fork may end in the middle of a turn.
            recover(&index, &mut meta);
            index.write(&meta)?;
            Ok(meta)
        });
        let meta = blocking("conversations", adding).await?;
        let entry = Entry { meta, awake: None };
        let info = entry.info();
        self.0.table().insert(info.id.clone(), entry);
        self.0.tell(&info.id, info.seq, "created");
        Ok(info)
    }

    /// The events of one, which is awake from then on.
    async fn log(&self, id: &str) -> Result<Arc<Log>, ApiError> {
        Ok(self.wake(id).await?.log)
    }

    /// Asks the conversation's task and waits for it. Once sent, what was asked runs to its end.
    async fn ask<T>(&self, id: &str, request: impl Fn(Reply<T>) -> Request) -> Result<T, ApiError> {
        for _ in 0..TRIES {
            let handle = self.wake(id).await?;
            let (reply, answer) = oneshot::channel();
            if handle.requests.send(request(reply)).await.is_err() {
                continue;
            }
            if let Ok(answer) = answer.await {
                return answer;
            }
        }
        Err(unknown(id))
    }

    async fn wake(&self, id: &str) -> Result<Handle, ApiError> {
        if let Some(handle) = self.0.awake(id)? {
            return Ok(handle);
        }
        let path = self.0.index.journal(id);
        let log = blocking(id, tokio::task::spawn_blocking(move || Log::load(&path))).await?;
        let mut table = self.0.table();
        let entry = table.get_mut(id).ok_or_else(|| unknown(id))?;
        // Somebody may have been faster.
        let handle = match entry.awake.take().filter(Handle::is_awake) {
            Some(handle) => handle,
            None => conversation::start(self.0.clone(), entry.meta.clone(), Arc::new(log)),
        };
        entry.awake = Some(handle.clone());
        Ok(handle)
    }

    /// For a supervisor, one line each: where each conversation that is awake is, then what happens.
    pub(crate) fn news(&self) -> Response {
        let listener = self.0.news.listen();
        let notice = |entry: &Entry| {
            let info = entry.awake.as_ref().map(|_| entry.info())?;
            Some(Notice { id: info.id, seq: info.seq, kind: "now".to_owned() })
        };
        let now = self.0.table().values().filter_map(notice).collect();
        stream::notices(now, listener)
    }
}

impl Inner {
    fn table(&self) -> MutexGuard<'_, BTreeMap<String, Entry>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn awake(&self, id: &str) -> Result<Option<Handle>, ApiError> {
        let table = self.table();
        let entry = table.get(id).ok_or_else(|| unknown(id))?;
        Ok(entry.awake.clone().filter(Handle::is_awake))
    }

    /// It is on disk when this returns.
    async fn put(&self, meta: Meta) -> Result<(), ApiError> {
        let (index, written) = (self.index.clone(), meta.clone());
        let writing = tokio::task::spawn_blocking(move || index.write(&written));
        blocking(&meta.id, writing).await?;
        if let Some(entry) = self.table().get_mut(&meta.id) {
            entry.meta = meta;
        }
        Ok(())
    }

    fn tell(&self, id: &str, seq: u64, kind: &str) {
        self.news.tell(Notice { id: id.to_owned(), seq, kind: kind.to_owned() });
    }
}

fn fresh_id() -> Result<String, ApiError> {
    random_id("c-").map_err(|error| ApiError::io("random numbers", &error))
}

fn unknown(id: &str) -> ApiError {
    ApiError::new(ErrorKind::NotFound, format!("no conversation \"{}\"", id.escape_debug()))
        .hint("nacre conversations shows them all")
}

async fn blocking<T>(
    what: &str,
    task: tokio::task::JoinHandle<io::Result<T>>,
) -> Result<T, ApiError> {
    let done = task.await.map_err(|error| ApiError::new(ErrorKind::Internal, error.to_string()))?;
    done.map_err(|error| ApiError::io(what, &error))
}
