//! After a swap: is what is live now worse than what was before? Pure.

use serde::{Deserialize, Serialize};

use super::health::Traffic;
use super::watching::RolesConfig;

/// What was usual before a swap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
pub(super) struct Baseline {
    pub(super) traffic: Traffic,
    /// Sockets that the swap closed. Each is expected to be opened again, once.
    pub(super) closed_sockets: u64,
    /// The page of what was live, or what it names, was seen not to load.
    #[serde(default)]
    pub(super) page_failed: bool,
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
    // Nothing is won by going back to what did not load either.
    if failed_looks >= FAILED_LOOKS && !before.page_failed {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn traffic(requests: u64, errors: u64, upgrades: u64, failed_upgrades: u64) -> Traffic {
        Traffic { requests, errors, upgrades, failed_upgrades, over_ms: 60_000 }
    }

    fn check(before: Traffic, closed_sockets: u64, now: Traffic, expected: Option<&str>) {
        let baseline = Baseline { traffic: before, closed_sockets, page_failed: false };
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
    fn a_page_that_does_not_load_twice_in_a_row_is_broken_if_it_loaded_before() {
        let say = |looks, page_failed| {
            let baseline = Baseline { page_failed, ..Baseline::default() };
            judge(&RolesConfig::default(), &baseline, &Traffic::default(), looks, "404")
        };
        assert_eq!(say(1, false), None);
        assert!(say(2, false).unwrap().contains("404"));
        assert_eq!(say(2, true), None);
    }
}
