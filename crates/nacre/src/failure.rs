//! What a user sees when something does not work: `error:` and, where we know one, `hint:`.

use std::io;

use nacre_wire::client;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Failure {
    Error {
        message: String,
        hint: Option<String>,
    },
    /// The reader of our output went away, which is nobody's mistake.
    BrokenPipe,
}

pub(crate) type Result<T, E = Failure> = std::result::Result<T, E>;

/// What a shell reports for a program ended by `SIGPIPE`.
pub(crate) const BROKEN_PIPE_CODE: u8 = 141;

impl Failure {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self::Error { message: message.into(), hint: None }
    }

    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        match self {
            Self::Error { message, .. } => Self::Error { message, hint: Some(hint.into()) },
            Self::BrokenPipe => Self::BrokenPipe,
        }
    }

    /// Names `subject` in front of what the system said.
    pub(crate) fn io(subject: impl std::fmt::Display, error: &io::Error) -> Self {
        let error = nacre_wire::ApiError::io(subject, error);
        Self::Error { message: error.message, hint: error.hint }
    }

    pub(crate) fn report(&self) {
        match self {
            Self::Error { message, hint } => {
                eprintln!("error: {message}");
                if let Some(hint) = hint {
                    eprintln!("hint: {hint}");
                }
            }
            Self::BrokenPipe => {}
        }
    }

    /// The exit code, where it does not depend on the command.
    pub(crate) fn code(&self) -> Option<u8> {
        match self {
            Self::Error { .. } => None,
            Self::BrokenPipe => Some(BROKEN_PIPE_CODE),
        }
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Error { message, .. } => f.write_str(message),
            Self::BrokenPipe => f.write_str("the reader went away"),
        }
    }
}

impl From<client::Error> for Failure {
    fn from(error: client::Error) -> Self {
        match error {
            client::Error::Api(error) => Self::Error { message: error.message, hint: error.hint },
            client::Error::Connect(error) => Self::io("the gateway", &error),
            client::Error::Protocol(message) => {
                Self::new(message).hint("nacre status and nacre logs say more")
            }
        }
    }
}

impl From<nacre_gateway::StartError> for Failure {
    fn from(error: nacre_gateway::StartError) -> Self {
        Self::Error { message: error.to_string(), hint: error.hint() }
    }
}

impl From<nacre_gateway::ConfigError> for Failure {
    fn from(error: nacre_gateway::ConfigError) -> Self {
        Self::new(error.to_string()).hint(error.hint())
    }
}

impl From<nacre_wire::ApiError> for Failure {
    fn from(error: nacre_wire::ApiError) -> Self {
        Self::Error { message: error.message, hint: error.hint }
    }
}
