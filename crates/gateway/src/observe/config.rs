//! `[gateway.observe]` in `nacre.toml`: when something is worth an alert.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::Deserialize;

use super::detect::Limits;

/// Where a runtime keeps its own files. A page that asks for one that is not there, again and
/// again, was built for another runtime than the one that answers.
const RUNTIME_PATHS: &[&str] = &["/_dioxus"];

#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub struct RawObserveConfig {
    /// Paths under which repeated 404s are an alert.
    pub runtime_paths: Option<Vec<String>>,
    /// So many of them within the window.
    pub not_found_threshold: Option<u32>,
    /// So many reconnections of one user to one sandbox within the window.
    pub reconnect_threshold: Option<u32>,
    pub window_seconds: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObserveConfig {
    pub runtime_paths: Vec<String>,
    pub(super) limits: Limits,
    pub dropped: DroppedLines,
}

/// How many lines of the log were dropped because nobody took them; whoever writes the log counts.
#[derive(Debug, Clone, Default)]
pub struct DroppedLines(Arc<AtomicU64>);

impl DroppedLines {
    pub fn add(&self, lines: u64) {
        self.0.fetch_add(lines, Ordering::Relaxed);
    }

    pub fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl PartialEq for DroppedLines {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.count() == other.count()
    }
}

impl Eq for DroppedLines {}

impl RawObserveConfig {
    pub(crate) fn resolve(self) -> ObserveConfig {
        let usual = Limits::default();
        let seconds = |seconds: u32| u64::from(seconds.max(1)) * 1000;
        ObserveConfig {
            runtime_paths: self
                .runtime_paths
                .unwrap_or_else(|| RUNTIME_PATHS.iter().map(|path| (*path).to_owned()).collect())
                .into_iter()
                .map(|path| path.trim_end_matches('/').to_owned())
                .collect(),
            limits: Limits {
                window_ms: self.window_seconds.map_or(usual.window_ms, seconds),
                reconnects: self.reconnect_threshold.map_or(usual.reconnects, |n| n.max(1)),
                missing: self.not_found_threshold.map_or(usual.missing, |n| n.max(1)),
            },
            dropped: DroppedLines::default(),
        }
    }
}
