//! The host's answer, for those who asked.

use std::time::Duration;

use nacre_wire::client::{Client, Error};
use nacre_wire::relay::Raw;
use nacre_wire::{ApiError, ErrorKind};
use tokio::time::timeout;

use crate::host::unreachable;

/// The host gives up earlier, unless it hangs.
const PATIENCE: Duration = Duration::from_secs(120);

pub(super) async fn reach(host: &Client, name: &str, port: u16) -> Result<Raw, ApiError> {
    match timeout(PATIENCE, host.reach(name, port)).await {
        Ok(reached) => reached.map_err(explain),
        Err(_) => Err(ApiError::new(ErrorKind::TimedOut, "the host does not answer")),
    }
}

/// The host's own words, or that it cannot be asked.
fn explain(error: Error) -> ApiError {
    match error {
        Error::Api(error) => error,
        Error::Connect(error) => unreachable(error),
        Error::Protocol(error) => unreachable(error),
    }
}

/// As a person reads it in a terminal.
pub(super) fn words(error: &ApiError) -> String {
    match &error.hint {
        Some(hint) => format!("nacre: {}\nhint: {hint}\n", error.message),
        None => format!("nacre: {}\n", error.message),
    }
}

/// The reply codes of SOCKS (RFC 1928).
pub(super) fn socks_code(kind: ErrorKind) -> u8 {
    match kind {
        ErrorKind::Permission => 2,
        ErrorKind::TimedOut => 4,
        ErrorKind::Unreachable => 5,
        ErrorKind::InvalidRequest => 8,
        _ => 1,
    }
}
