//! The task that owns one conversation while it is awake.
//!
//! ```text
//!  asleep ──somebody asks──▶ idle ◀──────── the turn ends ────────┐
//!     ▲                       │ └─ send ─▶ working ◀─▶ asking ─────┤
//!     └── nobody for a while ─┘                 └── stop ──────────┘
//! ```

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nacre_agent::Mode;
use nacre_agent::events::Update;
use nacre_wire::conductor::{
    Approve, ChangeConversation, ConversationMode, ConversationState, Sent, UndoConversation,
    UndoneList,
};
use nacre_wire::files::Remove;
use nacre_wire::{ApiError, ErrorKind};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::index::Meta;
use super::log::Log;
use super::memory::Memory;
use super::permission::Question;
use super::{Inner, aside, blocking, policy, turn, undo, undoing};
use crate::clock::now_ms;
use crate::provider::{Allowance, Meter};

/// For a sandbox to remove what is to be forgotten.
const LEAVING: Duration = Duration::from_secs(5);
/// Without a word from anybody, before it falls asleep.
const QUIET: Duration = Duration::from_secs(300);

pub(super) type Reply<T> = oneshot::Sender<Result<T, ApiError>>;

pub(super) enum Request {
    Send {
        text: String,
        reply: Reply<Sent>,
    },
    Stop {
        reply: Reply<()>,
    },
    Approve {
        answer: Approve,
        reply: Reply<()>,
    },
    Change {
        wanted: ChangeConversation,
        reply: Reply<()>,
    },
    Undo {
        wanted: UndoConversation,
        reply: Reply<UndoneList>,
    },
    /// What is left of an undo that was cut off.
    Finish {
        reply: Reply<()>,
    },
    Delete {
        reply: Reply<()>,
    },
}

/// The way to the task, and what can be seen without asking it.
#[derive(Clone)]
pub(super) struct Handle {
    pub(super) requests: mpsc::Sender<Request>,
    pub(super) log: Arc<Log>,
    question: Question,
    working: Arc<AtomicBool>,
}

impl Handle {
    pub(super) fn is_awake(&self) -> bool {
        !self.requests.is_closed()
    }

    pub(super) fn state(&self) -> ConversationState {
        self.question.state(self.working.load(Ordering::SeqCst))
    }
}

/// A turn under way.
pub(super) struct Turn {
    /// Gives the memory back, unless that could not be written.
    task: JoinHandle<Option<Memory>>,
    cancel: CancellationToken,
}

/// What asking models costs, and which one it is for.
pub(super) struct Paid {
    pub(super) model: String,
    pub(super) allowance: Allowance,
}

pub(super) struct Conversation {
    pub(super) brain: Arc<Inner>,
    pub(super) meta: Meta,
    pub(super) log: Arc<Log>,
    pub(super) question: Question,
    pub(super) mode: watch::Sender<Mode>,
    /// Read when it is first needed; a turn has it while it is under way.
    memory: Option<Memory>,
    turn: Option<Turn>,
    pub(super) paid: Option<Paid>,
    working: Arc<AtomicBool>,
}

/// Whether there is anything left to own.
#[derive(PartialEq, Eq)]
enum Go {
    On,
    Gone,
}

pub(super) fn start(brain: Arc<Inner>, meta: Meta, log: Arc<Log>) -> Handle {
    let (requests, receiver) = mpsc::channel(16);
    let (question, working) = (Question::default(), Arc::new(AtomicBool::new(false)));
    let handle =
        Handle { requests, log: log.clone(), question: question.clone(), working: working.clone() };
    let mode = watch::Sender::new(mode(meta.mode));
    let (memory, turn, paid) = (None, None, None);
    let conversation =
        Conversation { brain, meta, log, question, mode, memory, turn, paid, working };
    tokio::spawn(conversation.run(receiver));
    handle
}

pub(super) fn mode(mode: ConversationMode) -> Mode {
    match mode {
        ConversationMode::Plan => Mode::Plan,
        ConversationMode::Ask => Mode::Ask,
        ConversationMode::Auto => Mode::Auto,
    }
}

impl Conversation {
    async fn run(mut self, mut requests: mpsc::Receiver<Request>) {
        loop {
            let resting = self.turn.is_none();
            tokio::select! {
                request = requests.recv() => match request {
                    Some(request) => if self.serve(request).await == Go::Gone { return },
                    None => return,
                },
                memory = ended(&mut self.turn) => self.turn_ended(memory).await,
                () = tokio::time::sleep(QUIET), if resting => if self.may_sleep() { break },
            }
        }
        if self.paid.is_some()
            && let Err(error) = self.brain.models.end_conversation(&self.meta.id).await
        {
            tracing::error!(%error, "the policy token of a conversation stays in control.db");
        }
    }

    /// Only when nobody reads along or is about to ask: what they would hold is not what the next to wake
    /// it gets.
    fn may_sleep(&self) -> bool {
        let mut table = self.brain.table();
        let ours = 2 + usize::from(self.memory.is_some());
        let alone = Arc::strong_count(&self.log) <= ours;
        if let Some(entry) = table.get_mut(&self.meta.id).filter(|_| alone) {
            entry.awake = None;
        }
        alone
    }

    async fn serve(&mut self, request: Request) -> Go {
        // Who has seen its end need not wait for what is left to do about it.
        if self.turn.is_some() && !self.working.load(Ordering::SeqCst) {
            let memory = ended(&mut self.turn).await;
            self.turn_ended(memory).await;
        }
        // Whoever asked may be gone; the work is done all the same.
        match request {
            Request::Send { text, reply } => self.send(text, reply).await,
            Request::Stop { reply } => {
                self.stop().await;
                let _ = reply.send(Ok(()));
            }
            Request::Approve { answer, reply } => {
                let _ = reply.send(self.question.answer(&answer));
            }
            Request::Change { wanted, reply } => {
                let _ = reply.send(self.change(wanted).await);
            }
            Request::Undo { wanted, reply } => {
                let _ = reply.send(self.undo(&wanted).await);
            }
            Request::Finish { reply } => {
                let _ = reply.send(undoing::finish(self).await);
            }
            Request::Delete { reply } => {
                let deleted = self.delete().await;
                let go = if deleted.is_ok() { Go::Gone } else { Go::On };
                let _ = reply.send(deleted);
                return go;
            }
        }
        Go::On
    }

    fn state(&self) -> ConversationState {
        self.question.state(self.turn.is_some())
    }

    /// The answer comes when the message is written down, and the turn goes on by itself.
    async fn send(&mut self, text: String, reply: Reply<Sent>) {
        let may = match self.may_send(&text) {
            Ok(()) => undoing::finish(self).await,
            Err(error) => Err(error),
        };
        if let Err(error) = may {
            let _ = reply.send(Err(error));
            return;
        }
        let mut memory = match self.memory().await {
            Ok(memory) => memory,
            Err(error) => {
                let _ = reply.send(Err(error));
                return;
            }
        };
        let doing = memory.journal.doing.clone();
        let prepared = match turn::prepare(self, memory.turns + 1, doing).await {
            Ok(prepared) => prepared,
            Err(error) => {
                self.memory = Some(memory);
                let _ = reply.send(Err(error));
                return;
            }
        };
        if self.meta.title.is_empty() {
            self.meta.title = policy::title(&text);
        }
        self.meta.working = true;
        self.meta.updated_at = now_ms();
        if let Err(error) = self.brain.put(self.meta.clone()).await {
            self.meta.working = false;
            self.memory = Some(memory);
            let _ = reply.send(Err(error));
            return;
        }
        memory.journal.meter = self.meter();
        memory.journal.accepted = Some(reply);
        memory.journal.working = self.working.clone();
        memory.turns += 1;
        let cancel = CancellationToken::new();
        self.working.store(true, Ordering::SeqCst);
        let task = tokio::spawn(turn::run(prepared, memory, text, cancel.clone()));
        self.turn = Some(Turn { task, cancel });
    }

    fn may_send(&self, text: &str) -> Result<(), ApiError> {
        policy::may_begin(&self.state())?;
        policy::check_message(text)
    }

    fn meter(&self) -> Option<Meter> {
        let allowance = &self.paid.as_ref()?.allowance;
        Some(Meter::new(self.brain.models.clone(), allowance))
    }

    /// As it was left, or read from the journal.
    pub(super) async fn memory(&mut self) -> Result<Memory, ApiError> {
        if let Some(memory) = self.memory.take() {
            return Ok(memory);
        }
        let (path, id) = (self.brain.index.journal(&self.meta.id), self.meta.id.clone());
        let (log, news) = (self.log.clone(), self.brain.news.clone());
        let reading = tokio::task::spawn_blocking(move || Memory::load(&path, &id, log, news));
        blocking(&self.meta.id, reading).await
    }

    /// Writes down what happened outside of a turn. A memory that cannot be written to is not kept: what
    /// is on disk says more.
    pub(super) async fn note(&mut self, updates: Vec<Update>) -> Result<(), ApiError> {
        if updates.is_empty() {
            return Ok(());
        }
        let mut memory = self.memory().await?;
        let kept = updates.into_iter().try_for_each(|update| memory.keep(update));
        kept.map_err(|error| ApiError::io("the conversation", &error))?;
        self.memory = Some(memory);
        Ok(())
    }

    async fn turn_ended(&mut self, memory: Option<Memory>) {
        self.turn = None;
        let memory = match memory {
            Some(memory) => Ok(memory),
            // It broke off: what was kept says so when it is read.
            None => self.memory().await,
        };
        let dollars = self.meter().and_then(|meter| meter.dollars()).filter(|sum| *sum > 0.0);
        self.meta.dollars = dollars.or(self.meta.dollars);
        self.meta.working = false;
        self.meta.updated_at = now_ms();
        self.meta.seq = self.log.last();
        match memory {
            Ok(memory) => {
                memory.describe(&mut self.meta);
                self.memory = Some(memory);
            }
            Err(error) => {
                tracing::error!(id = self.meta.id, %error, "a conversation is lost to us")
            }
        }
        if let Err(error) = self.brain.put(self.meta.clone()).await {
            tracing::error!(id = self.meta.id, %error, "a conversation cannot be written down");
        }
        self.working.store(false, Ordering::SeqCst);
    }

    async fn stop(&mut self) {
        if let Some(turn) = &self.turn {
            turn.cancel.cancel();
            let memory = ended(&mut self.turn).await;
            self.turn_ended(memory).await;
        }
    }

    async fn change(&mut self, wanted: ChangeConversation) -> Result<(), ApiError> {
        policy::check_role(wanted.role.as_deref())?;
        if let Some(model) = &wanted.model {
            policy::model(model)?;
        }
        let mut meta = self.meta.clone();
        if let Some(title) = &wanted.title {
            meta.title = policy::title(title);
        }
        meta.role = wanted.role.or(meta.role);
        meta.mode = wanted.mode.unwrap_or(meta.mode);
        meta.model = wanted.model.or(meta.model);
        meta.updated_at = now_ms();
        self.brain.put(meta.clone()).await?;
        self.meta = meta;
        self.mode.send_replace(mode(self.meta.mode));
        self.brain.tell(&self.meta.id, self.log.last(), "changed");
        Ok(())
    }

    async fn undo(&mut self, wanted: &UndoConversation) -> Result<UndoneList, ApiError> {
        policy::may_begin(&self.state())?;
        undo::undo(self, wanted).await
    }

    async fn delete(&mut self) -> Result<(), ApiError> {
        self.stop().await;
        let (index, id) = (self.brain.index.clone(), self.meta.id.clone());
        let removing = tokio::task::spawn_blocking(move || index.remove(&id));
        blocking(&self.meta.id, removing).await?;
        self.brain.table().remove(&self.meta.id);
        self.leave_sandboxes().await;
        if self.paid.take().is_some() {
            self.brain.models.end_conversation(&self.meta.id).await?;
        }
        self.brain.tell(&self.meta.id, self.log.last(), "deleted");
        self.log.close();
        Ok(())
    }
}

impl Conversation {
    /// What it has put aside in sandboxes that run; of others, it went with their memory.
    async fn leave_sandboxes(&self) {
        let began = undo::began(&self.log);
        let acted_on: BTreeSet<_> = began.into_iter().map(|began| began.sandbox).collect();
        let found = acted_on.iter().filter_map(|id| self.brain.sandboxes.find(id).ok());
        for sandbox in found.filter(|sandbox| sandbox.require_running().is_ok()) {
            let path = aside::scratch(&self.meta.id).as_str().into();
            let remove = Remove { path, recursive: true, if_match: None };
            let removed = tokio::time::timeout(LEAVING, sandbox.client().remove(&remove)).await;
            if let Ok(Err(error)) = removed
                && error.kind() != ErrorKind::NotFound
            {
                tracing::debug!(%error, "files of a conversation stay until their sandbox stops");
            }
        }
    }
}

/// Waits for ever when there is no turn.
async fn ended(turn: &mut Option<Turn>) -> Option<Memory> {
    match turn {
        Some(turn) => match (&mut turn.task).await {
            Ok(memory) => memory,
            Err(error) => {
                tracing::error!(%error, "a turn broke off");
                None
            }
        },
        None => std::future::pending().await,
    }
}
