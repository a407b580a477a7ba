//! `nacre ps`: the commands of a sandbox.

use std::process::ExitCode;

use clap::Args;
use nacre_wire::exec::CommandInfo;

use super::Context;
use crate::cli::Which;
use crate::failure::Result;
use crate::output;

#[derive(Debug, Args)]
pub(crate) struct Ps {
    #[command(flatten)]
    which: Which,
    /// Show commands that have ended too
    #[arg(short, long)]
    all: bool,
}

pub(crate) async fn run(command: Ps, context: &Context) -> Result<ExitCode> {
    let door = context.gateway().await?.door(&command.which.sandbox);
    let mut commands = door.commands().await?;
    commands.retain(|info| command.all || info.exit.is_none());
    if context.json {
        output::print_json(&commands)?;
    } else {
        let rows: Vec<_> = commands.iter().map(row).collect();
        output::print(&output::table(&["ID", "STARTED", "STATE", "USER", "COMMAND"], &rows))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn row(info: &CommandInfo) -> Vec<String> {
    let state = match &info.exit {
        None => "running".to_owned(),
        Some(exit) => format!("exit {}", exit.shell_code()),
    };
    let command = match &info.label {
        Some(label) => format!("{label}: {}", info.command),
        None => info.command.clone(),
    };
    vec![
        info.id.clone(),
        format!("{} ago", output::ago(info.started_at)),
        state,
        info.user.clone(),
        output::one_line(&command).chars().take(80).collect(),
    ]
}
