//! What came of a run, in words.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use nacre_wire::runs::{RunChange, RunChangeKind, RunChanges, RunEnd, RunInfo};

use crate::output;

/// Names that are shown; all of them are in the patch.
const MOST: usize = 20;

/// `written` is where the files went.
pub(crate) fn describe(run: &RunInfo, written: Option<&Path>) -> String {
    let mut text = String::new();
    let how = run.outcome.as_ref().map_or(RunEnd::Failed, |outcome| outcome.how);
    let head = match how {
        RunEnd::Done => "Done".to_owned(),
        other => format!("Not done: {}", other.words()),
    };
    let _ = writeln!(text, "{head}, after {}; {}.", elapsed(run), used(run));
    if let Some(outcome) = &run.outcome {
        if let Some(message) = &outcome.message {
            let _ = writeln!(text, "error: {}", output::one_line(message));
        }
        if let Some(hint) = &outcome.hint {
            let _ = writeln!(text, "hint: {}", output::one_line(hint));
        }
    }
    if let Some(found) = &run.changes {
        text.push_str(&changes(found));
        if found.added + found.changed + found.removed > 0 {
            text.push_str(&where_to(&run.id, found, written));
        }
    }
    if let Some(sandbox) = &run.sandbox {
        let _ = writeln!(text, "Its sandbox stays: nacre shell -s {sandbox}");
    }
    text
}

fn where_to(id: &str, found: &RunChanges, written: Option<&Path>) -> String {
    match written {
        Some(folder) if found.removed > 0 => {
            format!("Written to {}; what was removed is left there.\n", folder.display())
        }
        Some(folder) => format!("Written to {}.\n", folder.display()),
        None => {
            format!("Get them: nacre runs get {id} DIR, or nacre runs patch {id} | patch -p1\n")
        }
    }
}

fn elapsed(run: &RunInfo) -> String {
    let since = run.started_at.unwrap_or(run.created_at);
    let ms = run.ended_at.unwrap_or(since).saturating_sub(since);
    match ms {
        0..10_000 => format!("{:.1} s", Duration::from_millis(ms).as_secs_f64()),
        _ => output::duration(Duration::from_millis(ms)),
    }
}

pub(crate) fn used(run: &RunInfo) -> String {
    let used = &run.used;
    let mut parts = Vec::new();
    let mut count = |number: u64, one: &str, many: &str| {
        if number > 0 {
            parts.push(format!("{number} {}", if number == 1 { one } else { many }));
        }
    };
    count(used.steps, "step", "steps");
    count(used.tool_calls, "tool call", "tool calls");
    count(used.tokens, "token", "tokens");
    parts.push(format!("${:.4}", used.dollars));
    parts.join(", ")
}

/// What it did to the files.
pub(crate) fn changes(found: &RunChanges) -> String {
    let mut text = String::new();
    if found.added + found.changed + found.removed == 0 {
        text.push_str("It changed no files.\n");
    } else {
        let _ = writeln!(
            text,
            "Files: {} added, {} changed, {} removed.",
            found.added, found.changed, found.removed
        );
    }
    for change in found.paths.iter().take(MOST) {
        let _ = writeln!(text, "  {}", line(change));
    }
    let more = found.added + found.changed + found.removed;
    let more = more.saturating_sub(found.paths.len().min(MOST) as u64);
    if more > 0 {
        let _ = writeln!(text, "  and {more} more");
    }
    if let Some(why) = &found.incomplete {
        let _ = writeln!(text, "That may not be all: {}", output::one_line(why));
    }
    text
}

fn line(change: &RunChange) -> String {
    let mark = match change.change {
        RunChangeKind::Added => 'A',
        RunChangeKind::Changed => 'M',
        RunChangeKind::Removed => 'D',
    };
    let mut line = format!("{mark} {}", output::one_line(&change.path.to_string()));
    if change.lines_added > 0 {
        let _ = write!(line, " +{}", change.lines_added);
    }
    if change.lines_removed > 0 {
        let _ = write!(line, " -{}", change.lines_removed);
    }
    if let Some(why) = &change.left_out {
        let _ = write!(line, " (left out: {})", output::one_line(why));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use nacre_wire::runs::{RunLimits, RunOutcome, RunState, RunUsage};

    fn run(how: RunEnd, message: Option<&str>) -> RunInfo {
        RunInfo {
            id: "run-1".to_owned(),
            state: RunState::Ended,
            title: "build it".to_owned(),
            agent: "nacre".to_owned(),
            model: Some("openai/gpt-4o".to_owned()),
            limits: RunLimits::default(),
            detached: false,
            created_at: 1000,
            started_at: Some(2000),
            ended_at: Some(4500),
            used: RunUsage { steps: 3, tool_calls: 1, tokens: 120, dollars: 0.0123 },
            outcome: Some(RunOutcome::new(how, message.map(str::to_owned))),
            changes: Some(RunChanges {
                added: 1,
                changed: 1,
                removed: 1,
                bytes: 10,
                paths: vec![
                    RunChange {
                        path: "a.txt".into(),
                        change: RunChangeKind::Added,
                        lines_added: 2,
                        lines_removed: 0,
                        left_out: None,
                    },
                    RunChange {
                        path: "b".into(),
                        change: RunChangeKind::Changed,
                        lines_added: 1,
                        lines_removed: 1,
                        left_out: Some("too large".to_owned()),
                    },
                    RunChange {
                        path: "c".into(),
                        change: RunChangeKind::Removed,
                        lines_added: 0,
                        lines_removed: 4,
                        left_out: None,
                    },
                ],
                incomplete: None,
            }),
            sandbox: None,
        }
    }

    #[test]
    fn runs_for_people() {
        let done = describe(&run(RunEnd::Done, None), None);
        let out = describe(&run(RunEnd::Done, None), Some(Path::new("out")));
        let budget = describe(&run(RunEnd::Budget, Some("$0.50 is used up")), None);
        insta::assert_snapshot!(format!("{done}---\n{out}---\n{budget}"));
    }
}
