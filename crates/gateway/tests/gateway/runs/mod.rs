//! One-shot runs against a supervisor whose agents do what the task says.

mod agent;
mod ends;
pub(crate) mod own;
mod page;
mod passing;
mod refused;
