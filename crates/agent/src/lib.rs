//! The agent: a model that is asked, tools that it calls, and a body that they act on.
//!
//! ```text
//!            ┌───────── one step ─────────┐
//!  input ─▶ messages ─▶ Model ─▶ calls ─▶ Toolbox ─▶ Body
//!            ▲                              │
//!            └────────── results ◀──────────┘
//!  every event is in the journal before what it announces happens
//! ```
//! The crate owns no place: it runs inside of a sandbox on a [`body::Local`], or on the host on a
//! [`body::Remote`]. It keeps no key; what models may be used, and for how much, is decided by the
//! gateway that [`model`] calls go through.
//!
//! What there is to call is in [`tools`], and in the servers of others that [`mcp`] speaks with;
//! [`plans`] are ways to go about a task. When a conversation fills the model's window, [`compact`] says
//! what gives way.

mod agent;
pub mod body;
pub mod compact;
pub mod events;
mod http;
pub mod journal;
mod matter;
pub mod mcp;
pub mod model;
pub mod order;
pub mod plans;
pub mod prompt;
pub mod session;
pub mod tools;

pub use agent::{Agent, Limits, Mode, Permission};
