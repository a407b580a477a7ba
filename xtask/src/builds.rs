//! The two builds: the guest, static so that it runs in any root filesystem, and `nacre`, which
//! carries the guest inside.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, ensure};

use crate::{cargo, shell};

/// Tells the build of `nacre`, and every test that starts a sandbox, where the guest is.
pub(crate) const GUEST_VARIABLE: &str = "NACRE_GUEST";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GuestProfile {
    /// Small and fast; a minute of link time.
    Shipped,
    /// Built in a moment, for tests.
    Test,
}

impl GuestProfile {
    fn name(self) -> &'static str {
        match self {
            Self::Shipped => "guest",
            Self::Test => "dev",
        }
    }

    fn folder(self) -> &'static str {
        match self {
            Self::Shipped => "guest",
            Self::Test => "debug",
        }
    }
}

pub(crate) struct Built {
    pub(crate) nacre: PathBuf,
    pub(crate) guest: PathBuf,
}

/// What people run.
pub(crate) fn release() -> Result<Built> {
    let guest = guest(GuestProfile::Shipped)?;
    shell::run(&mut with_guest(&["build", "--release", "--package", "nacre"], &guest))?;
    Ok(Built { nacre: cargo::target_dir().join("release/nacre"), guest })
}

/// The same for tests, without the time that optimising takes.
pub(crate) fn debug(guest: &Path) -> Result<PathBuf> {
    shell::run(&mut with_guest(&["build", "--package", "nacre"], guest))?;
    Ok(cargo::target_dir().join("debug/nacre"))
}

pub(crate) fn guest(profile: GuestProfile) -> Result<PathBuf> {
    let triple = cargo::host_triple()?;
    // With --target, these flags reach the guest and not the build scripts and macros.
    let flags =
        format!("{} -C target-feature=+crt-static", std::env::var("RUSTFLAGS").unwrap_or_default());
    let words = ["build", "--package", "nacre-supervisor", "--bin", "nacre-guest"];
    let mut command = cargo::command(&words);
    command.args(["--profile", profile.name(), "--target", &triple]).env("RUSTFLAGS", flags.trim());
    shell::run(&mut command)?;
    let path = cargo::target_dir().join(&triple).join(profile.folder()).join("nacre-guest");
    ensure!(path.is_file(), "the guest was built, but {} is not there", path.display());
    Ok(path)
}

/// `cargo WORDS...` for a build that embeds this guest, or tests that run it.
pub(crate) fn with_guest(words: &[&str], guest: &Path) -> Command {
    let mut command = cargo::command(words);
    command.env(GUEST_VARIABLE, guest);
    command
}
