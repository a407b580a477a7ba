//! bubblewrap: the bare minimum of a sandbox, without a supervisor, limits or a writable system.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use tokio::process::Command;

use super::{find, timed};

pub(crate) struct Bwrap {
    program: PathBuf,
}

impl Bwrap {
    pub(super) async fn set_up() -> Result<Self> {
        let bwrap = Self { program: find("bwrap")? };
        bwrap.start().await?;
        Ok(bwrap)
    }

    /// Namespaces, mounts and `true` in them, to its end.
    pub(crate) async fn start(&self) -> Result<Duration> {
        let words =
            ["--ro-bind", "/", "/", "--unshare-all", "--dev", "/dev", "--proc", "/proc", "true"];
        timed(Command::new(&self.program).args(words)).await
    }
}
