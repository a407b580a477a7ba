//! The swap: checks, then both pointers in one step.

use std::sync::Arc;
use std::time::Duration;

use nacre_wire::roles::{
    SwapCheck, SwapKind, SwapRecord, SwapRefused, SwapRequest, SwapVerdict, Swapped,
};
use nacre_wire::{ApiError, ErrorKind};

use super::dev::{no_dev, no_live};
use super::judging::Baseline;
use super::policy::Op;
use super::watching::WayBack;
use super::{Sandbox, Sandboxes, checks, errors};
use crate::clock::now_ms;
use crate::routes::Role;
use crate::store::Move;

/// Why nothing moved.
pub(crate) enum Refusal {
    Error(ApiError),
    Checks(SwapRefused),
}

impl From<ApiError> for Refusal {
    fn from(error: ApiError) -> Self {
        Self::Error(error)
    }
}

/// The two that change places.
pub(super) struct Pair {
    pub(super) live: Arc<Sandbox>,
    pub(super) dev: Arc<Sandbox>,
}

/// What a watch did.
pub(super) enum TakenBack {
    Yes,
    /// Somebody was faster: the roles have moved, or there is nothing to go back to.
    NotAnyMore,
    /// Another change is under way.
    Busy(ApiError),
}

/// Why roles move, and what comes with it.
struct Cause {
    kind: SwapKind,
    reason: Option<String>,
    checks: Vec<SwapCheck>,
    /// The page of what is live was seen not to load.
    page_failed: bool,
}

impl Cause {
    fn new(kind: SwapKind, checks: Vec<SwapCheck>) -> Self {
        Self { kind, reason: None, checks, page_failed: false }
    }
}

/// What the checks come to.
pub(super) fn verdict(checks: &[SwapCheck]) -> SwapVerdict {
    match checks.iter().find(|check| !check.ok) {
        Some(failed) => SwapVerdict {
            ok: false,
            verdict: format!("dev is not fit to be live: {}", failed.detail),
        },
        None => SwapVerdict { ok: true, verdict: "dev is fit to be live".to_owned() },
    }
}

impl Sandboxes {
    /// Detached: a client that leaves does not leave it half-done.
    pub(crate) async fn swap(&self, wanted: SwapRequest) -> Result<Swapped, Refusal> {
        if wanted.force && !wanted.rollback {
            return Err(ApiError::new(ErrorKind::InvalidRequest, "only a rollback can be forced")
                .hint("see what the checks found, and mend that")
                .into());
        }
        let this = self.clone();
        let swapping = async move {
            match wanted.rollback {
                false => this.swap_forward().await,
                true => this.swap_back(wanted.force).await,
            }
        };
        self.change_detached("the swap", swapping).await
    }

    /// By itself, from the watch of a swap. What the watch saw is some time ago: only while roles cannot
    /// move is it sure that this is still the swap, and dev still what was live before it.
    pub(super) async fn roll_back(&self, swap: i64, why: String) -> Result<TakenBack, ApiError> {
        let _changing = match self.change_roles() {
            Ok(changing) => changing,
            Err(busy) => return Ok(TakenBack::Busy(busy)),
        };
        let WayBack::Open(pair) = self.way_back(swap).await? else {
            return Ok(TakenBack::NotAnyMore);
        };
        let found = self.ready(&pair.dev).await;
        if !found.ok {
            return Err(ApiError::new(ErrorKind::Unavailable, found.detail));
        }
        let cause = Cause::new(SwapKind::AutoRollback, Vec::new());
        self.move_roles(&pair, Cause { reason: Some(why), ..cause }).await?;
        Ok(TakenBack::Yes)
    }

    async fn swap_forward(&self) -> Result<Swapped, Refusal> {
        let pair = self.pair()?;
        self.remember_checks(&[]);
        let tell = |check: &SwapCheck| self.remember_check(check);
        let (checks, page_failed) =
            tokio::join!(checks::all(&pair.dev, &tell), self.page_fails(&pair.live));
        self.remember_checks(&checks);
        let SwapVerdict { ok, verdict } = verdict(&checks);
        if !ok {
            let error = ApiError::new(ErrorKind::Conflict, verdict)
                .hint("live is as it was; mend dev and try again");
            return Err(Refusal::Checks(SwapRefused { error, checks }));
        }
        let cause = Cause { page_failed, ..Cause::new(SwapKind::Swap, checks) };
        Ok(self.move_roles(&pair, cause).await?)
    }

    /// Must work when much is broken: what does not load is said, and only a sandbox that cannot
    /// answer at all is refused.
    async fn swap_back(&self, force: bool) -> Result<Swapped, Refusal> {
        let pair = self.pair()?;
        let last = self.0.store.last_swap().await.map_err(errors::from_store)?;
        let before = last.map(|swap| swap.before()).transpose().map_err(errors::from_store)?;
        if before.as_ref() != Some(&pair.dev.id) && !force {
            return Err(ApiError::new(ErrorKind::Unavailable, "there is no swap to take back")
                .hint("what is dev now was not live before; nacre swap makes it live")
                .into());
        }
        let ready = self.ready(&pair.dev).await;
        let mut checks = vec![ready];
        if checks[0].ok {
            checks.extend(checks::bootstrap(&pair.dev, &|_| ()).await);
        } else if !force {
            let message = format!("there is nothing to go back to: {}", checks[0].detail);
            let error = ApiError::new(ErrorKind::Conflict, message)
                .hint("mend dev, or say --force to go back all the same");
            return Err(Refusal::Checks(SwapRefused { error, checks }));
        }
        self.remember_checks(&checks);
        Ok(self.move_roles(&pair, Cause::new(SwapKind::Rollback, checks)).await?)
    }

    /// Starts it when it is stopped, and sees whether its supervisor answers.
    async fn ready(&self, sandbox: &Arc<Sandbox>) -> SwapCheck {
        if let Err(error) = sandbox.ask(Op::Start).await {
            tracing::warn!(%error, "what was live before does not start");
        }
        checks::process(sandbox).await
    }

    pub(super) fn pair(&self) -> Result<Pair, ApiError> {
        Ok(Pair {
            live: self.by_role(Role::Live).ok_or_else(no_live)?,
            dev: self.by_role(Role::Dev).ok_or_else(no_dev)?,
        })
    }

    async fn move_roles(&self, pair: &Pair, cause: Cause) -> Result<Swapped, ApiError> {
        let Cause { kind, reason, checks, page_failed } = cause;
        let watched = kind == SwapKind::Swap && self.0.roles.auto_rollback;
        let watch_ms = u64::try_from(self.0.roles.watch.as_millis()).unwrap_or(u64::MAX);
        let watched_until = watched.then(|| now_ms().saturating_add(watch_ms));
        let health = self.health(Role::Live);
        let (traffic, closed_sockets) = (health.lately(), health.open_sockets());
        let baseline = Baseline { traffic, closed_sockets, page_failed };
        let moved = Move {
            record: SwapRecord {
                at: now_ms(),
                kind,
                before: pair.live.id.to_string(),
                after: pair.dev.id.to_string(),
                reason,
                watched_until,
                verdict: None,
            },
            baseline: watched.then(|| serde_json::to_string(&baseline).unwrap_or_default()),
        };
        let (this, up, down) = (self.clone(), pair.dev.id.clone(), pair.live.id.clone());
        let point = move || {
            let names = [(&up, Role::Live.as_str()), (&down, Role::Dev.as_str())];
            this.point(&[(Role::Live, Some(&up)), (Role::Dev, Some(&down))], &names);
        };
        let written = self.0.store.swap_roles(&pair.live.id, &pair.dev.id, moved, point).await;
        let written = written.map_err(errors::from_store)?;
        let microseconds = |took: Duration| u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let moved_in_us = microseconds(written.moved_in);
        tracing::info!(live = %pair.dev.id, dev = %pair.live.id, ?kind, moved_in_us, "roles moved");
        if let Some(until) = watched_until {
            self.watch(written.id, until, baseline);
        }
        let info = |sandbox: &Sandbox| self.find(sandbox.id.as_str()).map(|now| self.info(&now));
        Ok(Swapped {
            live: info(&pair.dev)?,
            dev: info(&pair.live)?,
            checks,
            moved_in_us,
            durable_in_us: written.durable_in.map(microseconds),
            watched_until,
        })
    }

    fn remember_checks(&self, checks: &[SwapCheck]) {
        self.0.extras().checks = checks.to_vec();
    }

    /// While a swap makes them.
    fn remember_check(&self, check: &SwapCheck) {
        self.0.extras().checks.push(check.clone());
    }

    pub(super) fn last_checks(&self) -> Vec<SwapCheck> {
        self.0.extras().checks.clone()
    }
}
