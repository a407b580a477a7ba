//! `Range`, as RFC 9110 has it, for one range of bytes.

/// The part of a representation that a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Selection {
    Whole,
    /// `start..end`, not empty.
    Part {
        start: u64,
        end: u64,
    },
    Unsatisfiable,
}

/// A header that is malformed, in another unit or with several ranges is ignored, as the RFC
/// allows: the whole is always a right answer.
pub(crate) fn select(header: Option<&str>, size: u64) -> Selection {
    header.and_then(|header| parse(header, size)).unwrap_or(Selection::Whole)
}

fn parse(header: &str, size: u64) -> Option<Selection> {
    let (unit, range) = header.split_once('=')?;
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return None;
    }
    let (first, last) = range.trim().split_once('-')?;
    let (start, end) = match (number(first)?, number(last)?) {
        (None, None) => return None,
        (None, Some(suffix)) => (size.saturating_sub(suffix), size),
        (Some(first), None) => (first, size),
        (Some(first), Some(last)) if last < first => return None,
        (Some(first), Some(last)) => (first, last.saturating_add(1).min(size)),
    };
    Some(if start < end { Selection::Part { start, end } } else { Selection::Unsatisfiable })
}

/// `Some(None)` is an absent bound; a number too big for u64 is as good as the biggest.
fn number(text: &str) -> Option<Option<u64>> {
    let text = text.trim();
    if !text.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    Some((!text.is_empty()).then(|| text.parse().unwrap_or(u64::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use Selection::{Part, Unsatisfiable, Whole};

    fn check(header: &str, size: u64, expected: Selection) {
        assert_eq!(select(Some(header), size), expected, "{header} of {size}");
    }

    #[test]
    fn a_range_selects_what_the_rfc_says() {
        check("bytes=0-0", 10, Part { start: 0, end: 1 });
        check("bytes=0-9", 10, Part { start: 0, end: 10 });
        check("bytes=3-5", 10, Part { start: 3, end: 6 });
        check("bytes=3-99", 10, Part { start: 3, end: 10 });
        check("bytes=3-", 10, Part { start: 3, end: 10 });
        check("bytes=-3", 10, Part { start: 7, end: 10 });
        check("bytes=-99", 10, Part { start: 0, end: 10 });
        check("BYTES = 1-2 ", 10, Part { start: 1, end: 3 });
        check("bytes=0-18446744073709551615", 10, Part { start: 0, end: 10 });
        check("bytes=0-99999999999999999999999", 10, Part { start: 0, end: 10 });
    }

    #[test]
    fn what_lies_beyond_the_end_is_unsatisfiable() {
        check("bytes=10-", 10, Unsatisfiable);
        check("bytes=10-12", 10, Unsatisfiable);
        check("bytes=-0", 10, Unsatisfiable);
        check("bytes=0-", 0, Unsatisfiable);
        check("bytes=-5", 0, Unsatisfiable);
        check("bytes=99999999999999999999999-", 10, Unsatisfiable);
    }

    #[test]
    fn what_is_not_one_range_of_bytes_is_ignored() {
        for header in [
            "",
            "bytes",
            "bytes=",
            "bytes=-",
            "bytes=5-3",
            "bytes=a-b",
            "bytes=0-1,3-4",
            "lines=0-1",
            "bytes=--1",
            "bytes=+1-2",
        ] {
            check(header, 10, Whole);
        }
        assert_eq!(select(None, 10), Whole);
    }
}
