//! Docker: the daemon that runs here, or one of our own on a private socket and data folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};

use super::{find, quiet, rootfs, timed};

const IMAGE: &str = "nacre-bench-busybox";
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct Docker {
    program: PathBuf,
    host: Option<String>,
    daemon: Option<Child>,
    /// A container that sleeps, for `docker exec`.
    resident: String,
}

impl Docker {
    pub(super) async fn set_up(home: &Path) -> Result<Self> {
        let resident = format!("nacre-bench-{}", std::process::id());
        let mut docker = Self { program: find("docker")?, host: None, daemon: None, resident };
        if docker.answers().await.is_err() {
            docker.start_daemon(home).await?;
        }
        if let Err(error) = docker.prepare(home).await {
            docker.tear_down().await?;
            return Err(error);
        }
        Ok(docker)
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(self.host.iter().flat_map(|host| ["--host", host]));
        command
    }

    async fn answers(&self) -> Result<()> {
        quiet(self.command().args(["version", "--format", "{{.Server.Version}}"])).await
    }

    /// Without a bridge and without touching the firewall: containers here have no network.
    async fn start_daemon(&mut self, home: &Path) -> Result<()> {
        fs::create_dir_all(home)?;
        let socket = format!("unix://{}", home.join("docker.sock").display());
        let log = fs::File::create(home.join("log"))?;
        let mut command = Command::new(find("dockerd")?);
        command.args(["--bridge", "none", "--iptables=false", "--host", &socket]);
        command.arg("--data-root").arg(home.join("data"));
        command.arg("--exec-root").arg(home.join("exec"));
        command.arg("--pidfile").arg(home.join("pid"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        self.daemon = Some(command.spawn().context("cannot start dockerd")?);
        self.host = Some(socket);
        let began = Instant::now();
        while let Err(error) = self.answers().await {
            let ended =
                self.daemon.as_mut().is_some_and(|child| !matches!(child.try_wait(), Ok(None)));
            if ended || began.elapsed() > PATIENCE {
                let said = fs::read_to_string(home.join("log")).unwrap_or_default();
                self.stop_daemon().await?;
                bail!(
                    "dockerd did not start: {error:#}; {}",
                    said.lines().last().unwrap_or_default()
                );
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    }

    async fn prepare(&self, home: &Path) -> Result<()> {
        let root = home.join("rootfs");
        rootfs::lay_out(&root)?;
        let archive = home.join("rootfs.tar");
        quiet(Command::new("tar").arg("-cf").arg(&archive).arg("-C").arg(&root).arg(".")).await?;
        quiet(self.command().arg("import").arg(&archive).arg(IMAGE)).await?;
        let words = ["run", "--detach", "--network", "none", "--name", &self.resident, IMAGE];
        quiet(self.command().args(words).args(["sleep", "3600"])).await?;
        self.exec().await.map(drop)
    }

    /// `docker run` of `true`, to its end, without a network.
    pub(crate) async fn start(&self) -> Result<Duration> {
        timed(self.command().args(["run", "--rm", "--network", "none", IMAGE, "true"])).await
    }

    /// `true` in the container that runs.
    pub(crate) async fn exec(&self) -> Result<Duration> {
        timed(self.command().args(["exec", &self.resident, "true"])).await
    }

    /// Removes our container and image from a daemon that is not ours, or ends the one that is.
    pub(super) async fn tear_down(mut self) -> Result<()> {
        // What `prepare` did not get to make is not there to remove.
        let _ = quiet(self.command().args(["rm", "--force", &self.resident])).await;
        let _ = quiet(self.command().args(["rmi", IMAGE])).await;
        self.stop_daemon().await
    }

    async fn stop_daemon(&mut self) -> Result<()> {
        let Some(mut daemon) = self.daemon.take() else { return Ok(()) };
        let pid = daemon.id().and_then(|pid| Pid::from_raw(pid.cast_signed()));
        if let Some(pid) = pid {
            kill_process(pid, Signal::TERM).context("cannot end dockerd")?;
        }
        daemon.wait().await.context("cannot wait for dockerd").map(drop)
    }
}
