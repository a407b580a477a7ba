//! What listens in the sandbox: which ports, raw connections to them for programs, and HTTP to them for
//! browsers.
//!
//! ```text
//!  /supervisor/ports          what listens              table, owners
//!  /supervisor/ports/{port}   bytes, after an upgrade   http
//!  /ports/{port}/...          HTTP, without that        proxy
//! ```
//! Nothing here has state: the kernel knows who listens.

mod http;
mod nothing;
mod owners;
mod proxy;
mod table;

pub use http::router;
pub(crate) use owners::holders;
pub(crate) use proxy::{Mounted, answer};
