//! What is asked of a model, and what comes back.
//!
//! [`Model`] is a seam: [`Served`] speaks the wire formats of the usual services, [`Script`] says what a
//! test wants. Messages are ours, so that a conversation outlives the crate that carries it.

#[cfg(any(test, feature = "conformance"))]
mod script;
mod served;

use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[cfg(any(test, feature = "conformance"))]
pub use script::{Line, Script};
pub use served::{Format, Served, Service};

#[async_trait]
pub trait Model: Send + Sync {
    /// Asks once. What comes is given to `pieces` as it comes; the whole is returned at the end. An
    /// error may come after some pieces: these are then void.
    async fn respond(&self, request: &Request<'_>, pieces: &mut Pieces<'_>) -> Result<Reply>;

    /// How many tokens it can hear and say at once. Long before that, a conversation is made shorter.
    fn window(&self) -> u64 {
        WINDOW
    }
}

/// What a model whose window nobody named is trusted with: less than most have.
pub const WINDOW: u64 = 100_000;

pub type Result<T, E = Error> = std::result::Result<T, E>;
pub type Pieces<'a> = dyn FnMut(Piece) + Send + 'a;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    Text(String),
    Thought(String),
}

#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    pub system: &'a str,
    pub messages: &'a [Message],
    pub tools: &'a [Tool],
}

/// What a model may call.
#[derive(Debug, Clone, PartialEq)]
pub struct Tool {
    pub name: String,
    pub description: String,
    /// A JSON schema of its arguments.
    pub schema: Value,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Message {
    User {
        text: String,
    },
    /// What stands for all that was said before.
    Summary {
        text: String,
    },
    Assistant(Reply),
    Results {
        results: Vec<Outcome>,
    },
}

/// What a model said.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Reply {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<Call>,
    /// The same in the words of the service, with what it wants to see again (signatures of thoughts).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub original: Option<Value>,
    /// Who said it, and alone understands the original.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    #[serde(default)]
    pub usage: Usage,
    #[serde(default)]
    pub stop: Stop,
}

/// A model of a service. Signatures of thoughts are good for the one that made them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    pub format: Format,
    /// The address, which has the provider's name in it.
    pub service: String,
    pub model: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Call {
    pub id: String,
    pub name: String,
    pub arguments: Value,
}

/// What came of a call, as the model is told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    pub call: String,
    pub name: String,
    pub text: String,
    pub failed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Usage {
    pub input: u64,
    /// Of `input`, what the service had kept.
    #[serde(default)]
    pub cached: u64,
    pub output: u64,
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input += other.input;
        self.cached += other.cached;
        self.output += other.output;
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    #[default]
    Done,
    Calls,
    /// It had more to say than it may.
    Length,
    /// The service would not let it say more.
    Filtered,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Too much at once; the service says when again, if it says.
    #[error("the model is busy: {message}")]
    Busy { message: String, again: Option<Duration> },
    /// A budget is used up or a limit reached. Waiting does not help.
    #[error("{0}")]
    Spent(String),
    /// The service will not do this, however often it is asked.
    #[error("the model refuses: {0}")]
    Refused(String),
    /// More was said than it can hear.
    #[error("the conversation is too long for the model: {0}")]
    TooLong(String),
    /// Nothing came, or it broke off.
    #[error("the model cannot be reached: {0}")]
    Broken(String),
    /// What came makes no sense.
    #[error("the model's answer cannot be read: {0}")]
    Garbled(String),
}

impl Error {
    /// Whether the same may go well when it is asked again.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Busy { .. } | Self::Broken(_) | Self::Garbled(_) => true,
            Self::Spent(_) | Self::Refused(_) | Self::TooLong(_) => false,
        }
    }
}
