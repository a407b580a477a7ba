//! `nacre kill`: signal a command's whole process group.

use std::process::ExitCode;

use clap::Args;
use nacre_wire::exec::signal_number;

use super::Context;
use crate::cli::Which;
use crate::failure::Result;

#[derive(Debug, Args)]
pub(crate) struct Kill {
    #[command(flatten)]
    which: Which,
    /// The signal, by name or number
    #[arg(long, default_value = "TERM", value_parser = parse_signal)]
    signal: String,
    /// The commands' ids, as `nacre ps` shows them
    #[arg(required = true, value_name = "ID")]
    ids: Vec<String>,
}

pub(crate) async fn run(command: Kill, context: &Context) -> Result<ExitCode> {
    let door = context.gateway().await?.door(&command.which.sandbox);
    for id in &command.ids {
        door.signal(id, &command.signal).await?;
    }
    Ok(ExitCode::SUCCESS)
}

fn parse_signal(text: &str) -> Result<String, String> {
    signal_number(text)
        .map(nacre_wire::exec::signal_name)
        .ok_or_else(|| format!("\"{text}\" is not a signal: try TERM, INT, HUP, KILL, ..."))
}
