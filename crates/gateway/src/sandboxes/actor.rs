//! The task that owns one sandbox.
//!
//! It alone calls the driver's lifecycle methods for its sandbox, one at a time, so an operation
//! runs to its end whether or not the client that asked is still there. Others see [`View`]s.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use nacre_sandbox::{Driver, SandboxId};
use nacre_wire::{ApiError, ErrorKind};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::door::Door;
use super::errors;
use super::label::Label;
use super::policy::{Action, AfterCrash, Op, Phase, RestartPolicy, Verdict, decide};
use crate::host::{self, Services, WayUp};
use crate::store::{Desired, Store};

/// How long the one who starts a sandbox waits for its supervisor to know of models.
const UNTIL_TOLD: Duration = Duration::from_millis(300);

/// What others see of a sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct View {
    pub(crate) phase: Phase,
    /// Why it is failed or restarting, for people.
    pub(crate) failure: Option<String>,
    /// The supervisor's version, once it has said so.
    pub(crate) supervisor: Option<String>,
    /// The paths that it passes up to us, said with that.
    pub(crate) relays: Option<Vec<String>>,
    pub(crate) destroyed: bool,
}

impl View {
    pub(crate) fn of(phase: Phase) -> Self {
        Self { phase, failure: None, supervisor: None, relays: None, destroyed: false }
    }

    pub(crate) fn failed(why: String) -> Self {
        Self { failure: Some(why), ..Self::of(Phase::Failed) }
    }
}

pub(crate) struct Request {
    pub(crate) op: Op,
    pub(crate) reply: oneshot::Sender<Result<View, ApiError>>,
}

/// What the task works with.
pub(crate) struct Parts {
    pub(crate) id: SandboxId,
    pub(crate) name: Label,
    pub(crate) run: Option<Arc<str>>,
    pub(crate) driver: Arc<dyn Driver>,
    pub(crate) store: Store,
    pub(crate) door: Door,
    pub(crate) restart: RestartPolicy,
    pub(crate) stop_grace: Duration,
    pub(crate) services: Services,
    pub(crate) view: watch::Sender<View>,
}

type Exited = Pin<Box<dyn Future<Output = ()> + Send>>;

struct Actor {
    parts: Parts,
    crashes: u32,
    started_at: Instant,
    restart_at: Option<Instant>,
    /// Pending while the supervisor runs; absent when none does.
    exited: Option<Exited>,
    /// Answers what the supervisor asks of us while it runs.
    way_up: Option<WayUp>,
}

/// Runs until the sandbox is destroyed or the gateway stops; an operation that has begun is
/// finished first.
pub(crate) async fn run(
    parts: Parts,
    mut requests: mpsc::Receiver<Request>,
    stop: CancellationToken,
) {
    let phase = parts.view.borrow().phase;
    let mut actor = Actor {
        parts,
        crashes: 0,
        started_at: Instant::now(),
        restart_at: None,
        exited: None,
        way_up: None,
    };
    if matches!(phase, Phase::Running | Phase::Paused) {
        actor.attend();
    }
    if phase == Phase::Running {
        actor.ask_version();
    }
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            request = requests.recv() => {
                let Some(Request { op, reply }) = request else { return };
                let result = actor.serve(op).await;
                let destroyed = matches!(&result, Ok(view) if view.destroyed);
                // The client may be gone; the work is done all the same.
                let _ = reply.send(result);
                if destroyed {
                    return;
                }
            }
            () = wait(&mut actor.exited) => actor.crashed("its supervisor ended").await,
            () = wait_until(actor.restart_at) => actor.start_again().await,
        }
    }
}

async fn wait(exited: &mut Option<Exited>) {
    match exited {
        Some(exited) => exited.await,
        None => std::future::pending().await,
    }
}

async fn wait_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

impl Actor {
    async fn serve(&mut self, op: Op) -> Result<View, ApiError> {
        let phase = self.parts.view.borrow().phase;
        match decide(phase, op) {
            Verdict::Nothing => Ok(self.parts.view.borrow().clone()),
            Verdict::Refuse { is, hint } => Err(ApiError::new(
                ErrorKind::Unavailable,
                format!("sandbox \"{}\" is {is}", self.parts.name),
            )
            .hint(hint.replace("NAME", &self.parts.name.get()))),
            Verdict::Do(action) => self.act(action, op).await,
        }
    }

    async fn act(&mut self, action: Action, op: Op) -> Result<View, ApiError> {
        // What should be true is on disk before the driver acts: start-up finishes what a crash
        // of this process cuts short.
        if op != Op::Halt {
            self.record(desired_after(action)).await?;
        }
        tracing::info!(sandbox = %self.parts.name, ?action, "sandbox operation");
        match action {
            Action::Start => self.start_by_hand().await,
            Action::Stop => self.stop().await,
            Action::Restart => self.restart().await,
            Action::Pause => self.pause().await,
            Action::Resume => self.resume().await,
            Action::Destroy => self.destroy().await,
        }
    }

    async fn start_by_hand(&mut self) -> Result<View, ApiError> {
        self.crashes = 0;
        self.restart_at = None;
        match self.parts.driver.start(&self.parts.id).await {
            Ok(()) => {
                let view = self.started();
                self.until_told().await;
                Ok(view)
            }
            Err(error) => {
                let error = errors::from_driver(&self.parts.name.get(), &error);
                self.show(View::failed(error.message.clone()));
                Err(error)
            }
        }
    }

    fn started(&mut self) -> View {
        self.started_at = Instant::now();
        self.restart_at = None;
        self.parts.door.forget();
        self.attend();
        let view = self.show(View::of(Phase::Running));
        self.ask_version();
        view
    }

    /// So that the first command finds models, where there are any. An old supervisor never asks.
    async fn until_told(&mut self) {
        let Some(way_up) = &mut self.way_up else { return };
        if self.parts.services.models.has_providers() {
            let _ = tokio::time::timeout(UNTIL_TOLD, way_up.told()).await;
        }
    }

    async fn stop(&mut self) -> Result<View, ApiError> {
        self.exited = None;
        self.restart_at = None;
        let stopped = self.parts.driver.stop(&self.parts.id, self.parts.stop_grace).await;
        // Only now: what ends inside may still have something to say.
        self.way_up = None;
        self.parts.door.forget();
        match stopped {
            Ok(()) => Ok(self.show(View::of(Phase::Stopped))),
            Err(error) => {
                let error = errors::from_driver(&self.parts.name.get(), &error);
                self.show(View::failed(format!("did not stop: {}", error.message)));
                Err(error)
            }
        }
    }

    /// On disk it runs all the time: who is killed in between starts it.
    async fn restart(&mut self) -> Result<View, ApiError> {
        self.stop().await?;
        self.start_by_hand().await
    }

    async fn pause(&mut self) -> Result<View, ApiError> {
        match self.parts.driver.pause(&self.parts.id).await {
            Ok(()) => Ok(self.show_phase(Phase::Paused)),
            Err(error) => {
                self.record(Desired::Running).await?;
                Err(errors::from_driver(&self.parts.name.get(), &error))
            }
        }
    }

    async fn resume(&mut self) -> Result<View, ApiError> {
        match self.parts.driver.resume(&self.parts.id).await {
            Ok(()) => Ok(self.show_phase(Phase::Running)),
            Err(error) => Err(errors::from_driver(&self.parts.name.get(), &error)),
        }
    }

    async fn destroy(&mut self) -> Result<View, ApiError> {
        self.exited = None;
        self.restart_at = None;
        self.parts.door.forget();
        if let Err(error) = self.parts.driver.destroy(&self.parts.id).await {
            let error = errors::from_driver(&self.parts.name.get(), &error);
            self.show(View::failed(format!("was not removed: {}", error.message)));
            return Err(error);
        }
        self.way_up = None;
        self.parts.services.models.forget_sandbox(self.parts.id.as_str()).await;
        self.parts.store.delete(&self.parts.id).await.map_err(errors::from_store)?;
        self.parts.services.egress.forget(&self.parts.id);
        Ok(self.show(View { destroyed: true, ..View::of(Phase::Stopped) }))
    }

    async fn crashed(&mut self, what: &str) {
        self.exited = None;
        self.way_up = None;
        self.parts.door.forget();
        let (crashes, next) =
            self.parts.restart.after_crash(self.crashes, self.started_at.elapsed());
        self.crashes = crashes;
        match next {
            AfterCrash::StartAfter(wait) => {
                let failure = format!("{what}; starting it again in {:.1} s", wait.as_secs_f32());
                tracing::warn!(sandbox = %self.parts.name, crashes, failure);
                self.restart_at = Some(Instant::now() + wait);
                self.show(View { failure: Some(failure), ..View::of(Phase::Restarting) });
            }
            AfterCrash::GiveUp => {
                let failure = format!("{what}, {crashes} times in a row");
                tracing::error!(sandbox = %self.parts.name, failure);
                self.restart_at = None;
                self.show(View::failed(failure));
            }
        }
    }

    async fn start_again(&mut self) {
        self.restart_at = None;
        match self.parts.driver.start(&self.parts.id).await {
            Ok(()) => {
                self.started();
            }
            Err(error) => {
                self.started_at = Instant::now();
                self.crashed(&error.to_string()).await;
            }
        }
    }

    /// A supervisor runs: notice when it ends, and answer it.
    fn attend(&mut self) {
        let (driver, id) = (self.parts.driver.clone(), self.parts.id.clone());
        let Parts { name, run, services, .. } = &self.parts;
        let guest = host::Guest::new(id.clone(), name.clone(), run.clone(), services);
        self.way_up = Some(host::serve(driver.clone(), guest));
        self.exited = Some(Box::pin(async move { driver.exited(&id).await }));
    }

    async fn record(&mut self, desired: Desired) -> Result<(), ApiError> {
        self.parts.store.set_desired(&self.parts.id, desired).await.map_err(errors::from_store)
    }

    /// In the background: nothing but listings waits for the answer.
    fn ask_version(&self) {
        let (door, view) = (self.parts.door.clone(), self.parts.view.clone());
        tokio::spawn(async move {
            if let Some(version) = door.version().await {
                view.send_if_modified(|view| {
                    let running = matches!(view.phase, Phase::Running | Phase::Paused);
                    if running {
                        view.supervisor = Some(version.version);
                        view.relays = Some(version.relays);
                    }
                    running
                });
            }
        });
    }

    fn show_phase(&self, phase: Phase) -> View {
        let view = View { phase, ..self.parts.view.borrow().clone() };
        self.show(view)
    }

    fn show(&self, view: View) -> View {
        self.parts.view.send_replace(view.clone());
        view
    }
}

fn desired_after(action: Action) -> Desired {
    match action {
        Action::Start | Action::Restart | Action::Resume => Desired::Running,
        Action::Stop => Desired::Stopped,
        Action::Pause => Desired::Paused,
        Action::Destroy => Desired::Destroying,
    }
}
