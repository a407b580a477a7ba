//! What happens in a session, as it is kept and as others see it.
//!
//! Updates have the shape of the Agent Client Protocol's session updates, so that what shows one agent
//! shows any. Those that only the session itself needs ([`Update::Reply`], [`Update::Ended`]) stand
//! beside them.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::model::{Outcome, Reply, Usage};

/// One line of a session's journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// From 1, without a gap.
    pub seq: u64,
    /// Milliseconds since 1970.
    pub at: u64,
    #[serde(flatten)]
    pub update: Update,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "sessionUpdate", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum Update {
    UserMessageChunk {
        content: Content,
    },
    AgentMessageChunk {
        content: Content,
    },
    AgentThoughtChunk {
        content: Content,
    },
    /// Written before anything of it happens.
    ToolCall {
        tool_call_id: String,
        title: String,
        kind: ToolKind,
        status: ToolStatus,
        raw_input: Value,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        locations: Vec<Location>,
    },
    ToolCallUpdate {
        tool_call_id: String,
        status: ToolStatus,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        content: Vec<ToolContent>,
        /// What the model is told, when it is over.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        raw_output: Option<Outcome>,
    },
    Plan {
        entries: Vec<PlanEntry>,
    },
    UsageUpdate {
        used: Usage,
    },
    /// The owner is asked; nothing happens before the answer.
    PermissionRequest {
        tool_call_id: String,
        title: String,
    },
    PermissionOutcome {
        tool_call_id: String,
        allowed: bool,
    },
    /// What came since the last reply is void: the model is asked again.
    Retry {
        reason: String,
    },
    /// What the model said, whole: the chunks before it are for those who watch.
    Reply {
        reply: Reply,
    },
    Ended {
        how: Ended,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Content {
    Text { text: String },
}

impl Content {
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum ToolContent {
    Content { content: Content },
    Diff { path: String, old_text: Option<String>, new_text: String },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolKind {
    Read,
    Edit,
    Search,
    Execute,
    Think,
    Fetch,
    Other,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolStatus {
    Pending,
    InProgress,
    Completed,
    Failed,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Location {
    pub path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlanEntry {
    /// What is to be done.
    pub content: String,
    #[serde(default)]
    pub status: PlanStatus,
    #[serde(default)]
    pub priority: Priority,
}

#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum PlanStatus {
    #[default]
    Pending,
    InProgress,
    Completed,
}

#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Priority {
    High,
    #[default]
    Medium,
    Low,
}

/// How a turn ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reason", content = "message", rename_all = "snake_case")]
pub enum Ended {
    /// The model has nothing more to do.
    Done,
    /// It took as many steps as it may.
    MaxSteps,
    TimeOut,
    Budget(String),
    /// The model failed, and trying again did not help.
    Model(String),
    /// It called what cannot be called, twice in a row.
    Invalid(String),
    Cancelled,
    /// The process that ran it ended.
    Interrupted,
}

impl Ended {
    /// For scripts: 0 is done, and every other way has its own code.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Done => 0,
            Self::MaxSteps => 10,
            Self::TimeOut => 11,
            Self::Budget(_) => 12,
            Self::Model(_) => 13,
            Self::Invalid(_) => 14,
            Self::Interrupted => 15,
            Self::Cancelled => 130,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn events_have_the_shape_that_others_know() {
        let update = Update::ToolCall {
            tool_call_id: "1".to_owned(),
            title: "write a".to_owned(),
            kind: ToolKind::Edit,
            status: ToolStatus::Pending,
            raw_input: json!({"path": "a"}),
            locations: vec![Location { path: "a".to_owned(), line: None }],
        };
        let event = Event { seq: 1, at: 2, update };
        let expected = json!({
            "seq": 1, "at": 2, "sessionUpdate": "tool_call", "toolCallId": "1",
            "title": "write a", "kind": "edit", "status": "pending",
            "rawInput": {"path": "a"}, "locations": [{"path": "a"}]
        });
        let told = serde_json::to_value(&event).unwrap();
        assert_eq!(told, expected);
        assert_eq!(serde_json::from_value::<Event>(told).unwrap(), event);
    }
}
