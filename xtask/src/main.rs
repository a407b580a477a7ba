//! The repository's own commands: `cargo xtask up`, `cargo xtask test` and their kin.
//!
//! Kept to the standard library and `anyhow`, so that the first command on a fresh machine starts
//! within seconds. Nothing here is part of what Nacre installs.

mod apt;
mod bench;
mod browser;
mod builds;
mod cargo;
mod checks;
mod desktop;
mod docs;
mod failed;
mod fuzz;
mod install;
mod models;
mod npm;
mod python;
mod shell;
mod steps;
mod suite;
mod tools;

#[cfg(test)]
mod code_map;

use std::process::ExitCode;

use anyhow::{Result, bail};

const HELP: &str = "\
cargo xtask COMMAND

  up [ARGS...]               install what is missing, build, and run `nacre up ARGS`
  build                      the desktop, the static guest, then `nacre` with all inside
  install [--prefix DIR]     build, then copy binary, completions and man pages (/usr/local)
  test [--quick] [FILTER]    install what the tests need and run all of them
  bench NAME [--quick]       measure against peers, write bench/results/NAME.json
                             (sandbox, history, gateway, provider, agent, desktop)
  bench sandbox --only PART  one part: start, crowd, exec, memory, watch, up or files
  soak [--execs N] [--cycles N]
                             thousands of commands and sandboxes; fails when anything grows
  soak history [--minutes N] random changes, undos, restores and restarts; every state compared
  fuzz history [--seconds N] damages a store for a minute, steered by what that makes run
  docs [--check]             regenerate the generated pages in docs/
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match dispatch(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(args: &[String]) -> Result<()> {
    let Some((command, rest)) = args.split_first() else {
        eprint!("{HELP}");
        bail!("which command?");
    };
    match command.as_str() {
        "up" => up(rest),
        "build" => {
            tools::ensure(&[tools::For::Build])?;
            let built = builds::release()?;
            println!("built {}", built.nacre.display());
            Ok(())
        }
        "install" => install::run(rest),
        "test" => checks::run(rest),
        "bench" => bench::run(rest),
        "soak" => bench::soak(rest),
        "fuzz" => fuzz::run(rest),
        "docs" => docs::run(rest),
        "help" | "--help" | "-h" => {
            print!("{HELP}");
            Ok(())
        }
        other => {
            eprint!("{HELP}");
            bail!("there is no command \"{other}\"");
        }
    }
}

fn up(args: &[String]) -> Result<()> {
    tools::ensure(&[tools::For::Build, tools::For::Run])?;
    let built = builds::release()?;
    shell::become_command(&built.nacre, "up", args)
}
