//! `nacre exec`: a command in a sandbox, as if it ran here.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use nacre_wire::client::Client;
use nacre_wire::exec::{CommandInfo, ExecRequest};

use super::Context;
use crate::cli::Which;
use crate::failure::{BROKEN_PIPE_CODE, Result};
use crate::session::{self, Ended, Input, OnInterrupt};
use crate::{output, terminal};

#[derive(Debug, Args)]
#[command(after_help = "\
The exit code is the command's: 128 + N when signal N ended it, 124 when its time was up, 125 when
nacre itself failed. Standard input is passed on when it is not a terminal, or with -i or -t.
Ctrl-C interrupts the command; twice within two seconds ends it.

Examples:
  nacre exec -- make test
  nacre exec -t -- top
  nacre exec -s dev --env DEBUG=1 --cwd site --timeout 5m -- npm test
  tar c . | nacre exec -- tar x
  nacre exec --detach -- ./server        then: nacre ps, nacre logs ID, nacre attach ID")]
pub(crate) struct Exec {
    #[command(flatten)]
    pub(crate) which: Which,
    /// Give the command a terminal
    #[arg(short, long)]
    pub(crate) tty: bool,
    /// Pass standard input on even when it is a terminal
    #[arg(short, long)]
    pub(crate) interactive: bool,
    /// Run as this user of the sandbox
    #[arg(short, long, value_name = "USER")]
    pub(crate) user: Option<String>,
    /// Start in this folder [default: /workspace]
    #[arg(short = 'C', long, value_name = "DIR")]
    pub(crate) cwd: Option<String>,
    /// Set a variable; KEY alone removes it
    #[arg(short, long, value_name = "KEY=VALUE", value_parser = parse_env)]
    pub(crate) env: Vec<(String, Option<String>)>,
    /// End it after this long, such as 30s, 5m or 1h30m
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) timeout: Option<Duration>,
    /// Leave it running and print its id
    #[arg(short, long, conflicts_with_all = ["tty", "interactive"])]
    pub(crate) detach: bool,
    /// A name to recognise it by in `nacre ps`
    #[arg(long, value_name = "TEXT")]
    pub(crate) label: Option<String>,
    /// The program and its arguments
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "ARGV"
    )]
    pub(crate) argv: Vec<String>,
}

pub(crate) async fn run(command: Exec, context: &Context) -> Result<ExitCode> {
    let door = context.gateway().await?.door(&command.which.sandbox);
    let input = command.input();
    let detach = command.detach;
    let request = command.into_request(input);
    if detach {
        return print_started(&door.start_detached(&request).await?, context);
    }
    run_here(&door, request, input).await
}

pub(crate) async fn run_here(
    door: &Client,
    request: ExecRequest,
    input: Input,
) -> Result<ExitCode> {
    let session = door.exec(request).await?;
    let ended = session::drive(door, session, input, OnInterrupt::Forward).await?;
    Ok(exit_code(&ended))
}

pub(crate) fn exit_code(ended: &Ended) -> ExitCode {
    match ended {
        Ended::Exit(exit) => {
            if exit.timed_out {
                eprintln!("nacre: the command's time was up");
            } else if exit.out_of_memory {
                eprintln!("nacre: the sandbox ran out of memory");
            }
            ExitCode::from(u8::try_from(exit.shell_code() & 0xff).unwrap_or(255))
        }
        Ended::BrokenPipe => ExitCode::from(BROKEN_PIPE_CODE),
        Ended::Left => {
            eprintln!("nacre: left it running");
            ExitCode::SUCCESS
        }
    }
}

fn print_started(info: &CommandInfo, context: &Context) -> Result<ExitCode> {
    if context.json {
        output::print_json(info)?;
    } else {
        output::print(&format!("{}\n", info.id))?;
    }
    Ok(ExitCode::SUCCESS)
}

impl Exec {
    fn input(&self) -> Input {
        if self.detach {
            Input::Nothing
        } else if self.tty {
            Input::Terminal
        } else if self.interactive || !std::io::stdin().is_terminal() {
            Input::Stream
        } else {
            Input::Nothing
        }
    }

    fn into_request(self, input: Input) -> ExecRequest {
        let mut env: BTreeMap<String, Option<String>> = BTreeMap::new();
        if self.tty {
            env.extend(terminal_environment());
        }
        env.extend(self.env);
        ExecRequest {
            argv: self.argv,
            env,
            cwd: self.cwd.map(Into::into),
            user: self.user,
            tty: self.tty.then(terminal::size),
            stdin: input != Input::Nothing,
            timeout_ms: self
                .timeout
                .map(|timeout| u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX)),
            detach: self.detach,
            label: self.label,
            ..Default::default()
        }
    }
}

/// What programs need to know of the terminal they draw on.
pub(crate) fn terminal_environment() -> impl Iterator<Item = (String, Option<String>)> {
    ["TERM", "COLORTERM"]
        .into_iter()
        .filter_map(|name| Some((name.to_owned(), Some(std::env::var(name).ok()?))))
}

fn parse_env(text: &str) -> Result<(String, Option<String>), String> {
    let (key, value) = match text.split_once('=') {
        Some((key, value)) => (key, Some(value.to_owned())),
        None => (text, None),
    };
    match key {
        "" => Err("the variable has no name".to_owned()),
        key => Ok((key.to_owned(), value)),
    }
}

/// A number and a unit (`ms`, `s`, `m`, `h`), any number of times; a bare number is seconds.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, String> {
    let bad = || format!("\"{text}\" is not a time: use something like 30s, 5m or 1h30m");
    if let Ok(seconds) = text.parse::<u64>() {
        return Ok(Duration::from_secs(seconds));
    }
    let mut rest = text;
    let mut total = Duration::ZERO;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(bad)?;
        let number: u64 = rest[..digits].parse().map_err(|_| bad())?;
        rest = &rest[digits..];
        let unit_end = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let milliseconds = match &rest[..unit_end] {
            "ms" => 1,
            "s" => 1000,
            "m" | "min" => 60_000,
            "h" => 3_600_000,
            _ => return Err(bad()),
        };
        let span = number.checked_mul(milliseconds).ok_or_else(bad)?;
        total = total.checked_add(Duration::from_millis(span)).ok_or_else(bad)?;
        rest = &rest[unit_end..];
    }
    if text.is_empty() { Err(bad()) } else { Ok(total) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_people_do() {
        let cases = [("30", 30_000), ("250ms", 250), ("5m", 300_000), ("1h30m", 5_400_000)];
        for (text, ms) in cases {
            assert_eq!(parse_duration(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        for bad in ["", "m", "5x", "-1s", "1.5h", "99999999999999999999s"] {
            assert!(parse_duration(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_variable_is_set_emptied_or_removed() {
        assert_eq!(parse_env("A=b=c"), Ok(("A".to_owned(), Some("b=c".to_owned()))));
        assert_eq!(parse_env("A="), Ok(("A".to_owned(), Some(String::new()))));
        assert_eq!(parse_env("A"), Ok(("A".to_owned(), None)));
        assert!(parse_env("=x").is_err());
    }
}
