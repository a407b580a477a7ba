//! One process as the manager knows it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use nacre_wire::processes::{ProcessInfo, ProcessState};
use tokio_util::sync::CancellationToken;

use super::clock::now_ms;
use super::config::{Command, Spec};
use super::log::Log;
use super::policy::Policy;
use super::run::End;

pub(crate) struct Process {
    pub(crate) spec: Spec,
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
    pub(crate) fn new(spec: Spec) -> Self {
        let policy = Policy::new(spec.restart);
        Self {
            seen: policy.state(),
            policy,
            spec,
            log: Log::new(),
            end: CancellationToken::new(),
            leaving: false,
            pid: None,
            last_end: None,
            since: now_ms(),
        }
    }

    pub(crate) fn ended(&mut self, end: End) {
        self.pid = None;
        self.last_end = Some(end);
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
        let next_try = self.policy.due().map(|due| {
            let wait = due.saturating_sub(now).as_millis();
            now_ms().saturating_add(u64::try_from(wait).unwrap_or(u64::MAX))
        });
        ProcessInfo {
            name: name.to_owned(),
            state,
            reason: self.reason(state),
            since: self.since,
            pid: self.pid,
            exit_code: self.last_end.as_ref().and_then(|end| end.exit_code),
            restarts: self.policy.restarts,
            run: self.policy.runs,
            next_try,
            command: match &self.spec.command {
                Command::Shell(text) => text.clone(),
                Command::Words(words) => words.join(" "),
            },
            directory: workspace.join(&self.spec.directory.0).as_path().into(),
            port: self.spec.port.map(|port| port.0),
            log_seq: self.log.last(),
        }
    }

    fn reason(&self, state: ProcessState) -> Option<String> {
        let ended = || self.last_end.as_ref().map(|end| end.reason.clone());
        match state {
            ProcessState::Starting => Some(match (self.spec.port, &self.spec.ready) {
                (None, _) => "it has only just been started".to_owned(),
                (Some(port), None) => format!("nothing listens on port {} yet", port.0),
                (Some(port), Some(path)) => {
                    format!("{} on port {} does not answer yet", path.0, port.0)
                }
            }),
            ProcessState::Ready | ProcessState::Unknown => None,
            ProcessState::Stopping => Some("it was asked to end".to_owned()),
            ProcessState::Stopped
            | ProcessState::BackingOff
            | ProcessState::CrashLooping
            | ProcessState::Failed => ended(),
        }
    }
}
