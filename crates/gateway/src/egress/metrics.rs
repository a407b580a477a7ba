//! Counters of the way out. Labels are the five verdicts that a connection ends with.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use nacre_wire::egress::{EgressRecord, EgressVerdict};

#[derive(Debug, Default)]
pub(crate) struct Counts {
    verdicts: [AtomicU64; EgressVerdict::ENDS.len()],
    sent: AtomicU64,
    received: AtomicU64,
    open: AtomicI64,
}

impl Counts {
    pub(super) fn opened(&self) {
        self.open.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn closed(&self) {
        self.open.fetch_sub(1, Ordering::Relaxed);
    }

    pub(super) fn count(&self, record: &EgressRecord) {
        let index = EgressVerdict::ENDS.iter().position(|verdict| *verdict == record.verdict);
        if let Some(count) = index.and_then(|index| self.verdicts.get(index)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        self.sent.fetch_add(record.sent, Ordering::Relaxed);
        self.received.fetch_add(record.received, Ordering::Relaxed);
    }

    pub(crate) fn verdicts(&self) -> impl Iterator<Item = (EgressVerdict, u64)> {
        let counts = self.verdicts.iter().map(|count| count.load(Ordering::Relaxed));
        EgressVerdict::ENDS.into_iter().zip(counts)
    }

    pub(crate) fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    pub(crate) fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    pub(crate) fn open(&self) -> i64 {
        self.open.load(Ordering::Relaxed)
    }
}
