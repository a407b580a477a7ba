//! Counters. Every label comes from a list that is known at compile time.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use http::Method;
use nacre_wire::control::AlertKind;

use super::Via;

pub(super) const VIAS: usize = Via::ALL.len();
pub(super) const METHODS: [&str; 8] =
    ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "other"];
pub(super) const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];
/// Upper bounds in microseconds.
pub(super) const BUCKETS: [u64; 12] = [
    500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 1_000_000, 5_000_000,
    30_000_000,
];

/// How a request for another protocol ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Upgrade {
    Accepted,
    Unauthenticated,
    /// The page that asked is not one of ours.
    Origin,
    /// The sandbox is not running, or does not answer.
    Unavailable,
    /// The app said something other than 101.
    Refused,
    /// The sandbox broke off while it was asked.
    Broke,
    ClientWent,
}

impl Upgrade {
    pub(super) const ALL: [Self; 7] = [
        Self::Accepted,
        Self::Unauthenticated,
        Self::Origin,
        Self::Unavailable,
        Self::Refused,
        Self::Broke,
        Self::ClientWent,
    ];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Unauthenticated => "unauthenticated",
            Self::Origin => "origin",
            Self::Unavailable => "sandbox_unavailable",
            Self::Refused => "app_refused",
            Self::Broke => "upstream_broke",
            Self::ClientWent => "client_went",
        }
    }
}

#[derive(Default)]
pub(super) struct Metrics {
    pub(super) via: [PerVia; VIAS],
    pub(super) reconnects: AtomicU64,
    pub(super) alerts: [AtomicU64; AlertKind::ALL.len()],
}

/// Counted apart for each way to a sandbox.
#[derive(Default)]
pub(super) struct PerVia {
    pub(super) requests: [[AtomicU64; CLASSES.len()]; METHODS.len()],
    /// Not cumulative; the last one is beyond every bound.
    pub(super) durations: [AtomicU64; BUCKETS.len() + 1],
    pub(super) micros: AtomicU64,
    /// Of the requests, those that hyper had no part in.
    pub(super) lean: AtomicU64,
    pub(super) bytes_in: AtomicU64,
    pub(super) bytes_out: AtomicU64,
    pub(super) under_way: AtomicI64,
    pub(super) sockets: AtomicI64,
    pub(super) upgrades: [AtomicU64; Upgrade::ALL.len()],
}

impl Metrics {
    pub(super) fn of(&self, via: Via) -> &PerVia {
        &self.via[via.index()]
    }

    pub(super) fn upgrade(&self, via: Via, outcome: Upgrade) {
        add(&self.of(via).upgrades[outcome as usize], 1);
    }

    pub(super) fn reconnected(&self) {
        add(&self.reconnects, 1);
    }

    pub(super) fn alert(&self, kind: AlertKind) {
        if let Some(index) = AlertKind::ALL.iter().position(|known| *known == kind) {
            add(&self.alerts[index], 1);
        }
    }
}

impl PerVia {
    pub(super) fn request(&self, method: &Method, status: u16, took: Duration) {
        let class = usize::from(status / 100).clamp(1, CLASSES.len()) - 1;
        add(&self.requests[method_index(method)][class], 1);
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let bucket = BUCKETS.partition_point(|bound| *bound < micros);
        add(&self.durations[bucket], 1);
        add(&self.micros, micros);
    }
}

fn method_index(method: &Method) -> usize {
    METHODS.iter().position(|known| *known == method.as_str()).unwrap_or(METHODS.len() - 1)
}

pub(super) fn add(counter: &AtomicU64, amount: u64) {
    counter.fetch_add(amount, Ordering::Relaxed);
}
