//! Events as text. Pure: what it says depends on what it was told, not on a terminal.

use std::fmt::Write;

use nacre_agent::events::{
    Content, Ended, Event, PlanEntry, PlanStatus, ToolContent, ToolStatus, Update,
};
use nacre_agent::model::Usage;
use similar::TextDiff;

use crate::history::paint::Paint;
use crate::output::one_line;

/// Lines of a diff that are shown.
const MOST_LINES: usize = 80;

/// What is on the screen, as far as the next line depends on it.
pub(crate) struct Screen {
    paint: Paint,
    /// What the owner said is shown when others look at it later, not while they type.
    with_owner: bool,
    kind: Kind,
    at_line_start: bool,
    used: Usage,
    steps: u64,
    dollars: Option<f64>,
}

/// What was written last: two of the same kind go on, others begin a new paragraph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Nothing,
    Words,
    Thought,
    Output,
    Line,
}

impl Screen {
    pub(crate) fn new(paint: Paint, with_owner: bool) -> Self {
        Self {
            paint,
            with_owner,
            kind: Kind::Nothing,
            at_line_start: true,
            used: Usage::default(),
            steps: 0,
            dollars: None,
        }
    }

    pub(crate) fn event(&mut self, event: &Event) -> String {
        match &event.update {
            Update::UserMessageChunk { content: Content::Text { text } } if self.with_owner => {
                self.paragraph(&format!("> {}", safe(text).replace('\n', "\n> ")), Paint::bold)
            }
            Update::UserMessageChunk { .. } => String::new(),
            Update::AgentMessageChunk { content: Content::Text { text } } => {
                self.flow(Kind::Words, &safe(text))
            }
            Update::AgentThoughtChunk { content: Content::Text { text } } => {
                let text = self.paint.faint(&safe(text));
                self.flow(Kind::Thought, &text)
            }
            Update::ToolCall { title, .. } => {
                self.paragraph(&format!("* {}", one_line(title)), Paint::bold)
            }
            Update::ToolCallUpdate { status: ToolStatus::InProgress, content, .. } => {
                content.iter().map(|content| self.output(content)).collect()
            }
            Update::ToolCallUpdate { content, raw_output, .. } => {
                let shown: String = content.iter().map(|content| self.output(content)).collect();
                let last = raw_output.as_ref().filter(|outcome| outcome.failed);
                let last = last.and_then(|outcome| outcome.text.lines().last()).unwrap_or_default();
                shown + &self.line(last, Paint::removed)
            }
            Update::Plan { entries } => self.plan(entries),
            Update::UsageUpdate { used } => {
                self.used = *used;
                String::new()
            }
            Update::CostUpdate { dollars } => {
                self.dollars = Some(*dollars);
                String::new()
            }
            Update::PermissionRequest { title, .. } => {
                self.line(&format!("? {}", one_line(title)), Paint::changed)
            }
            Update::PermissionOutcome { allowed, .. } => {
                self.line(if *allowed { "allowed" } else { "denied" }, Paint::faint)
            }
            Update::Checkpoints { checkpoints, .. } => {
                let numbers: Vec<String> = checkpoints.iter().map(|id| format!("@{id}")).collect();
                self.line(&format!("recorded as {}", numbers.join(" ")), Paint::faint)
            }
            Update::Undone { paths, .. } => {
                let paths = one_line(&paths.join(", "));
                self.paragraph(&format!("(taken back: {paths})"), Paint::changed)
            }
            Update::Notice { message } => self.line(&one_line(message), Paint::changed),
            Update::Moved { role, .. } => {
                let text = format!("(the roles were swapped: it acts on {} now)", one_line(role));
                self.paragraph(&text, Paint::changed)
            }
            Update::Compacted { before, after, .. } => {
                let text = format!("made shorter: from about {before} tokens to {after}");
                self.line(&text, Paint::faint)
            }
            Update::Retry { reason } => {
                self.line(&format!("asking again: {}", one_line(reason)), Paint::changed)
            }
            Update::Reply { .. } => {
                self.steps += 1;
                String::new()
            }
            Update::TurnBegins { .. } => {
                self.steps = 0;
                String::new()
            }
            Update::Ended { how } => self.ended(how),
        }
    }

    fn ended(&mut self, how: &Ended) -> String {
        let why = match how {
            Ended::Done => String::new(),
            Ended::MaxSteps => "it took as many steps as it may in one turn".to_owned(),
            Ended::TimeOut => "its time was up".to_owned(),
            Ended::Budget(why) => format!("the budget is used up: {why}"),
            Ended::Model(why) => format!("the model failed: {why}"),
            Ended::Invalid(why) => format!("it called what cannot be called: {why}"),
            Ended::Cancelled => "stopped".to_owned(),
            Ended::Interrupted => "interrupted: the gateway ended meanwhile".to_owned(),
        };
        let mut text = match why.is_empty() {
            true => self.fresh_line(),
            false => self.paragraph(&format!("({})", one_line(&why)), Paint::removed),
        };
        let steps = if self.steps == 1 { "step" } else { "steps" };
        let Usage { input, output, .. } = self.used;
        let mut meter = format!("-- {} {steps}, {input} tokens in, {output} out", self.steps);
        if let Some(dollars) = self.dollars {
            // Writing to a string does not fail.
            let _ = write!(meter, ", ${dollars:.4}");
        }
        text.push_str(&self.paint.faint(&meter));
        text.push('\n');
        self.kind = Kind::Nothing;
        self.at_line_start = true;
        text
    }

    fn output(&mut self, content: &ToolContent) -> String {
        match content {
            ToolContent::Content { content: Content::Text { text } } => {
                let text = self.paint.faint(&safe(text));
                self.flow(Kind::Output, &text)
            }
            ToolContent::Diff { path, old_text, new_text } => {
                let shown = diff(path, old_text.as_deref(), new_text, self.paint);
                let text = format!("{}{shown}", self.fresh_line());
                self.kind = Kind::Line;
                text
            }
        }
    }

    fn plan(&mut self, entries: &[PlanEntry]) -> String {
        let mut text = self.fresh_line();
        for entry in entries {
            let mark = match entry.status {
                PlanStatus::Pending => ' ',
                PlanStatus::InProgress => '>',
                PlanStatus::Completed => 'x',
            };
            let _ = writeln!(text, "  [{mark}] {}", one_line(&entry.content));
        }
        self.kind = Kind::Line;
        text
    }

    /// More of the same, where it left off.
    fn flow(&mut self, kind: Kind, text: &str) -> String {
        if text.is_empty() {
            return String::new();
        }
        let begin = if self.kind == kind { String::new() } else { self.fresh_line() };
        self.kind = kind;
        self.at_line_start = text.trim_end_matches("\x1b[0m").ends_with('\n');
        begin + text
    }

    fn paragraph(&mut self, text: &str, paint: fn(Paint, &str) -> String) -> String {
        let gap = if self.kind == Kind::Nothing { "" } else { "\n" };
        let text = format!("{}{gap}{}\n", self.fresh_line(), paint(self.paint, text));
        self.kind = Kind::Line;
        text
    }

    fn line(&mut self, text: &str, paint: fn(Paint, &str) -> String) -> String {
        if text.is_empty() {
            return String::new();
        }
        let text = format!("{}  {}\n", self.fresh_line(), paint(self.paint, &one_line(text)));
        self.kind = Kind::Line;
        text
    }

    fn fresh_line(&mut self) -> String {
        let end = if self.at_line_start { "" } else { "\n" };
        self.at_line_start = true;
        end.to_owned()
    }
}

fn diff(path: &str, old: Option<&str>, new: &str, paint: Paint) -> String {
    let path = one_line(path);
    let diff = TextDiff::from_lines(old.unwrap_or_default(), new);
    let before = if old.is_some() { path.as_str() } else { "/dev/null" };
    let unified = diff.unified_diff().context_radius(3).header(before, &path).to_string();
    let mut text = String::new();
    let mut left = 0usize;
    for (number, line) in unified.lines().enumerate() {
        if number >= MOST_LINES {
            left += 1;
            continue;
        }
        let line = safe(line);
        let painted = match line.chars().next() {
            Some('+') => paint.added(&line),
            Some('-') => paint.removed(&line),
            Some('@') => paint.place(&line),
            _ => line,
        };
        let _ = writeln!(text, "  {painted}");
    }
    if left > 0 {
        let _ = writeln!(text, "  ({left} lines more)");
    }
    text
}

/// What comes from a model or a sandbox cannot move the cursor; lines and tabs are left.
fn safe(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\t' => safe.push(c),
            '\r' => {}
            c if c.is_control() => safe.extend(c.escape_default()),
            c => safe.push(c),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;
    use nacre_agent::events::ToolKind;
    use nacre_agent::model::{Outcome, Reply};
    use serde_json::json;

    fn shown(updates: Vec<Update>) -> String {
        let mut screen = Screen::new(Paint::off(), true);
        let events = (1..).zip(updates).map(|(seq, update)| Event { seq, at: 0, update });
        events.map(|event| screen.event(&event)).collect()
    }

    fn says(text: &str) -> Update {
        Update::AgentMessageChunk { content: Content::text(text) }
    }

    fn call(title: &str) -> Update {
        Update::ToolCall {
            tool_call_id: "1".to_owned(),
            title: title.to_owned(),
            kind: ToolKind::Execute,
            status: ToolStatus::Pending,
            raw_input: json!({}),
            locations: Vec::new(),
        }
    }

    fn output(status: ToolStatus, content: ToolContent, failed: Option<&str>) -> Update {
        let outcome = |text: &str| Outcome {
            call: "1".to_owned(),
            name: "f".to_owned(),
            text: text.to_owned(),
            failed: true,
        };
        Update::ToolCallUpdate {
            tool_call_id: "1".to_owned(),
            status,
            content: vec![content],
            raw_output: failed.map(outcome),
        }
    }

    #[test]
    fn a_turn_reads_from_top_to_bottom() {
        let text = |text: &str| ToolContent::Content { content: Content::text(text) };
        let diff = ToolContent::Diff {
            path: "a.py".to_owned(),
            old_text: Some("x = 1 \ny\n".to_owned()),
            new_text: "x = 1\ny\n".to_owned(),
        };
        let todo = |content: &str, status| PlanEntry {
            content: content.to_owned(),
            status,
            priority: Default::default(),
        };
        let text = shown(vec![
            Update::UserMessageChunk { content: Content::text("fix\nit") },
            says("I run "),
            says("it."),
            call("./lint"),
            output(ToolStatus::InProgress, text("a.py:1: bad\n"), None),
            output(ToolStatus::Failed, text(""), Some("a.py:1: bad\n[exit code 1]")),
            Update::Plan {
                entries: vec![
                    todo("look", PlanStatus::Completed),
                    todo("fix", PlanStatus::InProgress),
                ],
            },
            call("edit a.py"),
            output(ToolStatus::Completed, diff, None),
            Update::Checkpoints {
                tool_call_id: "1".to_owned(),
                sandbox: "s".to_owned(),
                checkpoints: vec![3, 4],
            },
            Update::Reply { reply: Reply::default() },
            says("Done."),
            Update::UsageUpdate { used: Usage { input: 20, cached: 0, output: 7 } },
            Update::CostUpdate { dollars: 0.00123 },
            Update::Ended { how: Ended::MaxSteps },
        ]);
        insta::assert_snapshot!(text);
    }

    #[test]
    fn nothing_that_is_shown_moves_the_cursor() {
        let text = shown(vec![says("a\x1b[2Jb\r\nc\x07"), call("x\x1b]0;t\x07\n")]);
        assert!(!text.contains(['\x1b', '\r', '\x07']), "{text:?}");
    }

    #[test]
    fn a_long_diff_is_cut() {
        let new: String = (0..500).map(|n| format!("{n}\n")).collect();
        let text = diff("a", None, &new, Paint::off());
        assert_eq!(text.lines().count(), MOST_LINES + 1);
        assert!(text.ends_with("(423 lines more)\n"), "{text}");
    }
}
