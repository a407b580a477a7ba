//! runc with the smallest bundle that it accepts: busybox, no network, no limits.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::process::Command;

use super::{find, quiet, rootfs, timed};

pub(crate) struct Runc {
    program: PathBuf,
    home: PathBuf,
    /// A container that sleeps, for `runc exec`.
    resident: String,
}

impl Runc {
    pub(super) async fn set_up(home: &Path) -> Result<Self> {
        let resident = format!("nacre-bench-{}", std::process::id());
        let runc = Self { program: find("runc")?, home: home.to_owned(), resident };
        for (bundle, words) in [("once", &["true"][..]), ("resident", &["sleep", "3600"][..])] {
            let folder = home.join(bundle);
            rootfs::lay_out(&folder.join("rootfs"))?;
            quiet(Command::new(&runc.program).arg("spec").current_dir(&folder)).await?;
            adapt(&folder.join("config.json"), words)?;
        }
        let bundle = home.join("resident");
        quiet(runc.command().args(["run", "--detach", "--bundle"]).arg(bundle).arg(&runc.resident))
            .await?;
        runc.exec().await?;
        Ok(runc)
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.arg("--root").arg(self.home.join("state"));
        command
    }

    /// `runc run` of `true`, to its end.
    pub(crate) async fn start(&self) -> Result<Duration> {
        let name = format!("{}-once", self.resident);
        timed(self.command().args(["run", "--bundle"]).arg(self.home.join("once")).arg(name)).await
    }

    /// `true` in the container that runs.
    pub(crate) async fn exec(&self) -> Result<Duration> {
        timed(self.command().args(["exec", &self.resident, "true"])).await
    }

    pub(super) async fn tear_down(self) -> Result<()> {
        quiet(self.command().args(["delete", "--force", &self.resident])).await
    }
}

/// What `runc spec` writes, without the terminal and with our command.
fn adapt(config: &Path, words: &[&str]) -> Result<()> {
    let mut spec: serde_json::Value = serde_json::from_slice(&fs::read(config)?)?;
    let process = spec.get_mut("process").context("runc spec names no process")?;
    process["terminal"] = false.into();
    process["args"] = words.into();
    fs::write(config, serde_json::to_vec(&spec)?)?;
    Ok(())
}
