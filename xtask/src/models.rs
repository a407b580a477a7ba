//! The suite in `tests/models`: real SDKs and agents, through the gateway, in front of a model server
//! that others wrote.

use std::path::Path;

use anyhow::Result;

use crate::browser::{PROGRAM_VARIABLE, install, npm};
use crate::{builds, python, shell};

const FOLDER: &str = "tests/models";

pub(crate) fn run(guest: &Path, python: &Path) -> Result<()> {
    let nacre = builds::debug(guest)?;
    install(FOLDER)?;
    let mut suite = npm(FOLDER, &["test"])?;
    suite.env(PROGRAM_VARIABLE, nacre);
    shell::run(suite.env(python::VARIABLE, python))
}
