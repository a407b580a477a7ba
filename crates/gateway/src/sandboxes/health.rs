//! How a role has been doing: counters that the proxy adds to and a watch compares.
//!
//! Counters only grow. Every few seconds their values are kept, for some minutes, so that a swap
//! knows what was usual before it.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::Instant;

/// How often values are kept, and for how long.
pub(crate) const EVERY: Duration = Duration::from_secs(10);
const KEPT: usize = 30;

/// What went through one role.
#[derive(Debug, Default)]
pub(crate) struct RoleHealth {
    requests: AtomicU64,
    errors: AtomicU64,
    upgrades: AtomicU64,
    failed_upgrades: AtomicU64,
    open_sockets: AtomicU64,
    kept: Mutex<VecDeque<(Instant, Counts)>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Counts {
    pub(crate) requests: u64,
    /// Answers of 500 and above.
    pub(crate) errors: u64,
    /// WebSockets and other upgrades that were asked for.
    pub(crate) upgrades: u64,
    pub(crate) failed_upgrades: u64,
}

/// What happened over some time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Traffic {
    pub(crate) requests: u64,
    pub(crate) errors: u64,
    pub(crate) upgrades: u64,
    pub(crate) failed_upgrades: u64,
    pub(crate) over_ms: u64,
}

impl RoleHealth {
    /// One request, and how it was answered.
    pub(crate) fn count(&self, upgrade: bool, status: u16) {
        if upgrade { self.upgraded(status) } else { self.answered(status) }
    }

    fn answered(&self, status: u16) {
        self.requests.fetch_add(1, Ordering::Relaxed);
        if status >= 500 {
            self.errors.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn upgraded(&self, status: u16) {
        self.upgrades.fetch_add(1, Ordering::Relaxed);
        // A refusal that the app means (401, 404) is no fault; one it cannot help is.
        if status >= 500 {
            self.failed_upgrades.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts a socket for as long as the guard lives.
    pub(crate) fn open_socket(self: &Arc<Self>) -> OpenSocket {
        self.open_sockets.fetch_add(1, Ordering::Relaxed);
        OpenSocket(self.clone())
    }

    pub(crate) fn open_sockets(&self) -> u64 {
        self.open_sockets.load(Ordering::Relaxed)
    }

    pub(crate) fn counts(&self) -> Counts {
        let value = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counts {
            requests: value(&self.requests),
            errors: value(&self.errors),
            upgrades: value(&self.upgrades),
            failed_upgrades: value(&self.failed_upgrades),
        }
    }

    /// Keeps the values of this moment.
    pub(crate) fn keep(&self) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() == KEPT {
            kept.pop_front();
        }
        kept.push_back((Instant::now(), self.counts()));
    }

    /// What happened over the last minutes, as far back as is known.
    pub(crate) fn lately(&self) -> Traffic {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.front().map_or_else(Traffic::default, |(since, counts)| {
            self.counts().since(counts, since.elapsed())
        })
    }
}

/// See [`RoleHealth::open_socket`].
pub(crate) struct OpenSocket(Arc<RoleHealth>);

impl Drop for OpenSocket {
    fn drop(&mut self) {
        self.0.open_sockets.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Counts {
    pub(crate) fn since(&self, earlier: &Self, over: Duration) -> Traffic {
        Traffic {
            requests: self.requests.saturating_sub(earlier.requests),
            errors: self.errors.saturating_sub(earlier.errors),
            upgrades: self.upgrades.saturating_sub(earlier.upgrades),
            failed_upgrades: self.failed_upgrades.saturating_sub(earlier.failed_upgrades),
            over_ms: u64::try_from(over.as_millis()).unwrap_or(u64::MAX),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_happened_lately_is_counted_from_the_oldest_value_kept() {
        let health = RoleHealth::default();
        assert_eq!(health.lately(), Traffic::default());
        health.answered(500);
        health.keep();
        tokio::time::advance(Duration::from_secs(30)).await;
        for status in [200, 404, 502] {
            health.answered(status);
        }
        health.upgraded(101);
        health.upgraded(503);
        let expected =
            Traffic { requests: 3, errors: 1, upgrades: 2, failed_upgrades: 1, over_ms: 30_000 };
        assert_eq!(health.lately(), expected);
        for _ in 0..KEPT {
            health.keep();
        }
        assert_eq!(health.lately().requests, 0, "what is older is forgotten");
    }
}
