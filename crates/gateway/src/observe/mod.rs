//! What passes through the gateway, for those who look after it: a line of the log per request,
//! counters for Prometheus, and alerts when the pages of a sandbox do what no healthy page does.
//!
//! ```text
//! proxy ─▶ Exchange ─┬─▶ log       one line, when the last byte has passed
//!                    ├─▶ metrics   atomics, labels from fixed lists
//!                    └─▶ detect    reconnects and 404 loops ─▶ alerts: the last hundred
//! ```
//! [`Observer`] owns all of it. Nothing here grows with traffic: labels come from fixed lists, the
//! detector keeps a bounded number of pairs and times, and alerts are a ring. Paths are logged
//! without their query, which can hold secrets.

mod config;
mod detect;
mod exchange;
mod lines;
mod metrics;
mod spool;
mod text;

use std::sync::{Mutex, MutexGuard, PoisonError};

use http::{HeaderMap, header};
use nacre_wire::control::{Alert, SandboxInfo};

use crate::clock::now_ms;
use crate::egress::Egress;
use crate::routes::Role;
use crate::sandboxes::Sandbox;
pub use config::{DroppedLines, ObserveConfig, RawObserveConfig};
use detect::{Detector, Whose};
pub(crate) use exchange::Exchange;
pub use lines::JsonLines;
use metrics::Metrics;
pub(crate) use metrics::Upgrade;
pub use spool::{LogGuard, Spool};

/// The target of the line per request; `[log] level = "info,access=off"` turns it off.
pub(crate) const ACCESS: &str = "access";

/// Of a request that anybody can make.
const LONGEST_PATH: usize = 256;

pub(crate) struct Observer {
    metrics: Metrics,
    detector: Mutex<Detector>,
    runtime_paths: Vec<String>,
    dropped: DroppedLines,
}

/// Through which way a request reached its sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Via {
    Role(Role),
    /// `/admin/sandboxes/NAME/door`, the way of the command line.
    Door,
}

impl Via {
    const ALL: [Self; 3] = [Self::Role(Role::Live), Self::Role(Role::Dev), Self::Door];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Role(role) => role.as_str(),
            Self::Door => "door",
        }
    }

    fn index(self) -> usize {
        match self {
            Self::Role(Role::Live) => 0,
            Self::Role(Role::Dev) => 1,
            Self::Door => 2,
        }
    }
}

impl Observer {
    pub(crate) fn new(config: ObserveConfig) -> Self {
        Self {
            metrics: Metrics::default(),
            detector: Mutex::new(Detector::new(config.limits)),
            runtime_paths: config.runtime_paths,
            dropped: config.dropped,
        }
    }

    /// A request that the gateway turned away before it had a sandbox. Only sockets are of
    /// interest: a page that opens them again and again without a session is broken.
    pub(crate) fn turned_away(&self, via: Via, path: &str, headers: &HeaderMap, why: Upgrade) {
        if headers.contains_key(header::UPGRADE) {
            self.metrics.upgrade(via, why);
            let path = &path[..path.floor_char_boundary(LONGEST_PATH)];
            let (role, outcome) = (via.as_str(), why.as_str());
            tracing::info!(target: ACCESS, path, role, outcome, "upgrade");
        }
    }

    /// Newest last.
    pub(crate) fn alerts(&self) -> Vec<Alert> {
        self.detector().alerts()
    }

    pub(crate) fn prometheus(&self, sandboxes: &[SandboxInfo], egress: &Egress) -> String {
        text::render(&self.metrics, self.dropped.count(), sandboxes, egress)
    }

    fn upgrade_began(&self, user: &str, sandbox: &Sandbox) {
        let seen = self.detector().connecting(user, whose(sandbox), now_ms());
        if seen.again {
            self.metrics.reconnected();
        }
        self.announce(seen.alert);
    }

    fn upgrade_ended(&self, user: &str, sandbox: &Sandbox) {
        self.detector().disconnected(user, whose(sandbox), now_ms());
    }

    fn not_found(&self, sandbox: &Sandbox, path: &str) {
        let known = self.runtime_paths.iter().find(|known| is_under(path, known));
        if let Some(known) = known {
            let alert = self.detector().missing(whose(sandbox), known, now_ms());
            self.announce(alert);
        }
    }

    /// `alert` is one that has just begun.
    fn announce(&self, alert: Option<Alert>) {
        let Some(alert) = alert else { return };
        self.metrics.alert(alert.kind);
        tracing::warn!(
            kind = alert.kind.as_str(),
            sandbox = alert.sandbox,
            sandbox_id = alert.sandbox_id,
            user = alert.user,
            path = alert.path,
            count = alert.count,
            "{}",
            alert.message
        );
    }

    fn detector(&self) -> MutexGuard<'_, Detector> {
        self.detector.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn whose(sandbox: &Sandbox) -> Whose<'_> {
    Whose { id: sandbox.id.as_str(), name: &sandbox.name }
}

/// What is in front of a role's paths.
fn prefix(role: Role) -> &'static str {
    match role {
        Role::Live => "",
        Role::Dev => "/dev",
    }
}

fn is_under(path: &str, prefix: &str) -> bool {
    path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
