//! `nacre shell`: a terminal in a sandbox.

use std::io::IsTerminal;
use std::process::ExitCode;

use clap::Args;
use nacre_wire::exec::ExecRequest;

use super::{Context, exec};
use crate::cli::Which;
use crate::failure::Result;
use crate::session::Input;
use crate::terminal;

/// The best shell the sandbox has.
const SHELL: &str = "if command -v bash >/dev/null; then exec bash -l; else exec sh -l; fi";

#[derive(Debug, Args)]
#[command(
    after_help = "Ctrl-] leaves the terminal without ending it: nacre attach ID returns to it."
)]
pub(crate) struct Shell {
    #[command(flatten)]
    which: Which,
    /// As this user of the sandbox
    #[arg(short, long, value_name = "USER")]
    user: Option<String>,
    /// Start in this folder [default: /workspace]
    #[arg(short = 'C', long, value_name = "DIR")]
    cwd: Option<String>,
}

pub(crate) async fn run(command: Shell, context: &Context) -> Result<ExitCode> {
    let door = context.gateway().await?.door(&command.which.sandbox);
    let terminal = std::io::stdin().is_terminal();
    let request = ExecRequest {
        shell: Some(SHELL.to_owned()),
        env: exec::terminal_environment().collect(),
        cwd: command.cwd.map(Into::into),
        user: command.user,
        tty: terminal.then(terminal::size),
        stdin: true,
        // Ctrl-] leaves it running.
        detach: terminal,
        label: Some("shell".to_owned()),
        ..Default::default()
    };
    let input = if terminal { Input::Terminal } else { Input::Stream };
    exec::run_here(&door, request, input).await
}
