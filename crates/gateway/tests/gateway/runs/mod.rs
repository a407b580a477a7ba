//! One-shot runs against a supervisor whose agents do what the task says.

mod agent;
mod ends;
mod page;
mod passing;
mod refused;
