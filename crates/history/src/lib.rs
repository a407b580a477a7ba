//! Every state of a directory, kept.
//!
//! A synchronous library without a network: it records what changes below a directory and can take
//! any of it back. Files are plain files and stay where they are; what they were is kept beside them
//! in a store of packs ([`store`]) and an operation log.

mod apply;
mod beginning;
mod checkpoint;
mod code;
mod contents;
mod delta;
mod diff;
mod entry;
mod error;
mod export;
mod history;
mod log;
mod moments;
mod path;
#[cfg(feature = "planted")]
pub mod planted;
#[cfg(not(feature = "planted"))]
mod planted;
mod record;
mod retention;
mod revert;
mod store;
mod tree;
mod undo;
mod usage;
mod verify;

pub use checkpoint::{Author, Cause, Checkpoint, CheckpointId, Counts, Notes, Remark, What};
pub use code::Malformed;
pub use delta::{Change, Delta};
pub use diff::FileDiff;
pub use entry::{Content, ContentId, Entry, Kind, Special, Xattr};
pub use error::{Error, Result};
pub use history::{History, Look, Options};
pub use moments::{Page, Query};
pub use path::TreePath;
pub use retention::{Maintained, Retention};
pub use revert::{Choice, Choices, Conflict, Reason};
pub use undo::{How, Outcome, Selection};
pub use usage::Usage;
pub use verify::{Damage, Verification};
