//! The builds: the desktop; the guest and the agent, static so that they run in any root filesystem; and
//! `nacre`, which carries all of them inside.
//!
//! Every build selects the whole workspace, whatever it makes: cargo then chooses the same features for what
//! they all depend on, and builds that once.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::{cargo, desktop, shell};

/// Tells the build of `nacre`, and every test that starts a sandbox, where the guest is.
pub(crate) const GUEST_VARIABLE: &str = "NACRE_GUEST";
/// The same for the agent, which is beside it.
const AGENT_VARIABLE: &str = "NACRE_AGENT";
const GUEST: &str = "nacre-guest";
const AGENT: &str = "nacre-agent";
/// Links those two static.
const WRAPPER: &str = "xtask/static-programs.sh";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Profile {
    /// Small and fast.
    Release,
    /// Built in a moment, for tests.
    Debug,
}

impl Profile {
    /// Also the name of its folder.
    fn name(self) -> &'static str {
        match self {
            Self::Release => "release",
            Self::Debug => "debug",
        }
    }

    /// An example is what makes cargo choose the features of a build with tests.
    fn flags(self) -> &'static [&'static str] {
        match self {
            Self::Release => &["--release"],
            Self::Debug => &["--example", "openapi"],
        }
    }
}

pub(crate) struct Built {
    pub(crate) nacre: PathBuf,
    pub(crate) guest: PathBuf,
}

/// What people run.
pub(crate) fn release() -> Result<Built> {
    let guest = guest(Profile::Release)?;
    shell::run(&mut with_guest(&["build", "--release", "--workspace", "--bin", "nacre"], &guest))?;
    Ok(Built { nacre: made(Profile::Release, "nacre"), guest })
}

/// `nacre` for tests, without the time that optimising takes, and the tests and examples with it.
pub(crate) fn debug(guest: &Path) -> Result<PathBuf> {
    shell::run(&mut with_guest(&["build", "--workspace", "--all-targets"], guest))?;
    Ok(made(Profile::Debug, "nacre"))
}

/// What a build left in its folder.
pub(crate) fn made(profile: Profile, name: &str) -> PathBuf {
    cargo::target_dir().join(profile.name()).join(name)
}

/// Builds the desktop before, and the agent, which lies beside the guest. Both are static.
pub(crate) fn guest(profile: Profile) -> Result<PathBuf> {
    desktop::build()?;
    let mut command = with_desktop(&["build", "--workspace", "--bin", GUEST, "--bin", AGENT]);
    command.args(profile.flags()).env("RUSTC_WORKSPACE_WRAPPER", cargo::root().join(WRAPPER));
    shell::run(&mut command)?;
    // Away from where the next build puts its own, which are not static.
    let folder = cargo::target_dir().join("static").join(profile.name());
    fs::create_dir_all(&folder)?;
    for program in [GUEST, AGENT] {
        keep(&made(profile, program), &folder.join(program))?;
    }
    Ok(folder.join(GUEST))
}

/// Copies what has changed: what has not, nobody has to build anew for.
fn keep(from: &Path, to: &Path) -> Result<()> {
    let fresh = fs::read(from).with_context(|| format!("cannot read {}", from.display()))?;
    if fs::read(to).is_ok_and(|kept| kept == fresh) {
        return Ok(());
    }
    // A sandbox of an earlier build may still run it.
    let beside = to.with_extension("new");
    fs::copy(from, &beside).with_context(|| format!("cannot write {}", beside.display()))?;
    fs::rename(&beside, to).with_context(|| format!("cannot write {}", to.display()))
}

/// `cargo WORDS...` for a build that embeds this guest, or tests that run it.
pub(crate) fn with_guest(words: &[&str], guest: &Path) -> Command {
    let mut command = with_desktop(words);
    command.env(GUEST_VARIABLE, guest).env(AGENT_VARIABLE, guest.with_file_name(AGENT));
    command
}

fn with_desktop(words: &[&str]) -> Command {
    let mut command = cargo::command(words);
    command.env(desktop::VARIABLE, desktop::folder());
    command
}
