//! `dev`: a copy of `live` to try things on.
//!
//! A copy is made under its own id, with a row that says `Cloning`; a crash before the role is given
//! to it destroys it at the next start. The old `dev` is kept until then, and loses the role in the
//! same step.

use std::sync::Arc;
use std::time::Instant;

use nacre_sandbox::{Error as DriverError, Forked, Progress};
use nacre_wire::roles::{CopyProgress, CopyReport, DevMade};
use nacre_wire::{ApiError, ErrorKind};

use super::actor::View;
use super::make::fresh_id;
use super::policy::{Op, Phase};
use super::{Sandbox, Sandboxes, errors};
use crate::clock::now_ms;
use crate::routes::Role;
use crate::store::{Desired, Row};

/// What is to happen to a `dev` that is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IfThere {
    Refuse,
    Replace {
        /// Even when it is what a watched swap would go back to.
        force: bool,
    },
}

/// A copy under way.
pub(super) struct Copying {
    progress: Arc<Progress>,
    since: Instant,
}

impl Sandboxes {
    pub(crate) async fn make_dev(&self, if_there: IfThere) -> Result<DevMade, ApiError> {
        let this = self.clone();
        self.change_detached("the copy", async move { this.make_dev_now(if_there).await }).await
    }

    async fn make_dev_now(&self, if_there: IfThere) -> Result<DevMade, ApiError> {
        let live = self.by_role(Role::Live).ok_or_else(no_live)?;
        let old = self.by_role(Role::Dev);
        match (&old, if_there) {
            (Some(_), IfThere::Refuse) => {
                return Err(ApiError::new(ErrorKind::Exists, "there is a dev already")
                    .hint("nacre dev reset makes a fresh one in its place"));
            }
            (Some(old), IfThere::Replace { force }) => self.require_unwatched(old, force).await?,
            (None, _) => {}
        }
        let row = Row {
            id: fresh_id()?,
            name: String::new(),
            driver: live.driver.clone(),
            spec: live.spec.clone(),
            desired: Desired::Cloning,
            created_at: now_ms(),
            run: None,
            unseeded: false,
        };
        let row = Row { name: row.id.to_string(), ..row };
        self.0.store.insert(row.clone(), None).await.map_err(errors::from_store)?;
        self.0.services.egress.copy(&live.id, &row.id).await.map_err(errors::from_store)?;
        let begun = Instant::now();
        let forked = match self.fork(&live, &row).await {
            Ok(forked) => forked,
            Err(error) => {
                self.undo(&row).await;
                return Err(copy_error(&error));
            }
        };
        let copy = report(&forked, begun);
        tracing::info!(id = %row.id, names = copy.names, ms = copy.took_ms, "copied live");
        let dev = self.install_dev(row, old).await?;
        // It has what it needs to be looked at, whether or not it starts.
        if let Err(error) = dev.ask(Op::Start).await {
            tracing::error!(%error, "the new dev did not start");
        }
        if copy.history {
            self.note_origin(&dev);
        }
        Ok(DevMade { sandbox: self.info(&dev), copy })
    }

    async fn fork(&self, live: &Sandbox, row: &Row) -> Result<Forked, DriverError> {
        let progress = Arc::new(Progress::default());
        let copying = Copying { progress: progress.clone(), since: Instant::now() };
        self.0.extras().copying = Some(copying);
        let forked = self.0.driver.fork(&live.id, &row.id, progress).await;
        self.0.extras().copying = None;
        forked
    }

    /// The role moves to the copy in one step, and what had it before is removed.
    async fn install_dev(
        &self,
        row: Row,
        old: Option<Arc<Sandbox>>,
    ) -> Result<Arc<Sandbox>, ApiError> {
        let old_id = old.as_ref().map(|old| &old.id);
        self.0.store.give_dev(&row.id, old_id).await.map_err(errors::from_store)?;
        let id = row.id.clone();
        let name = Role::Dev.as_str().to_owned();
        let dev = self.adopt(Row { name, ..row }, View::of(Phase::Stopped));
        let rename: Vec<_> = old_id.map(|old| (old, old.as_str())).into_iter().collect();
        self.point(&[(Role::Dev, Some(&id))], &rename);
        if let Some(old) = old {
            self.give_up_way_back(&old.id).await;
            if let Err(error) = old.ask(Op::Destroy).await {
                tracing::warn!(%error, "the dev before is not removed; the next start tries again");
            }
        }
        Ok(dev)
    }

    pub(crate) async fn delete_dev(&self, force: bool) -> Result<(), ApiError> {
        let this = self.clone();
        self.change_detached("the removal", async move { this.delete_dev_now(force).await }).await
    }

    async fn delete_dev_now(&self, force: bool) -> Result<(), ApiError> {
        let dev = self.by_role(Role::Dev).ok_or_else(no_dev)?;
        self.require_unwatched(&dev, force).await?;
        // Before it is half gone.
        self.give_up_way_back(&dev.id).await;
        dev.ask(Op::Destroy).await
    }

    /// A swap that is being watched may still be taken back, to this sandbox.
    async fn require_unwatched(&self, dev: &Sandbox, force: bool) -> Result<(), ApiError> {
        let last = self.0.store.last_swap().await.map_err(errors::from_store)?;
        let until = last.filter(|swap| swap.record.before == dev.id.as_str());
        match until.and_then(|swap| swap.record.watched_until) {
            Some(until) if until > now_ms() && !force => {
                let seconds = (until - now_ms()).div_ceil(1000);
                Err(ApiError::new(
                    ErrorKind::Unavailable,
                    format!(
                        "dev is what was live before the last swap, which is watched for {seconds} s more"
                    ),
                )
                .hint("wait, or say --force to give up the way back"))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn copying(&self) -> Option<CopyProgress> {
        let extras = self.0.extras();
        let copying = extras.copying.as_ref()?;
        let (files, bytes) = copying.progress.now();
        let elapsed_ms = u64::try_from(copying.since.elapsed().as_millis()).unwrap_or(u64::MAX);
        Some(CopyProgress { files, bytes, elapsed_ms })
    }

    /// In the background: names the checkpoint at which the two histories part.
    fn note_origin(&self, dev: &Arc<Sandbox>) {
        let client = dev.client();
        self.0.tasks.spawn(async move {
            let Ok(status) = client.history_status().await else { return };
            let label = "copied from live";
            if status.latest > 0
                && let Err(error) = client.label_checkpoint(status.latest, Some(label)).await
            {
                tracing::debug!(%error, "the copy's history has no mark of its beginning");
            }
        });
    }
}

pub(super) fn no_live() -> ApiError {
    ApiError::new(ErrorKind::Unavailable, "there is no live sandbox")
        .hint("nacre sandbox create live --start")
}

pub(super) fn no_dev() -> ApiError {
    ApiError::new(ErrorKind::NotFound, "there is no dev sandbox").hint("make one: nacre dev create")
}

fn copy_error(error: &DriverError) -> ApiError {
    let error = errors::from_driver(Role::Live.as_str(), error);
    match error.kind {
        ErrorKind::NoSpace => {
            ApiError::new(error.kind, format!("no room for a copy of live: {}", error.message))
                .hint("free some disk space; nothing of the copy was kept")
        }
        _ => error,
    }
}

fn report(forked: &Forked, begun: Instant) -> CopyReport {
    let ms =
        |duration: std::time::Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    CopyReport {
        names: forked.report.names,
        bytes: forked.report.bytes,
        shared_bytes: forked.report.shared_bytes,
        took_ms: ms(begun.elapsed()),
        frozen_ms: forked.frozen.map(ms),
        history: forked.history,
        unsettled: forked.unsettled,
        left_out: forked.report.left_out,
        left_out_names: forked.report.left_out_names.clone(),
    }
}
