//! One run of one process: from its start to the end of all that it started.

use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;

use nacre_wire::exec::{ExecRequest, Exit};
use tokio::sync::{mpsc, watch};
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use super::config::Command;
use super::leftover::{self, Mark};
use super::log::Log;
use super::manager::Message;
use super::policy::Outcome;
use super::probe::{self, Probe};
use super::process::Process;
use super::pulse::{self, Pulse};
use crate::exec::{Commands, Said, Service};

/// What a run tells the manager.
#[derive(Debug)]
pub(crate) enum News {
    Started {
        pid: i32,
    },
    Ready,
    /// It answers no longer, or again.
    Responding(bool),
    Ended(End),
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct End {
    pub(crate) outcome: Outcome,
    pub(crate) exit_code: Option<i32>,
    pub(crate) reason: String,
}

pub(crate) struct Run {
    pub(crate) name: String,
    pub(crate) number: u64,
    /// Of all runs of this process.
    pub(crate) mark: Mark,
    pub(crate) request: ExecRequest,
    pub(crate) probe: Probe,
    pub(crate) log: Arc<Log>,
    pub(crate) commands: Arc<Commands>,
    pub(crate) manager: mpsc::Sender<Message>,
    /// Asks for the end, before or after the start.
    pub(crate) end: CancellationToken,
    /// How many listen to what is told of it.
    pub(crate) listeners: watch::Receiver<usize>,
}

impl Run {
    /// Has to be awaited to the end: nobody else looks after the process.
    pub(crate) async fn live(self) {
        let held = self.make_room().await;
        let mut end = match self.commands.serve(&self.request).await {
            Ok(service) => {
                self.log.note(&format!("started as process {}", service.pid()));
                self.tell(News::Started { pid: service.pid() }).await;
                end_of(&self.attend(service).await)
            }
            Err(error) => {
                let reason = format!("cannot be started: {}", error.message);
                End { outcome: Outcome::Badly, exit_code: None, reason }
            }
        };
        if let (Outcome::Badly, Some(held)) = (end.outcome, held) {
            end.reason = format!("{}; {held}", end.reason);
        }
        self.log.note(&end.reason);
        self.tell(News::Ended(end)).await;
    }

    /// Sees to it that the port is free of earlier runs. Says so when somebody else has it, which may be
    /// meant so: the command may be one that only waits.
    async fn make_room(&self) -> Option<String> {
        let port = self.probe.port()?;
        let holder = leftover::clear(port, &self.mark, &self.log).await?;
        let held = format!("port {port} is held by process {} ({})", holder.pid, holder.name);
        self.log.note(&held);
        Some(held)
    }

    async fn attend(&self, mut service: Service) -> Exit {
        let mut up = std::pin::pin!(self.probe.until_up());
        let mut pulse = std::pin::pin!(self.feel_the_pulse());
        let (mut is_up, mut ending) = (false, false);
        loop {
            tokio::select! {
                said = service.next() => match said {
                    Said::Output(stream, bytes) => self.log.print(stream, &bytes),
                    Said::Exit(exit) => return exit,
                },
                () = &mut up, if !is_up => {
                    is_up = true;
                    self.tell(News::Ready).await;
                }
                never = &mut pulse, if is_up && !ending => match never {},
                () = self.end.cancelled(), if !ending => {
                    ending = true;
                    service.end().cancel();
                }
            }
        }
    }

    /// Asks one that is up whether it still answers, while somebody wants to know.
    async fn feel_the_pulse(&self) -> Infallible {
        let Probe::Path(port, path) = &self.probe else { return std::future::pending().await };
        let mut listeners = self.listeners.clone();
        let mut pulse = Pulse::default();
        let mut beat = interval(pulse::EVERY);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            if listeners.wait_for(|count| *count > 0).await.is_err() {
                return std::future::pending().await;
            }
            beat.tick().await;
            let answered = probe::responds(*port, path, pulse::PATIENCE).await;
            if let Some(responding) = pulse.asked(answered) {
                self.tell(News::Responding(responding)).await;
            }
        }
    }

    async fn tell(&self, news: News) {
        let message = Message::Run { name: self.name.clone(), run: self.number, news };
        // Without a manager the supervisor is on its way out.
        let _ = self.manager.send(message).await;
    }
}

fn end_of(exit: &Exit) -> End {
    let how = match (&exit.code, &exit.signal) {
        (Some(code), _) => format!("ended with exit code {code}"),
        (None, Some(signal)) => format!("ended by the signal {signal}"),
        (None, None) => "ended".to_owned(),
    };
    let reason = if exit.out_of_memory { format!("{how}; out of memory") } else { how };
    let outcome = if exit.code == Some(0) { Outcome::Well } else { Outcome::Badly };
    End { outcome, exit_code: Some(exit.shell_code()), reason }
}

/// How a process is started as what `nacre.toml` says of it.
pub(crate) fn request(name: &str, process: &Process, workspace: &Path, mark: &Mark) -> ExecRequest {
    let spec = &process.spec;
    let (shell, argv) = match &spec.command {
        Command::Shell(text) => (Some(text.clone()), Vec::new()),
        Command::Words(words) => (None, words.clone()),
    };
    let variable = |name: &str, value: String| (name.to_owned(), Some(value));
    let port = process.port.map(|port| variable("PORT", port.to_string()));
    let base = spec.per_mount.then(|| variable("BASE_PATH", process.mount.base()));
    let named = spec.environment.iter().map(|(name, value)| variable(&name.0, value.0.clone()));
    let own = port.clone().into_iter().chain(base.clone());
    // What tells one instance from another is not for the file to say.
    let instance = port.into_iter().chain(base).filter(|_| !process.mount.is_root());
    let (marked, by) = mark.variable();
    let instance = instance.chain([(marked, Some(by))]);
    ExecRequest {
        argv,
        shell,
        env: own.chain(named).chain(instance).collect(),
        cwd: Some(workspace.join(&spec.directory.0).as_path().into()),
        detach: true,
        label: Some(name.to_owned()),
        ..ExecRequest::default()
    }
}

pub(crate) fn probe(process: &Process) -> Probe {
    match (process.port, process.ready_path()) {
        (None, _) => Probe::Staying,
        (Some(port), None) => Probe::Port(port),
        (Some(port), Some(path)) => Probe::Path(port, path),
    }
}
