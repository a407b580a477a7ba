//! `cargo xtask fuzz`: libFuzzer on the stable toolchain.
//!
//! The target is in `fuzz/`, a crate outside of the workspace, and is built in a folder of its own: all
//! that is in Rust is compiled with the counters that libFuzzer steers by. What it found to be worth
//! keeping stays in `target/fuzz/corpus`, so that a later run goes on from there.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::tools::{self, For};
use crate::{cargo, shell};

const COVERAGE: &[&str] = &[
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
];

/// Of an input: some edits of some bytes each.
const LONGEST: usize = 512;
/// For one input, until it counts as hanging.
const SECONDS: u64 = 20;
const MEGABYTES: u64 = 1024;

pub(crate) fn run(args: &[String]) -> Result<()> {
    let mut seconds = 60;
    let mut words = args.iter().map(String::as_str);
    match words.next() {
        Some("history") => {}
        Some(other) => bail!("there is no fuzz target \"{other}\", only history"),
        None => bail!("which target? such as: cargo xtask fuzz history"),
    }
    while let Some(word) = words.next() {
        match word {
            "--seconds" => {
                let number = words.next().context("--seconds takes a number")?;
                seconds = number.parse().with_context(|| format!("{number} is no number"))?;
            }
            other => bail!("fuzz history takes --seconds N, not {other}"),
        }
    }
    tools::ensure(&[For::Test, For::Fuzz])?;
    history(Duration::from_secs(seconds))
}

/// Fails when an input makes it panic, hang or take too much memory; the input is kept.
pub(crate) fn history(time: Duration) -> Result<()> {
    let program = build()?;
    let [corpus, found] = ["corpus", "found"].map(|name| folder().join(name).join("history"));
    fs::create_dir_all(&corpus)?;
    fs::create_dir_all(&found)?;
    plant(&corpus)?;
    let mut command = Command::new(program);
    command
        .arg(format!("-max_total_time={}", time.as_secs()))
        .arg(format!("-max_len={LONGEST}"))
        .arg(format!("-timeout={SECONDS}"))
        .arg(format!("-rss_limit_mb={MEGABYTES}"))
        .arg(format!("-artifact_prefix={}/", found.display()))
        .args(["-print_final_stats=1", "-verbosity=1", "-reload=0"])
        .arg(&corpus);
    shell::run(&mut command).with_context(|| format!("the input is in {}", found.display()))
}

fn folder() -> PathBuf {
    cargo::target_dir().join("fuzz")
}

fn build() -> Result<PathBuf> {
    let triple = cargo::host_triple()?;
    // With --target, these flags do not reach build scripts and macros.
    let words = ["build", "--release", "--target", &triple, "--manifest-path", "fuzz/Cargo.toml"];
    let mut command = cargo::command(&words);
    command.env("RUSTFLAGS", COVERAGE.join(" ")).env("CARGO_TARGET_DIR", folder());
    shell::run(&mut command)?;
    Ok(folder().join(triple).join("release/history"))
}

/// What to begin with: each kind of edit, in each of the first files, here and there.
fn plant(corpus: &Path) -> Result<()> {
    for (number, seed) in seeds().into_iter().enumerate() {
        fs::write(corpus.join(format!("seed-{number:03}")), seed)?;
    }
    Ok(())
}

/// As `fuzz/history.rs` reads them: a store, then a file, a kind, an offset of three bytes and a length.
fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for store in 0..2 {
        for file in 0..4 {
            for kind in [0, 3, 5, 6, 7] {
                for offset in [[0, 0, 0], [24, 0, 0], [0, 16, 0], [99, 33, 0], [7, 80, 1]] {
                    let head = [&[store, file, kind][..], &offset, &[3]].concat();
                    seeds.push([&head[..], &[1, 0xff, 0x80, 0]].concat());
                }
            }
        }
    }
    seeds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_many_and_none_is_there_twice() {
        let mut seeds = seeds();
        let count = seeds.len();
        seeds.sort();
        seeds.dedup();
        assert_eq!(seeds.len(), count);
        assert!(seeds.iter().all(|seed| seed.len() <= LONGEST));
    }

    #[test]
    fn what_is_no_target_is_refused() {
        for args in [&[][..], &["store"], &["history", "--minutes"], &["history", "--seconds"]] {
            let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
            assert!(run(&args).is_err(), "{args:?}");
        }
    }
}
