//! Wall-clock time as the database and the wire keep it.

use std::time::{SystemTime, UNIX_EPOCH};

/// Unix time in milliseconds. A clock before 1970 reads as zero.
pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
