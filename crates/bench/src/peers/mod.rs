//! What others need for the same work, measured beside ours. A peer that is not on this machine
//! leaves a note and no number.

mod bwrap;
mod docker;
pub(crate) mod nginx;
mod rootfs;
mod runc;

use std::io::{Read, Seek};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tokio::process::Command;

pub(crate) use bwrap::Bwrap;
pub(crate) use docker::Docker;
pub(crate) use runc::Runc;

#[derive(Default)]
pub(crate) struct Peers {
    pub(crate) bwrap: Option<Bwrap>,
    pub(crate) runc: Option<Runc>,
    pub(crate) docker: Option<Docker>,
    pub(crate) notes: Vec<String>,
}

impl Peers {
    /// Sets each one up in a folder of its own below `home` and tries it once.
    pub(crate) async fn set_up(home: &Path) -> Self {
        let mut peers = Self::default();
        let notes = &mut peers.notes;
        peers.bwrap = noted("bwrap", Bwrap::set_up().await, notes);
        peers.runc = noted("runc", Runc::set_up(&home.join("runc")).await, notes);
        peers.docker = noted("docker", Docker::set_up(&home.join("docker")).await, notes);
        peers
    }

    /// Ends what was started for them.
    pub(crate) async fn tear_down(self) -> Result<()> {
        if let Some(runc) = self.runc {
            runc.tear_down().await?;
        }
        match self.docker {
            Some(docker) => docker.tear_down().await,
            None => Ok(()),
        }
    }
}

/// One start and one exec of each.
pub(crate) async fn try_all(home: &Path) -> Result<()> {
    let peers = Peers::set_up(home).await;
    if let Some(bwrap) = &peers.bwrap {
        println!("bwrap: start {:?}", bwrap.start().await?);
    }
    if let Some(runc) = &peers.runc {
        println!("runc: start {:?}, exec {:?}", runc.start().await?, runc.exec().await?);
    }
    if let Some(docker) = &peers.docker {
        println!("docker: start {:?}, exec {:?}", docker.start().await?, docker.exec().await?);
    }
    peers.notes.iter().for_each(|note| println!("{note}"));
    peers.tear_down().await
}

fn noted<T>(name: &str, result: Result<T>, notes: &mut Vec<String>) -> Option<T> {
    result.map_err(|error| notes.push(format!("{name} was not measured: {error:#}"))).ok()
}

/// From spawn to exit.
async fn timed(command: &mut Command) -> Result<Duration> {
    let began = Instant::now();
    quiet(command).await?;
    Ok(began.elapsed())
}

/// Runs it without input or output; fails when it does, with what it said. What it says goes to a
/// file: a container that it leaves behind would hold a pipe open.
async fn quiet(command: &mut Command) -> Result<()> {
    let mut said = tempfile::tempfile()?;
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(said.try_clone()?);
    let name = command.as_std().get_program().to_string_lossy().into_owned();
    let status = command.status().await.with_context(|| format!("cannot run {name}"))?;
    if !status.success() {
        let mut text = String::new();
        said.rewind()?;
        said.read_to_string(&mut text)?;
        bail!("{name} ended with {status}: {}", text.trim());
    }
    Ok(())
}

/// A sub-command's `PATH` of an ordinary user leaves out where Debian puts runc and dockerd.
pub(crate) fn find(program: &str) -> Result<std::path::PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/local/sbin", "/usr/sbin", "/sbin"].map(Into::into))
        .map(|folder| folder.join(program))
        .find(|candidate| candidate.is_file())
        .with_context(|| format!("{program} is not installed"))
}
