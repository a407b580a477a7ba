//! The suite in `tests/e2e`: the whole computer, in front of a real browser.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::{builds, cargo, python, shell};

/// What the suite is told: which `nacre` to start, and where its pictures go.
const PROGRAM_VARIABLE: &str = "NACRE_BIN";
const PICTURES_VARIABLE: &str = "NACRE_E2E_PICTURES";

pub(crate) fn run(guest: &Path, python: &Path) -> Result<()> {
    let nacre = builds::debug(guest)?;
    // Not `ci`, which wants the builds for every other platform in the lock file too.
    shell::run(npm(&["install"])?.args(["--no-save", "--no-progress"]))
        .context("the packages of tests/e2e cannot be installed; they need Node 20 or newer")?;
    let pictures = cargo::target_dir().join("e2e");
    let mut suite = npm(&["test"])?;
    suite.env(PROGRAM_VARIABLE, nacre).env(PICTURES_VARIABLE, &pictures);
    shell::run(suite.env(python::VARIABLE, python))?;
    println!("pictures are in {}", pictures.display());
    Ok(())
}

fn npm(words: &[&str]) -> Result<Command> {
    let program = shell::find("npm").context("npm is not there")?;
    let mut command = Command::new(program);
    command.args(words).current_dir(cargo::root().join("tests/e2e"));
    Ok(command)
}
