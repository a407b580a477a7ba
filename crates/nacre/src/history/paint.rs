//! Colour, where there is a terminal to show it.

use std::io::IsTerminal;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Paint {
    on: bool,
    terminal: bool,
}

impl Paint {
    /// For standard output. `NO_COLOR` is asked as <https://no-color.org> says.
    pub(crate) fn for_stdout() -> Self {
        let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let terminal = std::io::stdout().is_terminal();
        Self { on: terminal && !refused && !dumb, terminal }
    }

    pub(crate) fn off() -> Self {
        Self { on: false, terminal: true }
    }

    /// Whether bytes from a sandbox would reach a terminal, which must not obey them.
    pub(crate) fn is_terminal(self) -> bool {
        self.terminal
    }

    pub(crate) fn faint(self, text: &str) -> String {
        self.with("2", text)
    }

    pub(crate) fn bold(self, text: &str) -> String {
        self.with("1", text)
    }

    pub(crate) fn added(self, text: &str) -> String {
        self.with("32", text)
    }

    pub(crate) fn removed(self, text: &str) -> String {
        self.with("31", text)
    }

    pub(crate) fn changed(self, text: &str) -> String {
        self.with("33", text)
    }

    pub(crate) fn place(self, text: &str) -> String {
        self.with("36", text)
    }

    fn with(self, code: &str, text: &str) -> String {
        if self.on { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}
