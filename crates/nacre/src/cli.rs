//! The command line, as clap sees it and as `--help` shows it.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::commands::{
    attach, audit, chat, completions, conversations, cp, desktop, dev, diff, doctor, down, egress,
    exec, forward, history, kill, knowledge, login, logs, ls, man, memory, ports, process,
    provider, ps, publications, publish, register, restore, run, runs, sandbox, sessions, shell,
    status, swap, token, undo, up, usage,
};

const EXAMPLES: &str = "\
Examples:
  nacre up                          start your computer and print a sign-in link
  nacre exec -- make test           run a command in it; the exit code is the command's
  tar c . | nacre exec -- tar x     pipes work both ways
  nacre shell                       a terminal in it
  nacre run spec.txt --out result   give a task to an agent, in a sandbox of its own
  nacre cp ./site :site             copy a folder in, nacre cp :site ./site copies it out
  nacre chat \"fix the tests\"        ask the agent to work in it
  nacre undo                        take the last change back; nacre history shows them all
  nacre doctor                      what this machine offers, and how to fix what it lacks

Paths in a sandbox are written :PATH for the live one and NAME:PATH for another; they start at
/workspace unless they are absolute.";

/// Your own computer, in one process.
#[derive(Debug, Parser)]
#[command(name = "nacre", version, after_help = EXAMPLES, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct Global {
    /// Where everything is kept [default: $XDG_DATA_HOME/nacre or ~/.local/share/nacre]
    #[arg(
        long,
        global = true,
        env = "NACRE_DATA",
        value_name = "DIR",
        hide_env_values = true,
        help_heading = "Global options"
    )]
    pub(crate) data: Option<PathBuf>,
    /// Configuration file [default: nacre.toml in the data directory]
    #[arg(
        long,
        global = true,
        env = "NACRE_CONFIG",
        value_name = "FILE",
        hide_env_values = true,
        help_heading = "Global options"
    )]
    pub(crate) config: Option<PathBuf>,
    /// Print results as JSON
    #[arg(long, global = true, help_heading = "Global options")]
    pub(crate) json: bool,
}

/// Which sandbox.
#[derive(Debug, Clone, Args)]
pub(crate) struct Which {
    /// The sandbox, by name or id
    #[arg(short, long, value_name = "NAME", default_value = "live")]
    pub(crate) sandbox: String,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Start the gateway and the live sandbox, and print a sign-in link
    Up(up::Up),
    /// Stop the gateway and the sandboxes
    Down(down::Down),
    /// Print a fresh sign-in link
    Login(login::Login),
    /// Print a code to make this computer yours with
    Register(register::Register),
    /// Show and sign out the browsers that are signed in
    Sessions(sessions::Sessions),
    /// Make and revoke tokens for programs elsewhere
    Token(token::Token),
    /// Show who came in and who was turned away
    Audit(audit::Audit),
    /// Add, show, test and stop those who answer model calls
    Provider(provider::ProviderCommand),
    /// Show what model calls used and cost
    Usage(usage::Usage),
    /// Speak with the agent
    Chat(chat::Chat),
    /// Show conversations with the agent, and take back what they changed
    Conversations(conversations::Conversations),
    /// Show and change what the agent remembers
    Memory(memory::Memory),
    /// Find passages in documents and publications
    Knowledge(knowledge::Knowledge),
    /// Publish a file as an edition that never changes
    Publish(publish::Publish),
    /// Show, cite and verify what was published
    Publications(publications::Publications),
    /// Show the gateway and its sandboxes
    Status(status::Status),
    /// Give a task to an agent in a sandbox of its own
    Run(Box<run::Run>),
    /// Show, follow and cancel such runs, and get what they changed
    Runs(runs::Runs),
    /// Run a command in a sandbox
    Exec(exec::Exec),
    /// Open a terminal in a sandbox
    Shell(shell::Shell),
    /// List the commands of a sandbox
    Ps(ps::Ps),
    /// Show, start and stop what nacre.toml keeps running in a sandbox
    Process(process::Process),
    /// Put the desktop into a sandbox, and show how it is doing
    Desktop(desktop::Desktop),
    /// Show what listens in a sandbox
    Ports(ports::Ports),
    /// Make ports of a sandbox ports of this machine
    Forward(forward::Forward),
    /// Follow a command that runs, with its recent output first
    Attach(attach::Attach),
    /// Send a signal to a command
    Kill(kill::Kill),
    /// Copy files and folders into and out of sandboxes
    Cp(cp::Cp),
    /// List a folder in a sandbox
    Ls(ls::Ls),
    /// Rule and show what a sandbox reaches outside
    Egress(egress::Egress),
    /// Show the log of a sandbox, or the output of a command or process
    Logs(logs::Logs),
    /// Show what happened to the files of a sandbox
    History(history::History),
    /// Show what changed in them, line by line
    Diff(diff::Diff),
    /// Take changes back, and keep what came later
    Undo(undo::Undo),
    /// Take an undo back
    Redo(undo::Redo),
    /// Set files to what they were at a moment
    Restore(restore::Restore),
    /// Make, run and remove sandboxes
    Sandbox(sandbox::Sandbox),
    /// Make, reset and remove dev, a copy of live to try things on
    Dev(dev::Dev),
    /// Make dev live and live dev, or take that back
    Swap(swap::Swap),
    /// Check this machine and say how to fix what it lacks
    Doctor(doctor::Doctor),
    /// Print a completion script for a shell
    Completions(completions::Completions),
    /// Write the manual pages
    Man(man::Man),
}

impl Command {
    /// The exit code of a failure of ours. Where the command's own code is passed on, ours must
    /// differ from any it could have.
    pub(crate) fn failure_code(&self) -> u8 {
        match self {
            Self::Exec(_) | Self::Shell(_) | Self::Attach(_) => 125,
            Self::Up(_)
            | Self::Down(_)
            | Self::Login(_)
            | Self::Register(_)
            | Self::Sessions(_)
            | Self::Token(_)
            | Self::Audit(_)
            | Self::Provider(_)
            | Self::Usage(_)
            | Self::Run(_)
            | Self::Runs(_)
            | Self::Memory(_)
            | Self::Knowledge(_)
            | Self::Publish(_)
            | Self::Publications(_)
            | Self::Chat(_)
            | Self::Conversations(_)
            | Self::Status(_)
            | Self::Ps(_)
            | Self::Process(_)
            | Self::Desktop(_)
            | Self::Ports(_)
            | Self::Forward(_)
            | Self::Kill(_)
            | Self::Cp(_)
            | Self::Ls(_)
            | Self::Egress(_)
            | Self::Logs(_)
            | Self::History(_)
            | Self::Diff(_)
            | Self::Undo(_)
            | Self::Redo(_)
            | Self::Restore(_)
            | Self::Sandbox(_)
            | Self::Dev(_)
            | Self::Swap(_)
            | Self::Doctor(_)
            | Self::Completions(_)
            | Self::Man(_) => 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn what_follows_the_program_belongs_to_it() {
        let cli = Cli::parse_from(["nacre", "exec", "-s", "dev", "ls", "-s", "--json"]);
        let Command::Exec(exec) = cli.command else { panic!("not exec") };
        assert_eq!(exec.which.sandbox, "dev");
        assert_eq!(exec.argv, ["ls", "-s", "--json"]);
        assert!(!cli.global.json);
    }
}
