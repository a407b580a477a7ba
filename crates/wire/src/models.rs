//! Model calls: who may make them, and what they cost, below `/admin/sandboxes`.
//!
//! | Call | What it does |
//! |---|---|
//! | `GET /admin/sandboxes/providers` | [`ProviderList`] |
//! | `POST /admin/sandboxes/providers/reload` | reads the configuration again, on the unix socket only |
//! | `POST /admin/sandboxes/providers/stop` | [`Switch`]: no more calls, and those under way end |
//! | `POST /admin/sandboxes/providers/start` | [`Switch`]: the other way, on the unix socket only |
//! | `POST /admin/sandboxes/providers/{name}/test` | [`TestProvider`] -> [`ProviderTested`], on the unix socket only |
//! | `GET /admin/sandboxes/policy-tokens` | [`PolicyTokenList`] |
//! | `POST /admin/sandboxes/policy-tokens` | [`CreatePolicyToken`] -> [`MadePolicyToken`], on the unix socket only |
//! | `DELETE /admin/sandboxes/policy-tokens/{id}` | ends one; what it has under way ends too |
//! | `GET /admin/sandboxes/usage` | [`UsageReport`] |
//! | `GET /admin/sandboxes/calls` | [`CallPage`] |
//!
//! On the way up, a supervisor asks `POST /host/environment` ([`AskEnvironment`] ->
//! [`GuestEnvironment`]) and turns connections into `GET /host/provider`, protocol [`PROTOCOL`].

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What a connection of the way up carries when it leads to models.
pub const PROTOCOL: &str = "nacre-provider";
/// Where models are reached inside a sandbox, on loopback.
pub const PORT: u16 = 8002;

/// What a supervisor has so far.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct AskEnvironment {
    /// The token it was given before, so that processes that run keep theirs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// The version of what it has; the answer waits until there is another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// What every command in a sandbox gets from its host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct GuestEnvironment {
    pub variables: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    pub version: String,
}

/// Whom a policy token is for and what it may do. What is empty or absent does not restrict.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct PolicyScope {
    /// It works in this sandbox only, by id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conversation: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub providers: Vec<String>,
    /// `*` stands for anything.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<String>,
    /// As `paths` of a provider, and only of what that allows.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// As long as it lives.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dollars: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests_per_minute: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CreatePolicyToken {
    /// What it is for.
    #[serde(default)]
    pub name: String,
    #[serde(flatten)]
    pub scope: PolicyScope,
    /// How long it works; until it is revoked when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in_s: Option<u64>,
}

/// A policy token, without what opens anything. Times are Unix milliseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PolicyTokenInfo {
    pub id: String,
    pub name: String,
    /// Made for the commands of a sandbox, and ended with it.
    #[serde(default)]
    pub automatic: bool,
    #[serde(flatten)]
    pub scope: PolicyScope,
    pub created_at: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<u64>,
    /// Reservations of calls under way are in it.
    pub used_tokens: u64,
    pub used_dollars: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PolicyTokenList {
    /// Oldest first.
    pub tokens: Vec<PolicyTokenInfo>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct MadePolicyToken {
    #[serde(flatten)]
    pub info: PolicyTokenInfo,
    /// Shown this once.
    pub token: String,
}

/// Somebody who answers model calls, without the key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ProviderInfo {
    pub name: String,
    /// `openai`, `anthropic`, `google`, `openrouter` or `openai-compatible`.
    pub kind: String,
    pub base_url: String,
    /// Where the key comes from, in words.
    pub key: String,
    /// Why it cannot be used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    pub paths: Vec<String>,
    /// None means every model.
    pub models: Vec<String>,
    pub stopped: bool,
    pub under_way: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dollars_per_day: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_per_day: Option<u64>,
    pub dollars_today: f64,
    pub tokens_today: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ProviderList {
    pub providers: Vec<ProviderInfo>,
    /// All of them are.
    pub stopped: bool,
}

/// Which provider; all of them when absent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Switch {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Switched {
    pub stopped: bool,
    /// Calls that were under way and were ended.
    pub ended: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TestProvider {
    /// Asked for one word; without one, the list of models is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ProviderTested {
    pub works: bool,
    pub status: u16,
    /// What came back, in words.
    pub said: String,
    pub took_ms: u64,
}

/// By what usage is put together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum UsageBy {
    #[default]
    Day,
    Model,
    Run,
    Conversation,
    Sandbox,
    Provider,
    Token,
}

/// What was used. Of a call whose end nobody saw, the reservation counts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct UsageRow {
    /// The day (UTC), the model, the run, ...; empty when a call had none.
    pub key: String,
    pub calls: u64,
    /// Of these, calls of which only the reservation is known.
    pub estimated: u64,
    pub input_tokens: u64,
    pub cached_tokens: u64,
    pub output_tokens: u64,
    pub dollars: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct UsageReport {
    pub by: UsageBy,
    /// Unix milliseconds.
    pub since: u64,
    pub rows: Vec<UsageRow>,
    pub total: UsageRow,
}

/// One call, as the record keeps it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CallInfo {
    pub id: i64,
    /// Unix milliseconds.
    pub at: u64,
    /// The policy token, by id.
    pub token: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<String>,
    pub provider: String,
    pub model: String,
    pub path: String,
    /// `open`, `settled`, `kept` (its reservation counts), `failed` or `refused` (it was not made).
    pub state: String,
    /// Why it was refused: `budget`, `rate`, `stopped`, or `forbidden` for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<String>,
    /// How many such calls within some minutes were refused, when it was not the only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    pub input_tokens: u64,
    pub cached_tokens: u64,
    pub output_tokens: u64,
    pub dollars: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub took_ms: Option<u64>,
    /// SHA-256 of the body as the client sent it, in hex; empty when it was refused.
    pub request_hash: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_hash: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CallPage {
    /// Newest first.
    pub calls: Vec<CallInfo>,
    /// Pass it as `before` for what is older.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<i64>,
}
