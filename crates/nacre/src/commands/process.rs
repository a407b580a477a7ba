//! `nacre process`: what the workspace's `nacre.toml` keeps running.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use nacre_wire::processes::{ProcessInfo, ProcessList, ProcessState};

use super::Context;
use crate::cli::Which;
use crate::failure::Result;
use crate::output;

#[derive(Debug, Args)]
#[command(after_help = "\
The processes are those that /workspace/nacre.toml names; the app that owns the pages is \"runtime\".
`nacre logs NAME` shows what one printed.

Examples:
  nacre process list
  nacre process restart runtime")]
pub(crate) struct Process {
    #[command(flatten)]
    which: Which,
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Show all of them
    List,
    /// Start one that is stopped or waits
    Start(Named),
    /// End one and all that it started
    Stop(Named),
    /// End one and start it again
    Restart(Named),
}

#[derive(Debug, Args)]
struct Named {
    /// The process, as nacre.toml calls it
    name: String,
}

pub(crate) async fn run(command: Process, context: &Context) -> Result<ExitCode> {
    let door = context.gateway().await?.door(&command.which.sandbox);
    let process = match command.action {
        Action::List => {
            list(&door.processes().await?, context)?;
            return Ok(ExitCode::SUCCESS);
        }
        Action::Start(Named { name }) => door.start_process(&name).await?,
        Action::Stop(Named { name }) => door.stop_process(&name).await?,
        Action::Restart(Named { name }) => door.restart_process(&name).await?,
    };
    if context.json {
        output::print_json(&process)?;
    } else {
        output::print(&format!("{} is {}\n", process.name, word(process.state)))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn list(list: &ProcessList, context: &Context) -> Result<()> {
    if context.json {
        return output::print_json(list);
    }
    if let Some(error) = &list.config_error {
        let place = error.line.map_or_else(String::new, |line| format!(" line {line}"));
        eprintln!("warning: nacre.toml{place}: {}", output::one_line(&error.reason));
    }
    let rows: Vec<_> = list.processes.iter().map(row).collect();
    output::print(&output::table(&["NAME", "STATE", "SINCE", "RESTARTS", "PORT", "WHY"], &rows))
}

fn row(process: &ProcessInfo) -> Vec<String> {
    let why = process.reason.as_deref().unwrap_or_default();
    vec![
        output::one_line(&process.name),
        word(process.state).to_owned(),
        format!("{} ago", output::ago(process.since)),
        process.restarts.to_string(),
        process.port.map_or_else(String::new, |port| port.to_string()),
        output::one_line(why).chars().take(80).collect(),
    ]
}

fn word(state: ProcessState) -> &'static str {
    match state {
        ProcessState::Stopped => "stopped",
        ProcessState::Starting => "starting",
        ProcessState::Ready => "ready",
        ProcessState::Stopping => "stopping",
        ProcessState::BackingOff => "backing-off",
        ProcessState::CrashLooping => "crash-looping",
        ProcessState::Failed => "failed",
        ProcessState::Unknown => "unknown",
    }
}
