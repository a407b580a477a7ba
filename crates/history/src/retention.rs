//! Keeping history within bounds: thinning, pruning, and giving the space back.
//!
//! Old quiet checkpoints are merged first, which loses moments but no later state; then the oldest
//! are dropped until what is kept fits. The present is always kept, and so is what the newest
//! checkpoint needs.

use std::collections::HashSet;

use crate::checkpoint::{Cause, Checkpoint, CheckpointId, What};
use crate::delta::Delta;
use crate::entry::ContentId;
use crate::error::Result;
use crate::history::History;
use crate::log::{self, Checkpoints, Filter, More, State};
use crate::path::TreePath;

const HOUR: i64 = 3_600_000;
const DAY: i64 = 24 * HOUR;

/// How much history to keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Bytes on disk.
    pub quota: u64,
    /// Quiet checkpoints older than this are merged by the hour, in milliseconds.
    pub hourly_after: i64,
    /// And older than this by the day.
    pub daily_after: i64,
}

impl Retention {
    /// Ten gigabytes or a fifth of the disk, whichever is less.
    pub fn for_disk(bytes: u64) -> Self {
        Self {
            quota: (bytes / 5).min(10_000_000_000),
            hourly_after: 2 * DAY,
            daily_after: 30 * DAY,
        }
    }
}

/// What maintenance did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Maintained {
    /// Checkpoints merged into a later one.
    pub merged: u64,
    /// Checkpoints dropped because there was no room.
    pub dropped: u64,
    pub freed_bytes: u64,
    /// The present alone is larger than the quota.
    pub over_quota: bool,
}

impl History {
    /// Merges, drops and compacts as far as needed. `now` in milliseconds since 1970.
    pub fn maintain(&mut self, retention: &Retention, now: i64) -> Result<Maintained> {
        // What is about to go is not to be counted.
        self.sweeper.finish();
        let before = self.disk_bytes()?;
        let mut done = Maintained { merged: self.thin(retention, now)?, ..Maintained::default() };
        if done.merged > 0 {
            self.compact()?;
        }
        while self.disk_bytes()? > retention.quota {
            let dropped = self.drop_oldest()?;
            if dropped == 0 {
                done.over_quota = true;
                break;
            }
            done.dropped += dropped;
            self.compact()?;
        }
        done.freed_bytes = before.saturating_sub(self.disk_bytes()?);
        Ok(done)
    }

    /// Merges neighbours of one hour or day that nobody labelled, authored or undid.
    fn thin(&mut self, retention: &Retention, now: i64) -> Result<u64> {
        let mut log = Vec::new();
        Checkpoints(&self.db).newest_first(&Filter::default(), |checkpoint| {
            log.push(checkpoint);
            Ok(More::Yes)
        })?;
        log.reverse();
        let groups = groups(&log, retention, now);
        let mut merged = 0;
        for group in groups {
            merged += self.merge(&group)?;
        }
        Ok(merged)
    }

    /// The last of a group takes the others in.
    fn merge(&mut self, group: &[&Checkpoint]) -> Result<u64> {
        let Some((last, earlier)) = group.split_last() else { return Ok(0) };
        let tx = self.db.transaction()?;
        let log = Checkpoints(&tx);
        let mut delta = Delta::default();
        let mut merged = (*last).clone();
        for checkpoint in group {
            delta = delta.then(log.delta(checkpoint.id)?);
        }
        for checkpoint in earlier.iter().rev() {
            merged.notes.merged += 1 + checkpoint.notes.merged;
            let mut remarks = checkpoint.notes.remarks.clone();
            remarks.append(&mut merged.notes.remarks);
            merged.notes.remarks = remarks;
        }
        log.replace(group[0].id, &merged, &delta)?;
        for checkpoint in earlier {
            log.remove(checkpoint.id)?;
        }
        tx.commit()?;
        Ok(earlier.len() as u64)
    }

    /// Forgets the oldest tenth, but never the newest checkpoint.
    fn drop_oldest(&mut self) -> Result<u64> {
        let count = Checkpoints(&self.db).count()?;
        let drop = (count / 10).max(1).min(count.saturating_sub(1));
        let tx = self.db.transaction()?;
        for _ in 0..drop {
            if let Some(oldest) = Checkpoints(&tx).oldest()? {
                Checkpoints(&tx).remove(oldest.id)?;
            }
        }
        tx.commit()?;
        Ok(drop)
    }

    /// Makes a bounded part of what checkpoints wrote smaller; for when nobody waits. `go_on` is asked
    /// often, and when it says no, the part is begun again the next time. Says
    /// whether there may be more to do.
    pub fn tidy(&mut self, go_on: &mut dyn FnMut() -> bool) -> Result<bool> {
        log::shorten(&self.db, &self.log);
        let more = self.store.tidy(&mut self.db, go_on)?;
        log::shorten(&self.db, &self.log);
        Ok(more)
    }

    /// Gives back the space of contents that nothing refers to any more.
    pub(crate) fn compact(&mut self) -> Result<()> {
        let live = self.live()?;
        self.store.compact(&mut self.db, &|id| live.contains(id))?;
        self.db.execute_batch("pragma wal_checkpoint(truncate); pragma incremental_vacuum;")?;
        Ok(())
    }

    fn live(&self) -> Result<HashSet<ContentId>> {
        let mut live = HashSet::new();
        State(&self.db).each_below(&TreePath::root(), |recorded| {
            live.extend(recorded.entry.content());
            Ok(())
        })?;
        let log = Checkpoints(&self.db);
        log.deltas_after(0, |_, delta| {
            for change in delta.changes() {
                let sides = [&change.old, &change.new].into_iter().flatten();
                live.extend(sides.filter_map(|entry| entry.content()));
            }
            Ok(More::Yes)
        })?;
        log.newest_first(&Filter::default(), |checkpoint| {
            live.extend(checkpoint.notes.remarks.iter().filter_map(|remark| match &remark.what {
                What::Displaced { content } => content.parse::<ContentId>().ok(),
                What::Torn
                | What::TooLarge { .. }
                | What::Unreadable { .. }
                | What::LeftAlone { .. } => None,
            }));
            Ok(More::Yes)
        })?;
        Ok(live)
    }
}

/// Runs of quiet checkpoints that fall into one hour or day, each at least two long.
fn groups<'a>(log: &'a [Checkpoint], retention: &Retention, now: i64) -> Vec<Vec<&'a Checkpoint>> {
    let undone: HashSet<CheckpointId> = log
        .iter()
        .flat_map(|checkpoint| match &checkpoint.cause {
            Cause::Undo { of, .. } => of.clone(),
            Cause::First | Cause::Change | Cause::Redo { .. } | Cause::Restore { .. } => Vec::new(),
        })
        .collect();
    let bucket = |checkpoint: &Checkpoint| {
        let age = now - checkpoint.time;
        let width = match age {
            _ if age > retention.daily_after => DAY,
            _ if age > retention.hourly_after => HOUR,
            _ => return None,
        };
        let quiet = checkpoint.cause == Cause::Change
            && checkpoint.label.is_none()
            && checkpoint.authors.is_empty()
            && !undone.contains(&checkpoint.id);
        quiet.then(|| (width, checkpoint.time.div_euclid(width)))
    };
    log.chunk_by(|one, other| bucket(one).is_some() && bucket(one) == bucket(other))
        .filter(|group| group.len() > 1)
        .map(|group| group.iter().collect())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkpoint::{Author, Counts, Notes};

    fn checkpoint(id: CheckpointId, time: i64) -> Checkpoint {
        Checkpoint {
            id,
            time,
            cause: Cause::Change,
            authors: Vec::new(),
            label: None,
            counts: Counts::default(),
            notes: Notes::default(),
        }
    }

    #[test]
    fn only_old_quiet_neighbours_of_one_hour_are_merged() {
        let retention = Retention { quota: 0, hourly_after: 10 * HOUR, daily_after: 1000 * HOUR };
        let mut log: Vec<Checkpoint> = [
            (1, 0),
            (2, 1),
            (3, 2), // undone
            (4, 3),
            (5, HOUR - 1), // labelled
            (6, HOUR),
            (7, HOUR + 1),
            (8, HOUR + 2), // by somebody
            (9, HOUR + 3),
            (10, 95 * HOUR), // young
            (11, 95 * HOUR),
        ]
        .map(|(id, time)| checkpoint(id, time))
        .into();
        log[4].label = Some("keep".to_owned());
        log[7].authors = vec![Author::Ssh { session: "s".to_owned() }];
        log.push(Checkpoint {
            cause: Cause::Undo { of: vec![3], within: TreePath::root() },
            ..checkpoint(12, 95 * HOUR)
        });
        let ids: Vec<Vec<u64>> = groups(&log, &retention, 100 * HOUR)
            .iter()
            .map(|group| group.iter().map(|checkpoint| checkpoint.id).collect())
            .collect();
        assert_eq!(ids, [vec![1, 2], vec![6, 7]]);
    }
}
