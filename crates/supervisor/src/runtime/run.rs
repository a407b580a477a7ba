//! One run of one process: from its start to the end of all that it started.

use std::path::Path;
use std::sync::Arc;

use nacre_wire::exec::{ExecRequest, Exit};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::config::{Command, Spec};
use super::log::Log;
use super::manager::Message;
use super::policy::Outcome;
use super::probe::Probe;
use crate::exec::{Commands, Said, Service};

/// What a run tells the manager.
#[derive(Debug)]
pub(crate) enum News {
    Started { pid: i32 },
    Ready,
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
    pub(crate) request: ExecRequest,
    pub(crate) probe: Probe,
    pub(crate) log: Arc<Log>,
    pub(crate) commands: Arc<Commands>,
    pub(crate) manager: mpsc::Sender<Message>,
    /// Asks for the end, before or after the start.
    pub(crate) end: CancellationToken,
}

impl Run {
    /// Has to be awaited to the end: nobody else looks after the process.
    pub(crate) async fn live(self) {
        let end = match self.commands.serve(&self.request).await {
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
        self.log.note(&end.reason);
        self.tell(News::Ended(end)).await;
    }

    async fn attend(&self, mut service: Service) -> Exit {
        let mut up = std::pin::pin!(self.probe.until_up());
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
                () = self.end.cancelled(), if !ending => {
                    ending = true;
                    service.end().cancel();
                }
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
pub(crate) fn request(name: &str, spec: &Spec, workspace: &Path) -> ExecRequest {
    let (shell, argv) = match &spec.command {
        Command::Shell(text) => (Some(text.clone()), Vec::new()),
        Command::Words(words) => (None, words.clone()),
    };
    let port = spec.port.map(|port| ("PORT".to_owned(), Some(port.0.to_string())));
    let named = spec.environment.iter().map(|(name, value)| (&name.0, &value.0));
    ExecRequest {
        argv,
        shell,
        env: port
            .into_iter()
            .chain(named.map(|(name, value)| (name.clone(), Some(value.clone()))))
            .collect(),
        cwd: Some(workspace.join(&spec.directory.0).as_path().into()),
        detach: true,
        label: Some(name.to_owned()),
        ..ExecRequest::default()
    }
}

pub(crate) fn probe(spec: &Spec) -> Probe {
    match (spec.port, &spec.ready) {
        (None, _) => Probe::Staying,
        (Some(port), None) => Probe::Port(port.0),
        (Some(port), Some(path)) => Probe::Path(port.0, path.0.clone()),
    }
}
