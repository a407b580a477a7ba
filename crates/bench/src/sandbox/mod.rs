//! `nacre-bench sandbox`: what a sandbox costs to start, use and keep.

pub(crate) mod bodies;
mod exec;
mod files;
mod memory;
mod start;
mod up;
mod watch;

use std::path::Path;

use anyhow::{Context, Result};

use crate::computer::Computer;
use crate::machine::Machine;
use crate::peers::Peers;
use crate::report::{Report, Row};
use crate::samples::Samples;

/// How often each thing is done.
#[derive(Debug, Clone, Copy)]
struct Rounds {
    start: usize,
    slow_peer: usize,
    crowd: usize,
    exec: usize,
    idle: usize,
    transfer: usize,
    watch: usize,
    up: usize,
}

const FULL: Rounds = Rounds {
    start: 100,
    slow_peer: 10,
    crowd: 5,
    exec: 1000,
    idle: 100,
    transfer: 3,
    watch: 200,
    up: 20,
};
const QUICK: Rounds = Rounds {
    start: 20,
    slow_peer: 3,
    crowd: 1,
    exec: 100,
    idle: 20,
    transfer: 2,
    watch: 30,
    up: 5,
};

/// The driver as it is used, and one that keeps no seeds and so makes each sandbox from nothing.
pub(crate) struct Computers {
    pub(crate) parked: Computer,
    pub(crate) bare: Computer,
    /// One whose files are in memory, so that the door is measured and not the disk.
    pub(crate) memory: Computer,
}

pub(crate) async fn measure(computers: &Computers, nacre: &Path, quick: bool) -> Result<Report> {
    let rounds = if quick { QUICK } else { FULL };
    let home = tempfile::Builder::new().prefix("nacre-peers-").tempdir()?;
    let peers = Peers::set_up(home.path()).await;
    let mut notes = peers.notes.clone();
    let rows = all(computers, nacre, &peers, rounds, &mut notes).await;
    peers.tear_down().await?;
    let machine = Machine::here(computers.parked.data());
    Ok(Report { benchmark: "sandbox", machine, rows: rows?, notes })
}

async fn all(
    computers: &Computers,
    nacre: &Path,
    peers: &Peers,
    rounds: Rounds,
    notes: &mut Vec<String>,
) -> Result<Vec<Row>> {
    let computer = &computers.parked;
    let mut rows = Vec::new();
    eprintln!("start: {} rounds", rounds.start);
    rows.extend(start::one_by_one(computers, peers, rounds).await.context("start")?);
    eprintln!("start: {} at once", start::CROWD);
    rows.extend(start::at_once(computer, peers, rounds).await.context("start at once")?);
    eprintln!("exec: {} rounds", rounds.exec);
    rows.extend(exec::hot(computer, peers, rounds).await.context("exec")?);
    eprintln!("memory: {} idle sandboxes", rounds.idle);
    rows.extend(memory::idle(computer, rounds).await.context("memory")?);
    eprintln!("watch: {} rounds", rounds.watch);
    rows.push(watch::latency(computer, rounds).await.context("watch")?);
    eprintln!("up: {} rounds", rounds.up);
    match up::to_ready(nacre, rounds).await {
        Ok(measured) => rows.extend(measured),
        Err(error) => {
            rows.extend(up::rows(&Samples::default(), &Samples::default()));
            notes.push(format!("`nacre up` was not measured: {error:#}"));
        }
    }
    // Last: what they leave for the disk to write would slow down everything after them.
    eprintln!("files: {} rounds", rounds.transfer);
    let in_memory = files::large(&computers.memory, "over the door, in memory", rounds).await;
    rows.extend(in_memory.context("large files in memory")?.into_iter().map(|row| row.target(1.0)));
    rows.extend(files::large(computer, "on this disk", rounds).await.context("large files")?);
    rows.extend(files::many(computer, rounds).await.context("many files")?);
    Ok(rows)
}
