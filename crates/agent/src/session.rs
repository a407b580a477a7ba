//! What an agent remembers of a conversation: all of it follows from its events.

use crate::events::{Compaction, Content, Event, PlanEntry, ToolStatus, Update};
use crate::model::{Message, Outcome, Usage};

/// The text that stands in for what is not known.
pub const INTERRUPTED: &str =
    "interrupted: it is not known how far this got; look before doing it again";

/// How notes to the model begin that stand among the owner's words.
const NOTES: [&str; 2] = ["[The owner has taken back", "[From here on you act"];

/// Whether the owner has not said this, but we have.
pub fn is_note(text: &str) -> bool {
    NOTES.iter().any(|note| text.starts_with(note))
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Session {
    pub messages: Vec<Message>,
    pub plan: Vec<PlanEntry>,
    pub usage: Usage,
    /// How often the model was asked.
    pub steps: u64,
    /// Whether a turn began that has not ended.
    pub under_way: bool,
    /// How many tokens so many of the messages are, by the last word of the model.
    pub measured: Option<Measured>,
    /// Where it acts, once a turn has said so.
    pub place: Option<Place>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub role: String,
    /// By id.
    pub sandbox: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Measured {
    pub messages: usize,
    pub tokens: u64,
}

impl Session {
    pub fn replay<'a>(events: impl IntoIterator<Item = &'a Event>) -> Self {
        let mut session = Self::default();
        for event in events {
            session.see(&event.update);
        }
        session
    }

    pub fn see(&mut self, update: &Update) {
        match update {
            Update::UserMessageChunk { content: Content::Text { text } } => {
                self.settle();
                self.under_way = true;
                self.messages.push(Message::User { text: text.clone() });
            }
            Update::Reply { reply } => {
                self.settle();
                self.steps += 1;
                self.usage += reply.usage;
                self.messages.push(Message::Assistant(reply.clone()));
                // Some services do not say.
                let tokens = reply.usage.input + reply.usage.output;
                let messages = self.messages.len();
                self.measured = (tokens > 0).then_some(Measured { messages, tokens });
            }
            Update::Compacted { change, used, .. } => {
                self.usage += *used;
                self.compact(change);
            }
            Update::ToolCallUpdate {
                status: ToolStatus::Completed | ToolStatus::Failed,
                raw_output: Some(outcome),
                ..
            } => self.answer(outcome.clone()),
            Update::Plan { entries } => self.plan.clone_from(entries),
            Update::Undone { paths, .. } => {
                // A model that believes in what it wrote goes on from there.
                let paths = paths.join(", ");
                let text = format!("[The owner has taken back what you changed in: {paths}]");
                self.messages.push(Message::User { text });
            }
            Update::Ended { .. } => {
                self.settle();
                self.under_way = false;
            }
            Update::TurnBegins { role, sandbox, .. } | Update::Moved { role, sandbox } => {
                self.act_on(Place { role: role.clone(), sandbox: sandbox.clone() });
            }
            Update::AgentMessageChunk { .. }
            | Update::AgentThoughtChunk { .. }
            | Update::ToolCall { .. }
            | Update::ToolCallUpdate { .. }
            | Update::UsageUpdate { .. }
            | Update::PermissionRequest { .. }
            | Update::PermissionOutcome { .. }
            | Update::Notice { .. }
            | Update::Retry { .. }
            | Update::Checkpoints { .. }
            | Update::CostUpdate { .. } => {}
        }
    }

    /// A model that believes itself where it was looks for its work in the wrong place, or does to live
    /// what was meant for dev.
    fn act_on(&mut self, place: Place) {
        let Place { role, sandbox } = &place;
        let text = match &self.place {
            Some(before) if *before == place => return,
            Some(before) if before.sandbox == *sandbox => format!(
                "[From here on you act on {role}: the same sandbox as before with the same files, which \
                 was {} until now]",
                before.role
            ),
            Some(before) => format!(
                "[From here on you act on {role}, which is another sandbox than before (you were in {}): \
                 files and programs are those of this one, so look before you rely on what you remember]",
                before.role
            ),
            None => String::new(),
        };
        self.place = Some(place);
        if !text.is_empty() {
            self.settle();
            self.messages.push(Message::User { text });
        }
    }

    fn answer(&mut self, outcome: Outcome) {
        match self.messages.last_mut() {
            Some(Message::Results { results }) => results.push(outcome),
            _ => self.messages.push(Message::Results { results: vec![outcome] }),
        }
    }

    /// What does not fit the messages (a journal that somebody changed) is left alone.
    pub(crate) fn compact(&mut self, change: &Compaction) {
        for aside in &change.put_aside {
            if let Some(Message::Results { results }) = self.messages.get_mut(aside.message)
                && let Some(outcome) = results.get_mut(aside.result)
            {
                outcome.text.clone_from(&aside.text);
            }
        }
        if let Some(summary) = &change.summary {
            let end = summary.messages.min(self.messages.len());
            let text = summary.text.clone();
            self.messages.splice(..end, [Message::Summary { text }]);
        }
        self.measured = None;
    }

    /// A service wants an answer to each call. One that has none was begun and not finished: it is not
    /// done a second time. Calls are made in order, so the open ones are the last.
    fn settle(&mut self) {
        let (reply, answered) = match self.messages.as_slice() {
            [.., Message::Assistant(reply), Message::Results { results }] => (reply, results.len()),
            [.., Message::Assistant(reply)] => (reply, 0),
            _ => return,
        };
        let open = reply.calls.iter().skip(answered).map(|call| Outcome {
            call: call.id.clone(),
            name: call.name.clone(),
            text: INTERRUPTED.to_owned(),
            failed: true,
        });
        for outcome in open.collect::<Vec<_>>() {
            self.answer(outcome);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::Ended;
    use crate::model::{Call, Reply, Stop};
    use serde_json::json;

    fn call(id: &str) -> Call {
        Call { id: id.to_owned(), name: "f".to_owned(), arguments: json!({}) }
    }

    fn outcome(id: &str, text: &str, failed: bool) -> Outcome {
        Outcome { call: id.to_owned(), name: "f".to_owned(), text: text.to_owned(), failed }
    }

    fn done(id: &str) -> Update {
        Update::ToolCallUpdate {
            tool_call_id: id.to_owned(),
            status: ToolStatus::Completed,
            content: Vec::new(),
            raw_output: Some(outcome(id, "ok", false)),
        }
    }

    #[test]
    fn a_call_that_has_no_answer_is_not_made_again() {
        let mut session = Session::default();
        let user = Update::UserMessageChunk { content: Content::text("go") };
        let calls = vec![call("1"), call("2")];
        let reply = Reply { calls, stop: Stop::Calls, ..Reply::default() };
        session.see(&user);
        session.see(&Update::Reply { reply: reply.clone() });
        session.see(&done("1"));
        assert!(session.under_way);
        session.see(&Update::Ended { how: Ended::Interrupted });
        assert!(!session.under_way);
        let results = vec![outcome("1", "ok", false), outcome("2", INTERRUPTED, true)];
        let expected = [
            Message::User { text: "go".to_owned() },
            Message::Assistant(reply),
            Message::Results { results },
        ];
        assert_eq!(session.messages, expected);
        // What the owner takes back afterwards is known to whoever goes on.
        let paths = vec!["a".to_owned(), "b".to_owned()];
        let mut told = session.clone();
        told.see(&Update::Undone { sandbox: "s".to_owned(), checkpoints: vec![1], paths });
        let text = "[The owner has taken back what you changed in: a, b]".to_owned();
        assert_eq!(told.messages.last(), Some(&Message::User { text }));
        assert!(is_note("[The owner has taken back what you changed in: a]") && !is_note("[a]"));
        // And a later turn does not answer them a second time.
        session.see(&user);
        assert_eq!(session.messages.len(), 4);
    }

    #[test]
    fn a_model_is_told_when_it_acts_elsewhere() {
        let begins = |turn, role: &str, sandbox: &str| Update::TurnBegins {
            turn,
            role: role.to_owned(),
            sandbox: sandbox.to_owned(),
            mode: "auto".to_owned(),
            model: "m".to_owned(),
        };
        let mut session = Session::default();
        let mut check = |update: Update, expected: Option<&str>| {
            let before = session.messages.len();
            session.see(&update);
            let told = session.messages.get(before).map(|message| match message {
                Message::User { text } => text.clone(),
                other => panic!("{other:?}"),
            });
            match (told, expected) {
                (None, None) => {}
                (Some(told), Some(expected)) => {
                    assert!(is_note(&told) && told.contains(expected), "{told}");
                }
                (told, _) => panic!("{told:?}"),
            }
        };
        check(begins(1, "dev", "a"), None);
        check(begins(2, "dev", "a"), None);
        check(begins(3, "dev", "b"), Some("another sandbox than before (you were in dev)"));
        let moved = Update::Moved { role: "live".to_owned(), sandbox: "b".to_owned() };
        check(moved, Some("which was dev until now"));
        check(begins(4, "live", "b"), None);
    }
}
