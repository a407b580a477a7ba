//! Calling cargo, and where the workspace is.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::shell;

/// The folder with the workspace's `Cargo.toml`.
pub(crate) fn root() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here)
}

/// What the cargo that runs us says of us. Build scripts of others (ring's) run again when it changes, so that
/// a build by hand and one by `cargo xtask` would each undo the other's.
const OURS: [&str; 2] = ["CARGO_PKG_", "CARGO_MANIFEST_"];

/// `cargo WORDS...` in the workspace. In CI the lock file is law.
pub(crate) fn command(words: &[&str]) -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.current_dir(root()).args(words);
    for (name, _) in std::env::vars_os() {
        if OURS.iter().any(|prefix| name.to_string_lossy().starts_with(prefix)) {
            command.env_remove(name);
        }
    }
    if std::env::var_os("CI").is_some() && words != ["fmt", "--all", "--check"] {
        command.env("CARGO_NET_RETRY", "5").arg("--locked");
    }
    command
}

/// Whether `cargo NAME` is there, for what a toolchain does not bring.
pub(crate) fn has_subcommand(name: &str) -> bool {
    let cargo_bin = std::env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")))
        .map(|home| home.join("bin").join(format!("cargo-{name}")));
    shell::find(&format!("cargo-{name}")).is_some() || cargo_bin.is_some_and(|path| path.is_file())
}

pub(crate) fn target_dir() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(dir) => root().join(dir),
        None => root().join("target"),
    }
}

/// Such as `x86_64-unknown-linux-gnu`.
pub(crate) fn host_triple() -> Result<String> {
    let program = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let text = shell::output(Command::new(program).arg("-vV").current_dir(root()))?;
    text.lines()
        .find_map(|line| line.strip_prefix("host: "))
        .map(str::to_owned)
        .context("rustc -vV names no host")
}
