use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::seal::{seal, unseal};
use crate::checkpoint::{Author, Cause, Checkpoint, CheckpointId, Counts, Notes};
use crate::delta::{Change, Delta};
use crate::error::{Error, Result};

/// The log.
pub(crate) struct Checkpoints<'a>(pub(crate) &'a Connection);

/// A checkpoint to be.
#[derive(Debug)]
pub(crate) struct New<'a> {
    pub(crate) cause: Cause,
    pub(crate) authors: &'a [Author],
    pub(crate) label: Option<&'a str>,
    pub(crate) notes: Notes,
    pub(crate) delta: &'a Delta,
    /// Milliseconds since 1970, as the clock says.
    pub(crate) time: i64,
}

/// Which checkpoints to list.
#[derive(Debug, Clone, Default)]
pub(crate) struct Filter {
    /// Only older ones than this.
    pub(crate) before: Option<CheckpointId>,
    pub(crate) after: Option<CheckpointId>,
}

macro_rules! select {
    ($columns:literal, $rest:literal) => {
        concat!(
            "select id, time, cause, authors, label, added, changed, removed, notes",
            $columns,
            " from checkpoint ",
            $rest
        )
    };
}

impl Checkpoints<'_> {
    pub(crate) fn append(&self, new: New<'_>) -> Result<Checkpoint> {
        let counts = count(new.delta);
        // A clock that went back must not make the log go back.
        let time = self.latest()?.map_or(new.time, |latest| latest.time.max(new.time));
        let delta = seal(self.newest()?, new.delta)?;
        self.0
            .prepare_cached(
                "insert into checkpoint \
                 (time, cause, authors, label, added, changed, removed, notes, delta) \
                 values (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            )?
            .execute(params![
                time,
                json(&new.cause)?,
                json(new.authors)?,
                new.label,
                counts.added.cast_signed(),
                counts.changed.cast_signed(),
                counts.removed.cast_signed(),
                json(&new.notes)?,
                delta,
            ])?;
        Ok(Checkpoint {
            id: self.0.last_insert_rowid().cast_unsigned(),
            time,
            cause: new.cause,
            authors: new.authors.to_vec(),
            label: new.label.map(str::to_owned),
            counts,
            notes: new.notes,
        })
    }

    pub(crate) fn latest(&self) -> Result<Option<Checkpoint>> {
        let mut statement = self.0.prepare_cached(select!("", "order by id desc limit 1"))?;
        statement.query_row([], |row| Ok(checkpoint(row))).optional()?.transpose()
    }

    pub(crate) fn oldest(&self) -> Result<Option<Checkpoint>> {
        let mut statement = self.0.prepare_cached(select!("", "order by id limit 1"))?;
        statement.query_row([], |row| Ok(checkpoint(row))).optional()?.transpose()
    }

    pub(crate) fn get(&self, id: CheckpointId) -> Result<Checkpoint> {
        let mut statement = self.0.prepare_cached(select!("", "where id = ?"))?;
        let found =
            statement.query_row([id.cast_signed()], |row| Ok(checkpoint(row))).optional()?;
        found.transpose()?.ok_or(Error::NoCheckpoint(id))
    }

    pub(crate) fn delta(&self, id: CheckpointId) -> Result<Delta> {
        Ok(self.record(id)?.1)
    }

    /// The one before, be it there or not, and the changes since.
    fn record(&self, id: CheckpointId) -> Result<(CheckpointId, Delta)> {
        let mut statement = self.0.prepare_cached("select delta from checkpoint where id = ?")?;
        let found = statement
            .query_row([id.cast_signed()], |row| Ok(record(id, row.get_ref(0)?)))
            .optional()?;
        found.transpose()?.ok_or(Error::NoCheckpoint(id))
    }

    /// The newest that was ever made. It is never dropped.
    fn newest(&self) -> Result<CheckpointId> {
        let mut statement =
            self.0.prepare_cached("select seq from sqlite_sequence where name = 'checkpoint'")?;
        let newest: Option<i64> = statement.query_row([], |row| row.get(0)).optional()?;
        Ok(newest.unwrap_or(0).cast_unsigned())
    }

    /// The last one made at or before a time.
    pub(crate) fn at(&self, time: i64) -> Result<Option<CheckpointId>> {
        let id: Option<i64> =
            self.0.query_row("select max(id) from checkpoint where time <= ?", [time], |row| {
                row.get(0)
            })?;
        Ok(id.map(i64::cast_unsigned))
    }

    /// Newest first, until `each` says that it has enough.
    pub(crate) fn newest_first(
        &self,
        filter: &Filter,
        mut each: impl FnMut(Checkpoint) -> Result<More>,
    ) -> Result<()> {
        let mut statement =
            self.0.prepare_cached(select!("", "where id < ? and id > ? order by id desc"))?;
        let mut rows = statement.query(params![
            filter.before.map_or(i64::MAX, u64::cast_signed),
            filter.after.map_or(0, u64::cast_signed)
        ])?;
        while let Some(row) = rows.next()? {
            if each(checkpoint(row)?)? == More::No {
                break;
            }
        }
        Ok(())
    }

    /// Everything that happened after a checkpoint, newest first.
    pub(crate) fn deltas_after(
        &self,
        after: CheckpointId,
        mut each: impl FnMut(CheckpointId, Delta) -> Result<More>,
    ) -> Result<()> {
        let mut statement = self
            .0
            .prepare_cached("select id, delta from checkpoint where id > ? order by id desc")?;
        let mut rows = statement.query([after.cast_signed()])?;
        let gap = |id| Error::damaged(format!("checkpoint {id} is missing"));
        let mut due = self.newest()?;
        while let Some(row) = rows.next()? {
            let id = row.get::<_, i64>(0)?.cast_unsigned();
            if id != due {
                return Err(gap(due));
            }
            let (previous, delta) = record(id, row.get_ref(1)?)?;
            due = previous;
            if each(id, delta)? == More::No {
                return Ok(());
            }
        }
        // Before the oldest that is kept there may have been others.
        if after != 0 && due != after { Err(gap(due)) } else { Ok(()) }
    }

    pub(crate) fn set_label(&self, id: CheckpointId, label: Option<&str>) -> Result<()> {
        let changed = self
            .0
            .prepare_cached("update checkpoint set label = ? where id = ?")?
            .execute(params![label, id.cast_signed()])?;
        if changed == 0 { Err(Error::NoCheckpoint(id)) } else { Ok(()) }
    }

    /// For one whose record does not hold the changes it stands for.
    pub(crate) fn set_counts(&self, id: CheckpointId, counts: Counts) -> Result<()> {
        self.0
            .prepare_cached(
                "update checkpoint set added = ?, changed = ?, removed = ? where id = ?",
            )?
            .execute(params![
                counts.added.cast_signed(),
                counts.changed.cast_signed(),
                counts.removed.cast_signed(),
                id.cast_signed(),
            ])?;
        Ok(())
    }

    pub(crate) fn remove(&self, id: CheckpointId) -> Result<()> {
        self.0
            .prepare_cached("delete from checkpoint where id = ?")?
            .execute([id.cast_signed()])?;
        Ok(())
    }

    /// Puts another record in the place of one and of those before it from `first` on, which are still
    /// there: what retention does when it merges.
    pub(crate) fn replace(
        &self,
        first: CheckpointId,
        checkpoint: &Checkpoint,
        delta: &Delta,
    ) -> Result<()> {
        let counts = count(delta);
        let (previous, _) = self.record(first)?;
        let bytes = seal(previous, delta)?;
        self.0
            .prepare_cached(
                "update checkpoint set added = ?, changed = ?, removed = ?, notes = ?, delta = ? \
                 where id = ?",
            )?
            .execute(params![
                counts.added.cast_signed(),
                counts.changed.cast_signed(),
                counts.removed.cast_signed(),
                json(&checkpoint.notes)?,
                bytes,
                checkpoint.id.cast_signed(),
            ])?;
        Ok(())
    }

    pub(crate) fn count(&self) -> Result<u64> {
        let count: i64 =
            self.0.query_row("select count(*) from checkpoint", [], |row| row.get(0))?;
        Ok(count.cast_unsigned())
    }
}

/// Whether to go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum More {
    Yes,
    No,
}

pub(crate) fn count(delta: &Delta) -> Counts {
    let mut counts = Counts::default();
    for Change { old, new, .. } in delta.changes() {
        match (old, new) {
            (None, Some(_)) => counts.added += 1,
            (Some(_), None) => counts.removed += 1,
            (Some(_), Some(_)) | (None, None) => counts.changed += 1,
        }
    }
    counts
}

fn record(id: CheckpointId, value: ValueRef<'_>) -> Result<(CheckpointId, Delta)> {
    let sealed = value.as_blob().unwrap_or_default();
    unseal(sealed).map_err(|_| Error::damaged(format!("the record of checkpoint {id}")))
}

fn checkpoint(row: &Row<'_>) -> Result<Checkpoint> {
    let id = row.get::<_, i64>(0)?.cast_unsigned();
    let number = |column| row.get::<_, i64>(column).map(i64::cast_unsigned);
    Ok(Checkpoint {
        id,
        time: row.get(1)?,
        cause: from_json(id, row.get_ref(2)?)?,
        authors: from_json(id, row.get_ref(3)?)?,
        label: row.get(4)?,
        counts: Counts { added: number(5)?, changed: number(6)?, removed: number(7)? },
        notes: from_json(id, row.get_ref(8)?)?,
    })
}

pub(super) fn json<T: Serialize + ?Sized>(value: &T) -> Result<String> {
    serde_json::to_string(value).map_err(|error| Error::Invalid(error.to_string()))
}

fn from_json<T: DeserializeOwned>(id: CheckpointId, value: ValueRef<'_>) -> Result<T> {
    let text = value.as_str().unwrap_or_default();
    serde_json::from_str::<T>(text)
        .map_err(|error| Error::damaged(format!("the record of checkpoint {id}: {error}")))
}
