//! The loop: ask, call, tell, until there is nothing more to do or a limit is reached.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::body::{Body, Expected, Write};
use crate::events::{Content, Ended, ToolKind, ToolStatus, Update};
use crate::journal::Journal;
use crate::model::{self, Call, Model, Outcome, Piece, Reply, Request, Stop, Tool};
use crate::session::Session;
use crate::tools::{Answer, Context, Intent, Ready, Toolbox};

/// How often a model is asked the same before that is given up.
const TRIES: u32 = 4;
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// What is longer goes to a file, and the model gets both ends and the path.
const LONGEST_ANSWER: usize = 16 * 1024;
/// Pieces of text that come faster than this are put together before they are kept.
const AT_ONCE: Duration = Duration::from_millis(20);
/// But no more than this.
const PIECE: usize = 1024;

/// What the agent may do without asking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Look, and change nothing.
    Plan,
    /// Ask before each change.
    Ask,
    #[default]
    Auto,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How often the model is asked in one turn.
    pub steps: u64,
    pub time: Duration,
}

/// Asked before a change, in [`Mode::Ask`].
#[async_trait]
pub trait Permission: Send + Sync {
    async fn ask(&self, call: &Call, intent: &Intent) -> bool;
}

/// Everything that one turn needs besides what was said.
pub struct Agent {
    pub model: Arc<dyn Model>,
    pub body: Arc<dyn Body>,
    pub toolboxes: Vec<Arc<dyn Toolbox>>,
    pub permission: Arc<dyn Permission>,
    pub system: String,
    pub mode: Mode,
    pub limits: Limits,
    /// Where long output goes, in the body.
    pub scratch: String,
}

impl Agent {
    /// One turn: from what the owner says to the end. Fails only when an event cannot be kept; nothing
    /// that it would have announced has happened then.
    pub async fn turn(
        &self,
        session: &mut Session,
        journal: &mut dyn Journal,
        input: &str,
        cancel: &CancellationToken,
    ) -> io::Result<Ended> {
        let mut turn = Turn { agent: self, session, journal, strikes: 0 };
        turn.keep(Update::UserMessageChunk { content: Content::text(input) })?;
        let ended = tokio::select! {
            biased;
            () = cancel.cancelled() => Ok(Ended::Cancelled),
            () = tokio::time::sleep(self.limits.time) => Ok(Ended::TimeOut),
            ended = turn.steps() => ended,
        }?;
        turn.keep(Update::Ended { how: ended.clone() })?;
        Ok(ended)
    }

    fn tools(&self) -> Vec<Tool> {
        self.toolboxes.iter().flat_map(|toolbox| toolbox.tools()).collect()
    }

    fn prepare(&self, call: &Call) -> Result<Box<dyn Ready>, String> {
        let prepared = self.toolboxes.iter().find_map(|toolbox| toolbox.prepare(call));
        prepared.unwrap_or_else(|| Err(format!("there is no tool \"{}\"", call.name)))
    }
}

struct Turn<'a> {
    agent: &'a Agent,
    session: &'a mut Session,
    journal: &'a mut dyn Journal,
    /// Replies in a row with a call that cannot be made.
    strikes: u32,
}

impl Turn<'_> {
    fn keep(&mut self, update: Update) -> io::Result<()> {
        let event = self.journal.keep(update)?;
        self.session.see(&event.update);
        Ok(())
    }

    async fn steps(&mut self) -> io::Result<Ended> {
        let tools = self.agent.tools();
        for _ in 0..self.agent.limits.steps {
            let reply = match self.ask(&tools).await? {
                Ok(reply) => reply,
                Err(model::Error::Spent(message)) => return Ok(Ended::Budget(message)),
                Err(error) => return Ok(Ended::Model(error.to_string())),
            };
            self.keep(Update::Reply { reply: reply.clone() })?;
            self.keep(Update::UsageUpdate { used: self.session.usage })?;
            if reply.calls.is_empty() {
                return Ok(match reply.stop {
                    Stop::Done | Stop::Calls => Ended::Done,
                    Stop::Length => Ended::Model("its answer was longer than it may be".to_owned()),
                    Stop::Filtered => Ended::Model("the service cut its answer off".to_owned()),
                });
            }
            if let Some(reason) = self.act(&reply.calls).await? {
                return Ok(Ended::Invalid(reason));
            }
        }
        Ok(Ended::MaxSteps)
    }

    /// Asks until an answer comes or it makes no sense to go on.
    async fn ask(&mut self, tools: &[Tool]) -> io::Result<Result<Reply, model::Error>> {
        let mut pause = FIRST_PAUSE;
        let mut tries = 0;
        loop {
            tries += 1;
            let error = match self.ask_once(tools).await? {
                Ok(reply) => return Ok(Ok(reply)),
                Err(error) => error,
            };
            if !error.may_pass() || tries == TRIES {
                return Ok(Err(error));
            }
            let again = match &error {
                model::Error::Busy { again: Some(again), .. } => *again,
                _ => pause,
            };
            self.keep(Update::Retry { reason: error.to_string() })?;
            tokio::time::sleep(again.min(LONGEST_PAUSE)).await;
            pause *= 2;
        }
    }

    async fn ask_once(&mut self, tools: &[Tool]) -> io::Result<Result<Reply, model::Error>> {
        let Self { agent, session, journal, .. } = self;
        let request = Request { system: &agent.system, messages: &session.messages, tools };
        let mut told = Chunks::new(*journal);
        let mut pieces = |piece| told.piece(piece);
        let reply = agent.model.respond(&request, &mut pieces).await;
        told.finish()?;
        Ok(reply)
    }

    /// Makes the calls of one reply, in order. Gives the reason when the model calls what cannot be
    /// called for the second time in a row.
    async fn act(&mut self, calls: &[Call]) -> io::Result<Option<String>> {
        let mut refused = None;
        for call in calls {
            match self.agent.prepare(call) {
                Ok(ready) => self.make(call, ready).await?,
                Err(reason) => {
                    self.refuse(call, &reason)?;
                    refused.get_or_insert(reason);
                }
            }
        }
        match refused {
            None => self.strikes = 0,
            Some(reason) => {
                self.strikes += 1;
                if self.strikes > 1 {
                    return Ok(Some(reason));
                }
            }
        }
        Ok(None)
    }

    fn refuse(&mut self, call: &Call, reason: &str) -> io::Result<()> {
        let intent = Intent {
            title: call.name.clone(),
            kind: ToolKind::Other,
            locations: Vec::new(),
            changes: false,
        };
        self.announce(call, intent)?;
        self.finish(call, Answer { text: reason.to_owned(), failed: true, content: Vec::new() })
    }

    async fn make(&mut self, call: &Call, ready: Box<dyn Ready>) -> io::Result<()> {
        let intent = ready.intent();
        self.announce(call, intent.clone())?;
        if let Some(refusal) = self.may(call, &intent).await? {
            return self.finish(call, Answer { text: refusal, failed: true, content: Vec::new() });
        }
        let mut kept = Ok(());
        let mut answer = {
            let Self { session, journal, .. } = self;
            let mut tell = |update| {
                if kept.is_ok() {
                    kept = journal.keep(update).map(|event| session.see(&event.update));
                }
            };
            ready.run(&mut Context { call: &call.id, tell: &mut tell }).await
        };
        kept?;
        if answer.text.len() > LONGEST_ANSWER {
            answer.text = self.shorten(&call.id, answer.text).await;
        }
        self.finish(call, answer)
    }

    /// `None`, or why not.
    async fn may(&mut self, call: &Call, intent: &Intent) -> io::Result<Option<String>> {
        match self.agent.mode {
            _ if !intent.changes => Ok(None),
            Mode::Auto => Ok(None),
            Mode::Plan => {
                Ok(Some("nothing may be changed while planning; say what you would do".to_owned()))
            }
            Mode::Ask => {
                let tool_call_id = call.id.clone();
                let title = intent.title.clone();
                self.keep(Update::PermissionRequest { tool_call_id, title })?;
                let allowed = self.agent.permission.ask(call, intent).await;
                let tool_call_id = call.id.clone();
                self.keep(Update::PermissionOutcome { tool_call_id, allowed })?;
                Ok((!allowed).then(|| "the owner does not want this".to_owned()))
            }
        }
    }

    fn announce(&mut self, call: &Call, intent: Intent) -> io::Result<()> {
        self.keep(Update::ToolCall {
            tool_call_id: call.id.clone(),
            title: intent.title,
            kind: intent.kind,
            status: ToolStatus::Pending,
            raw_input: call.arguments.clone(),
            locations: intent.locations,
        })
    }

    fn finish(&mut self, call: &Call, answer: Answer) -> io::Result<()> {
        let Answer { text, failed, content } = answer;
        let status = if failed { ToolStatus::Failed } else { ToolStatus::Completed };
        let outcome = Outcome { call: call.id.clone(), name: call.name.clone(), text, failed };
        let tool_call_id = call.id.clone();
        self.keep(Update::ToolCallUpdate {
            tool_call_id,
            status,
            content,
            raw_output: Some(outcome),
        })
    }

    /// The whole is in a file that the model can read; it gets both ends.
    async fn shorten(&self, call: &str, text: String) -> String {
        let name: String = call.chars().filter(char::is_ascii_alphanumeric).take(40).collect();
        // Some services number the calls of each reply anew.
        let path = format!("{}/{}-{name}.txt", self.agent.scratch, self.session.steps);
        let half = LONGEST_ANSWER / 2;
        let head = &text[..text.floor_char_boundary(half)];
        let tail = &text[text.ceil_char_boundary(text.len() - half)..];
        let write = Write {
            bytes: text.clone().into_bytes(),
            expected: Expected::Anything,
            call: Some(call.to_owned()),
        };
        let left = text.len() - head.len() - tail.len();
        let place = match self.agent.body.write_file(&path, &write).await {
            Ok(()) => format!("the whole is in {path}"),
            Err(error) => format!("the whole could not be kept: {error}"),
        };
        format!("{head}\n[{left} bytes left out here; {place}]\n{tail}")
    }
}

/// Pieces of what the model says, put together to what is worth a line.
struct Chunks<'a> {
    journal: &'a mut dyn Journal,
    waiting: Option<Piece>,
    /// When something was kept.
    last: Option<Instant>,
    kept: io::Result<()>,
}

impl<'a> Chunks<'a> {
    fn new(journal: &'a mut dyn Journal) -> Self {
        Self { journal, waiting: None, last: None, kept: Ok(()) }
    }

    fn piece(&mut self, piece: Piece) {
        let joined = match (self.waiting.take(), piece) {
            (Some(Piece::Text(before)), Piece::Text(more)) => Piece::Text(before + &more),
            (Some(Piece::Thought(before)), Piece::Thought(more)) => Piece::Thought(before + &more),
            (Some(other), piece) => {
                self.keep(other);
                piece
            }
            (None, piece) => piece,
        };
        let (Piece::Text(text) | Piece::Thought(text)) = &joined;
        if text.len() >= PIECE || self.last.is_none_or(|last| last.elapsed() >= AT_ONCE) {
            self.keep(joined);
        } else {
            self.waiting = Some(joined);
        }
    }

    fn keep(&mut self, piece: Piece) {
        if self.kept.is_err() {
            return;
        }
        let update = match piece {
            Piece::Text(text) => Update::AgentMessageChunk { content: Content::text(text) },
            Piece::Thought(text) => Update::AgentThoughtChunk { content: Content::text(text) },
        };
        self.kept = self.journal.keep(update).map(|_| ());
        self.last = Some(Instant::now());
    }

    fn finish(mut self) -> io::Result<()> {
        if let Some(piece) = self.waiting.take() {
            self.keep(piece);
        }
        self.kept
    }
}
