//! The last events, as they are sent.

use std::collections::VecDeque;

use axum::extract::ws::Utf8Bytes;

const MOST: usize = 4096;
/// Events with many files in them are long; together they hold no more than this.
const MOST_BYTES: usize = 4 * 1024 * 1024;

#[derive(Debug, Default)]
pub(super) struct Ring {
    kept: VecDeque<Utf8Bytes>,
    bytes: usize,
    last: u64,
}

/// What a reader finds after its place.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    Event(u64, Utf8Bytes),
    /// The next are gone; this is the number of the last that is.
    Gone(u64),
    Nothing,
}

impl Ring {
    pub(super) fn last(&self) -> u64 {
        self.last
    }

    pub(super) fn push(&mut self, text: Utf8Bytes) {
        self.last += 1;
        self.bytes += text.len();
        self.kept.push_back(text);
        while self.kept.len() > MOST || self.bytes > MOST_BYTES {
            let Some(oldest) = self.kept.pop_front() else { break };
            self.bytes -= oldest.len();
        }
    }

    /// The first event after the one numbered `after`.
    pub(super) fn after(&self, after: u64) -> Found {
        let gone = self.last - self.kept.len() as u64;
        if after > self.last {
            return Found::Gone(self.last);
        }
        if after < gone {
            return Found::Gone(gone);
        }
        match usize::try_from(after - gone).ok().and_then(|index| self.kept.get(index)) {
            Some(text) => Found::Event(after + 1, text.clone()),
            None => Found::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ring(count: usize, length: usize) -> Ring {
        let mut ring = Ring::default();
        for _ in 0..count {
            ring.push("x".repeat(length).into());
        }
        ring
    }

    #[test]
    fn a_reader_goes_on_where_it_was_or_learns_what_it_missed() {
        let mut ring = ring(MOST, 1);
        assert!(matches!(ring.after(0), Found::Event(1, _)));
        ring.push("last".into());
        assert_eq!(ring.after(0), Found::Gone(1));
        assert!(matches!(ring.after(1), Found::Event(2, _)));
        assert_eq!(ring.after(MOST as u64), Found::Event(MOST as u64 + 1, "last".into()));
        assert_eq!(ring.after(MOST as u64 + 1), Found::Nothing);
        assert_eq!(ring.after(99_999), Found::Gone(MOST as u64 + 1), "from another life");
    }

    #[test]
    fn long_events_push_out_more() {
        let ring = ring(100, MOST_BYTES / 10);
        assert_eq!((ring.kept.len(), ring.last()), (10, 100));
        assert_eq!(ring.after(0), Found::Gone(90));
        assert_eq!(Ring::default().after(0), Found::Nothing);
    }
}
