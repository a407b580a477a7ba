//! What one transaction is to write: beginnings and ends of the same connection are one row, and what was
//! refused again within a minute is counted in the row that is there. Pure.

use std::collections::HashMap;
use std::collections::hash_map;
use std::sync::Arc;

use nacre_wire::egress::{EgressRecord, EgressVerdict};

use super::{Entry, Passed};

/// For how long the same refusal is one row.
const WHILE: u64 = 60_000;
/// More are not remembered.
const MOST_RECENT: usize = 8192;

/// Something that was added.
pub(super) enum Change {
    Opened(Entry, Box<EgressRecord>, Arc<Passed>),
    Ended(Option<Entry>, Box<EgressRecord>),
}

/// A row that is to be there.
pub(super) struct Fresh {
    pub(super) record: EgressRecord,
    /// Of a connection that has not ended.
    pub(super) open: Option<(Entry, Arc<Passed>)>,
    /// Under which it is found when it happens again.
    pub(super) refused: Option<Refused>,
}

/// What makes two refusals the same.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Refused {
    sandbox_id: String,
    run: Option<String>,
    host: String,
    port: u16,
    reason: Option<String>,
}

impl Refused {
    fn of(record: &EgressRecord) -> Option<Self> {
        (record.verdict == EgressVerdict::Refused).then(|| Self {
            sandbox_id: record.sandbox_id.clone(),
            run: record.run.clone(),
            host: record.host.clone(),
            port: record.port,
            reason: record.reason.clone(),
        })
    }
}

/// Rows of refusals that are not old.
#[derive(Default)]
pub(super) struct Recent(HashMap<Refused, (i64, u64)>);

impl Recent {
    fn row(&self, refused: &Refused, at: u64) -> Option<i64> {
        let (row, since) = self.0.get(refused)?;
        (since..&(since + WHILE)).contains(&&at).then_some(*row)
    }

    pub(super) fn keep(&mut self, refused: Refused, row: i64, at: u64) {
        if self.0.len() >= MOST_RECENT {
            self.0.retain(|_, (_, since)| *since + WHILE > at);
        }
        if self.0.len() < MOST_RECENT {
            self.0.insert(refused, (row, at));
        }
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

#[derive(Default)]
pub(super) struct Plan {
    /// In the order in which they were asked for.
    pub(super) fresh: Vec<Fresh>,
    /// Rows that are there, and how they ended.
    pub(super) ended: Vec<(i64, EgressRecord)>,
    /// Rows that are there, and how often the same was refused since.
    pub(super) again: HashMap<i64, u64>,
}

impl Plan {
    /// `row_of` is asked once for the row of each connection that ended.
    pub(super) fn of(
        changes: Vec<Change>,
        recent: &Recent,
        mut row_of: impl FnMut(Entry) -> Option<i64>,
    ) -> Self {
        let mut plan = Self::default();
        let (mut opened, mut refusals) = (HashMap::new(), HashMap::new());
        for change in changes {
            match change {
                Change::Opened(entry, record, passed) => {
                    opened.insert(entry, plan.fresh.len());
                    let open = Some((entry, passed));
                    plan.fresh.push(Fresh { record: *record, open, refused: None });
                }
                Change::Ended(entry, record) => {
                    let place = entry.and_then(|entry| opened.remove(&entry));
                    let begun = place.and_then(|place| plan.fresh.get_mut(place));
                    match (begun, entry.and_then(&mut row_of)) {
                        (Some(begun), _) => {
                            *begun = Fresh { record: *record, open: None, refused: None };
                        }
                        (None, Some(row)) => plan.ended.push((row, *record)),
                        (None, None) => plan.add(*record, recent, &mut refusals),
                    }
                }
            }
        }
        plan
    }

    fn add(
        &mut self,
        record: EgressRecord,
        recent: &Recent,
        refusals: &mut HashMap<Refused, usize>,
    ) {
        let refused = Refused::of(&record);
        if let Some(refused) = &refused {
            if let Some(row) = recent.row(refused, record.at) {
                *self.again.entry(row).or_default() += record.times;
                return;
            }
            match refusals.entry(refused.clone()) {
                hash_map::Entry::Occupied(place) => {
                    if let Some(first) = self.fresh.get_mut(*place.get()) {
                        first.record.times += record.times;
                    }
                    return;
                }
                hash_map::Entry::Vacant(place) => {
                    place.insert(self.fresh.len());
                }
            }
        }
        self.fresh.push(Fresh { record, open: None, refused });
    }
}
