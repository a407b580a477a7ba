//! `nacre run`: give a task to an agent in a sandbox of its own, watch it, and take what comes of it.

mod report;
mod screen;
mod told;

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use nacre_wire::client::Client;
use nacre_wire::runs::{RunEnd, RunEvent, RunInfo, RunUpdate, StartRun};
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::Context;
use super::exec::parse_duration;
use crate::copy;
use crate::failure::{Failure, Result};
use crate::output;
pub(crate) use report::{describe, used};
use screen::Screen;

#[derive(Debug, Args)]
#[command(after_help = "\
The task is done in a sandbox that is made for it and removed when it is over. What it changed
is kept for a while: nacre runs shows it.

Exit codes:
  0    done
  10   it took as many steps as it may
  11   its time is up
  12   its budget is used up
  13   the model failed
  14   the model called what cannot be called, twice in a row
  15   the gateway ended while it ran
  16   the agent failed
  17   it could not be run: the sandbox or the program of the agent is missing
  130  cancelled, by Ctrl-C or nacre runs cancel
  1    refused before anything began

Examples:
  nacre run spec.txt --model openai/gpt-4o-mini
  nacre run spec.txt --files ./project --out ./result
  nacre run spec.txt --agent codex --timeout 20m --budget 2
  nacre run spec.txt --files . --agent 'node agent.js'
  echo 'write a haiku to haiku.txt' | nacre run - --json")]
pub(crate) struct Run {
    /// A file with the task, or - for the standard input
    #[arg(value_name = "SPEC")]
    spec: PathBuf,
    /// A folder whose files it begins with
    #[arg(long, value_name = "DIR")]
    files: Option<PathBuf>,
    /// Which model, as PROVIDER/MODEL [default: model below [agent] in nacre.toml]
    #[arg(long, value_name = "P/M")]
    model: Option<String>,
    /// nacre, codex, claude, opencode, or a command that gets the path of the task
    #[arg(long, value_name = "AGENT", default_value = "nacre")]
    agent: String,
    /// How often nacre's own agent may ask the model [default: 5]
    #[arg(long, value_name = "N")]
    max_steps: Option<u64>,
    /// How long it may take, such as 90s, 5m or 1h [default: 5m]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    timeout: Option<Duration>,
    /// How many dollars its model calls may cost; 0 for no limit of its own [default: 0.50]
    #[arg(long, value_name = "DOLLARS")]
    budget: Option<f64>,
    /// How many tokens its model calls may use, in and out; 0 for no limit of its own [default: none]
    #[arg(long, value_name = "N")]
    tokens: Option<u64>,
    /// Write what it added and changed to this folder
    #[arg(long, value_name = "DIR", conflicts_with = "detach")]
    out: Option<PathBuf>,
    /// Leave the sandbox when it is over
    #[arg(long)]
    keep: bool,
    /// Print its id and let it go on by itself
    #[arg(short, long)]
    detach: bool,
}

pub(crate) async fn run(command: Run, context: &Context) -> Result<ExitCode> {
    let spec = read_spec(&command.spec)?;
    let files = command.files.as_deref().map(folder).transpose()?;
    let client = context.gateway().await?.client;
    // From here on: a signal that comes while it is begun cancels it too.
    let mut signals = Signals::install()?;
    let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let begun = client
        .start_run(&StartRun {
            spec,
            agent: Some(command.agent.clone()),
            model: command.model.clone(),
            max_steps: command.max_steps,
            timeout_ms: command.timeout.map(millis),
            dollars: command.budget,
            tokens: command.tokens,
            input: files.is_some(),
            keep: command.keep,
            detach: command.detach,
        })
        .await?;
    if let Some(folder) = files {
        tokio::select! {
            sent = send_files(&client, &begun.id, folder) => sent?,
            () = signals.next() => {
                client.cancel_run(&begun.id).await?;
                return Ok(ExitCode::from(RunEnd::Cancelled.exit_code()));
            }
        }
    }
    if command.detach {
        return detached(&begun, context);
    }
    let run = watch(&client, &begun.id, Screen::choose(context.json), &mut signals).await?;
    tokio::select! {
        finished = finish(&client, &run, command.out.as_deref(), context) => finished,
        () = signals.next() => {
            eprintln!("stopped; what it made is not all written");
            eprintln!("hint: nacre runs get {} DIR gets all of it", run.id);
            Ok(ExitCode::from(RunEnd::Cancelled.exit_code()))
        }
    }
}

fn read_spec(path: &Path) -> Result<String> {
    let mut text = String::new();
    let read = match path == Path::new("-") {
        true => std::io::stdin().read_to_string(&mut text).map(|_| text),
        false => std::fs::read_to_string(path),
    };
    read.map_err(|error| Failure::io(path.display(), &error))
}

fn folder(path: &Path) -> Result<PathBuf> {
    let metadata = std::fs::metadata(path).map_err(|error| Failure::io(path.display(), &error))?;
    match metadata.is_dir() {
        true => Ok(path.to_owned()),
        false => Err(Failure::new(format!("{} is not a folder", path.display()))),
    }
}

async fn send_files(client: &Client, id: &str, folder: PathBuf) -> Result<()> {
    let sent = client.put_run_input(id, copy::packed(folder)).await;
    if sent.is_err() {
        // Nothing is left to wait for files that do not come.
        let _ = client.cancel_run(id).await;
    }
    Ok(sent.map(|_| ())?)
}

fn detached(begun: &RunInfo, context: &Context) -> Result<ExitCode> {
    if context.json {
        output::print_json(begun)?;
    } else {
        let id = &begun.id;
        output::print(&format!("{id}\n"))?;
        eprintln!("follow it: nacre runs follow {id}");
    }
    Ok(ExitCode::SUCCESS)
}

/// Follows a run to its end. Ctrl-C cancels it; a second one does not wait for that.
pub(crate) async fn watch(
    client: &Client,
    id: &str,
    mut screen: Screen,
    signals: &mut Signals,
) -> Result<RunInfo> {
    let mut events = client.follow_run(id).await?;
    let mut cancelled = false;
    loop {
        let line = tokio::select! {
            line = events.next() => line,
            () = signals.next() => {
                if cancelled {
                    screen.close();
                    std::process::exit(RunEnd::Cancelled.exit_code().into());
                }
                cancelled = true;
                screen.say("cancelling");
                let (client, id) = (client.clone(), id.to_owned());
                tokio::spawn(async move { client.cancel_run(&id).await });
                continue;
            }
        };
        let Ok(Some(line)) = line else {
            screen.close();
            return lost(client, id).await;
        };
        let event: Option<RunEvent> = serde_json::from_slice(&line).ok();
        screen.show(&line, event.as_ref())?;
        if let Some(RunEvent { update: RunUpdate::Ended { run }, .. }) = event {
            screen.close();
            return Ok(*run);
        }
    }
}

/// The events ended without the last of them.
async fn lost(client: &Client, id: &str) -> Result<RunInfo> {
    match client.run_info(id).await {
        Ok(run) if run.outcome.is_some() => Ok(run),
        Ok(_) | Err(_) => {
            eprintln!("error: the gateway went away while {id} ran");
            eprintln!(
                "hint: start it with nacre up --detach; what was left of the run is removed then"
            );
            std::process::exit(RunEnd::Interrupted.exit_code().into());
        }
    }
}

async fn finish(
    client: &Client,
    run: &RunInfo,
    out: Option<&Path>,
    context: &Context,
) -> Result<ExitCode> {
    let written = match (out, &run.changes) {
        (Some(out), Some(changes)) if changes.added + changes.changed > 0 => {
            copy::unpacked(client.run_files(&run.id).await?, out.to_owned()).await?;
            true
        }
        (Some(_) | None, _) => false,
    };
    if !context.json {
        eprint!("{}", describe(run, out.filter(|_| written)));
    }
    let code = run.outcome.as_ref().map_or(RunEnd::Failed.exit_code(), |outcome| outcome.exit_code);
    Ok(ExitCode::from(code))
}

/// What asks us to end.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    pub(crate) fn install() -> Result<Self> {
        let listen =
            |kind| signal(kind).map_err(|error| Failure::io("signals cannot be handled", &error));
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

pub(crate) fn screen(json: bool) -> Screen {
    Screen::choose(json)
}
