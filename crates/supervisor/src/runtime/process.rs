//! One process as the manager knows it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use nacre_wire::processes::{ProcessInfo, ProcessState};
use tokio_util::sync::CancellationToken;

use super::clock::now_ms;
use super::config::{Command, Spec};
use super::log::Log;
use super::mount::Mount;
use super::policy::{Outcome, Policy};
use super::probe::free_port;
use super::run::End;
use super::usage::Usage;

pub(crate) struct Process {
    pub(crate) spec: Arc<Spec>,
    pub(crate) mount: Mount,
    pub(crate) usage: Arc<Usage>,
    /// Of the run there is, or the next one.
    pub(crate) port: Option<u16>,
    /// It is ready and has not answered for a while.
    pub(crate) deaf: bool,
    pub(crate) policy: Policy,
    pub(crate) log: Arc<Log>,
    /// Ends the run there is.
    pub(crate) end: CancellationToken,
    /// It is no longer in the file and goes when it has ended.
    pub(crate) leaving: bool,
    pub(crate) pid: Option<i32>,
    last_end: Option<End>,
    since: u64,
    seen: ProcessState,
}

impl Process {
    pub(crate) fn new(spec: Spec, mount: Mount) -> Self {
        let policy = Policy::new(spec.rules());
        Self {
            port: spec.port.map(|port| port.0),
            mount,
            usage: Usage::new(),
            deaf: false,
            seen: policy.state(),
            policy,
            spec: Arc::new(spec),
            log: Log::new(),
            end: CancellationToken::new(),
            leaving: false,
            pid: None,
            last_end: None,
            since: now_ms(),
        }
    }

    /// Before a run. The root's instance has the port that the file says; another one any.
    pub(crate) fn prepare(&mut self) {
        self.end = CancellationToken::new();
        self.deaf = false;
        let said = self.spec.port.map(|port| port.0);
        // Without a free port the run fails by itself, and says so in its log.
        self.port = if self.mount.is_root() { said } else { free_port().or(said) };
    }

    /// The path that shows that it is up, as this instance knows it.
    pub(crate) fn ready_path(&self) -> Option<String> {
        let path = self.spec.ready.as_ref()?;
        Some(format!("{}{}", self.mount.prefix(), path.0))
    }

    /// Returns what that means. One that was ended because it was late has not ended well.
    pub(crate) fn ended(&mut self, end: End) -> Outcome {
        let end = match self.policy.is_overdue() {
            true => End { outcome: Outcome::Badly, reason: self.late(), ..end },
            false => end,
        };
        let outcome = end.outcome;
        self.pid = None;
        self.deaf = false;
        self.last_end = Some(end);
        outcome
    }

    /// Why its start was given up.
    pub(crate) fn late(&self) -> String {
        let seconds = self.policy.rules.patience.as_secs();
        format!("was not ready within {seconds} s: {}", self.not_yet())
    }

    /// What is missing for it to be ready.
    fn not_yet(&self) -> String {
        match (self.port, self.ready_path()) {
            (None, _) => "it has only just been started".to_owned(),
            (Some(port), None) => format!("nothing listens on port {port} yet"),
            (Some(port), Some(path)) => format!("{path} on port {port} does not answer yet"),
        }
    }

    /// Notes when the state changed.
    pub(crate) fn settle(&mut self) {
        let state = self.policy.state();
        if state != self.seen {
            self.seen = state;
            self.since = now_ms();
        }
    }

    /// `now` is the policy's time.
    pub(crate) fn info(&self, name: &str, workspace: &Path, now: Duration) -> ProcessInfo {
        let state = self.policy.state();
        let next_try = self.policy.next_try().map(|due| {
            let wait = due.saturating_sub(now).as_millis();
            now_ms().saturating_add(u64::try_from(wait).unwrap_or(u64::MAX))
        });
        ProcessInfo {
            name: name.to_owned(),
            state,
            reason: self.reason(state),
            since: self.since,
            responding: (self.deaf && state == ProcessState::Ready).then_some(false),
            pid: self.pid,
            exit_code: self.last_end.as_ref().and_then(|end| end.exit_code),
            restarts: self.policy.restarts,
            ends_in_a_row: u64::from(self.policy.streak()),
            run: self.policy.runs,
            next_try,
            command: match &self.spec.command {
                Command::Shell(text) => text.clone(),
                Command::Words(words) => words.join(" "),
            },
            directory: workspace.join(&self.spec.directory.0).as_path().into(),
            port: self.port,
            log_seq: self.log.last(),
        }
    }

    fn reason(&self, state: ProcessState) -> Option<String> {
        let ended = || self.last_end.as_ref().map(|end| end.reason.clone());
        match state {
            ProcessState::Starting if self.policy.is_overdue() => Some(self.late()),
            ProcessState::Starting => Some(self.not_yet()),
            ProcessState::Ready if self.deaf => {
                Some(format!("{} no longer answers", self.ready_path().unwrap_or_default()))
            }
            ProcessState::Ready | ProcessState::Unknown => None,
            ProcessState::Stopping => Some("it was asked to end".to_owned()),
            ProcessState::Stopped
            | ProcessState::BackingOff
            | ProcessState::CrashLooping
            | ProcessState::Failed => ended(),
        }
    }
}
