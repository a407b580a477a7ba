//! Checkpoints and changes in words.

use nacre_wire::history::{Author, Cause, CheckpointInfo, FileChange, Remark};

use super::moment;
use super::paint::Paint;
use crate::output::{self, one_line};

/// Letters of a command line in a listing.
const SHORT: usize = 40;

pub(crate) fn id(id: u64) -> String {
    format!("@{id}")
}

pub(crate) fn ids(ids: &[u64]) -> String {
    let mut text: Vec<String> = ids.iter().take(5).map(|number| id(*number)).collect();
    if ids.len() > text.len() {
        text.push(format!("{} more", ids.len() - text.len()));
    }
    text.join(", ")
}

pub(crate) fn ago(ms: i64) -> String {
    format!("{} ago", output::ago(u64::try_from(ms).unwrap_or(0)))
}

/// `2 min ago (2026-11-16 14:32:10)`.
pub(crate) fn when(ms: i64) -> String {
    format!("{} ({})", ago(ms), moment::on_paper(ms))
}

/// Who was at work, or which of our own deeds it was.
pub(crate) fn who(checkpoint: &CheckpointInfo) -> String {
    let deed = match &checkpoint.cause {
        Cause::First => Some("the beginning".to_owned()),
        Cause::Change => None,
        Cause::Undo { of, .. } => Some(format!("undo of {}", ids(of))),
        Cause::Redo { of } => Some(format!("redo of {}", id(*of))),
        Cause::Restore { to } => Some(format!("restore to {}", id(*to))),
    };
    let authors = checkpoint.authors.iter().map(author);
    let who: Vec<String> = deed.into_iter().chain(authors).collect();
    if who.is_empty() { "unknown".to_owned() } else { who.join(", ") }
}

pub(crate) fn author(author: &Author) -> String {
    match author {
        Author::Api { call } => format!("api: {}", one_line(call)),
        Author::Command { line, .. } => one_line(line),
        Author::Conversation { id, .. } => format!("conversation {}", one_line(id)),
        Author::Ssh { session } => format!("ssh {}", one_line(session)),
    }
}

pub(crate) fn short(text: &str) -> String {
    if text.chars().count() <= SHORT {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(SHORT - 1).collect();
    short.push('…');
    short
}

/// `+1 ~2 -3, a -> b`.
pub(crate) fn what(checkpoint: &CheckpointInfo) -> String {
    let mut parts = Vec::new();
    let counts = [("+", checkpoint.added), ("~", checkpoint.changed), ("-", checkpoint.removed)];
    let counts: Vec<String> = counts
        .iter()
        .filter(|(_, count)| *count > 0)
        .map(|(sign, count)| format!("{sign}{count}"))
        .collect();
    if !counts.is_empty() {
        parts.push(counts.join(" "));
    }
    if let [first, rest @ ..] = &checkpoint.moved[..] {
        let (from, to) = (one_line(&first.from.to_string()), one_line(&first.to.to_string()));
        parts.push(format!("{from} -> {to}"));
        if !rest.is_empty() {
            parts.push(format!("{} more moved", rest.len()));
        }
    }
    parts.join(", ")
}

/// What only some checkpoints have: a label, remarks, having been undone.
pub(crate) fn marks(checkpoint: &CheckpointInfo) -> String {
    let mut marks = Vec::new();
    if let Some(label) = &checkpoint.label {
        marks.push(format!("\"{}\"", one_line(label)));
    }
    if checkpoint.undone {
        marks.push("undone".to_owned());
    }
    match checkpoint.remarks.len() {
        0 => {}
        1 => marks.push("1 remark".to_owned()),
        count => marks.push(format!("{count} remarks")),
    }
    marks.join(", ")
}

pub(crate) fn table(checkpoints: &[CheckpointInfo], paint: Paint) -> String {
    let rows: Vec<Vec<String>> = checkpoints
        .iter()
        .map(|checkpoint| {
            vec![
                id(checkpoint.id),
                ago(checkpoint.time),
                moment::on_paper(checkpoint.time),
                short(&who(checkpoint)),
                what(checkpoint),
                marks(checkpoint),
            ]
        })
        .collect();
    let table = output::table(&["ID", "WHEN", "TIME", "WHO", "WHAT", ""], &rows);
    let mut text = String::new();
    for (number, line) in table.lines().enumerate() {
        let undone = number.checked_sub(1).and_then(|row| checkpoints.get(row));
        let shown = match (undone, line.split_once(' ')) {
            (None, _) => paint.bold(line),
            (Some(checkpoint), _) if checkpoint.undone => paint.faint(line),
            (Some(_), Some((id, rest))) => format!("{} {rest}", paint.changed(id)),
            (Some(_), None) => line.to_owned(),
        };
        text.push_str(&shown);
        text.push('\n');
    }
    text
}

/// `+ a`, `~ b`, `- c`, `a -> b`, with what changed about it where that is not its content.
pub(crate) fn change(change: &FileChange, paint: Paint) -> String {
    let path = one_line(&change.path.to_string());
    let slash = |kind: &str| if kind == "directory" { "/" } else { "" };
    let from = change.from.as_ref().map(|from| format!("{} -> ", one_line(&from.to_string())));
    let from = from.unwrap_or_default();
    match (&change.old, &change.new) {
        (None, Some(new)) => paint.added(&format!("+ {from}{path}{}", slash(&new.kind))),
        (Some(old), None) => paint.removed(&format!("- {path}{}", slash(&old.kind))),
        (Some(old), Some(new)) => {
            let about = if old.kind != new.kind {
                format!("  {} -> {}", old.kind, new.kind)
            } else if old.mode != new.mode {
                format!("  mode {:o} -> {:o}", old.mode, new.mode)
            } else if (old.uid, old.gid) != (new.uid, new.gid) {
                format!("  owner {}:{} -> {}:{}", old.uid, old.gid, new.uid, new.gid)
            } else {
                String::new()
            };
            paint.changed(&format!("~ {path}{}{about}", slash(&new.kind)))
        }
        (None, None) => format!("  {path}"),
    }
}

pub(crate) fn remarks(remarks: &[Remark]) -> String {
    remarks
        .iter()
        .map(|remark| {
            let path = one_line(&remark.path.to_string());
            format!("  ! {path}: {}\n", one_line(&remark.message))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use nacre_wire::history::Moved;

    fn checkpoint(cause: Cause, authors: Vec<Author>) -> CheckpointInfo {
        CheckpointInfo {
            id: 17,
            time: 0,
            cause,
            authors,
            label: None,
            added: 0,
            changed: 0,
            removed: 0,
            moved: Vec::new(),
            remarks: Vec::new(),
            undone: false,
        }
    }

    fn undo(of: &[u64]) -> Cause {
        serde_json::from_value(serde_json::json!({ "kind": "undo", "of": of })).unwrap()
    }

    #[test]
    fn who_is_a_person_or_a_deed() {
        let command = Author::Command { id: "c1".into(), line: "rm -rf\n*".into() };
        let cases = [
            (Cause::Change, vec![], "unknown"),
            (Cause::Change, vec![command.clone()], "rm -rf\\n*"),
            (
                Cause::Change,
                vec![Author::Api { call: "write a".into() }, command],
                "api: write a, rm -rf\\n*",
            ),
            (Cause::First, vec![], "the beginning"),
            (undo(&[3, 4]), vec![], "undo of @3, @4"),
            (undo(&[1, 2, 3, 4, 5, 6, 7]), vec![], "undo of @1, @2, @3, @4, @5, 2 more"),
            (Cause::Redo { of: 5 }, vec![], "redo of @5"),
            (Cause::Restore { to: 2 }, vec![], "restore to @2"),
        ];
        for (cause, authors, expected) in cases {
            assert_eq!(who(&checkpoint(cause, authors)), expected);
        }
        assert_eq!(short(&"x".repeat(50)), format!("{}…", "x".repeat(39)));
    }

    #[test]
    fn what_is_counts_and_moves() {
        let mut it = checkpoint(Cause::Change, vec![]);
        assert_eq!(what(&it), "");
        (it.added, it.removed) = (1, 12);
        assert_eq!(what(&it), "+1 -12");
        it.moved = vec![Moved { from: "a".into(), to: "b".into() }; 3];
        assert_eq!(what(&it), "+1 -12, a -> b, 2 more moved");
        (it.label, it.undone) = (Some("good".into()), true);
        assert_eq!(marks(&it), "\"good\", undone");
    }
}
