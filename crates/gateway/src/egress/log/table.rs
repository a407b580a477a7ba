//! `egress.db`: its one table, read and written.

use std::path::Path;

use nacre_wire::egress::{EgressRecord, EgressVerdict};
use rusqlite::{Connection, Transaction, params};

use super::Query;
use super::keep::{most_of, share};

const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS egress (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        at INTEGER NOT NULL,
        sandbox TEXT NOT NULL,
        sandbox_id TEXT NOT NULL,
        run TEXT,
        host TEXT NOT NULL,
        port INTEGER NOT NULL,
        address TEXT,
        verdict TEXT NOT NULL,
        reason TEXT,
        sent INTEGER NOT NULL,
        received INTEGER NOT NULL,
        duration_ms INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX IF NOT EXISTS egress_by_sandbox ON egress (sandbox_id, id);
";
/// Since connections have a row while they are open.
const SINCE: &str = "
    ALTER TABLE egress ADD COLUMN times INTEGER NOT NULL DEFAULT 1;
    ALTER TABLE egress ADD COLUMN made INTEGER
        GENERATED ALWAYS AS (verdict NOT IN ('refused', 'failed')) VIRTUAL;
    CREATE INDEX egress_by_kind ON egress (made, sandbox_id, id);
";

pub(super) struct Table {
    connection: Connection,
    most: u64,
}

/// A row of a connection that is open, with what is known of it now.
pub(super) struct Sofar {
    pub(super) id: i64,
    pub(super) sent: u64,
    pub(super) received: u64,
    pub(super) duration_ms: u64,
}

impl Table {
    pub(super) fn open(path: &Path, most: u64) -> rusqlite::Result<Self> {
        let mut connection = Connection::open(path)?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "NORMAL")?;
        let transaction = connection.transaction()?;
        transaction.execute_batch(SCHEMA)?;
        let has_times = "SELECT count(*) FROM pragma_table_xinfo('egress') WHERE name = 'times'";
        if transaction.query_row(has_times, [], |row| row.get::<_, i64>(0))? == 0 {
            transaction.execute_batch(SINCE)?;
        }
        transaction.commit()?;
        let mut table = Self { connection, most };
        table.end_open("the gateway was killed")?;
        table.sweep()?;
        Ok(table)
    }

    pub(super) fn begin(&mut self) -> rusqlite::Result<Batch<'_>> {
        Ok(Batch(self.connection.transaction()?))
    }

    /// Whatever is open is so no longer.
    pub(super) fn end_open(&mut self, why: &str) -> rusqlite::Result<()> {
        let end = "UPDATE egress SET verdict = 'broken', reason = ? WHERE verdict = 'open'";
        self.connection.execute(end, [why]).map(|_| ())
    }

    /// Drops the oldest of whoever has most; says whether there were any to drop.
    pub(super) fn sweep(&mut self) -> rusqlite::Result<bool> {
        let transaction = self.connection.transaction()?;
        let mut dropped = 0;
        for made in [true, false] {
            let counts = counts(&transaction, made)?;
            let limit =
                share(counts.iter().map(|(_, count)| *count).collect(), most_of(made, self.most));
            for (sandbox, count) in counts {
                let Some(over @ 1..) = count.checked_sub(limit) else { continue };
                // What is open has its end before it, and there are not many.
                dropped += transaction.execute(
                    "DELETE FROM egress WHERE id IN (SELECT id FROM egress WHERE made = ?
                     AND sandbox_id = ? AND verdict <> 'open' ORDER BY id LIMIT ?)",
                    params![made, sandbox, number(over)],
                )?;
            }
        }
        transaction.commit()?;
        Ok(dropped > 0)
    }

    pub(super) fn select(&self, query: &Query) -> rusqlite::Result<Vec<EgressRecord>> {
        let mut statement = self.connection.prepare_cached(
            "SELECT id, at, sandbox, sandbox_id, run, host, port, address, verdict, reason, sent,
             received, duration_ms, times FROM egress
             WHERE id < ?1 AND (?2 IS NULL OR sandbox_id = ?2)
             AND (?4 = 0 OR verdict IN ('refused', 'cut'))
             AND (?5 = 0 OR verdict <> 'open') ORDER BY id DESC LIMIT ?3",
        )?;
        let before = query.before.unwrap_or(i64::MAX);
        let wanted = params![before, query.sandbox_id, query.limit, query.refused, query.ended];
        let rows = statement.query_map(wanted, |row| {
            let count = |at| row.get::<_, i64>(at).map(|n| u64::try_from(n).unwrap_or(0));
            Ok(EgressRecord {
                id: row.get(0)?,
                at: count(1)?,
                sandbox: row.get(2)?,
                sandbox_id: row.get(3)?,
                run: row.get(4)?,
                host: row.get(5)?,
                port: row.get(6)?,
                address: row.get(7)?,
                verdict: EgressVerdict::parse(&row.get::<_, String>(8)?),
                reason: row.get(9)?,
                sent: count(10)?,
                received: count(11)?,
                duration_ms: count(12)?,
                times: count(13)?,
            })
        })?;
        rows.collect()
    }
}

fn counts(transaction: &Transaction<'_>, made: bool) -> rusqlite::Result<Vec<(String, u64)>> {
    let count = "SELECT sandbox_id, count(*) FROM egress WHERE made = ? GROUP BY sandbox_id";
    let mut statement = transaction.prepare_cached(count)?;
    let rows = statement.query_map([made], |row| {
        Ok((row.get(0)?, u64::try_from(row.get::<_, i64>(1)?).unwrap_or(0)))
    })?;
    rows.collect()
}

/// All of it, or nothing.
pub(super) struct Batch<'a>(Transaction<'a>);

impl Batch<'_> {
    /// The number of the new row.
    pub(super) fn insert(&self, record: &EgressRecord) -> rusqlite::Result<i64> {
        let mut statement = self.0.prepare_cached(
            "INSERT INTO egress (at, sandbox, sandbox_id, run, host, port, address, verdict, reason,
             sent, received, duration_ms, times) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        )?;
        statement.insert(params![
            number(record.at),
            record.sandbox,
            record.sandbox_id,
            record.run,
            record.host,
            record.port,
            record.address,
            record.verdict.as_str(),
            record.reason,
            number(record.sent),
            number(record.received),
            number(record.duration_ms),
            number(record.times),
        ])
    }

    /// What became of the connection of a row.
    pub(super) fn complete(&self, id: i64, record: &EgressRecord) -> rusqlite::Result<()> {
        let mut statement = self.0.prepare_cached(
            "UPDATE egress SET verdict = ?, reason = ?, sent = ?, received = ?, duration_ms = ?
             WHERE id = ?",
        )?;
        let row = params![
            record.verdict.as_str(),
            record.reason,
            number(record.sent),
            number(record.received),
            number(record.duration_ms),
            id,
        ];
        statement.execute(row).map(|_| ())
    }

    /// So many times more.
    pub(super) fn again(&self, id: i64, times: u64) -> rusqlite::Result<()> {
        let mut statement =
            self.0.prepare_cached("UPDATE egress SET times = times + ? WHERE id = ?")?;
        statement.execute(params![number(times), id]).map(|_| ())
    }

    pub(super) fn freshen(&self, sofar: &Sofar) -> rusqlite::Result<()> {
        let mut statement = self.0.prepare_cached(
            "UPDATE egress SET sent = ?, received = ?, duration_ms = ? WHERE id = ?",
        )?;
        let Sofar { id, sent, received, duration_ms } = *sofar;
        let row = params![number(sent), number(received), number(duration_ms), id];
        statement.execute(row).map(|_| ())
    }

    pub(super) fn commit(self) -> rusqlite::Result<()> {
        self.0.commit()
    }
}

fn number(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
