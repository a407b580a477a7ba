//! What an agent remembers of a conversation: all of it follows from its events.

use crate::events::{Compaction, Content, Event, PlanEntry, ToolStatus, Update};
use crate::model::{Message, Outcome, Usage};

/// The text that stands in for what is not known.
pub const INTERRUPTED: &str =
    "interrupted: it is not known how far this got; look before doing it again";

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
            Update::AgentMessageChunk { .. }
            | Update::AgentThoughtChunk { .. }
            | Update::ToolCall { .. }
            | Update::ToolCallUpdate { .. }
            | Update::UsageUpdate { .. }
            | Update::PermissionRequest { .. }
            | Update::PermissionOutcome { .. }
            | Update::Notice { .. }
            | Update::Retry { .. }
            | Update::TurnBegins { .. }
            | Update::Checkpoints { .. }
            | Update::CostUpdate { .. } => {}
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
        // And a later turn does not answer them a second time.
        session.see(&user);
        assert_eq!(session.messages.len(), 4);
    }
}
