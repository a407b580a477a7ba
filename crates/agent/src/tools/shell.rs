//! Running commands.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Answer, Context, Intent, Ready, arguments, tool};
use crate::body::{Body, Command, Stream};
use crate::events::{Content, ToolContent, ToolKind, ToolStatus, Update};
use crate::model::{Call, Tool};

const TIMEOUT: Duration = Duration::from_secs(120);
const LONGEST: Duration = Duration::from_secs(3600);
/// Of what a command writes, what is kept at its beginning and at its end.
const KEPT: usize = 4 << 20;
/// Of what it writes, what those who watch are told while it runs.
const SHOWN: usize = 256 * 1024;
const TITLE: usize = 100;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RunCommand {
    /// For `/bin/sh`, in the workspace.
    command: String,
    /// 120 when not said.
    #[serde(default)]
    timeout_seconds: Option<u64>,
}

struct ShellCall {
    body: Arc<dyn Body>,
    asked: RunCommand,
}

pub(super) fn tools() -> Vec<Tool> {
    let description = "Run a shell command and get its output and exit code. It has no terminal and \
                       no input. Start what should go on running with `&`, its output sent to a file. \
                       Send output of more than 8 MiB to a file as well: the middle of it is not kept.";
    vec![tool::<RunCommand>("run_command", description)]
}

pub(super) fn prepare(body: &Arc<dyn Body>, call: &Call) -> Option<Result<Box<dyn Ready>, String>> {
    if call.name != "run_command" {
        return None;
    }
    let body = body.clone();
    Some(arguments(call).map(|asked| Box::new(ShellCall { body, asked }) as Box<dyn Ready>))
}

#[async_trait]
impl Ready for ShellCall {
    fn intent(&self) -> Intent {
        let line = self.asked.command.lines().next().unwrap_or_default();
        let mut title: String = line.chars().take(TITLE).collect();
        if title.len() < self.asked.command.trim_end().len() {
            title.push_str(" ...");
        }
        Intent { title, kind: ToolKind::Execute, locations: Vec::new(), changes: true, asks: false }
    }

    async fn run(self: Box<Self>, context: &mut Context<'_>) -> Answer {
        let timeout = self.asked.timeout_seconds.map_or(TIMEOUT, Duration::from_secs).min(LONGEST);
        let command = Command {
            line: self.asked.command,
            within: None,
            timeout,
            call: Some(context.call.to_owned()),
        };
        let mut kept = Ends::default();
        let mut shown = 0;
        let mut output = |_: Stream, bytes: &[u8]| {
            kept.take(bytes);
            if shown < SHOWN {
                shown += bytes.len();
                (context.tell)(progress(context.call, &String::from_utf8_lossy(bytes)));
            }
        };
        match self.body.execute(&command, &mut output).await {
            Ok(exit) => {
                let lost = kept.left_out;
                let mut text = kept.into_text();
                if !text.is_empty() && !text.ends_with('\n') {
                    text.push('\n');
                }
                let end = match (exit.timed_out, exit.code, &exit.signal) {
                    (true, ..) => format!("ended after {} seconds", timeout.as_secs()),
                    _ if exit.out_of_memory => {
                        "ended: there was not enough memory for it".to_owned()
                    }
                    (_, Some(code), _) => format!("exit code {code}"),
                    (_, None, Some(signal)) => format!("ended by signal {signal}"),
                    (_, None, None) => "ended".to_owned(),
                };
                let end = match lost {
                    0 => end,
                    lost => format!("{end}; {lost} bytes in the middle were not kept"),
                };
                let failed = exit.timed_out || exit.code != Some(0);
                Answer { failed, lost, ..Answer::ok(format!("{text}[{end}]")) }
            }
            Err(error) => Answer::error(&error),
        }
    }
}

fn progress(call: &str, text: &str) -> Update {
    Update::ToolCallUpdate {
        tool_call_id: call.to_owned(),
        status: ToolStatus::InProgress,
        content: vec![ToolContent::Content { content: Content::text(text) }],
        raw_output: None,
    }
}

/// The beginning and the end of something long.
#[derive(Default)]
struct Ends {
    head: Vec<u8>,
    tail: std::collections::VecDeque<u8>,
    left_out: u64,
}

impl Ends {
    fn take(&mut self, bytes: &[u8]) {
        let room = KEPT.saturating_sub(self.head.len()).min(bytes.len());
        self.head.extend_from_slice(&bytes[..room]);
        let rest = &bytes[room..];
        let over = (self.tail.len() + rest.len()).saturating_sub(KEPT);
        let from_tail = over.min(self.tail.len());
        self.tail.drain(..from_tail);
        self.tail.extend(&rest[over - from_tail..]);
        self.left_out += over as u64;
    }

    fn into_text(self) -> String {
        let mut text = String::from_utf8_lossy(&self.head).into_owned();
        if self.left_out > 0 {
            text.push_str(&format!("\n[{} bytes left out]\n", self.left_out));
        }
        let tail: Vec<u8> = self.tail.into();
        text.push_str(&String::from_utf8_lossy(&tail));
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_something_long_both_ends_are_kept() {
        let mut ends = Ends::default();
        let all: Vec<u8> = (0..3 * KEPT).map(|n| b'a' + u8::try_from(n % 26).unwrap()).collect();
        for piece in all.chunks(7777) {
            ends.take(piece);
        }
        let head = String::from_utf8(all[..KEPT].to_vec()).unwrap();
        let tail = String::from_utf8(all[2 * KEPT..].to_vec()).unwrap();
        assert_eq!(ends.into_text(), format!("{head}\n[{KEPT} bytes left out]\n{tail}"));
        let mut short = Ends::default();
        short.take(b"all");
        assert_eq!(short.into_text(), "all");
    }
}
