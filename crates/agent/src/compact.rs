//! When a conversation fills its model's window, and what gives way then.
//!
//! Pure: it looks at messages and says what to do; the loop does it. Old results of tools go first,
//! each to a file that a line in its place names. When that is not enough, the oldest messages become
//! one summary. The end of the conversation stays as it is, a call is never parted from its result, and
//! the owner's last words and the plan stay word for word.

use std::fmt::Write as _;

use serde_json::Value;

use crate::events::{PlanEntry, PlanStatus};
use crate::model::{Message, Reply, Tool};
use crate::session::{Session, is_note};

/// Bytes for a token. Prose has more, code and other scripts have about as many: an estimate that is
/// too high costs a little memory, one that is too low a refusal.
const BYTES: u64 = 3;
/// What a message costs beside its text.
const FRAME: u64 = 8;
/// Results that are smaller are not worth a file.
const SMALL: usize = 1024;
/// Of each result, what the transcript for a summary shows.
const SHOWN: usize = 2000;

/// What is to give way, by the places of messages.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Choice {
    /// Message and result, in order.
    pub put_aside: Vec<(usize, usize)>,
    /// So many of the first messages become a summary.
    pub summarise: usize,
}

/// How full a window is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fill {
    /// Tokens, by the model's last word and an estimate of what came after it. Some services count
    /// only a part, so it is never taken for less than half of the estimate.
    pub used: u64,
    /// All of it, estimated.
    pub estimated: u64,
}

impl Fill {
    pub fn of(session: &Session, system: &str, tools: &[Tool]) -> Self {
        let said = |messages: &[Message]| messages.iter().map(tokens).sum::<u64>();
        let estimated = fixed(system, tools) + said(&session.messages);
        let used = match session.measured {
            Some(measured) => {
                let after = session.messages.get(measured.messages..).unwrap_or_default();
                (measured.tokens + said(after)).max(estimated / 2)
            }
            None => estimated,
        };
        Self { used, estimated }
    }

    /// A quarter is left for the answer and for what is told about it.
    pub fn is_full(self, window: u64) -> bool {
        self.used > window / 4 * 3
    }

    /// The window in estimated tokens, which are not quite the model's. A model that has refused has a
    /// smaller one than it was said to have.
    pub fn window(self, said: u64, refused: bool) -> u64 {
        let real = if refused { said.min(self.used) } else { said };
        real.saturating_mul(self.estimated.max(1)) / self.used.max(1)
    }
}

fn fixed(system: &str, tools: &[Tool]) -> u64 {
    let tools: usize = tools
        .iter()
        .map(|tool| tool.name.len() + tool.description.len() + length(&tool.schema))
        .sum();
    (system.len() + tools) as u64 / BYTES
}

/// What one message takes, estimated.
pub fn tokens(message: &Message) -> u64 {
    let bytes = match message {
        Message::User { text } | Message::Summary { text } => text.len(),
        Message::Assistant(reply) => spoken(reply),
        Message::Results { results } => {
            results.iter().map(|one| one.text.len() + one.call.len() + one.name.len()).sum()
        }
    };
    FRAME + bytes as u64 / BYTES
}

fn spoken(reply: &Reply) -> usize {
    let calls = reply.calls.iter().map(|call| call.name.len() + length(&call.arguments));
    let said = reply.text.len() + calls.sum::<usize>();
    said.max(reply.original.as_ref().map_or(0, length))
}

/// About as many bytes as it has when written down.
fn length(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 5,
        Value::String(text) => text.len() + 2,
        Value::Array(items) => 2 + items.iter().map(|item| length(item) + 1).sum::<usize>(),
        Value::Object(fields) => {
            2 + fields.iter().map(|(name, value)| name.len() + 4 + length(value)).sum::<usize>()
        }
    }
}

/// What gives way so that about half of the window is free again, or `None` when that would gain next
/// to nothing. `window` and `estimated` are estimated tokens; every call has its result.
pub fn choose(messages: &[Message], estimated: u64, window: u64) -> Option<Choice> {
    let (goal, limit) = (window / 2, window / 4 * 3);
    let recent = recent(messages, window / 5);
    let (put_aside, left) = aside(messages, 0..recent, estimated, goal);
    let mut choice = Choice { put_aside, summarise: 0 };
    let mut after = left;
    // A summary of a summary alone says nothing new, and one of little gains little.
    let (first, stays) = messages.split_at(recent);
    let words = last_words(first, stays).map_or(0, str::len) as u64 / BYTES;
    let gone = first.iter().map(tokens).sum::<u64>().saturating_sub(words);
    let is_new = first.iter().any(|m| !matches!(m, Message::Summary { .. }));
    if after > goal && is_new && gone > window / 10 {
        let (put_aside, left) =
            aside(messages, recent..messages.len(), estimated.saturating_sub(gone), limit);
        choice = Choice { put_aside, summarise: recent };
        after = left;
    } else if after > limit {
        let (more, left) = aside(messages, recent..messages.len(), after, limit);
        choice.put_aside.extend(more);
        after = left;
    }
    let gained = estimated.saturating_sub(after);
    (gained > window / 10).then_some(choice)
}

/// Where the part begins that stays: the last exchange, and what fits before it.
fn recent(messages: &[Message], room: u64) -> usize {
    let mut taken = 0;
    let mut from = messages.len();
    for (place, message) in messages.iter().enumerate().rev() {
        taken += tokens(message);
        if taken > room && from < messages.len() {
            break;
        }
        from = match message {
            // Its calls are before it.
            Message::Results { .. } => continue,
            Message::User { .. } | Message::Summary { .. } | Message::Assistant(_) => place,
        };
    }
    from
}

/// Large results among these, oldest first, until `goal` is reached, and what is used then.
fn aside(
    messages: &[Message],
    among: std::ops::Range<usize>,
    used: u64,
    goal: u64,
) -> (Vec<(usize, usize)>, u64) {
    let mut left = used;
    let mut chosen = Vec::new();
    for place in among {
        let Message::Results { results } = &messages[place] else { continue };
        for (number, outcome) in results.iter().enumerate() {
            if left <= goal {
                return (chosen, left);
            }
            if outcome.text.len() > SMALL {
                left = left.saturating_sub((outcome.text.len() - SMALL / 4) as u64 / BYTES);
                chosen.push((place, number));
            }
        }
    }
    (chosen, left)
}

/// What a summary is made of, for a model that hears `at_most` bytes: the beginning and, more of it,
/// the end.
pub fn excerpt(transcript: &str, at_most: usize) -> String {
    if transcript.len() <= at_most {
        return transcript.to_owned();
    }
    let head = &transcript[..transcript.floor_char_boundary(at_most / 4)];
    let tail = transcript.ceil_char_boundary(transcript.len() - at_most / 4 * 3);
    format!("{head}\n[... left out ...]\n{}", &transcript[tail..])
}

/// Messages as text. `whole` shows every result in full.
pub fn transcript(messages: &[Message], whole: bool) -> String {
    let mut text = String::new();
    for message in messages {
        // Writing to a string does not fail.
        let _ = match message {
            Message::User { text: said } => writeln!(text, "## The owner\n\n{said}\n"),
            Message::Summary { text: said } => writeln!(text, "## Before this\n\n{said}\n"),
            Message::Assistant(reply) => {
                let _ = writeln!(text, "## The agent\n\n{}\n", reply.text);
                reply
                    .calls
                    .iter()
                    .try_for_each(|call| writeln!(text, "calls {} {}\n", call.name, call.arguments))
            }
            Message::Results { results } => results.iter().try_for_each(|outcome| {
                let said = if whole { outcome.text.clone() } else { both_ends(&outcome.text) };
                writeln!(text, "### Result of {}\n\n{said}\n", outcome.name)
            }),
        };
    }
    text
}

fn both_ends(text: &str) -> String {
    if text.len() <= SHOWN {
        return text.to_owned();
    }
    let head = &text[..text.floor_char_boundary(SHOWN / 2)];
    let tail = &text[text.ceil_char_boundary(text.len() - SHOWN / 2)..];
    format!("{head}\n[...]\n{tail}")
}

/// What comes before the owner's last words, which stand at the end of a summary.
const LAST_WORDS: &str = "The owner's last words, in full:\n";

/// What stands in the place of the messages: the summary, and what must not be lost in it.
pub fn summary(said: &str, gone: &[Message], stays: &[Message], plan: &[PlanEntry]) -> String {
    let mut text = said.replace(LAST_WORDS, "").trim().to_owned();
    if !plan.is_empty() {
        let _ = write!(text, "\n\nThe plan as it stands:\n{}", list(plan).trim_end());
    }
    if let Some(last) = last_words(gone, stays) {
        let _ = write!(text, "\n\n{LAST_WORDS}{last}");
    }
    text
}

/// The owner's last words, when they are not among what stays.
fn last_words<'a>(gone: &'a [Message], stays: &[Message]) -> Option<&'a str> {
    let said = |message: &Message| matches!(message, Message::User { text } if !is_note(text));
    if stays.iter().any(said) {
        return None;
    }
    gone.iter().rev().find_map(|message| match message {
        Message::User { text } if is_note(text) => None,
        Message::User { text } => Some(text.as_str()),
        Message::Summary { text } => text.split_once(LAST_WORDS).map(|(_, last)| last),
        Message::Assistant(_) | Message::Results { .. } => None,
    })
}

fn list(plan: &[PlanEntry]) -> String {
    let mut text = String::new();
    for entry in plan {
        let mark = match entry.status {
            PlanStatus::Pending => " ",
            PlanStatus::InProgress => ">",
            PlanStatus::Completed => "x",
        };
        let _ = writeln!(text, "- [{mark}] {}", entry.content);
    }
    text
}

#[cfg(test)]
mod tests;
