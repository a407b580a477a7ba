//! `nacre runs`: the one-shot runs that go on and those that have ended.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use nacre_wire::client::Client;
use nacre_wire::runs::{RunInfo, RunList, RunState};
use serde_json::json;

use super::{Context, run as one_shot};
use crate::failure::Result;
use crate::{connect, copy, output};

#[derive(Debug, Args)]
#[command(after_help = "\
What runs changed is kept for a while after they have ended; [runs] in nacre.toml says how much.

Examples:
  nacre runs
  nacre runs show run-0123456789
  nacre runs patch run-0123456789 | patch -p1
  nacre runs get run-0123456789 ./result
  nacre runs cancel run-0123456789")]
pub(crate) struct Runs {
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Show all of them, newest first
    List,
    /// Show one: how it is, what it used, what it changed
    Show(One),
    /// Follow one to its end, from its beginning
    Follow(One),
    /// Cancel one; its sandbox is gone when this returns
    Cancel(One),
    /// Print what one changed, for patch -p1
    Patch(One),
    /// Write what one added and changed to a folder
    Get(Get),
    /// Forget one that has ended
    Forget(One),
}

#[derive(Debug, Args)]
struct One {
    /// The run, by its id
    #[arg(value_name = "RUN")]
    id: String,
}

#[derive(Debug, Args)]
struct Get {
    /// The run, by its id
    #[arg(value_name = "RUN")]
    id: String,
    /// Where to; it is made when it is missing
    #[arg(value_name = "DIR")]
    to: PathBuf,
}

pub(crate) async fn run(command: Runs, context: &Context) -> Result<ExitCode> {
    let client = context.gateway().await?.client;
    match command.action.unwrap_or(Action::List) {
        Action::List => list(&client.runs().await?, context)?,
        Action::Show(one) => show(&client.run_info(&one.id).await?, context)?,
        Action::Follow(one) => return follow(&client, &one.id, context).await,
        Action::Cancel(one) => cancel(&client, &one.id, context).await?,
        Action::Patch(one) => {
            let path = format!("/admin/sandboxes/runs/{}/patch", one.id);
            connect::copy_to_stdout(&client, &path).await?;
        }
        Action::Get(get) => {
            copy::unpacked(client.run_files(&get.id).await?, get.to.clone()).await?;
            say(context, &format!("Written to {}.", get.to.display()), &json!({"to": get.to}))?;
        }
        Action::Forget(one) => {
            client.cancel_run(&one.id).await?;
            say(context, &format!("Forgot {}.", one.id), &json!({"forgot": one.id}))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn list(list: &RunList, context: &Context) -> Result<()> {
    if context.json { output::print_json(list) } else { output::print(&table(list)) }
}

fn show(info: &RunInfo, context: &Context) -> Result<()> {
    if context.json {
        return output::print_json(info);
    }
    let mut text = format!("{}  {}\n", info.id, output::one_line(&info.title));
    text.push_str(&format!(
        "{}; {} with {}\n",
        state(info),
        output::one_line(&info.agent),
        model(info)
    ));
    text.push_str(&match info.outcome {
        Some(_) => one_shot::describe(info, None),
        None => format!("It has used {}.\n", one_shot::used(info)),
    });
    output::print(&text)
}

/// Its exit code is ours, as with `nacre run`. Going away does not end a run that is detached.
async fn follow(client: &Client, id: &str, context: &Context) -> Result<ExitCode> {
    let mut signals = one_shot::Signals::install()?;
    let ended = one_shot::watch(client, id, one_shot::screen(context.json), &mut signals).await?;
    if !context.json {
        eprint!("{}", one_shot::describe(&ended, None));
    }
    Ok(ExitCode::from(ended.outcome.map_or(0, |outcome| outcome.exit_code)))
}

async fn cancel(client: &Client, id: &str, context: &Context) -> Result<()> {
    if client.run_info(id).await?.state == RunState::Ended {
        return say(context, &format!("{id} has ended already."), &json!({"cancelled": false}));
    }
    client.cancel_run(id).await?;
    say(context, &format!("Cancelled {id}."), &json!({"cancelled": true}))
}

fn say(context: &Context, words: &str, json: &serde_json::Value) -> Result<()> {
    if context.json { output::print_json(json) } else { output::print(&format!("{words}\n")) }
}

fn model(info: &RunInfo) -> String {
    info.model.as_deref().map_or_else(|| "no model".to_owned(), output::one_line)
}

fn state(info: &RunInfo) -> String {
    match (&info.outcome, info.state) {
        (Some(outcome), _) => outcome.how.words().to_owned(),
        (None, RunState::Waiting) => "waits for its files".to_owned(),
        (None, RunState::Queued) => "waits for its turn".to_owned(),
        (None, RunState::Starting) => "starting".to_owned(),
        (None, RunState::Running) => "working".to_owned(),
        (None, RunState::Finishing | RunState::Ended) => "finishing".to_owned(),
    }
}

fn table(list: &RunList) -> String {
    if list.runs.is_empty() {
        return "There are no runs. Start one: nacre run spec.txt\n".to_owned();
    }
    let rows: Vec<_> = list
        .runs
        .iter()
        .map(|info| {
            let changes = info.changes.as_ref().map_or_else(
                || "-".to_owned(),
                |found| format!("+{} ~{} -{}", found.added, found.changed, found.removed),
            );
            vec![
                info.id.clone(),
                state(info),
                output::ago(info.created_at),
                output::one_line(&info.agent),
                model(info),
                format!("{:.4}", info.used.dollars),
                changes,
                output::one_line(&info.title),
            ]
        })
        .collect();
    output::table(&["RUN", "STATE", "AGO", "AGENT", "MODEL", "DOLLARS", "FILES", "TASK"], &rows)
}
