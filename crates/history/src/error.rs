use std::io;

use crate::code::Malformed;
use crate::entry::ContentId;
use crate::path::TreePath;

pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{context}: {source}")]
    Io { context: String, source: io::Error },
    /// Nothing was recorded and nothing was harmed.
    #[error("no space left to keep history ({context})")]
    NoSpace { context: String },
    /// An undo, redo or restore was interrupted after its first touch of the tree. Whatever is done
    /// next finishes it first.
    #[error("begun and not finished, it goes on as soon as it can: {0}")]
    Unfinished(Box<Error>),
    #[error("history database: {0}")]
    Database(rusqlite::Error),
    /// What is on disk is not what was written. Other parts of the store are still good.
    #[error("history is damaged: {what}")]
    Damaged { what: String },
    #[error("content {0} is not in the store")]
    Missing(ContentId),
    #[error("no checkpoint {0}")]
    NoCheckpoint(u64),
    #[error("{0} was not there at that moment")]
    NotThere(TreePath),
    /// The caller's idea of the present is out of date.
    #[error("history has moved on: the latest checkpoint is {latest}, not {expected}")]
    Stale { latest: u64, expected: u64 },
    #[error("{0}")]
    Invalid(String),
}

impl Error {
    /// Whether what is on disk cannot be made sense of, as opposed to what cannot be done now.
    pub fn is_damage(&self) -> bool {
        use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase};
        match self {
            Self::Damaged { .. } => true,
            Self::Database(error) => {
                matches!(error.sqlite_error_code(), Some(DatabaseCorrupt | NotADatabase))
            }
            _ => false,
        }
    }

    pub(crate) fn damaged(what: impl Into<String>) -> Self {
        Self::Damaged { what: what.into() }
    }
}

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(rusqlite::ErrorCode::DiskFull) => {
                Self::NoSpace { context: "write the log".to_owned() }
            }
            _ => Self::Database(error),
        }
    }
}

impl From<Malformed> for Error {
    fn from(malformed: Malformed) -> Self {
        Self::damaged(malformed.to_string())
    }
}

/// Says what was being done when the system refused.
pub(crate) trait Context<T> {
    fn context(self, what: impl FnOnce() -> String) -> Result<T>;
}

impl<T, E: Into<io::Error>> Context<T> for std::result::Result<T, E> {
    fn context(self, what: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|error| {
            let source = error.into();
            match source.kind() {
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                    Error::NoSpace { context: what() }
                }
                _ => Error::Io { context: what(), source },
            }
        })
    }
}
