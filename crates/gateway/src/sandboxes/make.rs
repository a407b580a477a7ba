//! Making a sandbox, detached from the request that asked for it.

use std::sync::Arc;

use nacre_sandbox::{SandboxId, SandboxSpec};
use nacre_wire::control::{CreateSandbox, Limits};
use nacre_wire::{ApiError, ErrorKind};

use super::actor::View;
use super::policy::{Op, Phase};
use super::{Sandbox, Sandboxes, errors, name};
use crate::clock::now_ms;
use crate::routes::Role;
use crate::secret::random_id;
use crate::store::{Desired, Row, RunTie};

/// What a sandbox is made for, when that is not just somebody's wish.
#[derive(Default)]
struct Cause {
    run: Option<RunTie>,
    unseeded: bool,
}

impl Sandboxes {
    /// A sandbox called like a role that nobody has takes that role.
    pub(crate) async fn create(&self, wanted: CreateSandbox) -> Result<Arc<Sandbox>, ApiError> {
        self.make_detached(wanted, Cause::default()).await
    }

    /// The first of a computer. `unseeded` when it is to get the desktop.
    pub(super) async fn create_live(&self, unseeded: bool) -> Result<Arc<Sandbox>, ApiError> {
        let name = Some(Role::Live.as_str().to_owned());
        let wanted = CreateSandbox { name, ..Default::default() };
        self.make_detached(wanted, Cause { unseeded, ..Cause::default() }).await
    }

    /// One for a run, called like it and not started. It never outlives the run by accident: a start of
    /// the gateway that finds it destroys it.
    pub(crate) async fn create_for_run(
        &self,
        run: &str,
        limits: Limits,
    ) -> Result<Arc<Sandbox>, ApiError> {
        let wanted = CreateSandbox { name: Some(run.to_owned()), limits, ..Default::default() };
        let run = Some(RunTie { id: run.to_owned(), kept: false });
        self.make_detached(wanted, Cause { run, ..Cause::default() }).await
    }

    async fn make_detached(
        &self,
        wanted: CreateSandbox,
        cause: Cause,
    ) -> Result<Arc<Sandbox>, ApiError> {
        let this = self.clone();
        let making = self.0.tasks.spawn(async move { this.make(wanted, cause).await });
        making.await.map_err(|_| ApiError::new(ErrorKind::Internal, "creation was cut short"))?
    }

    async fn make(&self, wanted: CreateSandbox, cause: Cause) -> Result<Arc<Sandbox>, ApiError> {
        let Cause { run, unseeded } = cause;
        let row = Row { run, unseeded, ..self.lay_out_row(&wanted)? };
        let role = Role::parse(&row.name);
        self.0.store.insert(row.clone(), role).await.map_err(errors::from_store)?;
        if let Err(error) = self.0.driver.create(&row.id, &row.spec).await {
            self.undo(&row).await;
            return Err(errors::from_driver(&row.name, &error));
        }
        self.0.store.set_desired(&row.id, Desired::Stopped).await.map_err(errors::from_store)?;
        tracing::info!(sandbox = %row.name, id = %row.id, "created");
        let sandbox = self.adopt(row, View::of(Phase::Stopped));
        self.reload_roles().await?;
        if wanted.start {
            sandbox.ask(Op::Start).await?;
        }
        Ok(sandbox)
    }

    fn lay_out_row(&self, wanted: &CreateSandbox) -> Result<Row, ApiError> {
        let id = fresh_id()?;
        let name = wanted.name.clone().unwrap_or_else(|| id.to_string());
        name::check(&name)?;
        if let Ok(taken) = self.find(&name) {
            let message = match taken.name == name {
                true => format!("a sandbox called \"{name}\" exists already"),
                false => format!("\"{name}\" is the id of sandbox \"{}\"", taken.name),
            };
            return Err(ApiError::new(ErrorKind::Exists, message)
                .hint("choose another name, or see nacre sandbox list"));
        }
        let rootfs = wanted.rootfs.as_ref().map(|path| path.0.clone());
        Ok(Row {
            id,
            name,
            driver: self.0.driver.name().to_owned(),
            spec: SandboxSpec { rootfs, limits: wanted.limits },
            desired: Desired::Creating,
            created_at: now_ms(),
            run: None,
            unseeded: false,
        })
    }

    /// What cannot be undone now is undone at the next start: the row still says `Creating`.
    pub(super) async fn undo(&self, row: &Row) {
        if let Err(error) = self.0.driver.destroy(&row.id).await {
            tracing::warn!(sandbox = %row.name, %error, "a failed creation was not cleaned up");
            return;
        }
        if let Err(error) = self.0.store.delete(&row.id).await {
            tracing::warn!(sandbox = %row.name, %error, "a failed creation left its row");
        }
    }
}

pub(super) fn fresh_id() -> Result<SandboxId, ApiError> {
    let text = random_id("sb-").map_err(|error| ApiError::io("random numbers", &error))?;
    text.parse().map_err(|error| ApiError::new(ErrorKind::Internal, format!("{error}")))
}
