//! What came of an undo, a redo or a restore.

use std::collections::BTreeSet;
use std::process::ExitCode;

use nacre_wire::WirePath;
use nacre_wire::history::{FileChange, Outcome};

use super::paint::Paint;
use super::words;
use crate::commands::Context;
use crate::failure::Result;
use crate::output;

/// Names that are shown; `nacre history show` has all of them.
const MOST: usize = 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Deed {
    Undo,
    Redo,
    Restore,
}

/// Prints an outcome without conflicts.
pub(crate) fn report(outcome: &Outcome, deed: Deed, context: &Context) -> Result<ExitCode> {
    if context.json {
        output::print_json(outcome)?;
    } else {
        output::print(&describe(outcome, deed, Paint::for_stdout()))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn describe(outcome: &Outcome, deed: Deed, paint: Paint) -> String {
    let touched = Touched::of(outcome);
    let remarks = words::remarks(&outcome.remarks);
    if touched.total == 0 {
        return format!("Nothing to do: the files are as they would be.\n{remarks}");
    }
    let done = match (&outcome.checkpoint, deed) {
        (None, _) => "Would change".to_owned(),
        (Some(_), Deed::Undo) => format!("Undone {}", words::ids(&outcome.of)),
        (Some(_), Deed::Redo) => "Redone".to_owned(),
        (Some(_), Deed::Restore) => "Restored".to_owned(),
    };
    let back = match (&outcome.checkpoint, deed) {
        (None, _) => "Nothing was touched.\n",
        (Some(_), Deed::Undo) => "To get it back: nacre redo\n",
        (Some(_), Deed::Redo | Deed::Restore) => "To take it back: nacre undo\n",
    };
    format!("{done}: {}\n{}{remarks}{back}", touched.counts(), touched.names(paint))
}

/// As a question needs it: how much, and the first names.
pub(crate) fn preview(outcome: &Outcome) -> String {
    let touched = Touched::of(outcome);
    // On standard error, so never in colour.
    format!("{}\n{}", touched.counts(), touched.names(Paint::off()))
}

/// What was changed: what was meant to be, less what had to be left alone.
struct Touched<'a> {
    changes: Vec<&'a FileChange>,
    /// A very long list has only its beginning in `changes`.
    total: u64,
}

impl<'a> Touched<'a> {
    fn of(outcome: &'a Outcome) -> Self {
        let left: BTreeSet<&WirePath> = outcome
            .remarks
            .iter()
            .filter(|remark| remark.what == "left_alone")
            .map(|remark| &remark.path)
            .collect();
        let all = &outcome.changes.changes;
        let changes: Vec<&FileChange> =
            all.iter().filter(|change| !left.contains(&change.path)).collect();
        let total = outcome.changes.total - (all.len() - changes.len()) as u64;
        Self { changes, total }
    }

    /// `3 added, 2 changed, 1 removed`.
    fn counts(&self) -> String {
        if (self.changes.len() as u64) < self.total {
            return format!("{} names", self.total);
        }
        let count = |wanted: fn(&FileChange) -> bool| {
            self.changes.iter().filter(|change| wanted(change)).count()
        };
        let (came, went) = (count(|one| one.old.is_none()), count(|one| one.new.is_none()));
        let changed = self.changes.len() - came - went;
        let parts = [(came, "added"), (changed, "changed"), (went, "removed")];
        let parts = parts.iter().filter(|(count, _)| *count > 0);
        parts.map(|(count, what)| format!("{count} {what}")).collect::<Vec<_>>().join(", ")
    }

    fn names(&self, paint: Paint) -> String {
        let shown = self.changes.iter().take(MOST);
        let mut text: String =
            shown.clone().map(|one| format!("  {}\n", words::change(one, paint))).collect();
        let more = self.total.saturating_sub(shown.len() as u64);
        if more > 0 {
            text.push_str(&format!("  and {more} more\n"));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nacre_wire::history::{Cause, Changes, CheckpointInfo, Remark, Version};

    fn version(kind: &str) -> Option<Version> {
        let (kind, mode) = (kind.to_owned(), 0o644);
        Some(Version { kind, size: 1, mode, uid: 0, gid: 0, mtime: 0, target: None, content: None })
    }

    fn outcome(changes: Vec<FileChange>, done: bool) -> Outcome {
        let checkpoint = CheckpointInfo {
            id: 9,
            time: 0,
            cause: Cause::Change,
            authors: vec![],
            label: None,
            added: 0,
            changed: 0,
            removed: 0,
            moved: vec![],
            remarks: vec![],
            undone: false,
        };
        let total = changes.len() as u64;
        Outcome {
            checkpoint: done.then_some(checkpoint),
            changes: Changes { checkpoint: None, changes, total },
            conflicts: vec![],
            remarks: vec![],
            of: vec![8],
        }
    }

    fn change(path: &str, old: Option<Version>, new: Option<Version>) -> FileChange {
        FileChange { path: path.into(), from: None, old, new, diff: None, omitted: None }
    }

    #[test]
    fn it_is_told_what_was_done_and_how_to_get_back() {
        let mut changes = vec![
            change("site", None, version("directory")),
            change("a\x1b[2J", version("file"), version("file")),
            change("new", version("file"), None),
        ];
        let mut undone = outcome(changes.clone(), true);
        undone.changes.changes.push(change("socket", None, version("special")));
        undone.changes.total += 1;
        undone.remarks = vec![Remark {
            path: "socket".into(),
            what: "left_alone".into(),
            message: "a socket".into(),
        }];
        let mut all = describe(&undone, Deed::Undo, Paint::off());
        all.push_str("--\n");
        changes.extend((0..20).map(|n| change(&format!("f{n}"), None, version("file"))));
        all.push_str(&describe(&outcome(changes, false), Deed::Restore, Paint::off()));
        all.push_str("--\n");
        all.push_str(&describe(&outcome(vec![], false), Deed::Redo, Paint::off()));
        insta::assert_snapshot!(all);
    }
}
