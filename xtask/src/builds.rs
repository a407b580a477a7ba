//! The builds: the desktop; the guest and the agent, static so that they run in any root filesystem; and
//! `nacre`, which carries all of them inside.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, ensure};

use crate::{cargo, desktop, shell};

/// Tells the build of `nacre`, and every test that starts a sandbox, where the guest is.
pub(crate) const GUEST_VARIABLE: &str = "NACRE_GUEST";
/// The same for the agent, which is beside it.
const AGENT_VARIABLE: &str = "NACRE_AGENT";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GuestProfile {
    /// Small and fast; a minute of link time.
    Shipped,
    /// Built in a moment, for tests.
    Test,
}

impl GuestProfile {
    /// Also the name of its folder.
    fn name(self) -> &'static str {
        match self {
            Self::Shipped => "guest",
            Self::Test => "guest-test",
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

/// Builds the desktop before, and the agent, which lies beside the guest. Both are static.
pub(crate) fn guest(profile: GuestProfile) -> Result<PathBuf> {
    desktop::build()?;
    let triple = cargo::host_triple()?;
    // With --target, these flags reach the programs and not the build scripts and macros.
    let flags =
        format!("{} -C target-feature=+crt-static", std::env::var("RUSTFLAGS").unwrap_or_default());
    // Together, so that what both depend on is built once.
    let programs = ["nacre-agent", "nacre-guest"];
    let mut command = with_desktop(&["build", "-p", "nacre-agent", "-p", "nacre-supervisor"]);
    command.args(programs.iter().flat_map(|program| ["--bin", program]));
    command.args(["--profile", profile.name(), "--target", &triple]).env("RUSTFLAGS", flags.trim());
    shell::run(&mut command)?;
    let folder = cargo::target_dir().join(&triple).join(profile.name());
    for program in programs {
        let path = folder.join(program);
        ensure!(path.is_file(), "{program} was built, but {} is not there", path.display());
    }
    Ok(folder.join("nacre-guest"))
}

/// `cargo WORDS...` for a build that embeds this guest, or tests that run it.
pub(crate) fn with_guest(words: &[&str], guest: &Path) -> Command {
    let mut command = with_desktop(words);
    command.env(GUEST_VARIABLE, guest).env(AGENT_VARIABLE, guest.with_file_name("nacre-agent"));
    command
}

fn with_desktop(words: &[&str]) -> Command {
    let mut command = cargo::command(words);
    command.env(desktop::VARIABLE, desktop::folder());
    command
}
