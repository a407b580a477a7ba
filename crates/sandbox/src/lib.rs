//! The seam between Nacre and whatever isolates a sandbox.
//!
//! A [`Driver`] makes sandboxes and hands out byte streams to the supervisors inside them; nothing
//! above it knows whether that is a set of namespaces, a container or a microVM. Each driver owns
//! what it puts on disk and in the kernel, and [`Driver::reconcile`] brings both back in line after
//! the host process died at any point.

#[cfg(feature = "testing")]
#[allow(clippy::expect_used, reason = "a rule that does not hold fails its test")]
pub mod conformance;
#[cfg(feature = "testing")]
pub mod fake;
pub mod namespace;

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
pub use nacre_launch::clone::{Progress, Report};
pub use nacre_wire::client::{BoxStream, ByteStream};
use nacre_wire::control::{Limits, Reduction, SandboxState, Stats};
use serde::{Deserialize, Serialize};

/// A sandbox's name on disk and in the kernel: 1 to 32 lower case letters, digits and dashes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SandboxId(String);

impl SandboxId {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SandboxId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "\"{0}\" is not a sandbox id: use 1 to 32 lower case letters, digits and dashes, starting with a letter"
)]
pub struct BadId(String);

impl FromStr for SandboxId {
    type Err = BadId;

    fn from_str(text: &str) -> Result<Self, BadId> {
        let good = text.len() <= 32
            && text.starts_with(|c: char| c.is_ascii_lowercase())
            && !text.ends_with('-')
            && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
        good.then(|| Self(text.to_owned())).ok_or_else(|| BadId(text.to_owned()))
    }
}

/// What a sandbox is made of. It is fixed at creation.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SandboxSpec {
    /// Directory of an OCI root filesystem; the host's own system when absent.
    pub rootfs: Option<PathBuf>,
    pub limits: Limits,
}

/// What a driver can do on this machine.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Capabilities {
    pub pause: bool,
    pub memory_limit: bool,
    pub cpu_limit: bool,
    pub pids_limit: bool,
    pub disk_limit: bool,
    /// The workspace outlives stop and start.
    pub persistent: bool,
    /// What is less than it should be, why, and what to do.
    pub reduced: Vec<Reduction>,
}

/// What came of [`Driver::fork`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Forked {
    pub report: Report,
    /// For how long the source was frozen; `None` when it did not run, or could not be.
    pub frozen: Option<Duration>,
    /// The copy has the history of the source. Otherwise it begins its own.
    pub history: bool,
    /// Names that still changed in the last look at a source that could not be frozen.
    pub unsettled: u64,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("no sandbox \"{0}\"")]
    NotFound(SandboxId),
    #[error("sandbox \"{0}\" exists already")]
    Exists(SandboxId),
    #[error("sandbox \"{id}\" is {state:?}: cannot {action}")]
    State { id: SandboxId, state: SandboxState, action: &'static str },
    #[error("this driver cannot {what}: {why}")]
    Unsupported { what: &'static str, why: String },
    #[error("sandbox \"{id}\" did not start: {why}")]
    Start { id: SandboxId, why: String },
    #[error("{context}: {source}")]
    Io { context: String, source: std::io::Error },
}

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Makes, runs and removes sandboxes.
///
/// Calls for one sandbox are made one at a time (the gateway's task for that sandbox owns it);
/// calls for different sandboxes run at once. Dropping a returned future must leave the sandbox in
/// a state from which `reconcile` recovers.
#[async_trait]
pub trait Driver: Send + Sync {
    fn name(&self) -> &'static str;

    /// Cheap and constant for the life of the process.
    fn capabilities(&self) -> Capabilities;

    /// Starts something real, asks it a question, and removes it again. Called by `nacre doctor`
    /// and before the first sandbox is made.
    async fn probe(&self) -> Result<()>;

    /// Lays out the sandbox's files. Afterwards it is `Stopped`.
    async fn create(&self, id: &SandboxId, spec: &SandboxSpec) -> Result<()>;

    /// Makes `to` a copy of `from` as it is at one moment, with everything that it keeps while it is
    /// stopped; `from` may run, and is not reached for a short time near the end. Afterwards `to` is
    /// `Stopped`. A copy that fails leaves nothing of `to`.
    async fn fork(
        &self,
        from: &SandboxId,
        to: &SandboxId,
        progress: Arc<Progress>,
    ) -> Result<Forked>;

    /// Returns when `dial` reaches the supervisor.
    async fn start(&self, id: &SandboxId) -> Result<()>;

    /// Freezes every process in it; a paused sandbox keeps its memory and uses no cpu.
    async fn pause(&self, id: &SandboxId) -> Result<()>;

    async fn resume(&self, id: &SandboxId) -> Result<()>;

    /// Asks the supervisor to end its commands, and ends everything when `grace` is over. Returns
    /// when no process of it is left. A stopped sandbox stops again without complaint.
    async fn stop(&self, id: &SandboxId, grace: Duration) -> Result<()>;

    /// Ends it if it runs and removes all of it, the workspace included. An unknown sandbox is
    /// already destroyed.
    async fn destroy(&self, id: &SandboxId) -> Result<()>;

    /// A fresh stream to the supervisor's HTTP server.
    async fn dial(&self, id: &SandboxId) -> Result<BoxStream>;

    /// The next connection that the supervisor opens to its host.
    async fn accept(&self, id: &SandboxId) -> Result<BoxStream>;

    async fn state(&self, id: &SandboxId) -> Result<SandboxState>;

    async fn stats(&self, id: &SandboxId) -> Result<Stats>;

    /// Returns when the supervisor has ended, at once when it does not run. Called by the gateway
    /// to notice a crash.
    async fn exited(&self, id: &SandboxId);

    /// The last `max_bytes` of what the supervisor logged.
    async fn logs(&self, id: &SandboxId, max_bytes: u64) -> Result<Vec<u8>>;

    /// Called once when the host process starts, before anything else: finds sandboxes that still
    /// run and those that are stopped, finishes or undoes what was half-done, removes what belongs
    /// to nothing.
    async fn reconcile(&self) -> Result<Vec<(SandboxId, SandboxState)>>;
}
