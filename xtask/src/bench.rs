//! `cargo xtask bench` and `cargo xtask soak`: build as shipped, then let `nacre-bench` measure.

use std::process::Command;

use anyhow::{Result, bail};

use crate::builds::{self, Built, Profile};
use crate::tools::{self, For};
use crate::{cargo, npm, python, shell};

pub(crate) fn run(args: &[String]) -> Result<()> {
    let Some(name) = args.iter().find(|arg| !arg.starts_with('-')) else {
        bail!("which benchmark? such as: cargo xtask bench sandbox");
    };
    // jj takes long to build and is in no package: it is measured where it is installed.
    let peers = match name.as_str() {
        "history" => For::BenchHistory,
        "gateway" => For::BenchGateway,
        "egress" => For::BenchEgress,
        "provider" => For::BenchProvider,
        "desktop" => For::Browser,
        _ => For::BenchSandbox,
    };
    tools::ensure(&[For::Build, For::Bench, peers])?;
    let built = builds::release()?;
    if name == "desktop" {
        npm::install("tests/e2e")?;
        npm::install("tests/models")?;
    }
    let mut bench = harness(&built)?;
    bench.args(args);
    if name == "provider" {
        bench.arg("--litellm").arg(python::litellm()?);
    }
    shell::run(&mut bench)
}

pub(crate) fn soak(args: &[String]) -> Result<()> {
    tools::ensure(&[For::Build])?;
    let built = builds::release()?;
    shell::run(harness(&built)?.arg("soak").args(args))
}

fn harness(built: &Built) -> Result<Command> {
    let words = ["build", "--release", "--workspace", "--exclude", "nacre", "--bin", "nacre-bench"];
    let mut build = builds::with_guest(&words, &built.guest);
    shell::run(build.args(["--features", "nacre-bench/unguarded"]))?;
    let program = builds::made(Profile::Release, "nacre-bench");
    let mut command = Command::new(program);
    command.current_dir(cargo::root());
    command.arg("--guest").arg(&built.guest).arg("--nacre").arg(&built.nacre);
    Ok(command)
}
