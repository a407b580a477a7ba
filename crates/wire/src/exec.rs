//! Commands and terminals.
//!
//! `GET /supervisor/exec` upgrades to a WebSocket that carries one command: the first message is
//! [`ClientControl::Start`] as text, then text is control and binary is data. From the client,
//! binary is input. From the supervisor, the first byte of a binary message is a [`Stream`] and
//! the rest is output. The last message is [`ServerControl::Exit`].
//!
//! `/supervisor/commands` lists every command the supervisor knows, attached or detached, and
//! `GET /supervisor/commands/{id}/attach` is the same WebSocket for one that already runs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{ApiError, WirePath};

/// What to run and how.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct ExecRequest {
    /// Program and arguments. Exactly one of `argv` and `shell` is set.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub argv: Vec<String>,
    /// A script for `/bin/sh -c`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shell: Option<String>,
    /// Added to the default environment; an empty value is kept, `None` removes the variable.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, Option<String>>,
    /// Defaults to `/workspace`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<WirePath>,
    /// A user name or number; defaults to the unprivileged owner of `/workspace`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Give the command a terminal of this size. Its output is then one stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tty: Option<TtySize>,
    /// Leave standard input open for the client's bytes; otherwise it is empty.
    pub stdin: bool,
    /// End the whole process group after this long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Keep running when the client that started it goes away.
    pub detach: bool,
    /// A name people recognise in listings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// On whose behalf, such as a conversation: what it changes is put down to them as well.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub by: Vec<crate::history::Author>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TtySize {
    pub cols: u16,
    pub rows: u16,
}

/// Text messages from the client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ClientControl {
    /// First message on `/supervisor/exec`, and only there.
    Start(Box<ExecRequest>),
    /// No more input.
    StdinEof,
    Resize(TtySize),
    /// To the whole process group, by name without `SIG`: `INT`, `TERM`, `KILL`, ...
    Signal {
        signal: String,
    },
}

/// Text messages from the supervisor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ServerControl {
    Started {
        id: String,
        pid: i32,
    },
    /// This follower read too slowly and these many bytes of output were skipped. A client that
    /// started the command never sees it: its command waits instead. A terminal sends a redrawn
    /// screen after it.
    Gap {
        bytes: u64,
    },
    Exit(Exit),
    /// The command could not be started, or this connection cannot go on.
    Error(ApiError),
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Exit {
    /// Set when the command exited by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,
    /// Set when a signal ended it: `KILL`, `SEGV`, ...
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    /// The supervisor ended it because its time was up.
    #[serde(default)]
    pub timed_out: bool,
    /// The kernel ended something in this sandbox for want of memory while the command ran.
    #[serde(default)]
    pub out_of_memory: bool,
}

impl Exit {
    /// The code a shell would report: 128 + the signal's number, 124 for a time-out.
    pub fn shell_code(&self) -> i32 {
        match (&self.code, &self.signal) {
            _ if self.timed_out => 124,
            (Some(code), _) => *code,
            (None, Some(signal)) => 128 + signal_number(signal).unwrap_or(0),
            (None, None) => 255,
        }
    }
}

/// The first byte of a binary message from the supervisor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Stream {
    Stdout = 1,
    Stderr = 2,
}

impl Stream {
    pub fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            1 => Some(Self::Stdout),
            2 => Some(Self::Stderr),
            _ => None,
        }
    }
}

/// A command as listings show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CommandInfo {
    pub id: String,
    pub pid: i32,
    /// As one line for people.
    pub command: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    pub cwd: WirePath,
    pub user: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tty: Option<TtySize>,
    pub detached: bool,
    /// Clients attached now.
    pub clients: usize,
    /// Unix time in milliseconds.
    pub started_at: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<u64>,
    /// Absent while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<Exit>,
    /// Bytes of output so far, on both streams.
    pub output_bytes: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CommandList {
    pub commands: Vec<CommandInfo>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SignalRequest {
    pub signal: String,
}

/// Names and numbers of the signals a client may send, as on every Linux we run on.
const SIGNALS: &[(&str, i32)] = &[
    ("HUP", 1),
    ("INT", 2),
    ("QUIT", 3),
    ("ILL", 4),
    ("TRAP", 5),
    ("ABRT", 6),
    ("BUS", 7),
    ("FPE", 8),
    ("KILL", 9),
    ("USR1", 10),
    ("SEGV", 11),
    ("USR2", 12),
    ("PIPE", 13),
    ("ALRM", 14),
    ("TERM", 15),
    ("CHLD", 17),
    ("CONT", 18),
    ("STOP", 19),
    ("TSTP", 20),
    ("TTIN", 21),
    ("TTOU", 22),
    ("URG", 23),
    ("XCPU", 24),
    ("XFSZ", 25),
    ("VTALRM", 26),
    ("PROF", 27),
    ("WINCH", 28),
    ("IO", 29),
    ("PWR", 30),
    ("SYS", 31),
];

/// Accepts `INT`, `SIGINT`, `int` and `2`.
pub fn signal_number(name: &str) -> Option<i32> {
    let name = name.to_ascii_uppercase();
    let bare = name.strip_prefix("SIG").unwrap_or(&name);
    SIGNALS
        .iter()
        .find(|(known, number)| *known == bare || number.to_string() == bare)
        .map(|(_, number)| *number)
}

pub fn signal_name(number: i32) -> String {
    SIGNALS
        .iter()
        .find(|(_, known)| *known == number)
        .map_or_else(|| number.to_string(), |(name, _)| (*name).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exit_becomes_the_code_a_shell_would_give() {
        let exit = |code, signal: Option<&str>, timed_out| {
            Exit { code, signal: signal.map(str::to_owned), timed_out, out_of_memory: false }
                .shell_code()
        };
        assert_eq!(exit(Some(3), None, false), 3);
        assert_eq!(exit(None, Some("KILL"), false), 137);
        assert_eq!(exit(None, Some("TERM"), true), 124);
    }

    #[test]
    fn signals_are_known_by_any_usual_name() {
        for name in ["INT", "SIGINT", "sigint", "2"] {
            assert_eq!(signal_number(name), Some(2), "{name}");
        }
        assert_eq!(signal_number("NOPE"), None);
    }
}
