//! The smallest root filesystem: one static busybox under the names that are called.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use anyhow::{Context, Result};

use super::find;

const APPLETS: &[&str] = &["sh", "true", "sleep"];

pub(super) fn lay_out(root: &Path) -> Result<()> {
    for folder in ["bin", "proc", "dev", "sys", "tmp", "etc"] {
        fs::create_dir_all(root.join(folder))?;
    }
    let busybox = find("busybox")?;
    fs::copy(&busybox, root.join("bin/busybox")).context("cannot copy busybox")?;
    for applet in APPLETS {
        symlink("busybox", root.join("bin").join(applet))?;
    }
    Ok(())
}
