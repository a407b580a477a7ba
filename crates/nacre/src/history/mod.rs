//! What `nacre history`, `diff`, `undo`, `redo` and `restore` share.

pub(crate) mod asleep;
pub(crate) mod conflicts;
pub(crate) mod moment;
pub(crate) mod outcome;
pub(crate) mod paint;
pub(crate) mod words;
