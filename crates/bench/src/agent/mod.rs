//! `nacre-bench agent`: what the agent adds to the time of its model, how soon a run speaks, how soon a long
//! conversation is back, and how soon something is found.
//!
//! The model is a server of our own on loopback that answers at once, so that what is left is ours:
//! sandbox, gateway, loop and tools. Everything else is as people run it: `nacre up` and `nacre run`.

mod computer;
mod host;
mod model;
mod runs;
mod search;

use std::path::Path;

use anyhow::Result;
use clap::ValueEnum;

use crate::machine::Machine;
use crate::report::{Report, Row};
use computer::Computer;
use model::Clock;

/// What can be measured by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Part {
    Runs,
    Host,
    Resume,
    Search,
}

/// How often each thing is done.
#[derive(Debug, Clone, Copy)]
struct Rounds {
    runs: usize,
    /// Of one run, and of one turn of a conversation.
    steps: usize,
    /// Of the conversation that is opened again.
    events: u64,
    resumes: usize,
}

const FULL: Rounds = Rounds { runs: 30, steps: 200, events: 10_000, resumes: 10 };
const QUICK: Rounds = Rounds { runs: 5, steps: 20, events: 500, resumes: 3 };

/// Measures the parts in `only`, or all of them when there are none.
pub(crate) async fn measure(
    home: &Path,
    nacre: &Path,
    quick: bool,
    only: &[Part],
) -> Result<Report> {
    let rounds = if quick { QUICK } else { FULL };
    let clock = Clock::default();
    let address = model::serve(clock.clone()).await?;
    let computer = Computer { nacre, data: &home.join("agent") };
    computer.start(&address, rounds.steps).await?;
    let rows = in_computer(&computer, home, &clock, rounds, only).await;
    computer.stop().await?;
    let mut rows = rows?;
    if only.is_empty() || only.contains(&Part::Search) {
        eprintln!("search");
        rows.extend(search::rows(home, quick)?);
    }
    Ok(Report { benchmark: "agent", machine: Machine::here(home), rows, notes: Vec::new() })
}

async fn in_computer(
    computer: &Computer<'_>,
    home: &Path,
    clock: &Clock,
    rounds: Rounds,
    only: &[Part],
) -> Result<Vec<Row>> {
    let wanted = |part: Part| only.is_empty() || only.contains(&part);
    let mut rows = Vec::new();
    if wanted(Part::Runs) {
        rows.extend(runs::measure(computer, home, clock, rounds).await?);
    }
    if wanted(Part::Host) {
        rows.extend(host::turn_of_steps(computer, clock, rounds).await?);
    }
    if wanted(Part::Resume) {
        rows.extend(host::resume(computer, rounds).await?);
    }
    Ok(rows)
}
