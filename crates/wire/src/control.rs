//! The gateway's control plane, `/admin/sandboxes*`, over its port or its unix socket.
//!
//! | Call | What it does |
//! |---|---|
//! | `GET /admin/sandboxes` | [`SandboxList`] |
//! | `POST /admin/sandboxes` | [`CreateSandbox`] -> [`SandboxInfo`] |
//! | `GET`, `DELETE /admin/sandboxes/{name}` | one of them, by name or id |
//! | `POST /admin/sandboxes/{name}/{start,stop,restart,pause,resume}` | -> [`SandboxInfo`] |
//! | `GET /admin/sandboxes/{name}/stats` | [`Stats`] |
//! | `GET /admin/sandboxes/{name}/logs` | the supervisor's log, as text; `follow=true` streams |
//! | `ANY /admin/sandboxes/{name}/door/*` | the rest of the path, to that sandbox's supervisor |
//! | `GET /admin/sandboxes/gateway` | [`GatewayStatus`] |
//! | `POST /admin/sandboxes/gateway/sign-in-link` | [`SignInLink`], on the unix socket only |
//! | `POST /admin/sandboxes/gateway/setup-code` | [`SetupCode`], on the unix socket only |
//! | `POST /admin/sandboxes/gateway/shutdown` | [`Shutdown`], on the unix socket only |
//!
//! What is about `live` and `dev` is in [`roles`](crate::roles), who may come in in
//! [`access`](crate::access).

use serde::{Deserialize, Serialize};

use crate::WirePath;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct CreateSandbox {
    /// Lower case letters, digits and dashes; made up when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Directory of an OCI root filesystem on the host; the host's own system when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rootfs: Option<WirePath>,
    pub limits: Limits,
    /// Start it at once.
    pub start: bool,
}

/// What a sandbox may use; `None` is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct Limits {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Thousandths of a core: 1500 is one and a half.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_millis: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pids: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk_bytes: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum SandboxState {
    /// Its files exist; nothing runs.
    Stopped,
    Running,
    Paused,
    /// It ran and its supervisor ended by itself.
    #[serde(other)]
    Failed,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SandboxInfo {
    pub id: String,
    pub name: String,
    /// `live` or `dev` when a role points here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    pub driver: String,
    pub state: SandboxState,
    /// Unix time in milliseconds.
    pub created_at: u64,
    pub limits: Limits,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rootfs: Option<WirePath>,
    /// Why it failed, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// The supervisor's version while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub supervisor: Option<String>,
    /// The one-shot run that it was made for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SandboxList {
    pub sandboxes: Vec<SandboxInfo>,
}

/// What a whole sandbox uses; a field the kernel does not offer is absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct Stats {
    pub memory_bytes: Option<u64>,
    pub memory_peak_bytes: Option<u64>,
    pub memory_limit_bytes: Option<u64>,
    /// Times the kernel ended a process for want of memory.
    pub oom_kills: Option<u64>,
    pub cpu_usage_us: Option<u64>,
    pub pids: Option<u64>,
    pub disk_bytes: Option<u64>,
}

/// Something this machine cannot do fully, and how to change that.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Reduction {
    /// What is reduced: `uids`, `memory`, `cpu`, `pids`, `disk`, `pause`, ...
    pub what: String,
    pub why: String,
    /// The exact command, or the one thing to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

/// What the gateway noticed about the pages that use it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AlertList {
    /// Newest last; the oldest of very many are forgotten.
    pub alerts: Vec<Alert>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Alert {
    pub kind: AlertKind,
    /// Name of the sandbox at that time.
    pub sandbox: String,
    /// Which it is, whatever it is called by now.
    #[serde(default)]
    pub sandbox_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The runtime path below which files are missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// How often it happened while the alert lasted.
    pub count: u64,
    /// Unix milliseconds: when there was enough of it for an alert, and when it last happened.
    pub first_at: u64,
    pub last_at: u64,
    /// For people.
    pub message: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum AlertKind {
    /// A page opens its socket again and again.
    ReconnectStorm,
    /// A page asks again and again for files of its runtime that are not there.
    MissingRuntimePath,
    /// One that this version does not know.
    #[serde(other)]
    Unknown,
}

impl AlertKind {
    /// Those that are raised.
    pub const ALL: [Self; 2] = [Self::ReconnectStorm, Self::MissingRuntimePath];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::ReconnectStorm => "reconnect_storm",
            Self::MissingRuntimePath => "missing_runtime_path",
            Self::Unknown => "unknown",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct GatewayStatus {
    pub version: String,
    pub pid: u32,
    pub uptime_ms: u64,
    /// Where a browser goes.
    pub url: String,
    /// The DID of whose computer it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    pub data_dir: WirePath,
    pub driver: String,
    pub reduced: Vec<Reduction>,
    pub sandboxes: Vec<SandboxInfo>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SignInLink {
    pub url: String,
    pub expires_in_s: u64,
}

/// Lets somebody make a computer theirs that nobody owns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SetupCode {
    /// The page to type it into.
    pub url: String,
    pub code: String,
    pub expires_in_s: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct Shutdown {
    /// Stop the sandboxes too; otherwise they run on and the next gateway finds them.
    pub stop_sandboxes: bool,
}

/// One line of `nacre doctor`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Check {
    pub name: String,
    pub status: CheckStatus,
    pub detail: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum CheckStatus {
    Ok,
    Reduced,
    Failed,
}
