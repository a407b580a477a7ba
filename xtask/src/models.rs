//! The suite in `tests/models`: real SDKs and agents, through the gateway, in front of a model server
//! that others wrote.

use std::path::Path;

use anyhow::Result;

use crate::browser::PROGRAM_VARIABLE;
use crate::builds::{self, Profile};
use crate::{npm, python, suite};

const FOLDER: &str = "tests/models";
/// Tells the suite where the agent is that it runs without a sandbox.
const AGENT_VARIABLE: &str = "NACRE_AGENT";

pub(crate) fn run(guest: &Path, python: &Path) -> Result<Option<String>> {
    let nacre = builds::debug(guest)?;
    npm::install(FOLDER)?;
    suite::run(FOLDER, |node| {
        node.env(PROGRAM_VARIABLE, &nacre).env(python::VARIABLE, python);
        node.env(AGENT_VARIABLE, builds::made(Profile::Debug, "nacre-agent"));
    })
}
