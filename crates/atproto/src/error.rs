//! Why somebody could not be identified.

/// Kinds that a person is told apart: nobody there, somebody who must not be believed, and a refusal.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Nobody answered there, or not in time.
    #[error("{place} does not answer: {why}")]
    Unreachable { place: String, why: String },
    /// An answer that is not to be believed.
    #[error("{place}: {why}")]
    Untrusted { place: String, why: String },
    /// The server understood and refused.
    #[error("{place} refused: {code}")]
    Refused { place: String, code: String },
    /// This machine could not do its part.
    #[error("{0}")]
    Local(String),
}

impl Error {
    pub(crate) fn untrusted(place: impl ToString, why: impl Into<String>) -> Self {
        Self::Untrusted { place: place.to_string(), why: why.into() }
    }

    pub(crate) fn unreachable(place: impl ToString, why: impl ToString) -> Self {
        Self::Unreachable { place: place.to_string(), why: why.to_string() }
    }
}
