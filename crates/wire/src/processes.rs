//! The processes that `/workspace/nacre.toml` names.
//!
//! `GET /supervisor/processes` lists them with what is wrong with the file, if anything.
//! `POST /supervisor/processes/{name}/start`, `stop` and `restart` answer with the process as it
//! is then. `GET /supervisor/processes/{name}/log?after=SEQ&follow=true` is a stream of
//! [`LogLine`]s, one JSON object per line, or plain text with `format=text`.
//!
//! An app with `per_mount` has one process for each address that it is mounted at: [`RUNTIME`] at the
//! root, `runtime@dev` below `/dev`.

use serde::{Deserialize, Serialize};

use crate::WirePath;

/// The name of the process that `[runtime]` describes.
pub const RUNTIME: &str = "runtime";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ProcessList {
    pub processes: Vec<ProcessInfo>,
    /// Why `nacre.toml` as it is now is not in use. What ran before runs on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_error: Option<ConfigError>,
}

/// What is wrong with a `nacre.toml`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ConfigError {
    /// Counted from 1; absent when it is about the file as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    pub reason: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ProcessState {
    /// It does not run and is not going to by itself.
    Stopped,
    /// It runs and does not answer yet.
    Starting,
    Ready,
    /// It was asked to end and has not ended yet.
    Stopping,
    /// It ended and is started again soon.
    BackingOff,
    /// It keeps ending; it is tried again now and then.
    CrashLooping,
    /// It ended badly and is not started again.
    Failed,
    /// A state this version does not know.
    #[serde(other)]
    Unknown,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ProcessInfo {
    pub name: String,
    pub state: ProcessState,
    /// Why it is in that state, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// When it came to that state, as Unix time in milliseconds.
    pub since: u64,
    /// `false` when it is ready and no longer answers where it should; absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub responding: Option<bool>,
    /// While it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<i32>,
    /// The code a shell would give the last end: 128 and the signal's number for a signal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// How often it was started again without anybody asking for it.
    pub restarts: u64,
    /// How often in a row it ended without anybody asking for it: since somebody started it, or since it
    /// was well for a while. 0 while a start was asked for.
    #[serde(default, skip_serializing_if = "is_none")]
    pub ends_in_a_row: u64,
    /// How often it was started at all.
    pub run: u64,
    /// When the next try is due, as Unix time in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_try: Option<u64>,
    /// As one line for people.
    pub command: String,
    pub directory: WirePath,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// The number of the last line in its log; 0 before the first.
    pub log_seq: u64,
}

fn is_none(number: &u64) -> bool {
    *number == 0
}

/// One line of a process's log. A jump in `seq` means that lines in between are no longer kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LogLine {
    /// Counts from 1 for as long as the supervisor lives, across restarts of the process.
    pub seq: u64,
    /// Unix time in milliseconds.
    pub at: u64,
    pub stream: LogStream,
    /// Without its end of line; bytes that are not UTF-8 are replaced.
    pub text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum LogStream {
    Stdout,
    Stderr,
    /// What the supervisor says about the process: that it started, how it ended.
    #[serde(other)]
    Supervisor,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_words_and_an_unknown_one_is_no_error() {
        let text = |state| serde_json::to_string(&state).unwrap();
        assert_eq!(text(ProcessState::CrashLooping), "\"crash-looping\"");
        let later: ProcessState = serde_json::from_str("\"hibernating\"").unwrap();
        assert_eq!(later, ProcessState::Unknown);
    }
}
