//! `nacre attach`: join a command that runs.

use std::io::IsTerminal;
use std::process::ExitCode;

use clap::Args;

use super::{Context, exec};
use crate::cli::Which;
use crate::failure::Result;
use crate::session::{self, Input, OnInterrupt};

#[derive(Debug, Args)]
#[command(after_help = "Ctrl-C leaves a command, Ctrl-] leaves a terminal; both run on.")]
pub(crate) struct Attach {
    #[command(flatten)]
    which: Which,
    /// The command's id, as `nacre ps` shows it
    id: String,
}

pub(crate) async fn run(command: Attach, context: &Context) -> Result<ExitCode> {
    let door = context.gateway().await?.door(&command.which.sandbox);
    let info = door.command(&command.id).await?;
    let input = match info.tty {
        Some(_) if std::io::stdin().is_terminal() => Input::Terminal,
        _ if std::io::stdin().is_terminal() => Input::Nothing,
        _ => Input::Stream,
    };
    let session = door.attach(&command.id).await?;
    let ended = session::drive(&door, session, input, OnInterrupt::Leave).await?;
    Ok(exec::exit_code(&ended))
}
