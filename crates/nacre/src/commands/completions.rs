//! `nacre completions`: scripts for shells.

use std::process::ExitCode;

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::cli::Cli;
use crate::failure::{Failure, Result};
use crate::output;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  nacre completions bash > ~/.local/share/bash-completion/completions/nacre
  nacre completions zsh > ~/.zfunc/_nacre
  nacre completions fish > ~/.config/fish/completions/nacre.fish")]
pub(crate) struct Completions {
    shell: Shell,
}

pub(crate) fn run(command: Completions) -> Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(command.shell, &mut Cli::command(), "nacre", &mut script);
    let script = String::from_utf8(script).map_err(|error| Failure::new(error.to_string()))?;
    output::print(&script)?;
    Ok(ExitCode::SUCCESS)
}
