//! The one error shape of every API: what kind, what happened, what to do.

use http::StatusCode;
use serde::{Deserialize, Serialize};

/// What went wrong, in terms a program can act on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    NotFound,
    Permission,
    IsDirectory,
    NotDirectory,
    InvalidPath,
    InvalidRequest,
    Exists,
    Conflict,
    NoSpace,
    TooLarge,
    Unauthorized,
    /// The other side speaks no protocol generation that we speak.
    Incompatible,
    /// The thing exists but cannot do this now, such as exec in a stopped sandbox.
    Unavailable,
    /// This driver or kernel cannot do it.
    Unsupported,
    /// The kernel refused memory.
    OutOfMemory,
    /// The other end of a connection out does not answer.
    Unreachable,
    TimedOut,
    /// A limit of how many or how often; later it may be possible.
    TooMany,
    /// A kind this version does not know, or a fault on the other side.
    #[serde(other)]
    Internal,
}

impl ErrorKind {
    pub fn status(self) -> StatusCode {
        match self {
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::Permission => StatusCode::FORBIDDEN,
            Self::IsDirectory | Self::NotDirectory | Self::InvalidPath | Self::InvalidRequest => {
                StatusCode::BAD_REQUEST
            }
            Self::Exists => StatusCode::CONFLICT,
            Self::Conflict => StatusCode::PRECONDITION_FAILED,
            Self::NoSpace | Self::OutOfMemory => StatusCode::INSUFFICIENT_STORAGE,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Unauthorized => StatusCode::UNAUTHORIZED,
            Self::Incompatible => StatusCode::UPGRADE_REQUIRED,
            Self::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            Self::Unsupported => StatusCode::NOT_IMPLEMENTED,
            Self::Unreachable => StatusCode::BAD_GATEWAY,
            Self::TimedOut => StatusCode::GATEWAY_TIMEOUT,
            Self::TooMany => StatusCode::TOO_MANY_REQUESTS,
            Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

/// An error as the wire carries it: the body is `{"error": {...}}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[error("{message}")]
pub struct ApiError {
    pub kind: ErrorKind,
    /// Lower case, no full stop, names the path or value.
    pub message: String,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl ApiError {
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hint: None }
    }

    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Names `subject` (a path, a command) in front of what the system said.
    pub fn io(subject: impl std::fmt::Display, error: &std::io::Error) -> Self {
        Self::new(kind_of(error), format!("{subject}: {}", describe(error)))
    }
}

/// The body of an error response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ErrorBody {
    pub error: ApiError,
}

fn kind_of(error: &std::io::Error) -> ErrorKind {
    use std::io::ErrorKind as Io;
    match error.kind() {
        Io::NotFound => ErrorKind::NotFound,
        Io::PermissionDenied | Io::ReadOnlyFilesystem => ErrorKind::Permission,
        Io::IsADirectory => ErrorKind::IsDirectory,
        Io::NotADirectory => ErrorKind::NotDirectory,
        Io::AlreadyExists | Io::DirectoryNotEmpty => ErrorKind::Exists,
        Io::InvalidFilename | Io::CrossesDevices => ErrorKind::InvalidPath,
        Io::InvalidInput => ErrorKind::InvalidRequest,
        Io::StorageFull | Io::QuotaExceeded => ErrorKind::NoSpace,
        Io::FileTooLarge => ErrorKind::TooLarge,
        Io::OutOfMemory => ErrorKind::OutOfMemory,
        Io::ResourceBusy | Io::WouldBlock | Io::ConnectionRefused => ErrorKind::Unavailable,
        Io::Unsupported => ErrorKind::Unsupported,
        _ => match error.raw_os_error() {
            Some(ELOOP) => ErrorKind::InvalidPath,
            Some(EDQUOT) => ErrorKind::NoSpace,
            _ => ErrorKind::Internal,
        },
    }
}

const ELOOP: i32 = 40;
const EDQUOT: i32 = 122;

/// The system's words without Rust's "(os error N)".
fn describe(error: &std::io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or(&text);
    let mut chars = text.chars();
    match chars.next() {
        Some(first) if error.raw_os_error().is_some() => {
            first.to_lowercase().chain(chars).collect()
        }
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_io_error_names_its_subject_and_drops_rusts_suffix() {
        let error = ApiError::io("a.txt", &std::io::Error::from_raw_os_error(2));
        assert_eq!(error, ApiError::new(ErrorKind::NotFound, "a.txt: no such file or directory"));
    }

    #[test]
    fn an_unknown_kind_from_a_newer_peer_is_internal() {
        let error: ApiError =
            serde_json::from_str(r#"{"kind":"haunted","message":"boo"}"#).unwrap();
        assert_eq!(error.kind, ErrorKind::Internal);
    }
}
