//! Names people give to sandboxes.

use nacre_wire::{ApiError, ErrorKind};

/// Paths under `/admin/sandboxes` that are no sandboxes.
const RESERVED: &[&str] = &[
    "gateway",
    "roles",
    "swap",
    "page",
    "promote",
    "network",
    "models",
    "metrics",
    "alerts",
    "sessions",
    "tokens",
    "audit",
    "egress",
    "providers",
    "policy-tokens",
    "usage",
    "calls",
    "runs",
    "memory",
    "knowledge",
    "publications",
    "conductor",
    "writer",
];

/// A lower case letter, then up to 31 lower case letters, digits and dashes.
pub(crate) fn check(name: &str) -> Result<(), ApiError> {
    let good = (1..=32).contains(&name.len())
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    if !good {
        return Err(ApiError::new(
            ErrorKind::InvalidRequest,
            format!("\"{}\" is not a sandbox name", name.escape_debug()),
        )
        .hint("use 1 to 32 lower case letters, digits and dashes, starting with a letter"));
    }
    if RESERVED.contains(&name) {
        return Err(ApiError::new(
            ErrorKind::InvalidRequest,
            format!("\"{name}\" is a reserved name"),
        )
        .hint("choose another name"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain_and_short() {
        for good in ["a", "live", "a-1", "a-", &"x".repeat(32)] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        for bad in ["", "A", "1a", "-a", "a_b", "a b", "a/b", "..", "gateway", "é", &"x".repeat(33)]
        {
            assert!(check(bad).is_err(), "{bad}");
        }
    }
}
