//! Health, version and resource use of a supervisor.

use serde::{Deserialize, Serialize};

use crate::generation::Range;

/// `GET /supervisor/health`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Health {
    pub status: HealthStatus,
    pub uptime_ms: u64,
    /// Handlers that panicked and were contained since the start.
    pub contained_panics: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum HealthStatus {
    Ok,
    #[serde(other)]
    Degraded,
}

/// `GET /supervisor/version`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Version {
    pub version: String,
    pub protocol: Range,
    /// Paths that it passes up to its host.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub relays: Vec<String>,
}

/// `GET /supervisor/stats`: what the supervisor itself uses. The driver reports the whole sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SupervisorStats {
    pub rss_bytes: u64,
    pub open_fds: u64,
    pub threads: u64,
    /// Processes in the sandbox, the supervisor included.
    pub processes: u64,
    pub commands_running: u64,
    /// Free and total bytes of the filesystem that holds `/workspace`.
    pub disk_free_bytes: u64,
    pub disk_total_bytes: u64,
}
