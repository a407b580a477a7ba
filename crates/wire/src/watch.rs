//! Changes as they happen.
//!
//! `GET /supervisor/watch?path=` upgrades to a WebSocket of text messages, each a
//! [`WatchMessage`]. After [`WatchMessage::Ready`] every change below the path is reported.

use serde::{Deserialize, Serialize};

use crate::{ApiError, WirePath};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum WatchMessage {
    /// Watching; what changes from here on is reported.
    Ready {
        directories: u64,
    },
    Changes {
        changes: Vec<Change>,
    },
    /// The kernel dropped events. The supervisor compared the tree with what it knew and what it
    /// found follows as `changes`; `lost` says how many times this has happened.
    Overflow {
        lost: u64,
        /// This client was too slow and missed changes. Everything that exists follows as
        /// `create`, and then `ready`; what is not among it is gone.
        #[serde(default)]
        resync: bool,
    },
    Error(ApiError),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Change {
    pub kind: ChangeKind,
    /// Absolute, after the change.
    pub path: WirePath,
    /// Where a moved entry was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<WirePath>,
    #[serde(default)]
    pub directory: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    Create,
    Modify,
    Move,
    Delete,
}
