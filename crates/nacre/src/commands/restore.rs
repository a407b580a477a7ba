//! `nacre restore`: files as they were at a moment.

use std::process::ExitCode;

use clap::Args;
use nacre_wire::client::{self, Client};
use nacre_wire::history::{How, Outcome, RestoreRequest};

use super::Context;
use super::undo::Choices;
use crate::cli::Which;
use crate::failure::{Failure, Result};
use crate::history::asleep::at_door;
use crate::history::conflicts::{self, ask, someone_is_there};
use crate::history::moment::{self, Moment};
use crate::history::outcome::{self, Deed};
use crate::history::words;

#[derive(Debug, Args)]
#[command(after_help = "\
Unlike undo, which takes single changes back, this sets everything to what it was, whoever changed
it since. It is recorded like any change: `nacre undo` takes it back. So it is only a terminal that
is asked first, and only about a restore of everything; scripts need no --yes.

Times: 10m, \"2 hours ago\", 14:32 (the last time it was), yesterday, \"yesterday 14:32\",
\"2026-11-16 14:32\", or RFC 3339; without an offset they are of the local time zone.

Examples:
  nacre restore --at 10m                  everything as it was ten minutes ago
  nacre restore --at @17 src              one folder, as it was after checkpoint 17
  nacre restore --at \"yesterday 14:00\" --dry-run")]
pub(crate) struct Restore {
    #[command(flatten)]
    which: Which,
    /// The moment: a checkpoint such as @17, or a time
    #[arg(long, value_name = "TIME|ID", value_parser = moment::parse)]
    at: Moment,
    /// Only this file, or what is below this folder
    path: Option<String>,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
    #[command(flatten)]
    choices: Choices,
}

pub(crate) async fn run(command: Restore, context: &Context) -> Result<ExitCode> {
    let how = command.choices.how(command.path.as_deref());
    at_door(&command.which.sandbox, context, async |door| {
        let everything = command.path.is_none();
        // Settled now: what is recorded while a person thinks must not move it.
        let to = moment::checkpoint(command.at, door).await?;
        let asks = everything && !command.yes && !how.dry_run && !context.json;
        if asks && someone_is_there() && !agreed(door, to, &how).await? {
            return Err(Failure::new("nothing was restored"));
        }
        let ask_for = async |how: &How| restore(door, to, how).await;
        conflicts::settle(how, Deed::Restore, context, ask_for).await
    })
    .await
}

async fn restore(door: &Client, to: u64, how: &How) -> client::Result<Outcome> {
    let request =
        RestoreRequest { checkpoint: Some(to), how: how.clone(), ..RestoreRequest::default() };
    door.restore(&request).await
}

async fn agreed(door: &Client, to: u64, how: &How) -> Result<bool> {
    let how = How { dry_run: true, ..how.clone() };
    let planned = restore(door, to, &how).await?;
    // Nothing to do and conflicts are told anyway.
    if planned.changes.total == 0 || !planned.conflicts.is_empty() {
        return Ok(true);
    }
    eprint!("Everything as it was after {}: {}", words::id(to), outcome::preview(&planned));
    let answer = ask("Go on? [y/N] ").await?.unwrap_or_default();
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}
