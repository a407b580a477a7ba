//! What our own agent tells, as lines for people. Pure.

use nacre_agent::events::{Content, Event, PlanEntry, PlanStatus, ToolContent, ToolStatus, Update};
use serde_json::Value;

/// Of what a command writes, so much is shown; the model sees more.
const MOST_LINES: usize = 12;

/// Puts pieces of text together to lines, and says the rest in a few words.
#[derive(Debug, Default)]
pub(crate) struct Teller {
    waiting: String,
    /// Lines of the call that runs.
    shown: usize,
    plan: Vec<PlanEntry>,
}

impl Teller {
    /// The lines that this event completes.
    pub(super) fn tell(&mut self, event: &Value) -> Vec<String> {
        let Ok(event) = serde_json::from_value::<Event>(event.clone()) else { return Vec::new() };
        match event.update {
            Update::AgentMessageChunk { content: Content::Text { text } } => self.add(&text, ""),
            Update::ToolCallUpdate { status: ToolStatus::InProgress, content, .. } => {
                self.output(&content)
            }
            other => {
                let mut lines = self.rest();
                lines.extend(self.others(other));
                lines
            }
        }
    }

    /// What has no line end yet.
    pub(super) fn rest(&mut self) -> Vec<String> {
        match self.waiting.is_empty() {
            true => Vec::new(),
            false => vec![std::mem::take(&mut self.waiting)],
        }
    }

    fn add(&mut self, text: &str, before: &str) -> Vec<String> {
        self.waiting.push_str(text);
        let mut lines = Vec::new();
        while let Some(end) = self.waiting.find('\n') {
            let line: String = self.waiting.drain(..=end).collect();
            lines.push(format!("{before}{}", line.trim_end_matches(['\n', '\r'])));
        }
        lines
    }

    fn output(&mut self, content: &[ToolContent]) -> Vec<String> {
        let mut lines = Vec::new();
        for content in content {
            if let ToolContent::Content { content: Content::Text { text } } = content {
                lines.extend(self.add(text, "  | "));
            }
        }
        let room = MOST_LINES.saturating_sub(self.shown);
        self.shown += lines.len();
        if lines.len() > room {
            lines.truncate(room);
            if room > 0 {
                lines.push("  | ...".to_owned());
            }
        }
        lines
    }

    fn others(&mut self, update: Update) -> Vec<String> {
        match update {
            Update::ToolCall { title, .. } => {
                self.shown = 0;
                vec![format!("> {title}")]
            }
            Update::ToolCallUpdate { status: ToolStatus::Failed, raw_output, .. } => {
                let text = raw_output.map(|outcome| outcome.text).unwrap_or_default();
                vec![format!("  failed: {}", text.lines().last().unwrap_or("it does not say why"))]
            }
            Update::Plan { entries } if entries != self.plan => {
                self.plan = entries;
                self.plan.iter().map(entry).collect()
            }
            Update::Retry { reason } => vec![format!("! the model is asked again: {reason}")],
            Update::Notice { message } => vec![format!("! {message}")],
            Update::Compacted { before, after, .. } => {
                vec![format!("! made shorter for the model: about {before} to {after} tokens")]
            }
            Update::UserMessageChunk { .. }
            | Update::AgentMessageChunk { .. }
            | Update::AgentThoughtChunk { .. }
            | Update::ToolCallUpdate { .. }
            | Update::Plan { .. }
            | Update::UsageUpdate { .. }
            | Update::PermissionRequest { .. }
            | Update::PermissionOutcome { .. }
            | Update::Reply { .. }
            | Update::TurnBegins { .. }
            | Update::Moved { .. }
            | Update::Checkpoints { .. }
            | Update::Undone { .. }
            | Update::CostUpdate { .. }
            | Update::Ended { .. } => Vec::new(),
        }
    }
}

fn entry(entry: &PlanEntry) -> String {
    let mark = match entry.status {
        PlanStatus::Pending => " ",
        PlanStatus::InProgress => ">",
        PlanStatus::Completed => "x",
    };
    format!("  [{mark}] {}", entry.content)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn told(teller: &mut Teller, update: Value) -> Vec<String> {
        let mut event = json!({"seq": 1, "at": 2});
        event.as_object_mut().unwrap().extend(update.as_object().unwrap().clone());
        teller.tell(&event)
    }

    #[test]
    fn pieces_become_lines_and_calls_a_word() {
        let mut teller = Teller::default();
        let chunk = |text: &str| json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}});
        assert!(told(&mut teller, chunk("I will ")).is_empty());
        assert_eq!(told(&mut teller, chunk("look.\nThen")), ["I will look."]);
        let call = json!({
            "sessionUpdate": "tool_call", "toolCallId": "1", "title": "run: make",
            "kind": "execute", "status": "pending", "rawInput": {}
        });
        assert_eq!(told(&mut teller, call), ["Then", "> run: make"]);
        let output = |text: &str| {
            json!({
                "sessionUpdate": "tool_call_update", "toolCallId": "1", "status": "in_progress",
                "content": [{"type": "content", "content": {"type": "text", "text": text}}]
            })
        };
        assert_eq!(told(&mut teller, output("a\nb")), ["  | a"]);
        let long = told(&mut teller, output(&"x\n".repeat(50)));
        assert_eq!((long.len(), long.last().unwrap().as_str()), (MOST_LINES, "  | ..."));
        assert!(told(&mut teller, output("more\n")).is_empty());
    }
}
