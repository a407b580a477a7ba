//! One module per command: its arguments and what it does.

pub(crate) mod attach;
pub(crate) mod audit;
pub(crate) mod chat;
pub(crate) mod completions;
pub(crate) mod conversations;
pub(crate) mod cp;
pub(crate) mod desktop;
pub(crate) mod dev;
pub(crate) mod diff;
pub(crate) mod doctor;
pub(crate) mod down;
pub(crate) mod egress;
pub(crate) mod exec;
pub(crate) mod forward;
pub(crate) mod history;
pub(crate) mod kill;
pub(crate) mod knowledge;
pub(crate) mod login;
pub(crate) mod logs;
pub(crate) mod ls;
pub(crate) mod man;
pub(crate) mod memory;
pub(crate) mod ports;
pub(crate) mod process;
pub(crate) mod provider;
pub(crate) mod ps;
pub(crate) mod publications;
pub(crate) mod publish;
pub(crate) mod register;
pub(crate) mod restore;
pub(crate) mod run;
pub(crate) mod runs;
pub(crate) mod sandbox;
pub(crate) mod sessions;
pub(crate) mod shell;
pub(crate) mod status;
pub(crate) mod swap;
pub(crate) mod token;
pub(crate) mod undo;
pub(crate) mod up;
pub(crate) mod usage;

use std::path::PathBuf;
use std::process::ExitCode;

use crate::cli::{Cli, Command};
use crate::config;
use crate::connect::Gateway;
use crate::failure::{Failure, Result};
use crate::remote::Remote;
use nacre_wire::control::GatewayStatus;

/// What every command is given.
pub(crate) struct Context {
    pub(crate) data_dir: PathBuf,
    pub(crate) config: Option<PathBuf>,
    pub(crate) json: bool,
    /// A gateway elsewhere, which the environment names.
    pub(crate) remote: Option<Remote>,
}

impl Context {
    pub(crate) async fn gateway(&self) -> Result<Gateway> {
        match &self.remote {
            Some(remote) => Gateway::remote(remote).await.map(|(gateway, _)| gateway),
            None => Gateway::connect(&self.data_dir).await,
        }
    }

    /// `None` when nobody listens.
    pub(crate) async fn find_gateway(&self) -> Result<Option<(Gateway, GatewayStatus)>> {
        match &self.remote {
            Some(remote) => Gateway::remote(remote).await.map(Some),
            None => Gateway::find(&self.data_dir).await,
        }
    }
}

pub(crate) fn run(cli: Cli) -> Result<ExitCode> {
    let context = Context {
        data_dir: config::data_dir(cli.global.data)?,
        config: cli.global.config,
        json: cli.global.json,
        remote: Remote::from_environment()?,
    };
    match cli.command {
        Command::Up(command) => up::run(command, &context),
        Command::Down(command) => wait(down::run(command, &context)),
        Command::Login(command) => wait(login::run(command, &context)),
        Command::Register(command) => wait(register::run(command, &context)),
        Command::Sessions(command) => wait(sessions::run(command, &context)),
        Command::Token(command) => wait(token::run(command, &context)),
        Command::Audit(command) => wait(audit::run(command, &context)),
        Command::Provider(command) => wait(provider::run(command, &context)),
        Command::Usage(command) => wait(usage::run(command, &context)),
        Command::Memory(command) => wait(memory::run(command, &context)),
        Command::Knowledge(command) => wait(knowledge::run(command, &context)),
        Command::Publish(command) => wait(publish::run(command, &context)),
        Command::Publications(command) => wait(publications::run(command, &context)),
        Command::Chat(command) => wait(chat::run(command, &context)),
        Command::Conversations(command) => wait(conversations::run(command, &context)),
        Command::Status(command) => wait(status::run(command, &context)),
        Command::Run(command) => wait(run::run(*command, &context)),
        Command::Runs(command) => wait(runs::run(command, &context)),
        Command::Exec(command) => wait(exec::run(command, &context)),
        Command::Shell(command) => wait(shell::run(command, &context)),
        Command::Ps(command) => wait(ps::run(command, &context)),
        Command::Process(command) => wait(process::run(command, &context)),
        Command::Desktop(command) => wait(desktop::run(command, &context)),
        Command::Ports(command) => wait(ports::run(command, &context)),
        Command::Forward(command) => wait(forward::run(command, &context)),
        Command::Attach(command) => wait(attach::run(command, &context)),
        Command::Kill(command) => wait(kill::run(command, &context)),
        Command::Cp(command) => wait(cp::run(command, &context)),
        Command::Ls(command) => wait(ls::run(command, &context)),
        Command::Egress(command) => wait(egress::run(command, &context)),
        Command::Logs(command) => wait(logs::run(command, &context)),
        Command::History(command) => wait(history::run(command, &context)),
        Command::Diff(command) => wait(diff::run(command, &context)),
        Command::Undo(command) => wait(undo::run(command, &context)),
        Command::Redo(command) => wait(undo::run_redo(command, &context)),
        Command::Restore(command) => wait(restore::run(command, &context)),
        Command::Sandbox(command) => wait(sandbox::run(command, &context)),
        Command::Dev(command) => wait(dev::run(command, &context)),
        Command::Swap(command) => wait(swap::run(command, &context)),
        Command::Doctor(command) => wait(doctor::run(command, &context)),
        Command::Completions(command) => completions::run(command),
        Command::Man(command) => man::run(command),
    }
}

/// One thread is enough for a client, and starts sooner.
fn wait(command: impl Future<Output = Result<ExitCode>>) -> Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::io("cannot start", &error))?;
    let result = runtime.block_on(command);
    // A read of the terminal may still wait; it must not keep us.
    runtime.shutdown_background();
    result
}
