//! One-shot runs, below `/admin/sandboxes`: a task, a sandbox for it alone, and what came of it.
//!
//! | Call | What it does |
//! |---|---|
//! | `POST /admin/sandboxes/runs` | [`StartRun`] -> [`RunInfo`] |
//! | `PUT /admin/sandboxes/runs/{id}/input` | the files it begins with, as a tar stream, when it waits for them |
//! | `GET /admin/sandboxes/runs/{id}/events` | a [`RunEvent`] per line, from the first on, as they happen |
//! | `GET /admin/sandboxes/runs` | [`RunList`] |
//! | `GET /admin/sandboxes/runs/{id}` | [`RunInfo`] |
//! | `DELETE /admin/sandboxes/runs/{id}` | cancels it; one that has ended is forgotten |
//! | `GET /admin/sandboxes/runs/{id}/files` | what it added and changed, as a tar stream |
//! | `GET /admin/sandboxes/runs/{id}/patch` | the same and what it removed, as `patch -p1` reads it |
//!
//! A run that is not detached hangs on those who follow its events: when the last of them goes, it is
//! cancelled.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::WirePath;
use crate::exec::Stream;

/// What is to be done, and within which limits. What is absent is as the configuration says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct StartRun {
    /// The task.
    pub spec: String,
    /// `nacre`, `codex`, `claude`, `opencode`, or a command that is given the path of the task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// `provider/model`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_steps: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// What its model calls may cost; 0 is no limit of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dollars: Option<f64>,
    /// How many tokens its model calls may use, in and out; 0 is no limit of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Files follow, with `PUT .../input`; it begins when they are there.
    pub input: bool,
    /// The sandbox stays when it is over, and is one like any other from then on.
    pub keep: bool,
    /// Goes on when nobody follows it.
    pub detach: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// For its files.
    Waiting,
    /// For its turn.
    Queued,
    /// The sandbox is made and filled.
    Starting,
    Running,
    /// What changed is taken out, and the sandbox removed.
    Finishing,
    #[serde(other)]
    Ended,
}

/// How a run ended. Each has its exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum RunEnd {
    Done,
    MaxSteps,
    TimeOut,
    Budget,
    /// The model failed, and trying again did not help.
    Model,
    /// The model called what cannot be called, twice in a row.
    Invalid,
    /// The gateway ended while it ran.
    Interrupted,
    /// The agent ended with an error of its own.
    Agent,
    Cancelled,
    /// It could not begin, or its sandbox broke.
    #[serde(other)]
    Failed,
}

impl RunEnd {
    pub const ALL: [Self; 10] = [
        Self::Done,
        Self::MaxSteps,
        Self::TimeOut,
        Self::Budget,
        Self::Model,
        Self::Invalid,
        Self::Interrupted,
        Self::Agent,
        Self::Failed,
        Self::Cancelled,
    ];

    /// For scripts: 0 is done, and every other way has its own.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::MaxSteps => 10,
            Self::TimeOut => 11,
            Self::Budget => 12,
            Self::Model => 13,
            Self::Invalid => 14,
            Self::Interrupted => 15,
            Self::Agent => 16,
            Self::Failed => 17,
            Self::Cancelled => 130,
        }
    }

    /// For people, after "it ended: ".
    pub fn words(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::MaxSteps => "it took as many steps as it may",
            Self::TimeOut => "its time is up",
            Self::Budget => "its budget is used up",
            Self::Model => "the model failed",
            Self::Invalid => "the model called what cannot be called",
            Self::Interrupted => "the gateway ended while it ran",
            Self::Agent => "the agent failed",
            Self::Failed => "it could not be run",
            Self::Cancelled => "cancelled",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RunOutcome {
    pub how: RunEnd,
    pub exit_code: u8,
    /// What exactly, where there is more to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl RunOutcome {
    pub fn new(how: RunEnd, message: Option<String>) -> Self {
        Self { how, exit_code: how.exit_code(), message, hint: None }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, Default)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RunLimits {
    /// How often nacre's own agent asks the model. Other agents have their own ways.
    pub max_steps: u64,
    pub timeout_ms: u64,
    /// None is no limit of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dollars: Option<f64>,
    /// None is no limit of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
}

/// What it used so far. Reservations of calls under way are in it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, Default)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct RunUsage {
    /// How often nacre's own agent asked the model.
    pub steps: u64,
    pub tool_calls: u64,
    pub tokens: u64,
    pub dollars: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum RunChangeKind {
    Added,
    Changed,
    Removed,
}

/// One name below the workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RunChange {
    pub path: WirePath,
    pub change: RunChangeKind,
    /// Lines, where it is text.
    #[serde(default)]
    pub lines_added: u64,
    #[serde(default)]
    pub lines_removed: u64,
    /// Why it is not among the files that can be fetched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out: Option<String>,
}

/// What a run did to the files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RunChanges {
    pub added: u64,
    pub changed: u64,
    pub removed: u64,
    /// Of the files that can be fetched.
    pub bytes: u64,
    /// The first of them, by path.
    pub paths: Vec<RunChange>,
    /// There are more than could be looked at, or the sandbox did not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incomplete: Option<String>,
}

/// Times are Unix milliseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RunInfo {
    pub id: String,
    pub state: RunState,
    /// The beginning of the task.
    pub title: String,
    pub agent: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    pub limits: RunLimits,
    pub detached: bool,
    pub created_at: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<u64>,
    pub used: RunUsage,
    /// There when it has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<RunOutcome>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changes: Option<RunChanges>,
    /// The sandbox that it runs in or, when that was wanted, ran in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RunList {
    /// Newest first.
    pub runs: Vec<RunInfo>,
    /// How many run at once at most.
    pub at_once: u64,
}

/// One line of the stream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RunEvent {
    /// From 1, without a gap.
    pub seq: u64,
    /// Unix milliseconds.
    pub at: u64,
    #[serde(flatten)]
    pub update: RunUpdate,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum RunUpdate {
    /// It waits for its turn behind so many.
    Queued {
        ahead: u64,
    },
    State {
        state: RunState,
    },
    /// What nacre's own agent says: a session update of the Agent Client Protocol, or one of ours.
    Agent {
        #[cfg_attr(feature = "openapi", schema(value_type = Object))]
        event: Value,
    },
    /// A line that another agent wrote, or any agent to its standard error.
    Output {
        stream: Stream,
        line: String,
    },
    Usage {
        used: RunUsage,
    },
    /// It says more than is kept; the rest of its output is not in this stream.
    Truncated,
    /// Always the last.
    Ended {
        run: Box<RunInfo>,
    },
    #[serde(other)]
    Unknown,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_way_to_end_has_a_code_of_its_own() {
        let mut codes: Vec<_> = RunEnd::ALL.iter().map(|end| end.exit_code()).collect();
        codes.sort_unstable();
        assert_eq!(codes, [0, 10, 11, 12, 13, 14, 15, 16, 17, 130]);
    }

    #[test]
    fn an_event_is_one_flat_object() {
        let update = RunUpdate::Output { stream: Stream::Stdout, line: "hi".to_owned() };
        let event = RunEvent { seq: 1, at: 2, update };
        let expected =
            json!({"seq": 1, "at": 2, "type": "output", "stream": "stdout", "line": "hi"});
        assert_eq!(serde_json::to_value(&event).unwrap(), expected);
        let later = json!({"seq": 1, "at": 2, "type": "something_new", "x": 1});
        let read: RunEvent = serde_json::from_value(later).unwrap();
        assert_eq!(read.update, RunUpdate::Unknown);
    }
}
