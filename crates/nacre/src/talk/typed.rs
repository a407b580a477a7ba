//! What a person types, a line at a time, by one reader: a second one would take lines from the first.

use std::collections::VecDeque;
use std::io::{BufRead, Write};

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

#[derive(Default)]
pub(crate) struct Typed {
    /// Starts when something is first asked for.
    lines: Option<UnboundedReceiver<String>>,
    /// Typed before it was asked for.
    ahead: VecDeque<String>,
}

impl Typed {
    /// The next line, which may have been typed already; `None` when there are no more.
    pub(crate) async fn next(&mut self, prompt: &str) -> Option<String> {
        show(prompt);
        match self.ahead.pop_front() {
            Some(line) => Some(line),
            None => self.lines().recv().await,
        }
    }

    /// A line that was typed after the question was seen.
    pub(crate) async fn answer(&mut self, question: &str) -> Option<String> {
        while let Ok(line) = self.lines().try_recv() {
            self.ahead.push_back(line);
        }
        show(question);
        self.lines().recv().await
    }

    fn lines(&mut self) -> &mut UnboundedReceiver<String> {
        self.lines.get_or_insert_with(|| {
            let (sender, lines) = unbounded_channel();
            std::thread::spawn(move || {
                for line in std::io::stdin().lock().lines().map_while(Result::ok) {
                    if sender.send(line).is_err() {
                        return;
                    }
                }
            });
            lines
        })
    }
}

fn show(prompt: &str) {
    eprint!("{prompt}");
    let _ = std::io::stderr().flush();
}
