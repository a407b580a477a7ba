//! Start-up: ask the driver what there is, carry out the plan, make sure `live` runs.

use std::sync::Arc;

use nacre_sandbox::{Driver, SandboxSpec};
use nacre_wire::ApiError;
use nacre_wire::control::SandboxState;

use super::actor::View;
use super::policy::{Op, Phase};
use super::startup::{Recovery, Then, plan};
use super::{Sandbox, Sandboxes, errors};
use crate::clock::now_ms;
use crate::config::GatewayConfig;
use crate::host::Services;
use crate::routes::Role;
use crate::store::{Desired, Row, Store};

impl Sandboxes {
    pub(crate) async fn recover(
        config: &GatewayConfig,
        driver: Arc<dyn Driver>,
        store: Store,
        services: Services,
    ) -> Result<Self, ApiError> {
        let rows = store.sandboxes().await.map_err(errors::from_store)?;
        let found =
            driver.reconcile().await.map_err(|error| errors::from_driver("(any)", &error))?;
        let plan = plan(rows, driver.name(), found);
        let this = Self::new(driver, store, config, services);
        for recovery in plan {
            this.carry_out(recovery).await?;
        }
        this.reload_roles().await?;
        this.ensure_live(config.desktop.seed).await?;
        this.keep_health();
        this.resume_watch().await;
        Ok(this)
    }

    async fn carry_out(&self, recovery: Recovery) -> Result<(), ApiError> {
        match recovery {
            Recovery::Forget(row) => {
                tracing::info!(sandbox = %row.name, "forgetting a creation that never happened");
                self.0.store.delete(&row.id).await.map_err(errors::from_store)?;
            }
            Recovery::FinishDestroy(row) => self.finish_destroy(row).await?,
            Recovery::Adopt { row, found, then } => {
                if row.desired == Desired::Creating {
                    let stopped = Desired::Stopped;
                    self.0.store.set_desired(&row.id, stopped).await.map_err(errors::from_store)?;
                }
                self.follow_up(self.adopt(row, view_of(found)), then);
            }
            Recovery::Rescue { id, name, found } => {
                tracing::warn!(%id, "found a sandbox that the database does not know; keeping it");
                let row = Row {
                    id,
                    name,
                    driver: self.0.driver.name().to_owned(),
                    spec: SandboxSpec::default(),
                    desired: Desired::Stopped,
                    created_at: now_ms(),
                    run: None,
                    unseeded: false,
                };
                self.0.store.insert(row.clone(), None).await.map_err(errors::from_store)?;
                let then = if found == SandboxState::Stopped { Then::Nothing } else { Then::Stop };
                self.follow_up(self.adopt(row, view_of(found)), then);
            }
            Recovery::Unusable { row, why } => {
                tracing::error!(sandbox = %row.name, why, "cannot be used");
                self.adopt(row, View::failed(why.to_owned()));
            }
        }
        Ok(())
    }

    async fn finish_destroy(&self, row: Row) -> Result<(), ApiError> {
        tracing::info!(sandbox = %row.name, "finishing its destruction");
        match self.0.driver.destroy(&row.id).await {
            Ok(()) => self.0.store.delete(&row.id).await.map_err(errors::from_store),
            Err(error) => {
                let why = format!("was not removed: {error}");
                tracing::error!(sandbox = %row.name, why);
                self.adopt(row, View::failed(why));
                Ok(())
            }
        }
    }

    /// In the background: a hundred sandboxes start at once, and none holds up the gateway.
    fn follow_up(&self, sandbox: Arc<Sandbox>, then: Then) {
        let op = match then {
            Then::Nothing => return,
            Then::Start => Op::Start,
            Then::Stop => Op::Stop,
            Then::Pause => Op::Pause,
            Then::Resume => Op::Resume,
        };
        self.0.tasks.spawn(async move {
            if let Err(error) = sandbox.ask(op).await {
                tracing::warn!(sandbox = %sandbox.name, ?op, %error, "could not be restored");
            }
        });
    }

    async fn ensure_live(&self, seed: bool) -> Result<(), ApiError> {
        let sandbox = match self.by_role(Role::Live) {
            Some(sandbox) => sandbox,
            None => self.first_live(seed).await?,
        };
        let phase = sandbox.view.borrow().phase;
        if phase == Phase::Paused {
            return Ok(());
        }
        // A live sandbox that does not start is shown as failed; the owner still gets a gateway
        // to look at it with.
        if let Err(error) = sandbox.ask(Op::Start).await {
            tracing::error!(%error, "the live sandbox did not start");
        }
        Ok(())
    }

    async fn first_live(&self, seed: bool) -> Result<Arc<Sandbox>, ApiError> {
        let driver = &self.0.driver;
        driver.probe().await.map_err(|error| {
            let error = errors::from_driver("probe", &error);
            ApiError::new(
                error.kind,
                format!("this machine cannot run a sandbox: {}", error.message),
            )
            .hint("run nacre doctor: it names what is missing and the remedy")
        })?;
        self.create_live(seed).await
    }
}

fn view_of(found: SandboxState) -> View {
    match found {
        SandboxState::Stopped => View::of(Phase::Stopped),
        SandboxState::Running => View::of(Phase::Running),
        SandboxState::Paused => View::of(Phase::Paused),
        SandboxState::Failed => View::failed("its supervisor ended".to_owned()),
    }
}
