//! What can go wrong, in words for whoever asked.

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("knowledge.db: {0}")]
    Database(#[from] rusqlite::Error),
    #[error("{what}")]
    NotFound { what: String, hint: Option<&'static str> },
    #[error("{what}")]
    Refused { what: String, hint: Option<&'static str> },
    /// What is stored is not what was published.
    #[error("{0}")]
    Damaged(String),
}

pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    pub(crate) fn refused(what: impl Into<String>) -> Self {
        Self::Refused { what: what.into(), hint: None }
    }

    pub(crate) fn not_found(what: impl Into<String>) -> Self {
        Self::NotFound { what: what.into(), hint: None }
    }

    pub(crate) fn or_try(self, hint: &'static str) -> Self {
        match self {
            Self::NotFound { what, .. } => Self::NotFound { what, hint: Some(hint) },
            Self::Refused { what, .. } => Self::Refused { what, hint: Some(hint) },
            other @ (Self::Database(_) | Self::Damaged(_)) => other,
        }
    }

    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::NotFound { hint, .. } | Self::Refused { hint, .. } => *hint,
            Self::Database(_) => Some("nacre doctor checks the data directory"),
            Self::Damaged(_) => Some("bring knowledge.db back from a backup"),
        }
    }
}
