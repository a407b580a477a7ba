//! What happens in a session, as it is kept and as others see it.
//!
//! Updates have the shape of the Agent Client Protocol's session updates, so that what shows one agent
//! shows any. Those that only the session itself needs ([`Update::Reply`], [`Update::Compacted`],
//! [`Update::Ended`]) stand beside them.

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

impl Event {
    /// Reads a line of a journal, which it may change. The head that every line has is taken off by
    /// hand: serde would put the rest together twice, once for its place and once for its tag, and that
    /// is most of what a long journal takes to open.
    pub(crate) fn read(line: &mut [u8]) -> serde_json::Result<Self> {
        let Some((seq, at, rest)) = head(line) else { return serde_json::from_slice(line) };
        line[rest] = b'{';
        Ok(Self { seq, at, update: serde_json::from_slice(&line[rest..])? })
    }
}

/// The two numbers of a line `{"seq":1,"at":2,...`, and the place of the comma behind them.
fn head(line: &[u8]) -> Option<(u64, u64, usize)> {
    let number = |from: usize| {
        let end = from + line.get(from..)?.iter().position(|byte| !byte.is_ascii_digit())?;
        Some((std::str::from_utf8(&line[from..end]).ok()?.parse().ok()?, end))
    };
    let (first, second) = (b"{\"seq\":", b",\"at\":");
    line.starts_with(first).then_some(())?;
    let (seq, end) = number(first.len())?;
    line[end..].starts_with(second).then_some(())?;
    let (at, end) = number(end + second.len())?;
    (line[end] == b',').then_some((seq, at, end))
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
    /// What the owner should know, such as a server of tools that does not start.
    Notice {
        message: String,
    },
    /// The conversation was made shorter, so that the model can hear it. What it was is still in the
    /// journal, and in the files that are named.
    Compacted {
        change: Compaction,
        /// Estimated tokens.
        before: u64,
        after: u64,
        /// What the summary took.
        used: Usage,
    },
    /// What the model said, whole: the chunks before it are for those who watch.
    Reply {
        reply: Reply,
    },
    Ended {
        how: Ended,
    },
    /// A turn begins: which one, where it acts and how. Written before what the owner said.
    TurnBegins {
        turn: u64,
        role: String,
        sandbox: String,
        mode: String,
        model: String,
    },
    /// Where the turn acts has another role now: the roles were swapped while it went on.
    Moved {
        role: String,
        sandbox: String,
    },
    /// What a call changed is in the history of its sandbox, under these numbers.
    Checkpoints {
        tool_call_id: String,
        sandbox: String,
        checkpoints: Vec<u64>,
    },
    /// The owner has taken changes back.
    Undone {
        sandbox: String,
        checkpoints: Vec<u64>,
        /// What that changed, or the first of it.
        paths: Vec<String>,
    },
    /// What all of it has cost so far.
    CostUpdate {
        dollars: f64,
    },
}

/// What is told to the model in place of what was said, exactly: whoever reads it again has the same
/// messages.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Compaction {
    /// First, results whose whole is in a file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub put_aside: Vec<PutAside>,
    /// Then, so many of the first messages have one in their place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<Summary>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PutAside {
    /// Which message, and which of its results, from 0.
    pub message: usize,
    pub result: usize,
    pub text: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    pub messages: usize,
    pub text: String,
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
        let mut line = serde_json::to_vec(&event).unwrap();
        assert_eq!(head(&line).map(|(seq, at, _)| (seq, at)), Some((1, 2)), "the quick way");
        assert_eq!(Event::read(&mut line).unwrap(), event);
    }

    #[test]
    fn a_line_in_another_order_is_read_as_well() {
        let ended = r#"{"sessionUpdate":"ended","how":{"reason":"done"},"at":2,"seq":1}"#;
        let event = Event { seq: 1, at: 2, update: Update::Ended { how: Ended::Done } };
        assert_eq!(Event::read(&mut ended.as_bytes().to_vec()).unwrap(), event);
        for odd in
            ["", "{", "{\"seq\":", "{\"seq\":1", "{\"seq\":1,\"at\":2", "{\"seq\":1,\"at\":2}"]
        {
            assert!(Event::read(&mut odd.as_bytes().to_vec()).is_err(), "{odd}");
        }
    }
}
