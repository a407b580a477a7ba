//! After a swap: is what is live now worse than what was before? [`judge`] is pure.

use std::time::Duration;

use nacre_wire::roles::{SwapCheck, SwapKind};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::health::{Counts, Traffic};
use super::{Sandboxes, checks};
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

/// What was usual before a swap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
pub(super) struct Baseline {
    pub(super) traffic: Traffic,
    /// Sockets that the swap closed. Each is expected to be opened again, once.
    pub(super) closed_sockets: u64,
}

/// Looks at the page in a row that found it broken.
const FAILED_LOOKS: u32 = 2;
/// Failures that may be anything.
const FEW: u64 = 5;
/// Before this, a rate of reconnects is noise.
const SHORTEST: u64 = 10_000;

/// Why the swap should be taken back, if it should.
pub(super) fn judge(
    config: &RolesConfig,
    before: &Baseline,
    now: &Traffic,
    failed_looks: u32,
    look: &str,
) -> Option<String> {
    if failed_looks >= FAILED_LOOKS {
        return Some(format!("the page does not load, {failed_looks} times in a row: {look}"));
    }
    let allowed = percent(before.traffic.errors, before.traffic.requests)
        .saturating_add(u64::from(config.error_percent));
    let errors = percent(now.errors, now.requests);
    if now.requests >= config.min_requests && now.errors >= FEW && errors > allowed {
        return Some(format!(
            "{errors}% of {} requests failed; {allowed}% were allowed",
            now.requests
        ));
    }
    let usual = percent(before.traffic.failed_upgrades, before.traffic.upgrades);
    let failed = percent(now.failed_upgrades, now.upgrades);
    if now.failed_upgrades >= FEW && failed > usual.saturating_add(20) {
        return Some(format!("{failed}% of {} WebSockets could not be opened", now.upgrades));
    }
    let again = now.upgrades.saturating_sub(before.closed_sockets);
    let usual = per_minute(before.traffic.upgrades, before.traffic.over_ms);
    // Three times what is usual is still life; a storm is more than that and more than a few.
    let allowed = usual.saturating_mul(3).saturating_add(config.reconnects_per_minute);
    let rate = per_minute(again, now.over_ms.max(SHORTEST));
    if again > FEW && rate > allowed {
        return Some(format!(
            "WebSockets are opened {rate} times a minute; {allowed} were allowed"
        ));
    }
    None
}

fn percent(part: u64, whole: u64) -> u64 {
    part.saturating_mul(100).checked_div(whole).unwrap_or(0)
}

fn per_minute(count: u64, over_ms: u64) -> u64 {
    count.saturating_mul(60_000).checked_div(over_ms).unwrap_or(0)
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
        while now_ms() < until {
            let left = Duration::from_millis(until.saturating_sub(now_ms()));
            tokio::time::sleep(self.0.roles.check_every.min(left)).await;
            // Somebody has moved the roles meanwhile: there is nothing left to take back.
            match self.0.store.last_swap().await {
                Ok(Some(last)) if last.id == swap => {}
                _ => return,
            }
            let look = self.look_at_live().await;
            let failed = look.iter().find(|check| !check.ok);
            failed_looks = if failed.is_some() { failed_looks + 1 } else { 0 };
            let said = failed.map(|check| check.detail.clone()).unwrap_or_default();
            let now = self.health(Role::Live).counts().since(&counts, begun.elapsed());
            if let Some(why) = judge(&self.0.roles, &baseline, &now, failed_looks, &said) {
                return self.take_back(swap, why).await;
            }
        }
        self.close_watch(swap, "kept: it did as well as what was live before".to_owned()).await;
    }

    async fn look_at_live(&self) -> Vec<SwapCheck> {
        match self.by_role(Role::Live) {
            Some(live) => checks::bootstrap(&live, &|_| ()).await,
            None => Vec::new(),
        }
    }

    async fn take_back(&self, swap: i64, why: String) {
        tracing::warn!(why, "the last swap is taken back");
        let verdict = match self.roll_back(SwapKind::AutoRollback, Some(why.clone())).await {
            Ok(()) => format!("taken back: {why}"),
            Err(error) => {
                tracing::error!(%error, why, "the last swap should be taken back and cannot be");
                format!("should be taken back ({why}) and cannot be: {error}")
            }
        };
        self.close_watch(swap, verdict).await;
    }

    pub(super) async fn close_watch(&self, swap: i64, verdict: String) {
        tracing::info!(verdict, "a swap is no longer watched");
        if let Err(error) = self.0.store.judge_swap(swap, verdict).await {
            tracing::error!(%error, "the verdict on a swap was not written down");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn traffic(requests: u64, errors: u64, upgrades: u64, failed_upgrades: u64) -> Traffic {
        Traffic { requests, errors, upgrades, failed_upgrades, over_ms: 60_000 }
    }

    fn check(before: Traffic, closed_sockets: u64, now: Traffic, expected: Option<&str>) {
        let baseline = Baseline { traffic: before, closed_sockets };
        let why = judge(&RolesConfig::default(), &baseline, &now, 0, "");
        match expected {
            None => assert_eq!(why, None),
            Some(part) => assert!(why.as_ref().is_some_and(|why| why.contains(part)), "{why:?}"),
        }
    }

    #[test]
    fn errors_count_as_a_rate_with_enough_behind_it() {
        let quiet = traffic(100, 0, 0, 0);
        check(quiet, 0, traffic(1, 1, 0, 0), None);
        check(quiet, 0, traffic(19, 19, 0, 0), None);
        check(quiet, 0, traffic(100, 5, 0, 0), None);
        check(quiet, 0, traffic(100, 6, 0, 0), Some("6% of 100 requests failed; 5% were allowed"));
        check(traffic(100, 30, 0, 0), 0, traffic(100, 35, 0, 0), None);
        check(traffic(0, 0, 0, 0), 0, traffic(20, 20, 0, 0), Some("100% of 20 requests"));
    }

    #[test]
    fn sockets_that_the_swap_closed_may_come_back_once() {
        let quiet = traffic(0, 0, 0, 0);
        check(quiet, 500, traffic(0, 0, 500, 0), None);
        check(quiet, 500, traffic(0, 0, 529, 0), None);
        check(quiet, 500, traffic(0, 0, 1000, 0), Some("500 times a minute; 30 were allowed"));
        check(traffic(0, 0, 200, 0), 0, traffic(0, 0, 600, 0), None);
        check(quiet, 0, traffic(0, 0, 6, 6), Some("100% of 6 WebSockets"));
        check(quiet, 0, traffic(0, 0, 4, 4), None);
    }

    #[test]
    fn a_page_that_does_not_load_twice_in_a_row_is_broken() {
        let baseline = Baseline::default();
        let say =
            |looks| judge(&RolesConfig::default(), &baseline, &Traffic::default(), looks, "404");
        assert_eq!(say(1), None);
        assert!(say(2).unwrap().contains("404"));
    }
}
