//! The binary people run: `nacre up` is the gateway, everything else talks to it.

mod agent;
mod cli;
mod commands;
mod config;
mod connect;
mod copy;
mod desktop;
mod doctor;
mod driver;
mod failure;
mod history;
mod logging;
mod output;
mod providers;
mod remote;
mod session;
mod talk;
mod terminal;

use std::process::ExitCode;

use clap::Parser;

const _: () = assert!(
    nacre_gateway::CHECKS_SESSIONS,
    "the feature nacre-gateway/unguarded is for nacre-bench alone"
);

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    let on_failure = cli.command.failure_code();
    match commands::run(cli) {
        Ok(code) => code,
        Err(failure) => {
            failure.report();
            ExitCode::from(failure.code().unwrap_or(on_failure))
        }
    }
}
