//! Tools that act on a sandbox, with every change tied to the call that made it.
//!
//! What a call does is recorded under the number of its turn and of its event ([`policy::mark`]), which no
//! other call of the conversation has: some services number their calls anew in each reply.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use nacre_agent::body::{self, Body, Command, Entry, File, Opened, Output, Program, Remote, Write};
use nacre_agent::events::Update;
use nacre_agent::model::{Call, Tool};
use nacre_agent::tools::{Answer, Context, Intent, Ready, Toolbox};
use nacre_wire::ErrorKind;
use nacre_wire::client::{Attended, Client, ListHistory};
use nacre_wire::exec::Exit;
use nacre_wire::history::Author;

use super::aside::Aside;
use super::policy;

/// Checkpoints that are looked through for those of a call that has just ended.
const LOOKED_AT: u64 = 100;
const PATIENCE: Duration = Duration::from_secs(10);

/// The number of the event that announced the call that is under way.
pub(super) type Doing = Arc<AtomicU64>;

/// A sandbox as one turn acts on it.
#[derive(Clone)]
pub(super) struct Acting {
    remote: Remote,
    turn: u64,
    doing: Doing,
    aside: Aside,
}

impl Acting {
    pub(super) fn new(
        client: Client,
        conversation: &str,
        turn: u64,
        doing: Doing,
        aside: Aside,
    ) -> Self {
        Self { remote: Remote::new(client, conversation), turn, doing, aside }
    }

    fn mark(&self, call: Option<&String>) -> Option<String> {
        call.map(|_| policy::mark(self.turn, self.doing.load(Ordering::Relaxed)))
    }
}

#[async_trait]
impl Body for Acting {
    async fn execute(&self, command: &Command, output: &mut Output<'_>) -> body::Result<Exit> {
        let call = self.mark(command.call.as_ref());
        self.remote.execute(&Command { call, ..command.clone() }, output).await
    }

    async fn read_file(&self, path: &str, at_most: u64) -> body::Result<File> {
        match self.remote.read_file(path, at_most).await {
            Err(error) if error.kind == ErrorKind::NotFound => {
                let kept = self.aside.read(path, at_most).await;
                kept.map(|bytes| File { bytes, version: String::new() }).ok_or(error)
            }
            read => read,
        }
    }

    async fn write_file(&self, path: &str, write: &Write) -> body::Result<()> {
        if write.call.is_none() && self.aside.keep(path, &write.bytes).await {
            // It can be read by its path from now on, whatever becomes of the sandbox.
            if let Err(error) = self.remote.write_file(path, write).await {
                tracing::debug!(path, %error, "what was put aside is on the host alone");
            }
            return Ok(());
        }
        let call = self.mark(write.call.as_ref());
        self.remote.write_file(path, &Write { call, ..write.clone() }).await
    }

    async fn list_files(&self, path: &str) -> body::Result<Vec<Entry>> {
        self.remote.list_files(path).await
    }

    async fn open(&self, program: &Program) -> body::Result<Opened> {
        self.remote.open(program).await
    }
}

/// Tools that tell, after each change, where history has it.
pub(super) struct Recorded {
    tools: Arc<dyn Toolbox>,
    by: By,
    keeper: Arc<Keeper>,
}

/// Who changes the files that a call changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    /// The call itself: what it asks of the body names it.
    Call,
    /// A program that was there before and that nobody names. Whether it changes anything is its own
    /// word, so it is looked at every time.
    Program,
}

/// The history of the sandbox, for one turn of a conversation.
pub(super) struct Keeper {
    pub(super) client: Client,
    pub(super) conversation: String,
    /// By id.
    pub(super) sandbox: String,
    pub(super) turn: u64,
    pub(super) doing: Doing,
}

impl Recorded {
    pub(super) fn new(tools: Arc<dyn Toolbox>, by: By, keeper: Arc<Keeper>) -> Self {
        Self { tools, by, keeper }
    }
}

#[async_trait]
impl Toolbox for Recorded {
    async fn refresh(&self) -> Vec<Update> {
        self.tools.refresh().await
    }

    fn tools(&self) -> Vec<Tool> {
        self.tools.tools()
    }

    fn prepare(&self, call: &Call) -> Option<Result<Box<dyn Ready>, String>> {
        let prepared = self.tools.prepare(call)?;
        let (by, keeper) = (self.by, self.keeper.clone());
        Some(prepared.map(|ready| Box::new(RecordedCall { ready, by, keeper }) as Box<dyn Ready>))
    }
}

struct RecordedCall {
    ready: Box<dyn Ready>,
    by: By,
    keeper: Arc<Keeper>,
}

#[async_trait]
impl Ready for RecordedCall {
    fn intent(&self) -> Intent {
        self.ready.intent()
    }

    async fn run(self: Box<Self>, context: &mut Context<'_>) -> Answer {
        let Self { ready, by, keeper } = *self;
        let (attended, looks) = match by {
            By::Call => (None, ready.intent().changes),
            By::Program => (keeper.attend().await, true),
        };
        let answer = ready.run(context).await;
        if looks {
            let checkpoints = keeper.checkpoints().await;
            if !checkpoints.is_empty() {
                (context.tell)(Update::Checkpoints {
                    tool_call_id: context.call.to_owned(),
                    sandbox: keeper.sandbox.clone(),
                    checkpoints,
                });
            }
        }
        // Until what changed meanwhile is recorded.
        drop(attended);
        answer
    }
}

impl Keeper {
    /// Has the call at work, for as long as what this gives is held.
    async fn attend(&self) -> Option<Attended> {
        let mark = policy::mark(self.turn, self.doing.load(Ordering::Relaxed));
        let by = [Author::Conversation { id: self.conversation.clone(), call: Some(mark) }];
        match tokio::time::timeout(PATIENCE, self.client.attend(&by)).await {
            Ok(Ok(attended)) => Some(attended),
            // A supervisor of an earlier version does not know of this.
            Ok(Err(error)) => {
                tracing::debug!(%error, "a call is not tied to what it changes");
                None
            }
            Err(_) => {
                tracing::warn!(sandbox = self.sandbox, "history does not answer");
                None
            }
        }
    }

    /// Of the call that has just ended, oldest first. Asking is what makes history look.
    async fn checkpoints(&self) -> Vec<u64> {
        let mark = (self.turn, self.doing.load(Ordering::Relaxed));
        let wanted = ListHistory {
            conversation: Some(self.conversation.clone()),
            limit: Some(LOOKED_AT),
            ..ListHistory::default()
        };
        let page = match tokio::time::timeout(PATIENCE, self.client.history(&wanted)).await {
            Ok(Ok(page)) => page,
            Ok(Err(error)) => {
                tracing::debug!(%error, "where history has a call is not known");
                return Vec::new();
            }
            Err(_) => {
                tracing::warn!(sandbox = self.sandbox, "history does not answer");
                return Vec::new();
            }
        };
        let of_call = page.checkpoints.iter().filter(|checkpoint| {
            policy::marks(&self.conversation, checkpoint).any(|found| found == mark)
        });
        let mut ids: Vec<u64> = of_call.map(|checkpoint| checkpoint.id).collect();
        ids.sort_unstable();
        ids
    }
}
