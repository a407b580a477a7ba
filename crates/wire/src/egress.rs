//! The way out: what a sandbox asks of its host to reach somebody else, and what the owner says and
//! sees about it, below `/admin/sandboxes`.
//!
//! | Call | What it does |
//! |---|---|
//! | `GET /host/egress?host=H&port=P` | on the way up: turns the connection into one to `H:P`, see [`PROTOCOL`] |
//! | `GET /admin/sandboxes/{name}/egress` | [`EgressView`] |
//! | `PUT /admin/sandboxes/{name}/egress/mode` | [`SetEgressMode`] -> [`EgressView`] |
//! | `POST /admin/sandboxes/{name}/egress/rules` | [`EgressRule`] -> [`EgressView`]; the same target twice is one rule |
//! | `DELETE /admin/sandboxes/{name}/egress/rules?target=T` | -> [`EgressView`] |
//! | `GET /admin/sandboxes/egress/log` | [`EgressLog`], or lines of [`EgressRecord`] with `follow=true` |
//!
//! A change takes effect before its answer is sent, also on connections that are open.

use serde::{Deserialize, Serialize};

/// What the connection of `GET /host/egress` is upgraded to: the bytes of the other side.
pub const PROTOCOL: &str = "nacre-egress";

/// Where the proxy of a sandbox listens inside, for HTTP and SOCKS5 alike.
pub const PROXY_PORT: u16 = 8003;

/// What is open to a sandbox when no rule says otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
pub enum EgressMode {
    /// The public internet.
    #[default]
    Open,
    /// Nothing but what a rule allows.
    AllowList,
    /// Nothing at all, whatever the rules say.
    None,
}

impl EgressMode {
    pub const ALL: [Self; 3] = [Self::Open, Self::AllowList, Self::None];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::AllowList => "allow-list",
            Self::None => "none",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.as_str() == text)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum EgressEffect {
    Allow,
    /// Stronger than every rule that allows.
    Deny,
}

impl EgressEffect {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Deny => "deny",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [Self::Allow, Self::Deny].into_iter().find(|effect| effect.as_str() == text)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct EgressRule {
    pub effect: EgressEffect,
    /// `example.com`, `*.example.com`, `10.1.0.0/16`, `[fd00::]/8`, each with `:443` or `:8000-8999`.
    pub target: String,
    /// The name may lead to an address that is not on the public internet. A network always may.
    #[serde(default)]
    pub private: bool,
    /// From `nacre.toml`, for every sandbox, and not to be removed here.
    #[serde(default)]
    pub default: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SetEgressMode {
    /// Absent: as `nacre.toml` has it.
    #[serde(default)]
    pub mode: Option<EgressMode>,
}

/// What a sandbox may reach, and what it has open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct EgressView {
    pub sandbox: String,
    pub mode: EgressMode,
    /// The mode is the one of `nacre.toml`.
    #[serde(default)]
    pub default_mode: bool,
    pub rules: Vec<EgressRule>,
    /// Oldest first.
    pub open: Vec<EgressConnection>,
    pub limits: EgressLimits,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct EgressLimits {
    pub connections: u64,
    pub connects_per_second: u64,
}

/// A connection that is open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct EgressConnection {
    pub host: String,
    pub port: u16,
    pub address: String,
    /// Unix milliseconds.
    pub since: u64,
    /// Bytes from the sandbox.
    pub sent: u64,
    /// Bytes to the sandbox.
    pub received: u64,
}

/// How a connection came to its end, or that it has not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum EgressVerdict {
    /// It was made, and has not ended.
    Open,
    /// It was made, and both sides closed it.
    Allowed,
    /// It was made, and one side broke off, or the sandbox stopped.
    Broken,
    /// It was made, and a rule that changed ended it.
    Cut,
    /// A rule or a limit was against it.
    Refused,
    /// Nobody was against it, and it could not be made.
    Failed,
    #[serde(other)]
    Unknown,
}

impl EgressVerdict {
    /// Those that a connection ends with.
    pub const ENDS: [Self; 5] =
        [Self::Allowed, Self::Broken, Self::Cut, Self::Refused, Self::Failed];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Allowed => "allowed",
            Self::Broken => "broken",
            Self::Cut => "cut",
            Self::Refused => "refused",
            Self::Failed => "failed",
            Self::Unknown => "unknown",
        }
    }

    pub fn parse(text: &str) -> Self {
        let mut all = Self::ENDS.into_iter().chain([Self::Open]);
        all.find(|verdict| verdict.as_str() == text).unwrap_or(Self::Unknown)
    }
}

/// A connection that was made or asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct EgressRecord {
    pub id: i64,
    /// When it was asked for, in Unix milliseconds.
    pub at: u64,
    /// What the sandbox was called then.
    pub sandbox: String,
    pub sandbox_id: String,
    /// Which run of an agent it was for, when that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// `*` with port 0 stands for whatever was asked for faster than the limit.
    pub host: String,
    pub port: u16,
    /// The address that was checked and connected to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    pub verdict: EgressVerdict,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Bytes from the sandbox.
    pub sent: u64,
    /// Bytes to the sandbox.
    pub received: u64,
    /// So far, if it is open.
    pub duration_ms: u64,
    /// How often the same was refused within a minute; this is the first time.
    #[serde(default = "once", skip_serializing_if = "is_once")]
    pub times: u64,
}

fn once() -> u64 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
fn is_once(times: &u64) -> bool {
    *times == once()
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct EgressLog {
    /// Newest first.
    pub records: Vec<EgressRecord>,
    /// Pass it as `before` for what is older.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<i64>,
    /// Records that were not kept because the disk was too slow for them.
    #[serde(default)]
    pub lost: u64,
}
