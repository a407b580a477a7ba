//! Running other programs.

use std::ffi::OsStr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, anyhow, bail};

/// Runs it with our terminal and fails when it does.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot run {}", display(command)))?;
    if !status.success() {
        bail!("{} ended with {status}", display(command));
    }
    Ok(())
}

/// What it wrote to standard output, without the last line break.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("cannot run {}", display(command)))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{} ended with {}: {}", display(command), output.status, said.trim());
    }
    let text = String::from_utf8(output.stdout)
        .with_context(|| format!("{} wrote something that is not text", display(command)))?;
    Ok(text.trim_end().to_owned())
}

/// Replaces this process, so that signals and the exit code are the program's own.
pub(crate) fn become_command(program: &Path, first: &str, args: &[String]) -> Result<()> {
    let error = Command::new(program).arg(first).args(args).exec();
    Err(anyhow!("cannot run {}: {error}", program.display()))
}

/// As one would type it.
pub(crate) fn display(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let words = program.file_name().into_iter().chain(command.get_args());
    words.map(OsStr::to_string_lossy).collect::<Vec<_>>().join(" ")
}

/// Where a program is: the `PATH`, then the folders an ordinary user's `PATH` leaves out.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let usual = ["/usr/local/sbin", "/usr/sbin", "/sbin"].map(PathBuf::from);
    std::env::split_paths(&path)
        .chain(usual)
        .map(|folder| folder.join(program))
        .find(|candidate| candidate.is_file())
}
