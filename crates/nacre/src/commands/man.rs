//! `nacre man`: a manual page per command.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, CommandFactory};

use crate::cli::Cli;
use crate::failure::{Failure, Result};

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  nacre man ~/.local/share/man/man1")]
pub(crate) struct Man {
    /// The folder to write to; made when missing
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

pub(crate) fn run(command: Man) -> Result<ExitCode> {
    let failed = |error: std::io::Error| Failure::io(command.folder.display(), &error);
    std::fs::create_dir_all(&command.folder).map_err(failed)?;
    clap_mangen::generate_to(Cli::command(), &command.folder).map_err(failed)?;
    Ok(ExitCode::SUCCESS)
}
