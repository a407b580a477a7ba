//! Model calls, with a provider that the test plays byte by byte.

mod budgets;
mod canary;
mod ends;
mod inside;
mod passing;
mod refused;
pub(crate) mod stage;
