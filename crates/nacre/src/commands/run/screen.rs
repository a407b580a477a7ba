//! What is seen of a run while it goes on: on a terminal the agent's words above a line that tells how
//! far it is, elsewhere plain lines, and as JSON the events as they are.

use std::io::{IsTerminal, Write};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use nacre_wire::exec::Stream;
use nacre_wire::runs::{RunEvent, RunState, RunUpdate, RunUsage};

use super::told::Teller;
use crate::failure::{Failure, Result};
use crate::output;

const TICK: Duration = Duration::from_millis(100);

pub(crate) enum Screen {
    Json,
    Plain(Teller),
    Live { teller: Teller, bar: ProgressBar, state: &'static str, used: RunUsage },
}

impl Screen {
    pub(super) fn choose(json: bool) -> Self {
        if json {
            return Self::Json;
        }
        let terminal = std::io::stderr().is_terminal() && std::io::stdout().is_terminal();
        if !terminal {
            return Self::Plain(Teller::default());
        }
        let bar = ProgressBar::new_spinner();
        if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed} {msg}") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(TICK);
        let used = RunUsage::default();
        Self::Live { teller: Teller::default(), bar, state: "starting", used }
    }

    /// `line` is the event as it came; what we do not understand is shown as JSON only.
    pub(super) fn show(&mut self, line: &[u8], event: Option<&RunEvent>) -> Result<()> {
        match (&mut *self, event) {
            (Self::Json, _) => {
                let mut whole = line.to_vec();
                whole.push(b'\n');
                write(&mut std::io::stdout().lock(), &whole)
            }
            (_, None) => Ok(()),
            (_, Some(event)) => self.tell(&event.update),
        }
    }

    fn tell(&mut self, update: &RunUpdate) -> Result<()> {
        match update {
            RunUpdate::Agent { event } => {
                let lines = self.teller().map(|teller| teller.tell(event)).unwrap_or_default();
                self.print(&lines)
            }
            RunUpdate::Output { stream: Stream::Stdout, line } => {
                self.print(std::slice::from_ref(line))
            }
            RunUpdate::Output { stream: Stream::Stderr, line } => {
                self.above(|| eprintln!("{}", output::one_line(line)));
                Ok(())
            }
            RunUpdate::Queued { ahead } => {
                self.say(&format!("waiting for {ahead} other run{} to end", plural(*ahead)));
                Ok(())
            }
            RunUpdate::State { state } => {
                self.enter(*state);
                Ok(())
            }
            RunUpdate::Usage { used: now } => {
                if let Self::Live { used, .. } = self {
                    *used = *now;
                }
                self.refresh();
                Ok(())
            }
            RunUpdate::Truncated => {
                self.say("the rest of its output is not kept");
                Ok(())
            }
            RunUpdate::Ended { .. } => {
                let lines = self.teller().map(Teller::rest).unwrap_or_default();
                self.print(&lines)
            }
            RunUpdate::Unknown => Ok(()),
        }
    }

    fn teller(&mut self) -> Option<&mut Teller> {
        match self {
            Self::Json => None,
            Self::Plain(teller) | Self::Live { teller, .. } => Some(teller),
        }
    }

    fn enter(&mut self, now: RunState) {
        if let Self::Live { state, .. } = self {
            *state = match now {
                RunState::Waiting | RunState::Queued => "waiting",
                RunState::Starting => "starting",
                RunState::Running => "working",
                RunState::Finishing | RunState::Ended => "finishing",
            };
        }
        self.refresh();
    }

    fn refresh(&mut self) {
        if let Self::Live { bar, state, used, .. } = self {
            let RunUsage { steps, tool_calls, tokens, dollars } = used;
            bar.set_message(format!(
                "{state}  {steps} step{}, {tool_calls} tool call{}, {tokens} tokens, ${dollars:.4}",
                plural(*steps),
                plural(*tool_calls)
            ));
        }
    }

    /// A word of our own.
    pub(super) fn say(&mut self, words: &str) {
        match self {
            Self::Json => {}
            Self::Plain(_) => eprintln!("{words}"),
            Self::Live { bar, .. } => bar.println(words),
        }
    }

    fn print(&mut self, lines: &[String]) -> Result<()> {
        let mut written = Ok(());
        for line in lines {
            self.above(|| {
                if written.is_ok() {
                    let line = format!("{}\n", output::one_line(line));
                    written = write(&mut std::io::stdout().lock(), line.as_bytes());
                }
            });
        }
        written
    }

    fn above(&self, print: impl FnOnce()) {
        match self {
            Self::Live { bar, .. } => bar.suspend(print),
            Self::Json | Self::Plain(_) => print(),
        }
    }

    pub(super) fn close(&mut self) {
        if let Self::Live { bar, .. } = self {
            bar.finish_and_clear();
        }
    }
}

fn write(out: &mut impl Write, bytes: &[u8]) -> Result<()> {
    out.write_all(bytes).and_then(|()| out.flush()).map_err(|error| match error.kind() {
        std::io::ErrorKind::BrokenPipe => Failure::BrokenPipe,
        _ => Failure::io("standard output", &error),
    })
}

fn plural(count: u64) -> &'static str {
    if count == 1 { "" } else { "s" }
}
