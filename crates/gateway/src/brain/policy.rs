//! What may happen when, and what is meant by what was asked. Pure.

use std::collections::BTreeSet;

use nacre_wire::conductor::{ConversationState, ForkedFrom, UndoConversation};
use nacre_wire::history::{Author, Cause, CheckpointInfo};
use nacre_wire::{ApiError, ErrorKind};

use crate::routes::Role;

const LONGEST_TITLE: usize = 80;
const LONGEST_MESSAGE: usize = 256 * 1024;

/// Only one turn at a time: what is typed into one that is under way stays with whoever typed it, and is
/// neither lost nor read by a model that is in the middle of something else.
pub(super) fn may_begin(state: &ConversationState) -> Result<(), ApiError> {
    match state {
        ConversationState::Idle => Ok(()),
        ConversationState::Working => {
            Err(ApiError::new(ErrorKind::Unavailable, "a turn of this conversation is under way")
                .hint("wait for its end, or stop it"))
        }
        ConversationState::Asking { about, .. } => Err(ApiError::new(
            ErrorKind::Unavailable,
            format!("this conversation waits for an answer about: {about}"),
        )
        .hint("allow it or deny it first, or stop the turn")),
    }
}

pub(super) fn check_message(text: &str) -> Result<(), ApiError> {
    if text.trim().is_empty() {
        return Err(ApiError::new(ErrorKind::InvalidRequest, "the message is empty"));
    }
    if text.len() > LONGEST_MESSAGE {
        let message = format!("a message has at most {LONGEST_MESSAGE} bytes");
        return Err(ApiError::new(ErrorKind::TooLarge, message)
            .hint("put what is long into a file, and name it"));
    }
    Ok(())
}

/// As it is shown in a list: one line.
pub(super) fn title(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let plain = line.chars().map(|c| if c.is_control() { ' ' } else { c });
    let mut title: String = plain.take(LONGEST_TITLE).collect();
    if line.chars().count() > LONGEST_TITLE {
        title.pop();
        title.push('…');
    }
    title
}

/// Where to act: as was chosen, or on dev when there is one.
pub(super) fn role(chosen: Option<&str>, has_dev: bool) -> Role {
    match chosen.and_then(Role::parse) {
        Some(role) => role,
        None if has_dev => Role::Dev,
        None => Role::Live,
    }
}

pub(super) fn check_role(role: Option<&str>) -> Result<(), ApiError> {
    match role {
        Some(name) if Role::parse(name).is_none() => {
            let message = format!("there is no role \"{}\"", name.escape_debug());
            Err(ApiError::new(ErrorKind::InvalidRequest, message).hint("there are live and dev"))
        }
        Some(_) | None => Ok(()),
    }
}

/// `provider/model`; what follows the first slash may have more of them.
pub(super) fn model(name: &str) -> Result<(&str, &str), ApiError> {
    match name.split_once('/') {
        Some((provider, model)) if !provider.is_empty() && !model.is_empty() => {
            Ok((provider, model))
        }
        _ => {
            let message = format!("\"{}\" names no model", name.escape_debug());
            Err(ApiError::new(ErrorKind::InvalidRequest, message)
                .hint("write it as provider/model, such as openai/gpt-4o"))
        }
    }
}

/// What history puts a change of a call down to: the turn, and the number of the call's event.
pub(super) fn mark(turn: u64, call: u64) -> String {
    format!("{turn}.{call}")
}

fn read_mark(mark: &str) -> Option<(u64, u64)> {
    let (turn, call) = mark.split_once('.')?;
    Some((turn.parse().ok()?, call.parse().ok()?))
}

/// A turn as it began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Began {
    pub(super) seq: u64,
    pub(super) turn: u64,
    pub(super) sandbox: String,
    pub(super) role: String,
}

/// What an undo is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Scope {
    turns: BTreeSet<u64>,
    /// The number of one call's event.
    call: Option<u64>,
    /// Where these turns acted, by id.
    pub(super) sandboxes: BTreeSet<String>,
}

/// `began` are all turns, oldest first; those of a parent were another conversation's.
pub(super) fn scope(
    wanted: &UndoConversation,
    began: &[Began],
    parent: Option<&ForkedFrom>,
) -> Result<Scope, ApiError> {
    let invalid = |message: String| ApiError::new(ErrorKind::InvalidRequest, message);
    let at = match (wanted.step, wanted.turn) {
        (Some(_), Some(_)) => {
            return Err(invalid("name a step or a turn, not both".to_owned()));
        }
        (Some(at), None) | (None, Some(at)) => Some(at),
        (None, None) => None,
    };
    if let (Some(at), Some(parent)) = (at, parent)
        && at <= parent.seq
    {
        let message = format!("event {at} is of the conversation that this one was forked from");
        return Err(invalid(message).hint(format!("undo it there: {}", parent.id)));
    }
    let mut own = began.iter().filter(|began| parent.is_none_or(|parent| began.seq > parent.seq));
    let chosen: Vec<&Began> = match at {
        None => own.collect(),
        Some(at) => own.rfind(|began| began.seq <= at).into_iter().collect(),
    };
    if chosen.is_empty() {
        return Err(invalid("nothing happened there that could be taken back".to_owned()));
    }
    Ok(Scope {
        turns: chosen.iter().map(|began| began.turn).collect(),
        call: wanted.step,
        sandboxes: chosen.iter().map(|began| began.sandbox.clone()).collect(),
    })
}

impl Scope {
    /// Whether a checkpoint is to be taken back.
    pub(super) fn holds(&self, conversation: &str, checkpoint: &CheckpointInfo) -> bool {
        !checkpoint.undone
            && checkpoint.cause == Cause::Change
            && marks(conversation, checkpoint).any(|(turn, call)| {
                self.turns.contains(&turn) && self.call.is_none_or(|wanted| wanted == call)
            })
    }
}

/// Of which calls of a conversation it is.
pub(super) fn marks<'a>(
    conversation: &'a str,
    checkpoint: &'a CheckpointInfo,
) -> impl Iterator<Item = (u64, u64)> + 'a {
    checkpoint.authors.iter().filter_map(move |author| match author {
        Author::Conversation { id, call: Some(call) } if id == conversation => read_mark(call),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_turn_at_a_time() {
        assert_eq!(may_begin(&ConversationState::Idle), Ok(()));
        let asking =
            ConversationState::Asking { call: "1".to_owned(), about: "rm -r x".to_owned() };
        for (state, word) in [(ConversationState::Working, "under way"), (asking, "rm -r x")] {
            let error = may_begin(&state).unwrap_err();
            assert_eq!(error.kind, ErrorKind::Unavailable);
            assert!(error.message.contains(word) && error.hint.is_some(), "{error:?}");
        }
    }

    #[test]
    fn a_title_is_one_short_line() {
        let long = "x".repeat(200);
        for (text, expected) in [
            ("\n  fix it \nnow", "fix it".to_owned()),
            ("a\tb", "a b".to_owned()),
            ("", String::new()),
            (long.as_str(), format!("{}…", "x".repeat(79))),
        ] {
            assert_eq!(title(text), expected);
        }
    }

    #[test]
    fn dev_is_worked_on_when_there_is_one() {
        assert_eq!(role(None, true), Role::Dev);
        assert_eq!(role(None, false), Role::Live);
        assert_eq!(role(Some("live"), true), Role::Live);
        assert_eq!(role(Some("dev"), false), Role::Dev, "and then it is said to be missing");
        assert!(check_role(Some("prod")).is_err() && check_role(Some("dev")).is_ok());
    }

    #[test]
    fn a_model_has_a_provider() {
        assert_eq!(model("openrouter/meta/llama-3"), Ok(("openrouter", "meta/llama-3")));
        for bad in ["", "gpt-4o", "/x", "x/"] {
            assert!(model(bad).is_err(), "{bad}");
        }
    }

    fn began(seq: u64, turn: u64, sandbox: &str) -> Began {
        Began { seq, turn, sandbox: sandbox.to_owned(), role: "dev".to_owned() }
    }

    fn wanted(step: Option<u64>, turn: Option<u64>) -> UndoConversation {
        UndoConversation { step, turn, ..UndoConversation::default() }
    }

    fn checkpoint(id: u64, by: &str, mark: &str) -> CheckpointInfo {
        let call = (!mark.is_empty()).then(|| mark.to_owned());
        let authors = vec![
            Author::Command { id: "1".to_owned(), line: "x".to_owned() },
            Author::Conversation { id: by.to_owned(), call },
        ];
        CheckpointInfo {
            id,
            time: 0,
            cause: Cause::Change,
            authors,
            label: None,
            added: 1,
            changed: 0,
            removed: 0,
            moved: Vec::new(),
            remarks: Vec::new(),
            undone: false,
        }
    }

    #[test]
    fn an_undo_takes_back_exactly_what_it_names() {
        let turns = [began(1, 1, "a"), began(20, 2, "b"), began(40, 3, "a")];
        let all = [
            checkpoint(1, "c", "1.5"),
            checkpoint(2, "c", "2.25"),
            checkpoint(3, "c", "2.30"),
            checkpoint(4, "other", "2.30"),
            checkpoint(5, "c", ""),
            CheckpointInfo { undone: true, ..checkpoint(6, "c", "2.30") },
            CheckpointInfo { cause: Cause::Redo { of: 1 }, ..checkpoint(7, "c", "2.30") },
            checkpoint(8, "c", "3.50"),
        ];
        let check = |step, turn, sandboxes: &[&str], expected: &[u64]| {
            let scope = scope(&wanted(step, turn), &turns, None).unwrap();
            let found: Vec<u64> = all
                .iter()
                .filter(|checkpoint| scope.holds("c", checkpoint))
                .map(|checkpoint| checkpoint.id)
                .collect();
            assert_eq!(found, expected, "{step:?} {turn:?}");
            assert!(scope.sandboxes.iter().eq(sandboxes), "{:?}", scope.sandboxes);
        };
        check(None, None, &["a", "b"], &[1, 2, 3, 8]);
        check(None, Some(22), &["b"], &[2, 3]);
        check(None, Some(20), &["b"], &[2, 3]);
        check(Some(30), None, &["b"], &[3]);
        check(Some(31), None, &["b"], &[]);
        check(None, Some(999), &["a"], &[8]);
    }

    #[test]
    fn what_a_fork_was_given_is_the_parents_to_take_back() {
        let turns = [began(1, 1, "a"), began(20, 2, "a")];
        let parent = ForkedFrom { id: "c-0".to_owned(), seq: 10 };
        let error = scope(&wanted(Some(5), None), &turns, Some(&parent)).unwrap_err();
        assert!(error.hint.unwrap().contains("c-0"));
        let own = scope(&wanted(None, None), &turns, Some(&parent)).unwrap();
        assert_eq!(own.turns, BTreeSet::from([2]));
        assert!(scope(&wanted(Some(1), Some(1)), &turns, None).is_err());
        assert!(scope(&wanted(None, None), &[], None).is_err());
    }
}
