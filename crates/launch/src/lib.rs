//! Turns a plain process into pid 1 of a fresh sandbox.
//!
//! The host spawns the guest binary as `nacre-guest launch` with one end of a socket pair as
//! standard input. From there it goes in stages, all in single-threaded processes:
//!
//! ```text
//!   launcher (host)      Task arrives; joins its cgroups; forks
//!     └─ middle          unshares every namespace; the launcher maps its ids; forks
//!          └─ seed       pid 1 of the new pid namespace: PARKED until a Build arrives
//!                        mounts, pivot_root: BUILT until a Begin arrives
//!                        host name, drops capabilities, seccomp -> Guest
//! ```
//!
//! The launcher and the middle process are gone by the time the seed is parked. Everything slow
//! (exec, joining cgroups, a network namespace) is behind it, so a host that keeps a seed parked
//! starts a sandbox in the time its mounts take, and one that keeps it built does without even
//! that. A seed whose host goes away before it begins sees the end of its socket and exits; one
//! that has begun lives on as the supervisor.
//!
//! The seed does not exec again. Its memory map therefore still belongs to the host's user
//! namespace, and since it is not dumpable, not even root inside the sandbox can trace it or look
//! into `/proc/1`.
//!
//! This crate owns no state and no policy: [`order`] says what to build, the driver decides.

mod admin;
mod base;
pub mod clone;
mod control;
pub mod device;
mod devices;
mod harden;
mod ids;
mod launcher;
mod layout;
mod mounts;
pub mod order;
mod root;
mod seccomp;
mod seed;
mod shared;

pub use control::{Control, Received};
pub use launcher::main;
pub use seed::Guest;

/// What went wrong, and at which step, as the host will show it.
#[derive(Debug, thiserror::Error)]
#[error("{step}: {source}")]
pub struct Error {
    pub step: String,
    pub source: std::io::Error,
}

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Names the step an error belongs to.
pub(crate) trait Step<T> {
    fn step(self, step: impl FnOnce() -> String) -> Result<T>;
}

impl<T, E: Into<std::io::Error>> Step<T> for std::result::Result<T, E> {
    fn step(self, step: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|error| Error { step: step(), source: error.into() })
    }
}
