//! `nacre diff`: what changed between two moments.

use std::process::ExitCode;

use clap::Args;
use nacre_wire::WirePath;
use nacre_wire::client::{Client, ListHistory};
use nacre_wire::history::{Changes, FileChange};

use super::Context;
use crate::cli::Which;
use crate::failure::{Failure, Result};
use crate::history::asleep::at_door;
use crate::history::moment::{self, Moment};
use crate::history::paint::Paint;
use crate::history::words;
use crate::output::{self, one_line};

#[derive(Debug, Args)]
#[command(
    override_usage = "nacre diff [OPTIONS] [FROM [TO]] [PATH]",
    after_help = "\
Without arguments: what the newest checkpoint changed. With FROM: from there to the present. With
FROM and TO: between them. A last argument that is no moment is a path; write ./17 for a file that
is named like one. Moments are checkpoints such as @17, or times as for `nacre restore`.

Examples:
  nacre diff                          the last change
  nacre diff @12                      from checkpoint 12 to now
  nacre diff \"1 hour ago\" src         of the last hour, what is below src
  nacre diff @12 @17 --stat"
)]
pub(crate) struct Diff {
    #[command(flatten)]
    which: Which,
    /// Only the names and what happened to them
    #[arg(long)]
    stat: bool,
    /// Up to two moments, and a path
    #[arg(value_name = "MOMENT|PATH", num_args = 0..=3)]
    what: Vec<String>,
}

pub(crate) async fn run(command: Diff, context: &Context) -> Result<ExitCode> {
    let wanted = Wanted::parse(&command.what)?;
    let changes =
        at_door(&command.which.sandbox, context, async |door| wanted.fetch(door).await).await?;
    if context.json {
        output::print_json(&changes)?;
    } else {
        output::print(&describe(&changes, command.stat, Paint::for_stdout()))?;
    }
    Ok(ExitCode::SUCCESS)
}

#[derive(Debug, PartialEq, Eq)]
struct Wanted {
    from: Option<Moment>,
    to: Option<Moment>,
    path: Option<WirePath>,
}

impl Wanted {
    fn parse(words: &[String]) -> Result<Self> {
        let moments = words.iter().map_while(|word| moment::parse(word).ok()).take(2);
        let moments: Vec<Moment> = moments.collect();
        let path = match &words[moments.len()..] {
            [] => None,
            [path] => Some(WirePath::from(path)),
            [word, ..] => {
                let why = moment::parse(word).err();
                let why = why.unwrap_or_else(|| format!("\"{word}\" is one moment too many"));
                return Err(Failure::new(why).hint("nacre diff [FROM [TO]] [PATH]"));
            }
        };
        Ok(Self { from: moments.first().copied(), to: moments.get(1).copied(), path })
    }

    async fn fetch(&self, door: &Client) -> Result<Changes> {
        let path = self.path.as_ref();
        let Some(from) = self.from else {
            let newest = ListHistory { limit: Some(1), ..ListHistory::default() };
            let page = door.history(&newest).await?;
            return match page.checkpoints.first() {
                Some(newest) => Ok(door.checkpoint(newest.id, path, true).await?),
                None => Ok(Changes { checkpoint: None, changes: Vec::new(), total: 0 }),
            };
        };
        let from = moment::checkpoint(from, door).await?;
        let to = match self.to {
            Some(to) => Some(moment::checkpoint(to, door).await?),
            None => None,
        };
        Ok(door.history_diff(from, to, path).await?)
    }
}

/// Also for `nacre history show --diff`.
pub(crate) fn describe(changes: &Changes, stat: bool, paint: Paint) -> String {
    let mut text = String::new();
    for change in &changes.changes {
        let lines = change.diff.as_ref().is_some_and(|diff| !diff.is_empty());
        if let (false, true, Some(mode)) = (stat, lines, mode(change)) {
            text.push_str(&format!("{}\n", paint.bold(&mode)));
        }
        match &change.diff {
            // As it is, for `patch`.
            Some(diff) if !stat && lines && !paint.is_terminal() => text.push_str(diff),
            Some(diff) if !stat && lines => {
                diff.lines().for_each(|line| text.push_str(&line_of(line, paint)));
            }
            _ if stat => text.push_str(&format!("{}\n", words::change(change, paint))),
            _ => text.push_str(&format!("{}\n", paint.bold(&without_lines(change)))),
        }
    }
    let left = changes.total.saturating_sub(changes.changes.len() as u64);
    if left > 0 {
        text.push_str(&format!("and {left} more names\n"));
    }
    text
}

/// Of what has no lines to show. It does not begin as a line of a difference does.
fn without_lines(change: &FileChange) -> String {
    let path = one_line(&change.path.to_string());
    let mut text = match (&change.old, &change.new) {
        (None, Some(new)) => format!("new {} {path}", new.kind),
        (Some(old), None) => format!("removed {} {path}", old.kind),
        (Some(old), Some(new)) if old.kind != new.kind => {
            format!("{} {path} is now a {}", old.kind, new.kind)
        }
        (Some(_), Some(_)) => mode(change).unwrap_or_else(|| format!("changed {path}")),
        (None, None) => path,
    };
    match change.omitted.as_deref() {
        Some("binary") => text.push_str(" (binary)"),
        Some("too_large") => text.push_str(" (too large to compare)"),
        _ => {}
    }
    text
}

fn mode(change: &FileChange) -> Option<String> {
    let (old, new) = (change.old.as_ref()?, change.new.as_ref()?);
    let path = one_line(&change.path.to_string());
    (old.mode != new.mode).then(|| format!("mode {:o} -> {:o} of {path}", old.mode, new.mode))
}

/// What a file in a sandbox holds cannot steer the terminal.
fn line_of(line: &str, paint: Paint) -> String {
    let safe = line.split('\t').map(one_line).collect::<Vec<_>>().join("\t");
    let painted = match line.as_bytes() {
        [b'+', b'+', b'+', b' ', ..] | [b'-', b'-', b'-', b' ', ..] => paint.bold(&safe),
        [b'@', b'@', ..] => paint.place(&safe),
        [b'+', ..] => paint.added(&safe),
        [b'-', ..] => paint.removed(&safe),
        _ => safe,
    };
    format!("{painted}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_come_first_and_a_path_last() {
        let parse = |words: &[&str]| {
            Wanted::parse(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
        };
        let wanted = |from: Option<u64>, to: Option<u64>, path: Option<&str>| {
            let (from, to) = (from.map(Moment::Checkpoint), to.map(Moment::Checkpoint));
            Ok(Wanted { from, to, path: path.map(WirePath::from) })
        };
        assert_eq!(parse(&[]), wanted(None, None, None));
        assert_eq!(parse(&["@1"]), wanted(Some(1), None, None));
        assert_eq!(parse(&["src"]), wanted(None, None, Some("src")));
        assert_eq!(parse(&["@1", "src"]), wanted(Some(1), None, Some("src")));
        assert_eq!(parse(&["1", "@2", "./3"]), wanted(Some(1), Some(2), Some("./3")));
        assert_eq!(parse(&["1", "2", "3"]), wanted(Some(1), Some(2), Some("3")));
        assert!(parse(&["src", "@1"]).is_err());
    }

    #[test]
    fn a_file_cannot_write_on_the_terminal() {
        assert_eq!(line_of("+a\t\x1b[2J", Paint::off()), "+a\t\\u{1b}[2J\n");
    }
}
