//! Roles: `dev`, the copy to try things on, and the swap that makes it `live`.
//!
//! | Call | What it does |
//! |---|---|
//! | `GET /admin/sandboxes/roles` | [`RolesStatus`] |
//! | `POST /admin/sandboxes/dev` | a `dev` that is a copy of `live` -> [`DevMade`] |
//! | `POST /admin/sandboxes/dev/reset` | the same, in place of the one there is |
//! | `DELETE /admin/sandboxes/dev` | removes it |
//! | `POST /admin/sandboxes/swap` | [`SwapRequest`] -> [`Swapped`], or 409 with [`SwapRefused`] |
//! | `GET /admin/sandboxes/swap/checks` | a line of JSON for each [`SwapCheck`] as it is made, then [`SwapVerdict`] |

use serde::{Deserialize, Serialize};

use crate::ApiError;
use crate::control::SandboxInfo;

/// The code with which the gateway closes the WebSockets of a role that moved. A client connects
/// again, once, and reaches the new owner.
pub const ROLE_MOVED: u16 = 4001;

/// The reason that comes with [`ROLE_MOVED`].
pub const ROLE_MOVED_REASON: &str = "role moved";

/// What people are told of a swap without [`Swapped::durable_in_us`].
pub const UNSYNCED: &str = "the disk did not confirm it, so a power cut may take it back";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct RolesStatus {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub live: Option<SandboxInfo>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dev: Option<SandboxInfo>,
    /// While `dev` is being copied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub copying: Option<CopyProgress>,
    /// The newest change of roles.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_swap: Option<SwapRecord>,
    /// What the checks found when they were last made.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<SwapCheck>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CopyProgress {
    pub files: u64,
    pub bytes: u64,
    pub elapsed_ms: u64,
}

/// How a copy went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct CopyReport {
    /// Files, links and directories of the copy.
    pub names: u64,
    pub bytes: u64,
    /// How much of that takes no space of its own, because the filesystem shares it.
    pub shared_bytes: u64,
    pub took_ms: u64,
    /// For how long `live` stood still; absent when it did not run, or could not be frozen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frozen_ms: Option<u64>,
    /// The copy has the history too. Otherwise it begins its own.
    pub history: bool,
    /// Names that still changed in the last look at a `live` that could not be frozen.
    pub unsettled: u64,
    /// Sockets, pipes and devices, which mean nothing in a copy.
    pub left_out: u64,
    /// The first of them.
    pub left_out_names: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DevMade {
    pub sandbox: SandboxInfo,
    pub copy: CopyReport,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct SwapRequest {
    /// Back to what was live before the last swap. Checks are made and shown; only one that finds
    /// nothing there to answer refuses it.
    pub rollback: bool,
    /// Roll back even then.
    pub force: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Swapped {
    pub live: SandboxInfo,
    pub dev: SandboxInfo,
    pub checks: Vec<SwapCheck>,
    /// From the moment the pointers began to move until both had.
    pub moved_in_us: u64,
    /// From the same moment until a power cut could not take it back. Absent when the disk did not confirm
    /// that: both have moved, and it may not last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub durable_in_us: Option<u64>,
    /// Unix time in milliseconds until which it may be taken back by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watched_until: Option<u64>,
}

/// The body of the 409 to a swap that a check refuses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SwapRefused {
    pub error: ApiError,
    pub checks: Vec<SwapCheck>,
}

/// One thing that must hold before a sandbox becomes live.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SwapCheck {
    /// `process`, `runtime`, `websocket`, `page` or `assets`.
    pub name: String,
    pub ok: bool,
    /// In a sentence, for people.
    pub detail: String,
    /// What was asked for and what came, where that failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<Evidence>,
}

/// The last line of `GET /admin/sandboxes/swap/checks`. A stream that ends without one broke off.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SwapVerdict {
    /// Whether a swap would go through.
    pub ok: bool,
    /// In a sentence, for people.
    pub verdict: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct Evidence {
    /// As the sandbox was asked for it.
    pub url: String,
    pub problem: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    /// How the answer begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub excerpt: Option<String>,
}

/// A change of roles that happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SwapRecord {
    /// Unix time in milliseconds.
    pub at: u64,
    pub kind: SwapKind,
    /// Ids: what was live before, and what is since.
    pub before: String,
    pub after: String,
    /// Why, when nobody asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// While it is watched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watched_until: Option<u64>,
    /// What watching it came to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum SwapKind {
    Swap,
    Rollback,
    /// Taken back by itself.
    #[serde(other)]
    AutoRollback,
}
