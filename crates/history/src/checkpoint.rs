//! What is remembered about a checkpoint besides its changes.

use serde::{Deserialize, Serialize};

use crate::path::TreePath;

/// Counts up from 1; never reused.
pub type CheckpointId = u64;

/// Who made a change, as far as is known. Several may have been at work at once.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Author {
    /// A call of the file API.
    Api {
        call: String,
    },
    Command {
        id: String,
        line: String,
    },
    Conversation {
        id: String,
        call: Option<String>,
    },
    Ssh {
        session: String,
    },
}

impl Author {
    /// Whether both are the same actor, whatever it was doing.
    pub fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Api { .. }, Self::Api { .. }) => true,
            (Self::Command { id, .. }, Self::Command { id: other, .. })
            | (Self::Conversation { id, .. }, Self::Conversation { id: other, .. })
            | (Self::Ssh { session: id }, Self::Ssh { session: other }) => id == other,
            _ => false,
        }
    }
}

/// Why there is a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Cause {
    /// The tree as it was found.
    First,
    /// Somebody changed files.
    Change,
    /// Changes of these checkpoints were taken back: all of them, or what is within a name.
    Undo {
        of: Vec<CheckpointId>,
        #[serde(default, skip_serializing_if = "TreePath::is_root")]
        within: TreePath,
    },
    /// An undo was taken back.
    Redo { of: CheckpointId },
    /// Files were set to what they were after a checkpoint.
    Restore { to: CheckpointId },
}

/// One line of the history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    pub id: CheckpointId,
    /// Milliseconds since 1970. Never less than that of the checkpoint before.
    pub time: i64,
    pub cause: Cause,
    /// Nobody: unknown.
    pub authors: Vec<Author>,
    pub label: Option<String>,
    pub counts: Counts,
    /// What history could not or would not keep, and how files moved.
    pub notes: Notes,
}

/// Names that came, changed and went.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    pub added: u64,
    pub changed: u64,
    pub removed: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Notes {
    /// From where to where; what moved along with a directory is not listed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub moved: Vec<(TreePath, TreePath)>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<Remark>,
    /// This many older checkpoints were merged into this one.
    #[serde(skip_serializing_if = "is_zero")]
    pub merged: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Something about one name that the owner should know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remark {
    pub path: TreePath,
    pub what: What,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum What {
    /// It changed while it was read, again and again.
    Torn,
    /// It is larger than the limit; its content is not kept.
    TooLarge {
        size: u64,
    },
    Unreadable {
        why: String,
    },
    /// A restore could not touch it.
    LeftAlone {
        why: String,
    },
    /// Somebody wrote to it while it was being replaced; what was written is kept here.
    Displaced {
        content: String,
    },
}
