//! `nacre-bench sandbox`: what a sandbox costs to start, use and keep.

pub(crate) mod bodies;
mod exec;
mod files;
mod memory;
mod start;
pub(crate) mod up;
mod watch;

use std::path::Path;

use anyhow::{Context, Result};
use clap::ValueEnum;

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

/// What can be measured by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Part {
    /// One sandbox after the other
    Start,
    /// Many sandboxes at once
    Crowd,
    /// A command in a sandbox that runs
    Exec,
    Memory,
    Watch,
    /// `nacre up` to ready
    Up,
    Files,
}

/// The driver as it is used, and one that keeps no seeds and so makes each sandbox from nothing.
pub(crate) struct Computers {
    pub(crate) parked: Computer,
    pub(crate) bare: Computer,
    /// One whose files are in memory, so that the door is measured and not the disk.
    pub(crate) memory: Computer,
}

/// Measures the parts in `only`, or all of them when there are none.
pub(crate) async fn measure(
    computers: &Computers,
    nacre: &Path,
    quick: bool,
    only: &[Part],
) -> Result<Report> {
    let rounds = if quick { QUICK } else { FULL };
    let home = tempfile::Builder::new().prefix("nacre-peers-").tempdir()?;
    let peers = Peers::set_up(home.path()).await;
    let mut notes = peers.notes.clone();
    let rows = parts(computers, nacre, &peers, rounds, only, &mut notes).await;
    peers.tear_down().await?;
    let machine = Machine::here(computers.parked.data());
    Ok(Report { benchmark: "sandbox", machine, rows: rows?, notes })
}

async fn parts(
    computers: &Computers,
    nacre: &Path,
    peers: &Peers,
    rounds: Rounds,
    only: &[Part],
    notes: &mut Vec<String>,
) -> Result<Vec<Row>> {
    let computer = &computers.parked;
    let mut rows = Vec::new();
    let wanted = |part: Part, what: String| {
        let wanted = only.is_empty() || only.contains(&part);
        if wanted {
            eprintln!("{what}");
        }
        wanted
    };
    if wanted(Part::Start, format!("start: {} rounds", rounds.start)) {
        rows.extend(start::one_by_one(computers, peers, rounds).await.context("start")?);
    }
    if wanted(Part::Crowd, format!("start: {} at once", start::CROWD)) {
        rows.extend(start::at_once(computer, peers, rounds).await.context("start at once")?);
    }
    if wanted(Part::Exec, format!("exec: {} rounds", rounds.exec)) {
        rows.extend(exec::hot(computer, peers, rounds).await.context("exec")?);
    }
    if wanted(Part::Memory, format!("memory: {} idle sandboxes", rounds.idle)) {
        rows.extend(memory::idle(computer, rounds).await.context("memory")?);
    }
    if wanted(Part::Watch, format!("watch: {} rounds", rounds.watch)) {
        rows.push(watch::latency(computer, rounds).await.context("watch")?);
    }
    if wanted(Part::Up, format!("up: {} rounds", rounds.up)) {
        match up::to_ready(nacre, rounds).await {
            Ok(measured) => rows.extend(measured),
            Err(error) => {
                rows.extend(up::rows(&Samples::default(), &Samples::default()));
                notes.push(format!("`nacre up` was not measured: {error:#}"));
            }
        }
    }
    // Last: what they leave for the disk to write would slow down everything after them.
    if wanted(Part::Files, format!("files: {} rounds", rounds.transfer)) {
        rows.extend(all_files(computers, rounds).await?);
    }
    Ok(rows)
}

async fn all_files(computers: &Computers, rounds: Rounds) -> Result<Vec<Row>> {
    let in_memory = files::large(&computers.memory, "over the door, in memory", rounds).await;
    let in_memory = in_memory.context("large files in memory")?.into_iter();
    let mut rows: Vec<Row> = in_memory.map(|row| row.target(1.0)).collect();
    let computer = &computers.parked;
    rows.extend(files::large(computer, "on this disk", rounds).await.context("large files")?);
    rows.extend(files::many(computer, rounds).await.context("many files")?);
    Ok(rows)
}
