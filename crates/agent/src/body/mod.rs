//! Where tools act: a workspace, and commands that run in it.
//!
//! [`Local`] is for an agent that runs inside of a sandbox, [`Remote`] for one that acts on a sandbox
//! from its host. Whoever holds a body does not see the difference, and [`conformance`] holds both to
//! the same behaviour.

#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
mod edit;
mod local;
mod memory;
mod program;
mod remote;
mod search;

use std::time::Duration;

use async_trait::async_trait;
use nacre_wire::exec::Exit;
use nacre_wire::{ApiError, ErrorKind};

pub use edit::{Edit, Edited};
pub use local::Local;
pub use program::{Opened, Program, Remarks};
pub use remote::Remote;
pub use search::{Found, Search};

pub type Result<T, E = ApiError> = std::result::Result<T, E>;

/// A relative path is meant from the workspace; an absolute one as it is. What may be reached is for
/// the sandbox to decide, not for the body.
#[async_trait]
pub trait Body: Send + Sync {
    /// Runs a command to its end and gives what it writes to `output` as it comes. A future that is
    /// dropped ends the command and what it started.
    async fn execute(&self, command: &Command, output: &mut Output<'_>) -> Result<Exit>;

    /// The whole file, or an error when it is larger than `at_most`.
    async fn read_file(&self, path: &str, at_most: u64) -> Result<File>;

    /// Replaces the file in one step, or makes it with the directories above it.
    async fn write_file(&self, path: &str, write: &Write) -> Result<()>;

    /// What is in a directory, by name.
    async fn list_files(&self, path: &str) -> Result<Vec<Entry>>;

    /// Starts a program that is spoken with while it runs. It is ended, with what it started, when
    /// its output is dropped.
    async fn open(&self, program: &Program) -> Result<Opened>;
}

/// Called with each piece of output.
pub type Output<'a> = dyn FnMut(Stream, &[u8]) + Send + 'a;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    Stdout,
    Stderr,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// For `/bin/sh`.
    pub line: String,
    /// Where, if not in the workspace.
    pub within: Option<String>,
    pub timeout: Duration,
    /// Which call of the agent wants it; what it changes is recorded under that name.
    pub call: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    pub bytes: Vec<u8>,
    /// Differs when the file does.
    pub version: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Write {
    pub bytes: Vec<u8>,
    pub expected: Expected,
    /// As in [`Command`].
    pub call: Option<String>,
}

/// What a write relies on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Expected {
    #[default]
    Anything,
    /// That there is no such file.
    Nothing,
    /// That it is the one that was read.
    Version(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub name: String,
    pub kind: EntryKind,
    pub size: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    File,
    Directory,
    Link,
    Other,
}

/// A command whose output is kept, up to a limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    pub exit: Exit,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
}

impl dyn Body + '_ {
    /// Runs a command whose output is only wanted as a whole. Beyond `at_most` bytes of each stream it
    /// is left out.
    pub async fn run(&self, command: &Command, at_most: usize) -> Result<Finished> {
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        let mut keep = |stream, bytes: &[u8]| {
            let kept = match stream {
                Stream::Stdout => &mut stdout,
                Stream::Stderr => &mut stderr,
            };
            let room = at_most.saturating_sub(kept.len()).min(bytes.len());
            kept.extend_from_slice(&bytes[..room]);
        };
        let exit = self.execute(command, &mut keep).await?;
        Ok(Finished { exit, stdout, stderr })
    }

    /// A file that is text.
    pub async fn read_text(&self, path: &str, at_most: u64) -> Result<(String, String)> {
        let File { bytes, version } = self.read_file(path, at_most).await?;
        match String::from_utf8(bytes) {
            Ok(text) => Ok((text, version)),
            Err(_) => Err(ApiError::new(ErrorKind::InvalidRequest, format!("{path} is not text"))
                .hint("look at it with a command such as `file` or `xxd`")),
        }
    }
}
