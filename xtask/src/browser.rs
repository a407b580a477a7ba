//! The suite in `tests/e2e`: the whole computer, in front of a real browser.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::{builds, cargo, python, shell};

/// What the suite is told: which `nacre` to start, and where its pictures go.
pub(crate) const PROGRAM_VARIABLE: &str = "NACRE_BIN";
const PICTURES_VARIABLE: &str = "NACRE_E2E_PICTURES";

pub(crate) fn run(guest: &Path, python: &Path) -> Result<()> {
    let nacre = builds::debug(guest)?;
    install("tests/e2e")?;
    install("tests/atproto")?;
    let pictures = cargo::target_dir().join("e2e");
    let mut suite = npm("tests/e2e", &["test"])?;
    suite.env(PROGRAM_VARIABLE, nacre).env(PICTURES_VARIABLE, &pictures);
    shell::run(suite.env(python::VARIABLE, python))?;
    println!("pictures are in {}", pictures.display());
    Ok(())
}

/// Once for what the lock file names: the account server takes minutes.
pub(crate) fn install(folder: &str) -> Result<()> {
    let lock = cargo::root().join(folder).join("package-lock.json");
    let wanted = std::fs::read_to_string(&lock).with_context(|| format!("{}", lock.display()))?;
    let installed = cargo::root().join(folder).join("node_modules/.installed-lock.json");
    if std::fs::read_to_string(&installed).is_ok_and(|done| done == wanted) {
        return Ok(());
    }
    // Not `ci`, which wants the builds for every other platform in the lock file too.
    let mut command = npm(folder, &["install", "--no-save", "--no-progress"])?;
    if let Some(prefix) = node_headers() {
        command.env("npm_config_nodedir", prefix);
    }
    shell::run(&mut command).with_context(|| {
        format!("the packages of {folder} cannot be installed; they need Node 20 or newer")
    })?;
    Ok(std::fs::write(installed, wanted)?)
}

/// Where Node's own headers are, so that nothing is downloaded to compile against.
fn node_headers() -> Option<PathBuf> {
    let node = shell::find("node")?.canonicalize().ok()?;
    let prefix = node.parent()?.parent()?.to_owned();
    prefix.join("include/node/node.h").is_file().then_some(prefix)
}

pub(crate) fn npm(folder: &str, words: &[&str]) -> Result<Command> {
    let program = shell::find("npm").context("npm is not there")?;
    let mut command = Command::new(program);
    command.args(words).current_dir(cargo::root().join(folder));
    Ok(command)
}
