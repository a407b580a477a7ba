//! The suite in `tests/e2e`: the whole computer, in front of a real browser.

use std::path::Path;

use anyhow::Result;

use crate::{builds, cargo, npm, python, suite};

const FOLDER: &str = "tests/e2e";
/// What the suite is told: which `nacre` to start, and where its pictures go.
pub(crate) const PROGRAM_VARIABLE: &str = "NACRE_BIN";
const PICTURES_VARIABLE: &str = "NACRE_E2E_PICTURES";

pub(crate) fn run(guest: &Path, python: &Path) -> Result<Option<String>> {
    let nacre = builds::debug(guest)?;
    npm::install(FOLDER)?;
    npm::install("tests/atproto")?;
    // Its model server is the one that the desktop is tested with.
    npm::install("tests/models")?;
    let pictures = cargo::target_dir().join("e2e");
    let remark = suite::run(FOLDER, |node| {
        node.env(PROGRAM_VARIABLE, &nacre).env(PICTURES_VARIABLE, &pictures);
        node.env(python::VARIABLE, python);
    })?;
    println!("pictures are in {}", pictures.display());
    Ok(remark)
}
