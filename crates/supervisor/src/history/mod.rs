//! The history of the workspace: every change is recorded, and any can be taken back.
//!
//! ```text
//! watcher ──changes──► ┌────────┐
//! commands, file calls │ keeper │──► nacre_history ──► data/history, which no path inside leads to
//!   ──begin, end────►  │ thread │
//! HTTP ──jobs────────► └────────┘──► events
//! ```
//! One thread, the keeper, owns the library; everybody else sends it messages through a
//! [`Recorder`]. It records before and after whatever is known to change files, and after a quiet
//! moment what nobody announced. A job such as an undo runs to its end whether or not the client
//! that asked for it is still there.

mod actions;
mod activity;
mod convert;
mod http;
mod jobs;
mod keeper;
mod recorder;
mod settings;
mod state;

pub use actions::Actions;
pub use activity::Activity;
pub use http::router;
pub use keeper::Place;
pub use recorder::Recorder;
pub(crate) use state::Manner;
