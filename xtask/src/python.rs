//! Pythons of our own: one with the packages that the tests ask for, in `target/python`, and one with
//! the peer of a benchmark, in `target/litellm`.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use crate::{cargo, shell};

/// Tells the tests which Python it is.
pub(crate) const VARIABLE: &str = "NACRE_PYTHON";

pub(crate) fn ensure() -> Result<PathBuf> {
    Ok(with_packages("python", "tests/e2e/requirements.txt")?.join("python"))
}

/// LiteLLM's own program.
pub(crate) fn litellm() -> Result<PathBuf> {
    Ok(with_packages("litellm", "crates/bench/requirements.txt")?.join("litellm"))
}

/// The folder of programs of a Python in `target/NAME`, made once for what the file asks for.
fn with_packages(name: &str, requirements: &str) -> Result<PathBuf> {
    let home = cargo::target_dir().join(name);
    let programs = home.join("bin");
    let python = programs.join("python");
    let wanted = cargo::root().join(requirements);
    let text = std::fs::read_to_string(&wanted).with_context(|| requirements.to_owned())?;
    let installed = home.join("installed.txt");
    if python.is_file() && std::fs::read_to_string(&installed).is_ok_and(|done| done == text) {
        return Ok(programs);
    }
    shell::run(Command::new("python3").args(["-m", "venv"]).arg(&home))?;
    let words = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r"];
    shell::run(Command::new(&python).args(words).arg(&wanted))?;
    std::fs::write(installed, text)?;
    Ok(programs)
}
