//! What an agent remembers of a conversation: all of it follows from its events.

use crate::events::{Content, Event, PlanEntry, ToolStatus, Update};
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
            }
            Update::ToolCallUpdate {
                status: ToolStatus::Completed | ToolStatus::Failed,
                raw_output: Some(outcome),
                ..
            } => self.answer(outcome.clone()),
            Update::Plan { entries } => self.plan.clone_from(entries),
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
            | Update::Retry { .. } => {}
        }
    }

    fn answer(&mut self, outcome: Outcome) {
        match self.messages.last_mut() {
            Some(Message::Results { results }) => results.push(outcome),
            _ => self.messages.push(Message::Results { results: vec![outcome] }),
        }
    }

    /// A service wants an answer to each call. One that has none was begun and not finished: it is not
    /// done a second time.
    fn settle(&mut self) {
        let answered = match self.messages.last() {
            Some(Message::Results { results }) => {
                results.iter().map(|outcome| outcome.call.clone()).collect()
            }
            _ => Vec::new(),
        };
        let last = self.messages.iter().rev().find_map(|message| match message {
            Message::Assistant(reply) => Some(Some(reply)),
            Message::Results { .. } => None,
            Message::User { .. } => Some(None),
        });
        let Some(Some(reply)) = last else { return };
        let open = reply.calls.iter().filter(|call| !answered.contains(&call.id));
        let open: Vec<Outcome> = open
            .map(|call| Outcome {
                call: call.id.clone(),
                name: call.name.clone(),
                text: INTERRUPTED.to_owned(),
                failed: true,
            })
            .collect();
        for outcome in open {
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
        // And a later turn does not answer them a second time.
        session.see(&user);
        assert_eq!(session.messages.len(), 4);
    }
}
