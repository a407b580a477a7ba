//! Driver and store errors as the control plane reports them.

use nacre_sandbox::Error as DriverError;
use nacre_wire::{ApiError, ErrorKind};

use super::door::DoorError;
use crate::store::StoreError;

/// People know the sandbox by name, not by the id that the driver knows.
pub(crate) fn from_driver(name: &str, error: &DriverError) -> ApiError {
    match error {
        DriverError::NotFound(_) => {
            ApiError::new(ErrorKind::NotFound, format!("the files of sandbox \"{name}\" are gone"))
        }
        DriverError::Exists(_) => {
            ApiError::new(ErrorKind::Exists, format!("sandbox \"{name}\" exists already"))
        }
        DriverError::State { state, action, .. } => ApiError::new(
            ErrorKind::Unavailable,
            format!(
                "sandbox \"{name}\" is {}: cannot {action}",
                format!("{state:?}").to_lowercase()
            ),
        ),
        DriverError::Unsupported { .. } => ApiError::new(ErrorKind::Unsupported, error.to_string())
            .hint("nacre doctor says what this machine lacks"),
        DriverError::Start { why, .. } => ApiError::new(
            ErrorKind::Unavailable,
            format!("sandbox \"{name}\" did not start: {why}"),
        )
        .hint(format!("see nacre logs -s {name}, and nacre doctor")),
        DriverError::Io { context, source } => ApiError::io(context, source),
    }
}

pub(crate) fn from_store(error: StoreError) -> ApiError {
    match error {
        StoreError::NameTaken(_) => ApiError::new(ErrorKind::Exists, error.to_string())
            .hint("choose another name, or see nacre sandbox list"),
        StoreError::Sqlite(ref sqlite)
            if sqlite.sqlite_error_code() == Some(rusqlite::ErrorCode::DiskFull) =>
        {
            ApiError::new(ErrorKind::NoSpace, error.to_string()).hint("free some disk space")
        }
        StoreError::RoleMoved(_) => ApiError::new(ErrorKind::Unavailable, error.to_string())
            .hint("see nacre status, and try again"),
        StoreError::Sqlite(_)
        | StoreError::Newer { .. }
        | StoreError::Corrupt { .. }
        | StoreError::Interrupted => ApiError::new(ErrorKind::Internal, error.to_string()),
    }
}

pub(crate) fn from_door(name: &str, error: &DoorError) -> ApiError {
    let kind = ErrorKind::Unavailable;
    match error {
        DoorError::Dial(_) => ApiError::new(kind, format!("sandbox \"{name}\" does not answer")),
        DoorError::Http(_) => {
            ApiError::new(kind, format!("sandbox \"{name}\" broke off while answering"))
        }
    }
    .hint(format!("see nacre status, and nacre logs -s {name}"))
}
