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

/// Builds the desktop before, and the agent, which lies beside the guest.
pub(crate) fn guest(profile: GuestProfile) -> Result<PathBuf> {
    desktop::build()?;
    // One after the other: what the agent asks of their common dependencies is not for the guest.
    // And it goes into every run's sandbox: names for a debugger would weigh more than the rest.
    fixed("nacre-agent", "nacre-agent", profile, &["-C", "strip=symbols"])?;
    fixed("nacre-supervisor", "nacre-guest", profile, &[])
}

/// A static program.
fn fixed(
    package: &str,
    program: &str,
    profile: GuestProfile,
    flags_of_its_own: &[&str],
) -> Result<PathBuf> {
    let triple = cargo::host_triple()?;
    // With --target, these flags reach the program and not the build scripts and macros.
    let flags =
        format!("{} -C target-feature=+crt-static", std::env::var("RUSTFLAGS").unwrap_or_default());
    let mut command = with_desktop(&["rustc", "--package", package, "--bin", program]);
    command.args(["--profile", profile.name(), "--target", &triple]).env("RUSTFLAGS", flags.trim());
    command.arg("--").args(flags_of_its_own);
    shell::run(&mut command)?;
    let path = cargo::target_dir().join(&triple).join(profile.folder()).join(program);
    ensure!(path.is_file(), "{program} was built, but {} is not there", path.display());
    Ok(path)
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
