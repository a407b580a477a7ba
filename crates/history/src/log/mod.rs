//! The operation log and the recorded present, in SQLite.
//!
//! ```text
//! state        the tree as the last checkpoint saw it, with signatures to notice change by
//! checkpoint   one row each, with the delta as its last column
//! journal      at most one row: a restore that is being published
//! ```
//! The log is only ever appended to; retention merges or drops old rows, nothing rewrites new ones.

mod checkpoints;
mod database;
mod journal;
mod seal;
mod state;

pub(crate) use checkpoints::{Checkpoints, Filter, More, New, count};
pub(crate) use database::{open, shorten};
pub(crate) use journal::{Pending, Restoring};
pub(crate) use state::{Recorded, State};
