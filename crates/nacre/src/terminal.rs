//! The user's terminal: its size, and raw mode that always ends.

use std::io::{IsTerminal, Stdin};

use nacre_wire::exec::TtySize;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};

use crate::failure::{Failure, Result};

/// Raw mode for as long as this lives. Drop runs on return, on error and on a panic's unwinding.
pub(crate) struct RawMode {
    stdin: Stdin,
    before: Termios,
}

impl RawMode {
    /// `None` when standard input is not a terminal.
    pub(crate) fn enter() -> Result<Option<Self>> {
        let stdin = std::io::stdin();
        if !stdin.is_terminal() {
            return Ok(None);
        }
        let failed = |errno: rustix::io::Errno| Failure::io("the terminal", &errno.into());
        let before = tcgetattr(&stdin).map_err(failed)?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(&stdin, OptionalActions::Now, &raw).map_err(failed)?;
        Ok(Some(Self { stdin, before }))
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        let _ = tcsetattr(&self.stdin, OptionalActions::Now, &self.before);
    }
}

/// Of whichever standard stream is a terminal; 80 by 24 when none is.
pub(crate) fn size() -> TtySize {
    let sizes = [
        tcgetwinsize(std::io::stdout()),
        tcgetwinsize(std::io::stdin()),
        tcgetwinsize(std::io::stderr()),
    ];
    sizes.into_iter().flatten().find(|size| size.ws_col > 0 && size.ws_row > 0).map_or(
        TtySize { cols: 80, rows: 24 },
        |size| TtySize { cols: size.ws_col, rows: size.ws_row },
    )
}
