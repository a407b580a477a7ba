//! The suite in `tests/models`: real SDKs and agents, through the gateway, in front of a model server
//! that others wrote.

use std::path::Path;

use anyhow::Result;

use crate::browser::PROGRAM_VARIABLE;
use crate::{builds, cargo, npm, python, shell};

const FOLDER: &str = "tests/models";
/// Tells the suite where the agent is that it runs without a sandbox.
const AGENT_VARIABLE: &str = "NACRE_AGENT";

pub(crate) fn run(guest: &Path, python: &Path) -> Result<()> {
    let nacre = builds::debug(guest)?;
    shell::run(&mut cargo::command(&["build", "--package", "nacre-agent"]))?;
    npm::install(FOLDER)?;
    let mut suite = npm::command(FOLDER, &["test"])?;
    suite.env(PROGRAM_VARIABLE, nacre);
    suite.env(AGENT_VARIABLE, cargo::target_dir().join("debug/nacre-agent"));
    shell::run(suite.env(python::VARIABLE, python))
}
