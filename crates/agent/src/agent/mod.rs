//! The loop: ask, call, tell, until there is nothing more to do or a limit is reached.

mod chunks;
mod clock;
mod room;

use std::collections::HashSet;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use crate::body::{Body, Expected, Write};
use crate::events::{Content, Ended, ToolKind, ToolStatus, Update};
use crate::journal::Journal;
use crate::model::{self, Call, Model, Outcome, Reply, Request, Stop, Tool};
use crate::session::Session;
use crate::tools::{Answer, Context, Intent, Ready, Toolbox};
use clock::Clock;
use room::Need;

/// How often a model is asked the same before that is given up.
const TRIES: u32 = 4;
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// What is longer goes to a file, and the model gets both ends and the path.
const LONGEST_ANSWER: usize = 16 * 1024;
/// What the agent may do without asking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Look, and change nothing.
    Plan,
    /// Ask before each change.
    Ask,
    /// Inside of the sandbox, anything; what goes beyond it is still asked about.
    #[default]
    Auto,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How often the model is asked in one turn.
    pub steps: u64,
    /// To think and to act: while the owner is asked, it stands still.
    pub time: Duration,
}

/// Asked before a change in [`Mode::Ask`], and before what [`Intent::asks`] in every mode.
#[async_trait]
pub trait Permission: Send + Sync {
    async fn ask(&self, call: &Call, intent: &Intent) -> bool;

    /// The mode as it is now, where the owner may change it while a turn is under way.
    fn mode(&self) -> Option<Mode> {
        None
    }
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
        let clock = Clock::default();
        let mut turn = Turn { agent: self, session, journal, clock: &clock, strikes: 0 };
        turn.keep(Update::UserMessageChunk { content: Content::text(input) })?;
        let ended = tokio::select! {
            biased;
            () = cancel.cancelled() => Ok(Ended::Cancelled),
            () = clock.runs_out(self.limits.time) => Ok(Ended::TimeOut),
            ended = turn.steps() => ended,
        }?;
        turn.keep(Update::Ended { how: ended.clone() })?;
        Ok(ended)
    }

    /// Of two with the same name, the first: that is the one that is called.
    fn tools(&self) -> Vec<Tool> {
        let mut names = HashSet::new();
        let all = self.toolboxes.iter().flat_map(|toolbox| toolbox.tools());
        all.filter(|tool| names.insert(tool.name.clone())).collect()
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
    clock: &'a Clock,
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
        for _ in 0..self.agent.limits.steps {
            for toolbox in &self.agent.toolboxes {
                for update in toolbox.refresh().await {
                    self.keep(update)?;
                }
            }
            let tools = self.agent.tools();
            self.make_room(&tools, Need::Full).await?;
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
        let (mut tries, mut shortened) = (0, false);
        loop {
            tries += 1;
            let error = match self.ask_once(tools).await? {
                Ok(reply) => return Ok(Ok(reply)),
                Err(error) => error,
            };
            if matches!(error, model::Error::TooLong(_)) && !shortened {
                shortened = true;
                self.keep(Update::Retry { reason: error.to_string() })?;
                if self.make_room(tools, Need::Refused).await? {
                    continue;
                }
            }
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
        chunks::ask(&*agent.model, &request, *journal).await
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
            asks: false,
        };
        self.announce(call, intent)?;
        self.finish(call, Answer::failed(reason))
    }

    async fn make(&mut self, call: &Call, ready: Box<dyn Ready>) -> io::Result<()> {
        let intent = ready.intent();
        self.announce(call, intent.clone())?;
        if let Some(refusal) = self.may(call, &intent).await? {
            return self.finish(call, Answer::failed(refusal));
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
            answer.text = self.shorten(&call.id, answer.text, answer.lost).await;
        }
        self.finish(call, answer)
    }

    /// `None`, or why not.
    async fn may(&mut self, call: &Call, intent: &Intent) -> io::Result<Option<String>> {
        match self.agent.permission.mode().unwrap_or(self.agent.mode) {
            Mode::Plan if intent.changes => {
                let refusal = "nothing may be changed while planning; say what you would do";
                return Ok(Some(refusal.to_owned()));
            }
            Mode::Ask if intent.changes => {}
            _ if intent.asks => {}
            Mode::Plan | Mode::Ask | Mode::Auto => return Ok(None),
        }
        let (tool_call_id, title) = (call.id.clone(), intent.title.clone());
        self.keep(Update::PermissionRequest { tool_call_id, title })?;
        let allowed = self.clock.without(self.agent.permission.ask(call, intent)).await;
        let tool_call_id = call.id.clone();
        self.keep(Update::PermissionOutcome { tool_call_id, allowed })?;
        Ok((!allowed).then(|| "the owner does not want this".to_owned()))
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
        let Answer { text, failed, content, lost: _ } = answer;
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

    /// All that was kept is in a file that the model can read; it gets both ends.
    async fn shorten(&self, call: &str, text: String, lost: u64) -> String {
        let half = LONGEST_ANSWER / 2;
        let head = &text[..text.floor_char_boundary(half)];
        let tail = &text[text.ceil_char_boundary(text.len() - half)..];
        let left = text.len() - head.len() - tail.len();
        let name = format!("{}-{}", self.session.steps, plain(call));
        let place = match (self.save(&name, &text).await, lost) {
            (Ok(path), 0) => format!("the whole is in {path}"),
            (Ok(path), lost) => {
                format!("more of it is in {path}, but not the whole: {lost} bytes were not kept")
            }
            (Err(error), _) => format!("the whole could not be kept: {error}"),
        };
        format!("{head}\n[{left} bytes left out here; {place}]\n{tail}")
    }

    /// A new file beside the work, for the model to look things up in.
    async fn save(&self, name: &str, text: &str) -> crate::body::Result<String> {
        let path = format!("{}/{name}.txt", self.agent.scratch);
        let bytes = text.as_bytes().to_vec();
        let write = Write { bytes, expected: Expected::Anything, call: None };
        self.agent.body.write_file(&path, &write).await.map(|()| path)
    }
}

/// A call's name as a part of a path. Some services number the calls of each reply anew, so it is never
/// the whole of a name.
fn plain(call: &str) -> String {
    call.chars().filter(char::is_ascii_alphanumeric).take(40).collect()
}
