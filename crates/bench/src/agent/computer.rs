//! The computer under test: the shipped binary, with one model.

use std::path::Path;
use std::process::Stdio;

use anyhow::{Result, ensure};
use nacre_wire::client::Client;
use tokio::process::Command;

pub(super) struct Computer<'a> {
    pub(super) nacre: &'a Path,
    pub(super) data: &'a Path,
}

impl Computer<'_> {
    /// A turn of a conversation may have so many steps.
    pub(super) async fn start(&self, model: &str, steps: usize) -> Result<()> {
        std::fs::create_dir_all(self.data)?;
        let config = format!(
            "[agent]\nmodel = \"bench/m\"\n\n\
             [conversations]\nsteps_per_turn = {steps}\n\n\
             [provider.bench]\nkind = \"openai-compatible\"\nbase_url = \"http://{model}/v1\"\n"
        );
        std::fs::write(self.data.join("nacre.toml"), config)?;
        self.up().await
    }

    pub(super) async fn up(&self) -> Result<()> {
        self.ok(&["up", "--detach", "--listen", "127.0.0.1:0"]).await
    }

    pub(super) async fn stop(&self) -> Result<()> {
        self.ok(&["down"]).await
    }

    /// The control plane.
    pub(super) fn client(&self) -> Client {
        Client::unix(self.data.join(nacre_gateway::SOCKET_FILE))
    }

    pub(super) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(self.nacre);
        command.args(args).env("NACRE_DATA", self.data).env("NACRE_DESKTOP_SEED", "false");
        command.stdin(Stdio::null());
        command
    }

    async fn ok(&self, args: &[&str]) -> Result<()> {
        let output = self.command(args).output().await?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "nacre {args:?}: {}", said.trim());
        Ok(())
    }
}
