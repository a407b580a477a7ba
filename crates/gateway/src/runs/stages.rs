//! The life of a run: one task takes it from stage to stage, whoever is there to see it.
//!
//! ```text
//! files ─▶ turn ─▶ sandbox made ─▶ token ─▶ started, filled ─▶ agent ─▶ token ended ─▶ changes taken out
//!                       └───────────────────── sandbox removed, or kept ◀──────────────────────┘
//! ```
//! Whatever happens after a sandbox was made, it is removed before the run has ended; when this process
//! is killed, the next one finds it by its row and removes it then.

use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use nacre_wire::client::{self, Client, WriteOptions};
use nacre_wire::exec::ExecRequest;
use nacre_wire::runs::{RunChanges, RunEnd, RunOutcome, RunState, RunUpdate, RunUsage};
use nacre_wire::{ApiError, ErrorKind};
use tokio::time::Instant;

use super::agents::{Agent, FOLDER, PROGRAM, Plan, SPEC, Task};
use super::collect::{self, Base};
use super::outcome::Stopped;
use super::queue::Turn;
use super::record;
use super::run::{Ordered, Run};
use super::{Place, Runs, told};
use crate::provider::{Grant, RunGrant};
use crate::sandboxes::Sandbox;
use crate::sandboxes::policy::Op;

const WORKSPACE: &str = "/workspace";
/// A token outlives the time of its run by this, for what is under way when that is up.
const LAST_CALLS: Duration = Duration::from_secs(30);
/// Files that somebody has announced come within this.
const FILES_COME: Duration = Duration::from_secs(30 * 60);

pub(super) struct Job {
    pub(super) runs: Runs,
    pub(super) run: Arc<Run>,
    pub(super) id: String,
    pub(super) order: Ordered,
}

/// A sandbox that has all it needs.
pub(super) struct Ready {
    pub(super) client: Client,
    pub(super) plan: Plan,
    base: Base,
}

impl Job {
    /// To its end.
    pub(super) async fn drive(self, place: Option<Place>) {
        let outcome = self.live(place).await;
        let (id, how) = (&self.id, outcome.how);
        tracing::info!(run = id, ?how, message = outcome.message, "a run has ended");
        self.run.folder.forget_input();
        self.run.end(outcome);
        self.runs.tidy().await;
    }

    async fn live(&self, place: Option<Place>) -> RunOutcome {
        if let Err(outcome) = self.wait_for_files().await {
            return outcome;
        }
        let _place = match self.wait_for_turn(place).await {
            Ok(place) => place,
            Err(outcome) => return outcome,
        };
        let until = Instant::now() + Duration::from_millis(self.order.limits.timeout_ms);
        self.run.enter(RunState::Starting);
        let limits = self.runs.config().limits;
        let sandbox = match self.runs.sandboxes().create_for_run(&self.id, limits).await {
            Ok(sandbox) => sandbox,
            Err(error) => return failed(error),
        };
        self.run.change(|info| info.sandbox = Some(sandbox.name.clone()));
        let outcome = self.within(&sandbox, until).await;
        self.let_go(&sandbox, &outcome).await;
        self.account().await;
        outcome
    }

    async fn wait_for_files(&self) -> Result<(), RunOutcome> {
        if !self.order.input {
            return Ok(());
        }
        let mut filled = self.run.filled.subscribe();
        let there = tokio::time::timeout(FILES_COME, filled.wait_for(|there| *there));
        match self.run.cancel.run_until_cancelled(there).await {
            None => Err(self.called_off()),
            Some(Ok(Ok(_))) => Ok(()),
            Some(Ok(Err(_)) | Err(_)) => {
                let error = ApiError::new(ErrorKind::TimedOut, "its files never came");
                Err(failed(error.hint("send them with PUT .../input, or start it without")))
            }
        }
    }

    async fn wait_for_turn(&self, place: Option<Place>) -> Result<Place, RunOutcome> {
        let line = self.runs.line();
        let mut moved = line.moved();
        let place = match place {
            Some(place) => place,
            None => self.runs.join(&self.id).map_err(failed)?,
        };
        let mut shown = None;
        loop {
            match line.turn(&self.id) {
                Some(Turn::Now) | None => return Ok(place),
                Some(Turn::After(ahead)) if shown != Some(ahead) => {
                    if shown.is_none() {
                        self.run.enter(RunState::Queued);
                    }
                    shown = Some(ahead);
                    self.run.log.keep(RunUpdate::Queued { ahead: ahead as u64 });
                }
                Some(Turn::After(_)) => {}
            }
            if self.run.cancel.run_until_cancelled(moved.changed()).await.is_none() {
                return Err(self.called_off());
            }
        }
    }

    /// Everything between the making of a sandbox and its removal.
    async fn within(&self, sandbox: &Sandbox, until: Instant) -> RunOutcome {
        let grant = self.runs.models().grant_run(Grant {
            run: &self.id,
            sandbox: sandbox.id.as_str(),
            model: self.order.model.as_ref(),
            dollars: self.order.limits.dollars,
            tokens: self.order.limits.tokens,
            lives: until.saturating_duration_since(Instant::now()) + LAST_CALLS,
        });
        let grant = match grant.await {
            Ok(grant) => grant,
            Err(error) => return failed(error),
        };
        let preparing = tokio::time::timeout_at(until, self.prepare(sandbox, &grant, until));
        let ready = match self.run.cancel.run_until_cancelled(preparing).await {
            None => return self.called_off(),
            Some(Err(_)) => return RunOutcome::new(RunEnd::TimeOut, None),
            Some(Ok(Err(error))) => return failed(error),
            Some(Ok(Ok(ready))) => ready,
        };
        self.run.enter(RunState::Running);
        let worked = self.work(&ready, &grant, until).await;
        // From this moment nothing in the sandbox reaches a model.
        self.note_usage(&grant);
        self.runs.models().end_run(&self.id).await;
        self.run.enter(RunState::Finishing);
        let changes = self.take_out(&ready).await;
        self.run.change(|info| info.changes = Some(changes));
        worked.unwrap_or_else(failed)
    }

    async fn prepare(
        &self,
        sandbox: &Sandbox,
        grant: &RunGrant,
        until: Instant,
    ) -> Result<Ready, ApiError> {
        sandbox.ask(Op::Start).await?;
        let client = sandbox.client();
        let plan = self.order.agent.plan(&Task {
            run: &self.id,
            spec: &self.order.spec,
            model: self.order.model.as_ref(),
            window: self.window(),
            token: grant.secret(),
            reply: grant.reply(),
            mcp: &self.runs.config().mcp,
            max_steps: self.order.limits.max_steps,
            time: until.saturating_duration_since(Instant::now()),
            path: &self.runs.config().path,
        })?;
        put(&client, SPEC, self.order.spec.clone(), 0o644).await?;
        let program = async {
            match self.order.agent {
                Agent::Nacre => {
                    put(&client, PROGRAM, self.runs.config().program.0.clone(), 0o755).await
                }
                _ => Ok(()),
            }
        };
        let files = async {
            for (path, bytes) in &plan.files {
                put(&client, path, bytes.clone(), 0o644).await?;
            }
            Ok(())
        };
        let (base, (), ()) = tokio::try_join!(self.fill(&client), program, files)?;
        require(&client, &plan).await?;
        Ok(Ready { client, plan, base })
    }

    fn window(&self) -> Option<u64> {
        let chosen = self.order.model.as_ref();
        let own = chosen.and_then(|it| self.runs.models().window(&it.provider, &it.model));
        own.or(self.runs.config().window)
    }

    /// Puts the files of the owner into the workspace.
    async fn fill(&self, client: &Client) -> Result<Base, ApiError> {
        if !self.order.input {
            return Ok(Base::UNTOUCHED);
        }
        let path = self.run.folder.input();
        let file =
            std::fs::File::open(&path).map_err(|error| ApiError::io(path.display(), &error))?;
        let stream =
            futures_util::StreamExt::map(record::stream(file), |piece| piece.map(Frame::data));
        let body = StreamBody::new(stream).map_err(client::BoxError::from).boxed_unsync();
        client.unpack(WORKSPACE, body).await.map_err(told)?;
        self.run.folder.forget_input();
        Base::now(client).await
    }

    async fn take_out(&self, ready: &Ready) -> RunChanges {
        let largest = self.runs.config().largest_output;
        let taken = collect::collect(&ready.client, ready.base, &self.run.folder, largest);
        taken.await.unwrap_or_else(|error| {
            tracing::warn!(run = self.id, %error, "what a run changed is lost");
            RunChanges { incomplete: Some(error.message), ..RunChanges::default() }
        })
    }

    /// Removes the sandbox, or leaves it to its owner.
    async fn let_go(&self, sandbox: &Sandbox, outcome: &RunOutcome) {
        self.runs.models().end_run(&self.id).await;
        let kept = self.order.keep && outcome.how != RunEnd::Interrupted;
        if kept {
            if let Err(error) = self.runs.sandboxes().keep_after_run(sandbox).await {
                tracing::error!(run = self.id, %error, "the sandbox stays until the next start");
            }
        } else {
            if let Err(error) = sandbox.ask(Op::Destroy).await {
                tracing::error!(run = self.id, %error, "the next start removes its sandbox");
            }
            self.run.change(|info| info.sandbox = None);
        }
        self.runs.models().forget_run(&self.id);
    }

    /// What the record says it used, which is what will be paid.
    async fn account(&self) {
        let info = self.run.info();
        let used = self.runs.models().used_by_run(&self.id, info.created_at).await;
        if let Some((tokens, dollars)) = used {
            self.run.use_up(RunUsage { tokens, dollars: dollars.as_f64(), ..info.used });
        }
    }

    pub(super) fn note_usage(&self, grant: &RunGrant) {
        let (tokens, dollars) = self.runs.models().used_so_far(grant);
        self.run.use_up(RunUsage { tokens, dollars, ..self.run.info().used });
    }

    pub(super) fn stopped(&self) -> Stopped {
        if self.runs.stops() { Stopped::Interrupted } else { Stopped::Cancelled }
    }

    fn called_off(&self) -> RunOutcome {
        let how = match self.stopped() {
            Stopped::Interrupted => RunEnd::Interrupted,
            Stopped::Cancelled | Stopped::TimeOut => RunEnd::Cancelled,
        };
        RunOutcome::new(how, None)
    }
}

/// As root: what runs there as somebody else cannot change it.
async fn put(
    client: &Client,
    path: &str,
    bytes: impl Into<axum::body::Bytes>,
    mode: u32,
) -> Result<(), ApiError> {
    let options = WriteOptions {
        mode: Some(mode),
        parents: true,
        user: Some("root".to_owned()),
        ..WriteOptions::default()
    };
    client.write(path, bytes, &options).await.map(|_| ()).map_err(told)
}

/// Whether the program is there that is to be started.
async fn require(client: &Client, plan: &Plan) -> Result<(), ApiError> {
    let Some((program, install)) = plan.needs else { return Ok(()) };
    let request = ExecRequest {
        argv: ["/bin/sh", "-c", "command -v \"$1\"", "sh", program].map(str::to_owned).into(),
        env: plan.request.env.clone(),
        cwd: Some(FOLDER.into()),
        ..ExecRequest::default()
    };
    let found = client.run(request).await.map_err(told)?;
    if found.exit.code == Some(0) {
        return Ok(());
    }
    let message = format!("{program} is not installed where sandboxes find it");
    let hint = format!("{install}; programs elsewhere: path in [runs] of nacre.toml");
    Err(ApiError::new(ErrorKind::NotFound, message).hint(hint))
}

fn failed(error: ApiError) -> RunOutcome {
    RunOutcome { hint: error.hint, ..RunOutcome::new(RunEnd::Failed, Some(error.message)) }
}
