//! Calling npm, in a folder of the repository.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::{cargo, shell};

/// `npm WORDS...` in a folder, which may be named from the workspace's root.
pub(crate) fn command(folder: impl AsRef<Path>, words: &[&str]) -> Result<Command> {
    let program = shell::find("npm").context("npm is not there")?;
    let mut command = Command::new(program);
    command.args(words).current_dir(cargo::root().join(folder));
    Ok(command)
}

/// Once for what the lock file names: the account server takes minutes.
pub(crate) fn install(folder: impl AsRef<Path>) -> Result<()> {
    let folder = folder.as_ref();
    let place = cargo::root().join(folder);
    let lock = place.join("package-lock.json");
    let wanted = fs::read_to_string(&lock).with_context(|| format!("{}", lock.display()))?;
    let stamp = place.join("node_modules/.installed-lock.json");
    if fs::read_to_string(&stamp).is_ok_and(|done| done == wanted) {
        return Ok(());
    }
    // Not `ci`, which wants the builds for every other platform in the lock file too.
    let words = ["install", "--no-save", "--no-audit", "--no-fund", "--no-progress"];
    let mut command = command(folder, &words)?;
    if let Some(prefix) = node_headers() {
        command.env("npm_config_nodedir", prefix);
    }
    let name = place.file_name().unwrap_or(OsStr::new("")).to_string_lossy();
    shell::run(&mut command).with_context(|| {
        format!("the packages of {name} cannot be installed; they need Node 20 or newer")
    })?;
    // There is none when there is nothing to install.
    fs::create_dir_all(place.join("node_modules"))?;
    Ok(fs::write(stamp, wanted)?)
}

/// Where Node's own headers are, so that nothing is downloaded to compile against.
fn node_headers() -> Option<PathBuf> {
    let node = shell::find("node")?.canonicalize().ok()?;
    let prefix = node.parent()?.parent()?.to_owned();
    prefix.join("include/node/node.h").is_file().then_some(prefix)
}
