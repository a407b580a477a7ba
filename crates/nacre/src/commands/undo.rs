//! `nacre undo` and `nacre redo`.

use std::process::ExitCode;

use clap::{ArgGroup, Args};
use nacre_wire::history::{Author, By, Choice, How, RedoRequest, UndoRequest};

use super::Context;
use crate::cli::Which;
use crate::failure::{Failure, Result};
use crate::history::asleep::at_door;
use crate::history::conflicts;
use crate::history::moment::parse_id;
use crate::history::outcome::Deed;

#[derive(Debug, Args)]
#[command(
    group = ArgGroup::new("selection").multiple(false),
    after_help = "\
A bare number is a count: `nacre undo 3` takes the last three changes back. Checkpoints are written
@17, as `nacre history` shows them; '#17' and --checkpoint 17 mean the same.

What others changed later stays. Where that is in the way, nothing is done and the names are shown:
a terminal asks about each, and without one the exit code is 3. `nacre redo` takes an undo back.

Examples:
  nacre undo                        the last change
  nacre undo --last-command         all that the newest command did
  nacre undo @17 @19                two checkpoints, and nothing in between
  nacre undo 3 --path src           of the last three changes, what is below src
  nacre undo --dry-run              what it would do"
)]
pub(crate) struct Undo {
    #[command(flatten)]
    which: Which,
    /// How many changes to take back, or which checkpoints [default: 1]
    #[arg(value_name = "N|@ID", group = "selection")]
    what: Vec<String>,
    /// A checkpoint to take back; may be given more than once
    #[arg(long, value_name = "ID", value_parser = parse_id, group = "selection")]
    checkpoint: Vec<u64>,
    /// All that the newest command did which changed something
    #[arg(long, group = "selection")]
    last_command: bool,
    /// All that the command with this id did
    #[arg(long, value_name = "ID", group = "selection")]
    command: Option<String>,
    /// All that was done for this conversation
    #[arg(long, value_name = "ID", group = "selection")]
    conversation: Option<String>,
    #[command(flatten)]
    manner: Manner,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Each redo takes back the last undo that was not taken back yet.

Examples:
  nacre redo
  nacre redo --dry-run")]
pub(crate) struct Redo {
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    manner: Manner,
}

/// How to go about it.
#[derive(Debug, Args)]
pub(crate) struct Manner {
    /// Only this file, or what is below this folder
    #[arg(long, value_name = "PATH")]
    path: Option<String>,
    #[command(flatten)]
    pub(crate) rest: Choices,
}

#[derive(Debug, Args)]
pub(crate) struct Choices {
    /// Tell what would be done, and do nothing
    #[arg(short = 'n', long)]
    pub(crate) dry_run: bool,
    /// Leave names alone that changed later
    #[arg(long, conflicts_with = "overwrite")]
    keep: bool,
    /// Replace names that changed later, too
    #[arg(long)]
    overwrite: bool,
    /// Do it only when this is still the newest checkpoint
    #[arg(long, value_name = "ID", value_parser = parse_id)]
    expected: Option<u64>,
}

impl Manner {
    pub(crate) fn how(&self) -> How {
        self.rest.how(self.path.as_deref())
    }
}

impl Choices {
    pub(crate) fn how(&self, path: Option<&str>) -> How {
        How {
            path: path.map(Into::into),
            dry_run: self.dry_run,
            expected: self.expected,
            on_conflict: match (self.keep, self.overwrite) {
                (true, _) => Choice::Keep,
                (false, true) => Choice::Overwrite,
                (false, false) => Choice::Ask,
            },
            ..How::default()
        }
    }
}

pub(crate) async fn run(command: Undo, context: &Context) -> Result<ExitCode> {
    let request = command.request()?;
    at_door(&command.which.sandbox, context, async |door| {
        let ask_for =
            async |how: &How| door.undo(&UndoRequest { how: how.clone(), ..request.clone() }).await;
        conflicts::settle(request.how.clone(), Deed::Undo, context, ask_for).await
    })
    .await
}

pub(crate) async fn run_redo(command: Redo, context: &Context) -> Result<ExitCode> {
    let how = command.manner.how();
    at_door(&command.which.sandbox, context, async |door| {
        let ask_for = async |how: &How| door.redo(&RedoRequest { how: how.clone() }).await;
        conflicts::settle(how, Deed::Redo, context, ask_for).await
    })
    .await
}

impl Undo {
    fn request(&self) -> Result<UndoRequest> {
        let how = self.manner.how();
        let request = UndoRequest { how, ..UndoRequest::default() };
        let by = |author| Some(By::Author { author });
        if self.last_command {
            return Ok(UndoRequest { by: Some(By::LastCommand), ..request });
        }
        if let Some(id) = self.command.clone() {
            let by = by(Author::Command { id, line: String::new() });
            return Ok(UndoRequest { by, ..request });
        }
        if let Some(id) = self.conversation.clone() {
            return Ok(UndoRequest { by: by(Author::Conversation { id, call: None }), ..request });
        }
        if !self.checkpoint.is_empty() {
            return Ok(UndoRequest { checkpoints: self.checkpoint.clone(), ..request });
        }
        match Selected::parse(&self.what)? {
            Selected::Last(count) => Ok(UndoRequest { last: Some(count), ..request }),
            Selected::Checkpoints(checkpoints) => Ok(UndoRequest { checkpoints, ..request }),
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Selected {
    Last(u64),
    Checkpoints(Vec<u64>),
}

impl Selected {
    fn parse(words: &[String]) -> Result<Self> {
        match words {
            [] => return Ok(Self::Last(1)),
            [word] if word.bytes().all(|b| b.is_ascii_digit()) => {
                return match word.parse() {
                    Ok(0) | Err(_) => Err(Failure::new(format!("cannot undo {word} changes"))),
                    Ok(count) => Ok(Self::Last(count)),
                };
            }
            _ => {}
        }
        let ids = words.iter().map(|word| match word.starts_with(['@', '#']) {
            true => parse_id(word).map_err(Failure::new),
            false => Err(Failure::new(format!("\"{word}\" is not a checkpoint"))
                .hint("checkpoints are written @17; one number alone is how many to undo")),
        });
        Ok(Self::Checkpoints(ids.collect::<Result<_>>()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_a_count_and_an_at_sign_makes_it_a_checkpoint() {
        let parse = |words: &[&str]| {
            Selected::parse(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(parse(&[]), Ok(Selected::Last(1)));
        assert_eq!(parse(&["3"]), Ok(Selected::Last(3)));
        assert_eq!(parse(&["@17"]), Ok(Selected::Checkpoints(vec![17])));
        assert_eq!(parse(&["#17", "@19"]), Ok(Selected::Checkpoints(vec![17, 19])));
        for bad in [&["0"][..], &["17", "19"], &["@x"], &["x"], &["@1", "2"]] {
            assert!(parse(bad).is_err(), "{bad:?}");
        }
    }
}
