//! Changes the live tree from its recorded present to another state, so that every name changes in
//! one step and a crash at any instant is finished on the next start.
//!
//! 1. [`stage`] makes everything new in a folder beside the tree and syncs it. The tree is as before.
//! 2. The caller stores the [`Journal`] durably: from here on the change happens.
//! 3. [`publish`] swaps the new for the old, name by name, and syncs. It can be run again and again
//!    from the same journal.
//! 4. The caller records what [`displaced`] gives, commits, and calls [`clear`], or leaves that to a
//!    [`Sweeper`].
//!
//! Nothing is unlinked before step 4: what was in the tree lies in the staging folder instead, where
//! the new lay before. A journal names new things by inode, and that is how a second run knows which
//! of the two it finds.
//!
//! Rules of time: a file that comes back where there was none, or whose bytes stay as they are, has
//! its recorded time. A file whose bytes replace other bytes has the time of the restore, for `make`
//! and its like rebuild only what is newer than before.
//!
//! Whoever writes in the tree meanwhile may be hostile. Parents are resolved without following a
//! link, names are changed relative to an open parent, and owner and mode are set only on the inode
//! that was recorded or made. A change that came between the record and the swap ends in staging and
//! is given by [`displaced`].

mod at;
mod displaced;
mod journal;
mod links;
mod publish;
mod stage;
mod sweep;
#[cfg(test)]
mod tests;

use std::fmt;

use crate::entry::Entry;
use crate::path::TreePath;
use crate::tree::Signature;

pub(crate) use displaced::{Displaced, Taken, clear, displaced};
pub(crate) use journal::Journal;
pub(crate) use publish::{publish, sync};
pub(crate) use stage::stage;
pub(crate) use sweep::Sweeper;

/// One name: what is there now, as recorded a moment ago, and what shall be.
///
/// When a target has other names, those of them that exist in the target are steps too, changed or
/// not: what is linked to must be known.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    pub(crate) path: TreePath,
    pub(crate) now: Option<Entry>,
    /// Of `now`.
    pub(crate) signature: Signature,
    pub(crate) target: Option<Entry>,
}

#[derive(Debug)]
pub(crate) struct Outcome {
    /// What could not be done, one reason for each name.
    pub(crate) left: Vec<(TreePath, Reason)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reason {
    /// A socket, device or mount point is there or should be: they are never made and never removed.
    Special,
    /// The directory holds something that is not to be removed.
    NotEmpty,
    /// The parent is gone, or is no directory any more.
    NoParent,
    /// The content was too large to keep or could not be read.
    NotKept,
    /// The content should be in the store and is not.
    Damaged,
    /// Someone else changed it after it was recorded.
    Changed,
    /// The system refused with this error number.
    Refused(i32),
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Special => f.write_str("a socket, device or mount point"),
            Self::NotEmpty => f.write_str("the directory holds something that is not recorded"),
            Self::NoParent => f.write_str("its directory is gone"),
            Self::NotKept => f.write_str("its content was never kept"),
            Self::Damaged => f.write_str("its content is missing from the store"),
            Self::Changed => f.write_str("it was changed meanwhile"),
            Self::Refused(number) => {
                write!(f, "{}", std::io::Error::from_raw_os_error(*number))
            }
        }
    }
}
