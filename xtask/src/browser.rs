//! The suite in `tests/e2e`: the whole computer, in front of a real browser.

use std::path::Path;

use anyhow::Result;

use crate::{builds, cargo, npm, python, shell};

/// What the suite is told: which `nacre` to start, and where its pictures go.
pub(crate) const PROGRAM_VARIABLE: &str = "NACRE_BIN";
const PICTURES_VARIABLE: &str = "NACRE_E2E_PICTURES";

pub(crate) fn run(guest: &Path, python: &Path) -> Result<()> {
    let nacre = builds::debug(guest)?;
    npm::install("tests/e2e")?;
    npm::install("tests/atproto")?;
    // Its model server is the one that the desktop is tested with.
    npm::install("tests/models")?;
    let pictures = cargo::target_dir().join("e2e");
    let mut suite = npm::command("tests/e2e", &["test"])?;
    suite.env(PROGRAM_VARIABLE, nacre).env(PICTURES_VARIABLE, &pictures);
    shell::run(suite.env(python::VARIABLE, python))?;
    println!("pictures are in {}", pictures.display());
    Ok(())
}
