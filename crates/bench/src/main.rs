//! `nacre-bench`: measures Nacre against its targets and its peers, in the same run.
//!
//! Each benchmark is a module that returns a [`report::Report`]; peers are measured by the same
//! loop, in turns with ours, so that a busy moment of the machine hits both. A missed target is
//! written down as missed. Only a full run touches `bench/results` and the table in the docs.

mod agent;
mod census;
mod computer;
mod desktop;
mod egress;
mod gateway;
mod ground;
mod history;
mod machine;
mod peers;
mod provider;
mod report;
mod samples;
mod sandbox;
mod soak;
mod table;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};

use computer::Computer;

/// Seeds the driver keeps ready, as `nacre up` does.
const PARKED: usize = 2;

#[derive(Parser)]
struct Args {
    /// The static guest binary
    #[arg(long)]
    guest: PathBuf,
    /// The `nacre` binary as shipped
    #[arg(long)]
    nacre: PathBuf,
    #[command(subcommand)]
    benchmark: Benchmark,
}

#[derive(Subcommand)]
enum Benchmark {
    /// Start, exec, memory, files, watch and `nacre up`
    Sandbox {
        /// Fewer rounds, and nothing is written to bench/results
        #[arg(long)]
        quick: bool,
        /// These parts alone, and nothing is written to bench/results
        #[arg(long, value_name = "PART")]
        only: Vec<sandbox::Part>,
    },
    /// Checkpoints, undo, scans and the store, beside git, restic and jj
    History {
        /// A tree of 5,000 files, and nothing is written to bench/results
        #[arg(long)]
        quick: bool,
    },
    /// The way from a browser to a sandbox, beside nginx
    Gateway {
        /// Shorter runs, and nothing is written to bench/results
        #[arg(long)]
        quick: bool,
        /// These parts alone, and nothing is written to bench/results
        #[arg(long, value_name = "PART")]
        only: Vec<gateway::Part>,
    },
    /// The way out of a sandbox, beside tinyproxy: a part of `provider` by itself
    Egress {
        /// Fewer rounds
        #[arg(long)]
        quick: bool,
    },
    /// What sandboxes reach: model calls beside LiteLLM's proxy, and the way out
    Provider {
        /// Shorter runs, and nothing is written to bench/results
        #[arg(long)]
        quick: bool,
        /// These parts alone, and nothing is written to bench/results
        #[arg(long, value_name = "PART")]
        only: Vec<provider::Part>,
        /// LiteLLM's own program; without it there is no peer
        #[arg(long, value_name = "FILE")]
        litellm: Option<PathBuf>,
    },
    /// What the agent adds to the time of its model
    Agent {
        /// Fewer rounds, and nothing is written to bench/results
        #[arg(long)]
        quick: bool,
        /// These parts alone, and nothing is written to bench/results
        #[arg(long, value_name = "PART")]
        only: Vec<agent::Part>,
    },
    /// What a person in front of the desktop waits for, in a real browser
    Desktop {
        /// Fewer rounds, and nothing is written to bench/results
        #[arg(long)]
        quick: bool,
    },
    /// What the provider benchmark starts of itself
    #[command(hide = true)]
    ModelProcess {
        #[command(subcommand)]
        process: provider::Process,
    },
    /// What the gateway benchmark starts of itself
    #[command(hide = true)]
    Process {
        #[command(subcommand)]
        process: gateway::Process,
    },
    /// The peers alone, to see which of them work here
    Peers,
    /// Thousands of commands and sandboxes; fails when anything grows
    #[command(args_conflicts_with_subcommands = true)]
    Soak {
        #[command(flatten)]
        options: soak::Options,
        #[command(subcommand)]
        of: Option<Soak>,
    },
}

#[derive(Subcommand)]
enum Soak {
    /// Random changes, checkpoints, undos and restarts of a history, every state compared
    History(history::soak::Options),
}

impl Benchmark {
    /// Whether it makes a file system of its own.
    fn mounts(&self) -> bool {
        match self {
            Self::History { .. }
            | Self::Gateway { .. }
            | Self::Egress { .. }
            | Self::Provider { .. }
            | Self::Agent { .. }
            | Self::Soak { of: Some(_), .. } => true,
            Self::Sandbox { .. }
            | Self::Desktop { .. }
            | Self::ModelProcess { .. }
            | Self::Process { .. }
            | Self::Peers
            | Self::Soak { of: None, .. } => false,
        }
    }
}

fn main() -> ExitCode {
    let args = Args::parse();
    if args.benchmark.mounts()
        && let Err(error) = ground::own_mounts()
    {
        eprintln!("going on with the mounts of the machine: {error:#}");
    }
    match run(&args) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

#[tokio::main]
async fn run(args: &Args) -> Result<ExitCode> {
    let home = tempfile::Builder::new().prefix("nacre-bench-").tempdir()?;
    match &args.benchmark {
        Benchmark::Sandbox { quick, only } => {
            let in_memory =
                tempfile::Builder::new().prefix("nacre-bench-").tempdir_in("/dev/shm")?;
            let computers = sandbox::Computers {
                parked: Computer::new(&home.path().join("parked"), &args.guest, PARKED).await?,
                bare: Computer::new(&home.path().join("bare"), &args.guest, 0).await?,
                memory: Computer::new(in_memory.path(), &args.guest, 1).await?,
            };
            let report = sandbox::measure(&computers, &args.nacre, *quick, only).await?;
            print!("{}", table::terminal(&report));
            keep(&report, *quick || !only.is_empty())?;
            Ok(ExitCode::SUCCESS)
        }
        Benchmark::History { quick } => {
            let report = history::measure(&args.guest, *quick).await?;
            print!("{}", table::terminal(&report));
            keep(&report, *quick)?;
            Ok(ExitCode::SUCCESS)
        }
        Benchmark::Gateway { quick, only } => {
            let binaries = gateway::Binaries { guest: &args.guest, nacre: &args.nacre };
            let report = gateway::measure(home.path(), binaries, *quick, only).await?;
            print!("{}", table::terminal(&report));
            keep(&report, *quick || !only.is_empty())?;
            Ok(ExitCode::SUCCESS)
        }
        Benchmark::Egress { quick } => {
            let report = egress::measure(home.path(), &args.nacre, *quick).await?;
            print!("{}", table::terminal(&report));
            // The whole is `provider`.
            keep(&report, true)?;
            Ok(ExitCode::SUCCESS)
        }
        Benchmark::Provider { quick, only, litellm } => {
            let mut report =
                provider::measure(home.path(), litellm.as_deref(), *quick, only).await?;
            if only.is_empty() {
                let out = egress::measure(home.path(), &args.nacre, *quick).await?;
                report.rows.extend(out.rows);
                report.notes.extend(out.notes);
            }
            print!("{}", table::terminal(&report));
            keep(&report, *quick || !only.is_empty())?;
            Ok(ExitCode::SUCCESS)
        }
        Benchmark::Agent { quick, only } => {
            let report = agent::measure(home.path(), &args.nacre, *quick, only).await?;
            print!("{}", table::terminal(&report));
            keep(&report, *quick || !only.is_empty())?;
            Ok(ExitCode::SUCCESS)
        }
        Benchmark::Desktop { quick } => {
            let report = desktop::measure(home.path(), &args.nacre, *quick)?;
            print!("{}", table::terminal(&report));
            keep(&report, *quick)?;
            Ok(ExitCode::SUCCESS)
        }
        Benchmark::ModelProcess { process } => {
            provider::be(process).await.map(|()| ExitCode::SUCCESS)
        }
        Benchmark::Process { process } => gateway::be(process).await.map(|()| ExitCode::SUCCESS),
        Benchmark::Peers => peers::try_all(home.path()).await.map(|()| ExitCode::SUCCESS),
        Benchmark::Soak { of: Some(Soak::History(options)), .. } => {
            tokio::task::block_in_place(|| history::soak::run(options))?;
            Ok(ExitCode::SUCCESS)
        }
        Benchmark::Soak { options, of: None } => {
            let computer = Computer::new(home.path(), &args.guest, PARKED).await?;
            let grown = soak::run(&computer, options).await?;
            Ok(if grown.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        }
    }
}

/// Writes the results down; those of a run that was not a full one go where nobody mistakes them for
/// measurements.
fn keep(report: &report::Report, partial: bool) -> Result<()> {
    let folder = Path::new(if partial { "target/bench" } else { "bench/results" });
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let place = folder.join(format!("{}.json", report.benchmark));
    let json = serde_json::to_string_pretty(report)? + "\n";
    std::fs::write(&place, json).with_context(|| format!("cannot write {}", place.display()))?;
    println!("\nwrote {}", place.display());
    if !partial {
        table::put_into(Path::new("docs/BENCHMARKS.md"), report)?;
    }
    Ok(())
}
