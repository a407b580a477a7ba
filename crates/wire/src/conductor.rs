//! Conversations with the agent that has its brain on the host, at `/conductor/*`.
//!
//! | Call | What it does |
//! |---|---|
//! | `GET /conductor/conversations` | [`ConversationList`] |
//! | `POST /conductor/conversations` | [`CreateConversation`] -> [`ConversationInfo`] |
//! | `GET /conductor/conversations/{id}` | [`ConversationInfo`] |
//! | `PATCH /conductor/conversations/{id}` | [`ChangeConversation`] -> [`ConversationInfo`] |
//! | `DELETE /conductor/conversations/{id}` | stops what is under way and removes it |
//! | `POST /conductor/conversations/{id}/messages` | [`SendMessage`] -> [`Sent`]: a turn begins |
//! | `POST /conductor/conversations/{id}/stop` | ends the turn that is under way |
//! | `POST /conductor/conversations/{id}/approve` | [`Approve`]: the answer to a request for permission |
//! | `POST /conductor/conversations/{id}/fork` | [`ForkConversation`] -> [`ConversationInfo`] |
//! | `POST /conductor/conversations/{id}/undo` | [`UndoConversation`] -> [`UndoneList`] |
//! | `GET /conductor/conversations/{id}/events` | what happened after `after`, then what happens |
//! | `GET /conductor/search?q=WORDS` | [`SaidList`] |
//! | `GET /conductor/models` | [`ModelChoices`] |
//! | `GET /conductor/plans?role=R` | [`PlanList`] |
//! | `/conductor/memory*` | as `/admin/sandboxes/memory*`, see [`crate::knowledge`] |
//!
//! Events are a stream of server-sent events, or a WebSocket when the request asks for one. Each is one
//! JSON object in the shape of the Agent Client Protocol's session updates, with `seq` and `at` beside
//! `sessionUpdate`; `seq` counts from 1 without a gap. A client that comes back says the last one it saw
//! as `after`, or as `Last-Event-ID`, and gets everything after it once.
//!
//! `/conductor/*` is a path of a sandbox: its supervisor passes it up to the host ([`relayed`]). The same
//! calls are at `/admin/sandboxes/conductor/*`, which needs no sandbox.

use serde::{Deserialize, Serialize};

use crate::history::{How, Outcome};

/// Paths that a supervisor passes up to its host.
pub const RELAYED: [&str; 2] = ["/conductor", "/writer"];
/// Shows the host that a request which comes up has come down through the door before. Only a supervisor
/// ever sees one.
pub const TICKET: &str = "x-nacre-ticket";

/// Whether a path is one of [`RELAYED`] or below one.
pub fn relayed(path: &str) -> bool {
    RELAYED.iter().any(|prefix| {
        path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    })
}

/// What the agent may do without asking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ConversationMode {
    /// Look, and change nothing.
    Plan,
    /// Ask before each change.
    Ask,
    #[default]
    Auto,
}

impl ConversationMode {
    pub const ALL: [Self; 3] = [Self::Plan, Self::Ask, Self::Auto];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Plan => "plan",
            Self::Ask => "ask",
            Self::Auto => "auto",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum ConversationState {
    /// It waits for the owner to say something.
    Idle,
    /// A turn is under way.
    Working,
    /// A turn waits for an answer of the owner.
    Asking {
        /// The call it is about: what [`Approve`] names.
        call: String,
        /// What it would do.
        about: String,
    },
}

/// Where a conversation was forked off.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ForkedFrom {
    pub id: String,
    /// The last event that both have.
    pub seq: u64,
}

/// Times are Unix milliseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ConversationInfo {
    pub id: String,
    pub title: String,
    pub created_at: u64,
    pub updated_at: u64,
    /// `dev` or `live`; when absent, dev if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    pub mode: ConversationMode,
    /// `provider/model`; when absent, that of the configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<ForkedFrom>,
    #[serde(flatten)]
    pub state: ConversationState,
    /// The number of the last event.
    pub seq: u64,
    /// How often the model was asked, up to the end of the last turn.
    pub steps: u64,
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// As far as it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dollars: Option<f64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ConversationList {
    /// The one that was used last comes first.
    pub conversations: Vec<ConversationInfo>,
}

/// Conversations in which something was said, with the last time that it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SaidList {
    /// The one that was used last comes first.
    pub found: Vec<Said>,
    /// Not every conversation was looked at: there is too much in them, or enough was found.
    pub incomplete: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Said {
    /// Of the conversation.
    pub id: String,
    /// Of the event.
    pub seq: u64,
    pub at: u64,
    /// What surrounds the first of the words, in one line.
    pub excerpt: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct CreateConversation {
    /// The beginning of the first message when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<ConversationMode>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

/// What is absent stays. A new mode holds at once, everything else from the next turn on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct ChangeConversation {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<ConversationMode>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

/// Refused with `unavailable` while a turn is under way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct SendMessage {
    pub text: String,
}

/// It is written down, and its turn has begun.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Sent {
    /// The number of the event that holds it.
    pub seq: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct Approve {
    /// The `toolCallId` of the request.
    pub call: String,
    pub allow: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct ForkConversation {
    /// The last event that the fork has; all of them when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
}

/// What to take back: one step, one turn, or all that the conversation changed when neither is named.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct UndoConversation {
    /// The number of a tool call's event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<u64>,
    /// The number of any event of the turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<u64>,
    #[serde(flatten)]
    pub how: How,
}

/// With conflicts in any of them, nothing was touched in any.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct UndoneList {
    pub sandboxes: Vec<UndoneIn>,
    /// Sandboxes that are gone: what was done in them went with them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<LostIn>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LostIn {
    /// By id: nobody has its name any more.
    pub sandbox: String,
    /// Which role it had then.
    pub role: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct UndoneIn {
    /// By name.
    pub sandbox: String,
    pub outcome: Outcome,
}

/// What a conversation may be told to ask.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct ModelChoices {
    /// Those that are known by name, the default first.
    pub models: Vec<ModelChoice>,
    /// Providers that take models besides those: `provider/` and whatever they call it.
    pub providers: Vec<ProviderChoice>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ModelChoice {
    /// `provider/model`.
    pub model: String,
    /// What a conversation that names none asks.
    #[serde(default)]
    pub default: bool,
    /// Why it cannot be asked now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ProviderChoice {
    pub name: String,
    /// Which ones, with `*` for anything.
    pub patterns: Vec<String>,
}

/// Ways to go about a task that the agent can adopt, with the steps of each.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct PlanList {
    /// Those of the workspace first.
    pub plans: Vec<PlanInfo>,
    /// Files of the workspace that are no templates.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub malformed: Vec<MalformedPlan>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PlanInfo {
    pub name: String,
    pub description: String,
    pub steps: Vec<String>,
    pub source: PlanSource,
    /// In the workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum PlanSource {
    Builtin,
    Workspace,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct MalformedPlan {
    pub path: String,
    pub reason: String,
}

/// What a supervisor is told of conversations, one line of JSON each, at `GET /host/conversations`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    pub id: String,
    /// The event's number.
    pub seq: u64,
    /// What `sessionUpdate` says of it, or `created`, `changed`, `deleted`.
    pub kind: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_whole_names_are_passed_up() {
        for up in ["/conductor", "/conductor/", "/conductor/conversations/c-1", "/writer/x"] {
            assert!(relayed(up), "{up}");
        }
        for here in ["/", "/conductors", "/a/conductor", "/writers/x", "/Conductor"] {
            assert!(!relayed(here), "{here}");
        }
    }

    #[test]
    fn an_undo_is_one_flat_object() {
        let wanted: UndoConversation =
            serde_json::from_value(json!({"turn": 7, "dry_run": true})).unwrap();
        let how = How { dry_run: true, ..How::default() };
        assert_eq!(wanted, UndoConversation { step: None, turn: Some(7), how });
    }
}
