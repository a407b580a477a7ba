//! Watching a swap: a task looks at live again and again, and goes back when [`judge`] says so.
//!
//! A look takes as long as live takes to answer. Whatever was true before one is asked for again after it:
//! the owner may have moved the roles meanwhile, or removed what there is to go back to.

use std::time::Duration;

use nacre_sandbox::SandboxId;
use nacre_wire::ApiError;
use nacre_wire::roles::SwapCheck;
use serde::Deserialize;
use tokio::time::Instant;

use super::health::Counts;
use super::judging::{Baseline, judge};
use super::swap::{Pair, TakenBack};
use super::{Sandbox, Sandboxes, checks, errors};
use crate::clock::now_ms;
use crate::routes::Role;

/// The `[roles]` table, before defaults.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub struct RawRolesConfig {
    /// Take a swap back when it made things worse.
    pub auto_rollback: Option<bool>,
    /// How long a swap is watched.
    pub watch_seconds: Option<u64>,
    /// How many percent more of the requests may fail than before.
    pub error_percent: Option<u32>,
    /// Fewer requests than this say nothing about a rate.
    pub min_requests: Option<u64>,
    /// How many more WebSockets per minute may be opened than before.
    pub reconnects_per_minute: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RolesConfig {
    pub auto_rollback: bool,
    pub watch: Duration,
    /// How often the watch looks.
    pub check_every: Duration,
    pub error_percent: u32,
    pub min_requests: u64,
    pub reconnects_per_minute: u64,
}

impl Default for RolesConfig {
    fn default() -> Self {
        Self {
            auto_rollback: true,
            watch: Duration::from_secs(120),
            check_every: Duration::from_secs(5),
            error_percent: 5,
            min_requests: 20,
            reconnects_per_minute: 30,
        }
    }
}

impl RawRolesConfig {
    pub fn resolve(self) -> RolesConfig {
        let usual = RolesConfig::default();
        RolesConfig {
            auto_rollback: self.auto_rollback.unwrap_or(usual.auto_rollback),
            watch: self.watch_seconds.map_or(usual.watch, Duration::from_secs),
            check_every: usual.check_every,
            error_percent: self.error_percent.unwrap_or(usual.error_percent),
            min_requests: self.min_requests.unwrap_or(usual.min_requests),
            reconnects_per_minute: self
                .reconnects_per_minute
                .unwrap_or(usual.reconnects_per_minute),
        }
    }
}

/// How long live is looked at before a swap, to know what was usual.
const LOOK_BEFORE: Duration = Duration::from_secs(2);
const NO_WAY_BACK: &str = "no longer watched: what was live before is gone";

/// What a watched swap can go back to.
pub(super) enum WayBack {
    Open(Pair),
    /// `dev` is not what was live before any more.
    Gone,
    /// The roles have moved since, or the watch has ended.
    Over,
}

/// Why a swap that should be taken back is not.
struct Refused {
    why: String,
    error: ApiError,
    /// Another change is under way.
    busy: bool,
}

impl Sandboxes {
    /// Watches a swap in the background until its time is over or it is taken back.
    pub(super) fn watch(&self, swap: i64, until: u64, baseline: Baseline) {
        let this = self.clone();
        self.0.tasks.spawn(async move {
            let begun = (Instant::now(), this.health(Role::Live).counts());
            let watched = this.watch_until(swap, until, baseline, begun);
            tokio::select! {
                () = this.0.stop.cancelled() => {}
                () = watched => {}
            }
        });
    }

    /// Goes on with a watch that the last gateway began.
    pub(super) async fn resume_watch(&self) {
        let Ok(Some(swap)) = self.0.store.last_swap().await else { return };
        let Some(until) = swap.record.watched_until.filter(|until| *until > now_ms()) else {
            return;
        };
        let baseline = swap.baseline.as_deref().and_then(|text| serde_json::from_str(text).ok());
        self.watch(swap.id, until, baseline.unwrap_or_default());
    }

    async fn watch_until(
        &self,
        swap: i64,
        until: u64,
        baseline: Baseline,
        (begun, counts): (Instant, Counts),
    ) {
        let mut failed_looks = 0;
        let mut refused: Option<Refused> = None;
        // Past its time only for what it has found already, while another change is in the way.
        while now_ms() < until || refused.as_ref().is_some_and(|refused| refused.busy) {
            let left = match until.saturating_sub(now_ms()) {
                0 => self.0.roles.check_every,
                left => Duration::from_millis(left),
            };
            tokio::time::sleep(self.0.roles.check_every.min(left)).await;
            if !self.goes_on(swap).await {
                return;
            }
            let look = self.look_at_live().await;
            let failed = look.iter().find(|check| !check.ok);
            failed_looks = if failed.is_some() { failed_looks + 1 } else { 0 };
            let said = failed.map(|check| check.detail.clone()).unwrap_or_default();
            let now = self.health(Role::Live).counts().since(&counts, begun.elapsed());
            refused = match judge(&self.0.roles, &baseline, &now, failed_looks, &said) {
                None => None,
                Some(why) => match self.take_back(swap, why).await {
                    Ok(()) => return,
                    Err(refused) => Some(refused),
                },
            };
        }
        let verdict = match refused {
            None => "kept: it did as well as what was live before".to_owned(),
            Some(Refused { why, error, .. }) => {
                format!("should be taken back ({why}) and cannot be: {error}")
            }
        };
        if self.goes_on(swap).await {
            self.close_watch(swap, verdict).await;
        }
    }

    /// Whether there is something to watch still. Without a way back there is not.
    async fn goes_on(&self, swap: i64) -> bool {
        match self.way_back(swap).await {
            Ok(WayBack::Open(_)) => true,
            Ok(WayBack::Over) => false,
            Ok(WayBack::Gone) => {
                self.close_watch(swap, NO_WAY_BACK.to_owned()).await;
                false
            }
            Err(error) => {
                tracing::warn!(%error, "a watch cannot see what it watches");
                true
            }
        }
    }

    async fn look_at_live(&self) -> Vec<SwapCheck> {
        match self.by_role(Role::Live) {
            Some(live) => checks::bootstrap(&live, &|_| ()).await,
            None => Vec::new(),
        }
    }

    /// Whether that failed. One that takes long is not waited for, and said to be well: who swaps away from
    /// what hangs is in a hurry.
    pub(super) async fn page_fails(&self, sandbox: &Sandbox) -> bool {
        let look = checks::bootstrap(sandbox, &|_| ());
        let look = tokio::time::timeout(LOOK_BEFORE, look).await;
        look.is_ok_and(|checks| checks.iter().any(|check| !check.ok))
    }

    /// What a watched swap can go back to, if it is still the last.
    pub(super) async fn way_back(&self, swap: i64) -> Result<WayBack, ApiError> {
        let last = self.0.store.last_swap().await.map_err(errors::from_store)?;
        let watched = last.filter(|last| last.id == swap && last.record.watched_until.is_some());
        let Some(last) = watched else { return Ok(WayBack::Over) };
        Ok(match self.pair() {
            Ok(pair) if last.record.before == pair.dev.id.as_str() => WayBack::Open(pair),
            Ok(_) | Err(_) => WayBack::Gone,
        })
    }

    /// Done, or there is nothing left to do. What is in the way may be gone at the next look.
    async fn take_back(&self, swap: i64, why: String) -> Result<(), Refused> {
        let (error, busy) = match self.roll_back(swap, why.clone()).await {
            Ok(TakenBack::Yes) => {
                tracing::warn!(why, "the last swap is taken back");
                self.close_watch(swap, format!("taken back: {why}")).await;
                return Ok(());
            }
            Ok(TakenBack::NotAnyMore) => {
                let _ended = self.goes_on(swap).await;
                return Ok(());
            }
            Ok(TakenBack::Busy(error)) => (error, true),
            Err(error) => (error, false),
        };
        tracing::error!(%error, why, "the last swap should be taken back and cannot be");
        Err(Refused { why, error, busy })
    }

    /// `dev` is given up, and with it what a watched swap would go back to.
    pub(super) async fn give_up_way_back(&self, dev: &SandboxId) {
        match self.0.store.last_swap().await {
            Ok(Some(last)) if last.record.before == dev.as_str() => {
                if last.record.watched_until.is_some() {
                    self.close_watch(last.id, NO_WAY_BACK.to_owned()).await;
                }
            }
            Ok(_) => {}
            Err(error) => tracing::warn!(%error, "the watch of a swap is not ended at once"),
        }
    }

    async fn close_watch(&self, swap: i64, verdict: String) {
        tracing::info!(verdict, "a swap is no longer watched");
        if let Err(error) = self.0.store.judge_swap(swap, verdict).await {
            tracing::error!(%error, "the verdict on a swap was not written down");
        }
    }
}
