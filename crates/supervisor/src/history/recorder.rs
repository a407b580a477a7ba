use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use nacre_history::History;
use nacre_wire::history::{Author, HistoryState};
use nacre_wire::{ApiError, ErrorKind};
use tokio::sync::mpsc::{self, UnboundedSender};
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::activity::Activity;
use super::convert;
use super::keeper::{self, Keeper, Message, Place};
use super::state::Manner;
use crate::events::Events;
use crate::watch::{Calm, Watchers};

/// How long somebody who is about to change files waits for what came before to be recorded. Then
/// it goes ahead: what is recorded late is put down to both.
const PATIENCE: Duration = Duration::from_secs(10);

/// The way to the keeper. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Recorder(Option<Arc<Shared>>);

#[derive(Debug)]
pub(super) struct Shared {
    keeper: UnboundedSender<Message>,
    next: AtomicU64,
    pub(super) view: View,
}

/// What the keeper shows of itself.
#[derive(Debug)]
pub(super) struct View {
    /// Nothing waits to be recorded, as far as the keeper has heard.
    pub(super) clean: AtomicBool,
    /// Nothing was ever in the workspace, as far as the keeper has seen.
    pub(super) untouched: AtomicBool,
    /// The workspace.
    root: PathBuf,
    /// Set while the workspace is watched.
    calm: Mutex<Option<Calm>>,
    state: Mutex<HistoryState>,
    set_aside: Mutex<Option<String>>,
}

impl View {
    pub(super) fn set_state(&self, state: HistoryState) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = state;
    }

    pub(super) fn set_calm(&self, calm: Option<Calm>) {
        *self.calm.lock().unwrap_or_else(PoisonError::into_inner) = calm;
    }

    pub(super) fn set_aside(&self, name: String) {
        *self.set_aside.lock().unwrap_or_else(PoisonError::into_inner) = Some(name);
    }

    pub(super) fn aside(&self) -> Option<String> {
        self.set_aside.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn state(&self) -> HistoryState {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether everything up to now is recorded. Asked in the order in which a change gets there.
    fn is_settled(&self) -> bool {
        let untouched = || self.untouched.load(Ordering::SeqCst);
        // Asked again: by now it may have been touched, recorded and emptied.
        if untouched() && keeper::is_empty(&self.root) && untouched() {
            return true;
        }
        let calm = self.calm.lock().unwrap_or_else(PoisonError::into_inner);
        calm.as_ref().is_some_and(Calm::is_calm) && self.clean.load(Ordering::SeqCst)
    }
}

impl Recorder {
    /// For a supervisor without a place to keep anything.
    pub fn off() -> Self {
        Self(None)
    }

    /// Starts the keeper on the current runtime.
    pub fn start(place: Place, watchers: Watchers, events: Events) -> std::io::Result<Self> {
        let (sender, inbox) = mpsc::unbounded_channel();
        let view = View {
            clean: AtomicBool::new(false),
            untouched: AtomicBool::new(false),
            root: place.root.clone(),
            calm: Mutex::default(),
            state: Mutex::new(HistoryState::Starting),
            set_aside: Mutex::default(),
        };
        let shared = Arc::new(Shared { keeper: sender, next: AtomicU64::new(1), view });
        let keeper = Keeper::new(place, watchers, events, Arc::downgrade(&shared));
        keeper::spawn(keeper, inbox)?;
        Ok(Self(Some(shared)))
    }

    /// To be awaited before something changes files: what changed before is recorded by then.
    pub(crate) async fn begin(&self, manner: Manner, authors: Vec<Author>) -> Activity {
        let Some(shared) = &self.0 else { return Activity { number: 0, keeper: None } };
        let authors = authors.into_iter().map(convert::author).collect();
        let number = shared.next.fetch_add(1, Ordering::Relaxed);
        let settled = shared.view.is_settled();
        let (reply, answered) = oneshot::channel();
        let reply = (!settled).then_some(reply);
        let _ = shared.keeper.send(Message::Begin { number, manner, authors, reply });
        if !settled && timeout(PATIENCE, answered).await.is_err() {
            tracing::warn!("history is slow; going ahead without it");
        }
        Activity { number, keeper: Some(shared.keeper.clone()) }
    }

    /// Runs a job on the keeper's thread. It is carried out even when the caller goes away.
    pub(super) async fn job<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Keeper, &mut History) -> Result<T, ApiError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let Some(shared) = &self.0 else { return Err(off()) };
        let (reply, answered) = oneshot::channel();
        let job = Box::new(move |keeper: &mut Keeper, history: Result<&mut History, ApiError>| {
            let done = history.and_then(|history| job(keeper, history));
            let _ = reply.send(done);
        });
        let _ = shared.keeper.send(Message::Job(job));
        answered.await.unwrap_or_else(|_| {
            Err(ApiError::new(ErrorKind::Unavailable, "the supervisor is stopping"))
        })
    }

    /// Records what is still to be recorded, before everything ends.
    pub async fn finish(&self) {
        let Some(shared) = &self.0 else { return };
        let (reply, answered) = oneshot::channel();
        let _ = shared.keeper.send(Message::Finish(reply));
        let _ = timeout(PATIENCE, answered).await;
    }

    pub(super) fn shared(&self) -> Option<&Arc<Shared>> {
        self.0.as_ref()
    }
}

fn off() -> ApiError {
    ApiError::new(ErrorKind::Unsupported, "this sandbox keeps no history")
}
