//! Puts the guest binary into `OUT_DIR`, from where `guest.rs` embeds it.
//!
//! `NACRE_GUEST` names a guest that was built before. Without it the guest is built here, static,
//! in a target directory of its own (the outer cargo holds the lock on the usual one);
//! `NACRE_GUEST_PROFILE=dev` trades its size and speed for a quicker build.

use std::env;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What the guest is made of, from the workspace root.
const SOURCES: &[&str] = &[
    "Cargo.toml",
    "Cargo.lock",
    "crates/supervisor",
    "crates/history",
    "crates/launch",
    "crates/wire",
];

fn main() -> Result<(), Box<dyn Error>> {
    let out_dir = PathBuf::from(env::var("OUT_DIR")?);
    let workspace = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("../..").canonicalize()?;
    println!("cargo:rerun-if-env-changed=NACRE_GUEST");
    println!("cargo:rerun-if-env-changed=NACRE_GUEST_PROFILE");
    let guest = match env::var_os("NACRE_GUEST") {
        Some(path) => {
            let path = workspace.join(path);
            println!("cargo:rerun-if-changed={}", path.display());
            path
        }
        None => {
            for source in SOURCES {
                println!("cargo:rerun-if-changed={}", workspace.join(source).display());
            }
            build_guest(&workspace, &out_dir)?
        }
    };
    fs::copy(&guest, out_dir.join("nacre-guest"))
        .map_err(|error| format!("the guest binary {}: {error}", guest.display()))?;
    Ok(())
}

fn build_guest(workspace: &Path, out_dir: &Path) -> Result<PathBuf, Box<dyn Error>> {
    let profile = env::var("NACRE_GUEST_PROFILE").unwrap_or_else(|_| "guest".to_owned());
    let target = env::var("TARGET")?;
    let target_dir = out_dir.join("guest-target");
    let mut cargo = Command::new(env::var_os("CARGO").ok_or("cargo did not say where it is")?);
    cargo
        .current_dir(workspace)
        .args(["build", "--package", "nacre-supervisor", "--bin", "nacre-guest"])
        .args(["--profile", &profile, "--target", &target])
        .arg("--target-dir")
        .arg(&target_dir)
        .env("CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUSTFLAGS", "-C target-feature=+crt-static")
        .env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUSTFLAGS", "-C target-feature=+crt-static");
    // What the outer cargo sets for this package (lints, wrappers such as clippy's, its own
    // flags) is not meant for the guest.
    for name in ["CARGO_ENCODED_RUSTFLAGS", "RUSTFLAGS", "RUSTC_WRAPPER", "RUSTC_WORKSPACE_WRAPPER"]
    {
        cargo.env_remove(name);
    }
    let status = cargo.status()?;
    if !status.success() {
        return Err(format!("building the guest binary failed: {status}").into());
    }
    let folder = if profile == "dev" { "debug" } else { profile.as_str() };
    Ok(target_dir.join(target).join(folder).join("nacre-guest"))
}
