//! Puts the guest binary and the agent into `OUT_DIR`, from where `driver.rs` and `agent.rs` embed them, and
//! what the desktop runs on, for `desktop.rs`.
//!
//! `NACRE_GUEST` and `NACRE_AGENT` name what was built before. Without them they are built here, static,
//! in a target directory of their own (the outer cargo holds the lock on the usual one);
//! `NACRE_GUEST_PROFILE=dev` trades size and speed for a quicker build. `NACRE_DESKTOP` names the folder that
//! `cargo xtask` packs the desktop into; without it there is no desktop to share.

use std::env;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A static program that `nacre` carries.
struct Carried {
    program: &'static str,
    package: &'static str,
    /// Names one that was built before.
    variable: &'static str,
    /// For its compiler alone.
    flags: &'static [&'static str],
    /// What it is made of, from the workspace root.
    sources: &'static [&'static str],
}

const CARRIED: [Carried; 2] = [
    Carried {
        program: "nacre-guest",
        package: "nacre-supervisor",
        variable: "NACRE_GUEST",
        flags: &[],
        sources: &[
            "Cargo.toml",
            "Cargo.lock",
            "crates/supervisor",
            "crates/history",
            "crates/launch",
            "crates/wire",
        ],
    },
    Carried {
        program: "nacre-agent",
        package: "nacre-agent",
        variable: "NACRE_AGENT",
        // It goes into every run's sandbox.
        flags: &["-C", "strip=symbols"],
        sources: &["Cargo.toml", "Cargo.lock", "crates/agent", "crates/wire"],
    },
];

/// What `nacre` carries of the desktop.
const MODULES: [&str; 2] = ["modules.tar.gz", "modules.id"];

fn main() -> Result<(), Box<dyn Error>> {
    let out_dir = PathBuf::from(env::var("OUT_DIR")?);
    let workspace = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("../..").canonicalize()?;
    println!("cargo:rerun-if-env-changed=NACRE_GUEST_PROFILE");
    for carried in CARRIED {
        println!("cargo:rerun-if-env-changed={}", carried.variable);
        let built = match env::var_os(carried.variable) {
            Some(path) => {
                let path = workspace.join(path);
                println!("cargo:rerun-if-changed={}", path.display());
                path
            }
            None => {
                for source in carried.sources {
                    println!("cargo:rerun-if-changed={}", workspace.join(source).display());
                }
                build(&carried, &workspace, &out_dir)?
            }
        };
        fs::copy(&built, out_dir.join(carried.program))
            .map_err(|error| format!("{} {}: {error}", carried.program, built.display()))?;
    }
    modules(&workspace, &out_dir)
}

fn modules(workspace: &Path, out_dir: &Path) -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-env-changed=NACRE_DESKTOP");
    let desktop = env::var_os("NACRE_DESKTOP").filter(|path| !path.is_empty());
    for name in MODULES {
        let content = match &desktop {
            Some(folder) => {
                let path = workspace.join(folder).join(name);
                println!("cargo:rerun-if-changed={}", path.display());
                fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?
            }
            None => Vec::new(),
        };
        fs::write(out_dir.join(name), content)?;
    }
    Ok(())
}

fn build(carried: &Carried, workspace: &Path, out_dir: &Path) -> Result<PathBuf, Box<dyn Error>> {
    let profile = env::var("NACRE_GUEST_PROFILE").unwrap_or_else(|_| "release".to_owned());
    let target = env::var("TARGET")?;
    let target_dir = out_dir.join("guest-target");
    let mut cargo = Command::new(env::var_os("CARGO").ok_or("cargo did not say where it is")?);
    cargo
        .current_dir(workspace)
        .args(["rustc", "--package", carried.package, "--bin", carried.program])
        .args(["--profile", &profile, "--target", &target])
        .arg("--target-dir")
        .arg(&target_dir)
        .arg("--")
        .args(carried.flags)
        .env("CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUSTFLAGS", "-C target-feature=+crt-static")
        .env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUSTFLAGS", "-C target-feature=+crt-static");
    // What the outer cargo sets for this package (lints, wrappers such as clippy's, its own
    // flags) is not meant for what it carries.
    for name in ["CARGO_ENCODED_RUSTFLAGS", "RUSTFLAGS", "RUSTC_WRAPPER", "RUSTC_WORKSPACE_WRAPPER"]
    {
        cargo.env_remove(name);
    }
    let status = cargo.status()?;
    if !status.success() {
        return Err(format!("building {} failed: {status}", carried.program).into());
    }
    let folder = if profile == "dev" { "debug" } else { profile.as_str() };
    Ok(target_dir.join(target).join(folder).join(carried.program))
}
