//! One checkpoint: what it did, a file as it left it, a name for it.

use std::process::ExitCode;

use clap::Args;
use nacre_wire::client::{Client, ListHistory};
use nacre_wire::history::{Author, CheckpointInfo};
use serde_json::json;

use crate::commands::{Context, diff};
use crate::connect::pour_to_stdout;
use crate::failure::Result;
use crate::history::moment::{self, Moment, parse_id};
use crate::history::paint::Paint;
use crate::history::words;
use crate::output::{self, one_line};

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  nacre history show @17\n  nacre history show @17 --diff")]
pub(super) struct Show {
    /// The checkpoint, such as @17
    #[arg(value_parser = parse_id)]
    id: u64,
    /// With the lines that changed
    #[arg(long)]
    diff: bool,
}

impl Show {
    pub(super) async fn run(self, door: &Client, context: &Context) -> Result<ExitCode> {
        let mut changes = door.checkpoint(self.id, None, self.diff).await?;
        if let Some(checkpoint) = &mut changes.checkpoint {
            // Only the list knows what was undone since.
            checkpoint.undone = listed(self.id, door).await?.is_some_and(|listed| listed.undone);
        }
        if context.json {
            output::print_json(&changes)?;
            return Ok(ExitCode::SUCCESS);
        }
        let paint = Paint::for_stdout();
        let head = changes.checkpoint.as_ref().map_or_else(String::new, |it| head(it, paint));
        output::print(&format!("{head}{}", diff::describe(&changes, !self.diff, paint)))?;
        Ok(ExitCode::SUCCESS)
    }
}

async fn listed(id: u64, door: &Client) -> Result<Option<CheckpointInfo>> {
    let before = Some(id.saturating_add(1));
    let wanted = ListHistory { before, limit: Some(1), ..ListHistory::default() };
    let page = door.history(&wanted).await?;
    Ok(page.checkpoints.into_iter().find(|checkpoint| checkpoint.id == id))
}

fn head(checkpoint: &CheckpointInfo, paint: Paint) -> String {
    let mut text = paint.changed(&words::id(checkpoint.id));
    let marks = words::marks(checkpoint);
    if !marks.is_empty() {
        text.push_str(&format!("  {marks}"));
    }
    text.push_str(&format!("\nTime  {}\n", words::when(checkpoint.time)));
    text.push_str(&format!("Who   {}\n", words::who(checkpoint)));
    for author in &checkpoint.authors {
        if let Author::Command { id, .. } = author {
            text.push_str(&format!("      nacre undo --command {}\n", one_line(id)));
        }
    }
    text.push_str(&format!("What  {}\n", words::what(checkpoint)));
    text.push_str(&words::remarks(&checkpoint.remarks));
    text.push('\n');
    text
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  nacre history cat notes.txt --at 10m
  nacre history cat site/logo.png --at @17 > logo.png")]
pub(super) struct Cat {
    /// The file, from /workspace
    path: String,
    /// The moment: a checkpoint such as @17, or a time
    #[arg(long, value_name = "TIME|ID", value_parser = moment::parse)]
    at: Moment,
}

impl Cat {
    pub(super) async fn run(self, door: &Client) -> Result<ExitCode> {
        let at = moment::checkpoint(self.at, door).await?;
        pour_to_stdout(door.history_file(&self.path.into(), at).await?).await?;
        Ok(ExitCode::SUCCESS)
    }
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  nacre history label @17 \"it works\"
  nacre history label @17 --remove")]
pub(super) struct Label {
    /// The checkpoint, such as @17
    #[arg(value_parser = parse_id)]
    id: u64,
    /// Its name
    #[arg(required_unless_present = "remove", conflicts_with = "remove")]
    text: Option<String>,
    /// Take its name off
    #[arg(long)]
    remove: bool,
}

impl Label {
    pub(super) async fn run(self, door: &Client, context: &Context) -> Result<ExitCode> {
        door.label_checkpoint(self.id, self.text.as_deref()).await?;
        if context.json {
            output::print_json(&json!({ "id": self.id, "label": self.text }))?;
        } else {
            let id = words::id(self.id);
            output::print(&match &self.text {
                Some(text) => format!("{id} is \"{}\".\n", one_line(text)),
                None => format!("{id} has no label.\n"),
            })?;
        }
        Ok(ExitCode::SUCCESS)
    }
}
