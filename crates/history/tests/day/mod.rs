//! A day in the life of a history, and what must be true wherever it was interrupted.
//!
//! The program `examples/day.rs` lives it and says after each step that it is done. Between two such
//! lines the tree may be as before or as after the step, and nothing else.

#![allow(dead_code, reason = "not every suite uses all of it")]

pub(crate) mod check;
pub(crate) mod disk;
pub(crate) mod power;
pub(crate) mod run;
mod story;

pub(crate) use story::{afternoon, begin, morning, options};

/// What happens, in this order. Each is a checkpoint.
pub(crate) const STEPS: [&str; 6] = ["first", "morning", "afternoon", "undo", "redo", "restore"];

/// Which of the trees (as begun, after the morning, after the afternoon) a step ends with.
pub(crate) const TREES: [usize; 6] = [0, 1, 2, 1, 2, 0];
