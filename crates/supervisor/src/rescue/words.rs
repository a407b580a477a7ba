//! Plain words for what the page shows. Nothing here is markup yet.

use nacre_wire::history::{Author, Cause, CheckpointInfo, Outcome};
use nacre_wire::processes::ProcessState;
use nacre_wire::{ApiError, WirePath};

/// Of a line that somebody else wrote.
const LONGEST: usize = 200;

pub(crate) fn state(state: ProcessState) -> &'static str {
    match state {
        ProcessState::Stopped => "stopped",
        ProcessState::Starting => "starting",
        ProcessState::Ready => "ready",
        ProcessState::Stopping => "stopping",
        ProcessState::BackingOff => "ended, started again soon",
        ProcessState::CrashLooping => "keeps ending",
        ProcessState::Failed => "failed",
        ProcessState::Unknown => "in an unknown state",
    }
}

/// Who or what a checkpoint is put down to.
pub(super) fn who(checkpoint: &CheckpointInfo) -> String {
    match &checkpoint.cause {
        Cause::First => "As it was when history began".to_owned(),
        Cause::Undo { of, path } => {
            let within = path.as_ref().map(|path| format!(" in {}", name(path)));
            format!("Undo of {}{}", some(of), within.unwrap_or_default())
        }
        Cause::Redo { of } => format!("Redo of #{of}"),
        Cause::Restore { to } => format!("Back to #{to}"),
        Cause::Change => match checkpoint.authors.as_slice() {
            [] => "Something in the background".to_owned(),
            [one] => author(one),
            [first, rest @ ..] => format!("{}, and {} more", author(first), rest.len()),
        },
    }
}

fn some(ids: &[u64]) -> String {
    if ids.len() > 3 {
        return format!("{} checkpoints", ids.len());
    }
    ids.iter().map(|id| format!("#{id}")).collect::<Vec<_>>().join(", ")
}

fn author(author: &Author) -> String {
    match author {
        Author::Command { line, .. } => format!("$ {}", one_line(line.trim())),
        Author::Api { call } => one_line(call),
        Author::Conversation { id, .. } => format!("Conversation {}", one_line(id)),
        Author::Ssh { session } => format!("SSH {}", one_line(session)),
    }
}

/// A name is one line: control characters are shown as their pictures.
pub(super) fn name(path: &WirePath) -> String {
    one_line(&path.to_string())
}

fn one_line(text: &str) -> String {
    let picture = |c: char| match u32::from(c) {
        code @ 0..=0x1f => char::from_u32(0x2400 + code).unwrap_or(' '),
        0x7f => '\u{2421}',
        _ => c,
    };
    let mut shown: String = text.chars().take(LONGEST).map(picture).collect();
    if text.chars().nth(LONGEST).is_some() {
        shown.push('…');
    }
    shown
}

/// How long ago, roughly.
pub(super) fn ago(then: i64, now: i64) -> String {
    let seconds = now.saturating_sub(then).max(0) / 1000;
    match seconds {
        0..=4 => "just now".to_owned(),
        5..=59 => format!("{seconds} s ago"),
        60..=3599 => format!("{} min ago", seconds / 60),
        3600..=172_799 => format!("{} h ago", seconds / 3600),
        _ => format!("{} days ago", seconds / 86_400),
    }
}

pub(super) fn outcome(outcome: &Outcome) -> String {
    let Some(CheckpointInfo { added, changed, removed, .. }) = &outcome.checkpoint else {
        return "There was nothing to change.".to_owned();
    };
    let did = [(added, "brought back"), (changed, "changed back"), (removed, "taken away")];
    let did: Vec<String> = did
        .into_iter()
        .filter(|(count, _)| **count > 0)
        .map(|(count, word)| format!("{count} {word}"))
        .collect();
    let mut said = match did.as_slice() {
        [] => "Done.".to_owned(),
        did => format!("Done: {}.", did.join(", ")),
    };
    if let Some(remark) = outcome.remarks.first() {
        said.push_str(&format!(" {}: {}.", name(&remark.path), remark.message));
    }
    said
}

pub(super) fn error(error: &ApiError) -> String {
    let hint = error.hint.as_deref().map(|hint| format!(" {}", sentence(hint)));
    sentence(&error.message) + &hint.unwrap_or_default()
}

/// Errors begin small and have no full stop.
pub(super) fn sentence(words: &str) -> String {
    let mut rest = words.chars();
    match rest.next() {
        Some(first) => format!("{}{}.", first.to_uppercase(), rest.as_str()),
        None => String::new(),
    }
}

pub(super) fn why(reason: &str) -> &str {
    match reason {
        "changed_later" => "was changed later",
        "changed_between" => "was changed in between",
        "holds_later_files" => "holds files that came later",
        "parent_replaced" => "is in a folder that was replaced",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_wrote_stays_one_short_line() {
        assert_eq!(one_line("a\nb\x1b[31m\x7f"), "a␊b␛[31m␡");
        assert_eq!(one_line(&"x".repeat(5000)).chars().count(), LONGEST + 1);
    }

    #[test]
    fn times_are_said_as_people_say_them() {
        let check = |seconds: i64, expected: &str| {
            assert_eq!(ago(0, seconds * 1000), expected);
        };
        check(0, "just now");
        check(59, "59 s ago");
        check(61, "1 min ago");
        check(3600, "1 h ago");
        check(259_200, "3 days ago");
        assert_eq!(ago(5000, 0), "just now", "a clock that went back");
    }
}
