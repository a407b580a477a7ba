//! A Python of our own with the packages that the tests ask for, in `target/python`.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use crate::{cargo, shell};

/// Tells the tests which Python it is.
pub(crate) const VARIABLE: &str = "NACRE_PYTHON";

pub(crate) fn ensure() -> Result<PathBuf> {
    let home = cargo::target_dir().join("python");
    let python = home.join("bin/python");
    let wanted = cargo::root().join("tests/e2e/requirements.txt");
    let text = std::fs::read_to_string(&wanted).context("tests/e2e/requirements.txt")?;
    let installed = home.join("installed.txt");
    if python.is_file() && std::fs::read_to_string(&installed).is_ok_and(|done| done == text) {
        return Ok(python);
    }
    shell::run(Command::new("python3").args(["-m", "venv"]).arg(&home))?;
    let words = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r"];
    shell::run(Command::new(&python).args(words).arg(&wanted))?;
    std::fs::write(installed, text)?;
    Ok(python)
}
