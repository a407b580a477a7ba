//! Commands and terminals.
//!
//! [`Commands`] knows every command; each [`command::Command`] is walked through its life by one
//! task of its own; its [`output`] is one bounded buffer that any number of clients read at their
//! own pace. [`http`] and [`socket`] are the API of `nacre_wire::exec`; [`service`] is for other parts
//! of the supervisor that run something.

mod child;
mod command;
mod commands;
mod http;
mod input;
mod oom;
mod output;
mod program;
mod pump;
mod reaper;
mod ring;
mod screen;
mod service;
mod session;
mod socket;
mod spawn;

pub use commands::{Commands, Defaults};
pub use http::router;
pub use reaper::Reap;
pub(crate) use service::{Said, Service};
