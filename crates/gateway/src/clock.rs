//! Wall-clock time as the database and the wire keep it.

use std::time::{SystemTime, UNIX_EPOCH};

/// Unix time in milliseconds. A clock before 1970 reads as zero.
pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// How long ago that was, roughly, for a page.
pub(crate) fn ago(ms: u64) -> String {
    match now_ms().saturating_sub(ms) / 1000 {
        s @ 0..60 => format!("{s} s"),
        s @ 60..3600 => format!("{} min", s / 60),
        s @ 3600..86_400 => format!("{} h", s / 3600),
        s => format!("{} d", s / 86_400),
    }
}
