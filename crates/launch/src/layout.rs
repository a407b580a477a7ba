//! The sandbox's own files, laid out the first time it starts.
//!
//! Paths are relative to the sandbox's data directory, the current directory of the seed: `upper/`
//! and `work/` hold the layers over the base, `workspace/` is `/workspace`, and `history/`, which the
//! supervisor makes when it has something to keep, is mounted nowhere. There are few of them, because
//! making and removing files is what a short life of a sandbox costs most.

use std::fs;
use std::io;
use std::os::unix::fs::chown;

use crate::{Result, Step};

pub(crate) const USER: &str = "nacre";
pub(crate) const USER_ID: u32 = 1000;

/// Every step can be repeated, so a crash in between does no harm.
pub(crate) fn lay_out(many_ids: bool) -> Result<()> {
    make("upper")?;
    make("work")?;
    if make("workspace")? && many_ids {
        chown("workspace", Some(USER_ID), Some(USER_ID)).step(|| "chown workspace".to_owned())?;
    }
    Ok(())
}

/// Makes a directory and says whether it was missing.
pub(crate) fn make(path: &str) -> Result<bool> {
    match fs::create_dir(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error).step(|| format!("create {path}")),
    }
}
