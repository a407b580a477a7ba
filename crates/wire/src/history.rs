//! What happened to the files, and taking it back.
//!
//! Every call is under `/supervisor/history` and is answered by the supervisor itself, whether or
//! not anything else in the sandbox works. Paths are relative to the workspace.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::WirePath;

/// A header of file calls: an [`Author`] as JSON, on whose behalf the call is made.
pub const BY: &str = "nacre-by";

/// How history is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct HistoryStatus {
    pub state: HistoryState,
    /// The newest checkpoint; 0 before the first.
    pub latest: u64,
    pub checkpoints: u64,
    /// Files, directories and links in the recorded present.
    pub names: u64,
    pub quota_bytes: u64,
    /// An older store that could not be read was set aside under this name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set_aside: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum HistoryState {
    /// Looking at the tree for the first time since the start.
    Starting,
    Recording,
    /// Changes are not being recorded, and why. What was recorded before is safe.
    Refusing {
        why: String,
    },
    /// This sandbox keeps no history.
    Off {
        why: String,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CheckpointInfo {
    pub id: u64,
    /// Milliseconds since 1970.
    pub time: i64,
    pub cause: Cause,
    /// Who was at work; empty when nobody knows.
    pub authors: Vec<Author>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    pub added: u64,
    pub changed: u64,
    pub removed: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub moved: Vec<Moved>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<Remark>,
    /// An undo has taken it back.
    #[serde(default)]
    pub undone: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Cause {
    First,
    Change,
    Undo {
        of: Vec<u64>,
        /// Only what is within this was taken back.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        path: Option<WirePath>,
    },
    Redo {
        of: u64,
    },
    Restore {
        to: u64,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Author {
    Api {
        call: String,
    },
    Command {
        id: String,
        line: String,
    },
    Conversation {
        id: String,
        #[serde(default)]
        call: Option<String>,
    },
    Ssh {
        session: String,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Moved {
    pub from: WirePath,
    pub to: WirePath,
}

/// Something about one name that its owner should know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Remark {
    pub path: WirePath,
    /// `torn`, `too_large`, `unreadable`, `left_alone` or `displaced`.
    pub what: String,
    pub message: String,
}

/// Newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CheckpointPage {
    pub checkpoints: Vec<CheckpointInfo>,
    /// `before` of the next page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
}

/// One checkpoint, or the difference of two.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Changes {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<CheckpointInfo>,
    pub changes: Vec<FileChange>,
    /// How many there are; `changes` may hold only the first.
    pub total: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct FileChange {
    pub path: WirePath,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<WirePath>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old: Option<Version>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new: Option<Version>,
    /// Unified, when it was asked for and both sides are text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// Why there is no `diff`: `binary` or `too_large`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub omitted: Option<String>,
}

/// A name as it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = FileVersion))]
pub struct Version {
    /// `file`, `directory`, `symlink` or `special`.
    pub kind: String,
    pub size: u64,
    /// Permission bits.
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
    /// Milliseconds since 1970.
    pub mtime: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<WirePath>,
    /// The BLAKE3 of a file's bytes, in hex; none when they were not kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
}

/// What to take back. Exactly one of `last`, `checkpoints` and `by`; `last: 1` when there is none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct UndoRequest {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub checkpoints: Vec<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<By>,
    #[serde(flatten)]
    pub how: How,
}

/// Somebody's work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum By {
    /// Everything of one author.
    Author { author: Author },
    /// What the newest command did that changed something and is not undone.
    LastCommand,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct RedoRequest {
    #[serde(flatten)]
    pub how: How,
}

/// Whoever is at work by other means than a command or a file call of their own.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct AttendRequest {
    pub by: Vec<Author>,
}

/// Exactly one of `checkpoint` and `time`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct RestoreRequest {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<u64>,
    /// Milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<i64>,
    #[serde(flatten)]
    pub how: How,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct How {
    /// Only this file, or what is below this directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<WirePath>,
    /// Tell what would be done, and do nothing.
    pub dry_run: bool,
    /// Refuse, with `conflict`, when the newest checkpoint is another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<u64>,
    /// What to do about names that somebody changed later.
    pub on_conflict: Choice,
    /// The same for single names, which may be directories.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub choices: BTreeMap<String, Choice>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Choice {
    /// Do nothing and report.
    #[default]
    Ask,
    Keep,
    Overwrite,
}

/// What came of an undo, a redo or a restore.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Outcome {
    /// What was recorded; none after a dry run, with conflicts, and when there was nothing to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<CheckpointInfo>,
    /// From the present to what it became or would become.
    pub changes: Changes,
    /// Not empty: nothing was touched.
    pub conflicts: Vec<Conflict>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<Remark>,
    /// The checkpoints that were taken back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub of: Vec<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Conflict {
    pub path: WirePath,
    /// `changed_later`, `changed_between`, `holds_later_files` or `parent_replaced`.
    pub reason: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub present: Option<Version>,
    /// What it would become.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<Version>,
    /// The checkpoint that changed it last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<CheckpointInfo>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct LabelRequest {
    /// None takes the label off.
    pub label: Option<String>,
}

/// Where the space goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct HistoryUsage {
    pub disk_bytes: u64,
    pub quota_bytes: u64,
    pub packs_bytes: u64,
    pub log_bytes: u64,
    pub checkpoints: u64,
    pub names: u64,
    /// Uncompressed.
    pub present_bytes: u64,
    /// Uncompressed, of contents that only the past needs.
    pub past_bytes: u64,
    pub largest: Vec<PathBytes>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PathBytes {
    pub path: WirePath,
    pub bytes: u64,
}

/// What a check of the whole store found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Verified {
    pub contents: u64,
    pub damaged: Vec<Damaged>,
}

/// A content that cannot be read any more, and where it was used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Damaged {
    pub content: String,
    pub why: String,
    pub uses: Vec<Use>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Use {
    pub path: WirePath,
    /// The checkpoint that recorded it.
    pub checkpoint: u64,
}

/// The owner's choices. Only the owner can reach them: nothing inside the sandbox can.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct HistorySettings {
    /// Names that are neither recorded nor touched: `*` within a name, `**` across names.
    pub exclude: Vec<String>,
    /// Larger files are noted without their content.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub largest_file_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quota_bytes: Option<u64>,
}

/// How a process of `nacre.toml` is after files were put back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ProcessAfter {
    pub name: String,
    pub ready: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}
