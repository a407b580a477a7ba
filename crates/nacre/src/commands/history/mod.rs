//! `nacre history`: what happened to the files, and the care of what is kept of it.

mod care;
mod export;
mod look;

use std::process::ExitCode;

use clap::{Args, Subcommand};
use nacre_wire::client::{Client, ListHistory};

use super::Context;
use crate::failure::{Failure, Result};
use crate::history::asleep::at_door;
use crate::history::moment::{parse_id, parse_time};
use crate::history::paint::Paint;
use crate::history::words;
use crate::output;

#[derive(Debug, Args)]
#[command(after_help = "\
The newest comes first: when it was recorded, who was at work, and what happened: names added (+),
changed (~), removed (-) or moved. Other commands call a checkpoint by its id, such as @17. A
sandbox that is stopped is started for the call and stopped again, as for undo, redo, restore and
diff.

Examples:
  nacre history                       the last changes
  nacre history src --since 1h        what happened below src in the last hour
  nacre history show @17 --diff       one of them, with the lines that changed
  nacre history label @17 \"it works\"
  nacre history cat notes.txt --at 10m
  nacre history export --git ./past   every checkpoint as a commit

A path that is named like one of the commands is written ./NAME.")]
pub(crate) struct History {
    /// The sandbox, by name or id
    #[arg(short, long, value_name = "NAME", default_value = "live", global = true)]
    sandbox: String,
    #[command(flatten)]
    list: List,
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, Default, PartialEq, Eq, Args)]
struct List {
    /// Only what changed this file, or something below this folder
    path: Option<String>,
    /// At most so many [default: 20]
    #[arg(short = 'n', long, value_name = "N")]
    limit: Option<u64>,
    /// Only older ones than this
    #[arg(long, value_name = "ID", value_parser = parse_id)]
    before: Option<u64>,
    /// Not older than this, such as 10m, 14:32 or yesterday
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    since: Option<i64>,
    /// Not newer than this
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    until: Option<i64>,
    /// Only the work of command:ID or conversation:ID
    #[arg(long, value_name = "WHO", value_parser = parse_by)]
    by: Option<Who>,
    /// Only those with a label
    #[arg(long)]
    labelled: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Who {
    Command(String),
    Conversation(String),
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Show one checkpoint
    Show(look::Show),
    /// Write out a file as it was
    Cat(look::Cat),
    /// Name a checkpoint, which keeps it from being merged with its neighbours
    Label(look::Label),
    /// Say whether changes are recorded
    Status,
    /// Explain where the space goes
    Du,
    /// Read everything that is kept and find what is damaged
    Verify,
    /// Show or change what is recorded and how much is kept
    Settings(care::Settings),
    /// Write the history into a git repository
    Export(export::Export),
}

pub(crate) async fn run(command: History, context: &Context) -> Result<ExitCode> {
    let History { sandbox, list, action } = command;
    if action.is_some() && list != List::default() {
        return Err(Failure::new("this option is for the list and not for its commands")
            .hint("see nacre history --help"));
    }
    at_door(&sandbox, context, async |door| match action {
        None => list.show(door, context).await,
        Some(Action::Show(show)) => show.run(door, context).await,
        Some(Action::Cat(cat)) => cat.run(door).await,
        Some(Action::Label(label)) => label.run(door, context).await,
        Some(Action::Status) => care::status(door, context).await,
        Some(Action::Du) => care::usage(door, context).await,
        Some(Action::Verify) => care::verify(door, context).await,
        Some(Action::Settings(settings)) => settings.run(door, context).await,
        Some(Action::Export(export)) => export.run(door, context).await,
    })
    .await
}

impl List {
    async fn show(self, door: &Client, context: &Context) -> Result<ExitCode> {
        let (command, conversation) = match self.by {
            None => (None, None),
            Some(Who::Command(id)) => (Some(id), None),
            Some(Who::Conversation(id)) => (None, Some(id)),
        };
        let wanted = ListHistory {
            before: self.before,
            after: None,
            limit: Some(self.limit.unwrap_or(20)),
            since: self.since,
            until: self.until,
            path: self.path.map(Into::into),
            command,
            conversation,
            labelled: self.labelled,
        };
        let page = door.history(&wanted).await?;
        if context.json {
            output::print_json(&page)?;
        } else if page.checkpoints.is_empty() {
            output::print("Nothing is recorded that fits.\n")?;
        } else {
            output::print(&words::table(&page.checkpoints, Paint::for_stdout()))?;
            if let Some(next) = page.next {
                eprintln!("There are more: --before {}", words::id(next));
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn parse_by(text: &str) -> Result<Who, String> {
    match text.split_once(':') {
        Some(("command", id)) if !id.is_empty() => Ok(Who::Command(id.to_owned())),
        Some(("conversation", id)) if !id.is_empty() => Ok(Who::Conversation(id.to_owned())),
        _ => Err(format!("\"{text}\" is not command:ID or conversation:ID")),
    }
}
