//! What went out: the last connections in memory, and as many as the owner wants in `egress.db`.
//!
//! ```text
//!  connection ends ─▶ Log::add ─▶ bounded queue ─▶ writer thread ─▶ egress.db, one transaction for
//!                        └─▶ followers                              all that waited
//! ```
//! Whoever adds a record never waits: when the disk is so slow that the queue is full, the record is
//! counted as lost. The file is apart from `control.db`, so that traffic cannot hold up the control
//! plane, and a power cut may take the last seconds of it.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use nacre_wire::egress::{EgressRecord, EgressVerdict};
use rusqlite::{Connection, params};
use tokio::sync::{broadcast, mpsc, oneshot};

/// Records that may wait for the disk.
const QUEUE: usize = 8192;
/// Records that a follower may be behind.
const BEHIND: usize = 1024;
/// How long the first record of a batch waits for others.
const GATHER: Duration = Duration::from_millis(200);
/// How often old records are dropped, in records.
const SWEEP_EVERY: i64 = 1000;

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

enum Job {
    Add(Box<EgressRecord>),
    Read { query: Query, answer: oneshot::Sender<rusqlite::Result<Vec<EgressRecord>>> },
}

/// Which records.
#[derive(Debug, Clone, Default)]
pub(crate) struct Query {
    pub(crate) sandbox_id: Option<String>,
    pub(crate) before: Option<i64>,
    pub(crate) limit: u32,
    pub(crate) refused: bool,
}

#[derive(Clone)]
pub(crate) struct Log {
    queue: Arc<Mutex<Option<mpsc::Sender<Job>>>>,
    writer: Arc<Mutex<Option<std::thread::JoinHandle<()>>>>,
    followers: broadcast::Sender<Arc<EgressRecord>>,
    lost: Arc<AtomicU64>,
}

impl Log {
    pub(crate) fn open(path: &Path, most: u64) -> rusqlite::Result<Self> {
        let connection = Connection::open(path)?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "NORMAL")?;
        connection.execute_batch(SCHEMA)?;
        let (queue, jobs) = mpsc::channel(QUEUE);
        let (followers, _) = broadcast::channel(BEHIND);
        let tell = followers.clone();
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let writer = std::thread::Builder::new()
            .name("egress-log".to_owned())
            .spawn(move || write(connection, jobs, most, &tell))
            .map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))?;
        Ok(Self {
            queue: Arc::new(Mutex::new(Some(queue))),
            writer: Arc::new(Mutex::new(Some(writer))),
            followers,
            lost: Arc::default(),
        })
    }

    /// Its `id` is chosen by the writer.
    pub(crate) fn add(&self, record: EgressRecord) {
        let queue = lock(&self.queue);
        let sent =
            queue.as_ref().is_some_and(|queue| queue.try_send(Job::Add(Box::new(record))).is_ok());
        if !sent {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Newest first. All that was added before is there.
    pub(crate) async fn read(&self, query: Query) -> Result<Vec<EgressRecord>, String> {
        let (answer, read) = oneshot::channel();
        let queue = lock(&self.queue).clone().ok_or("the log is closed")?;
        queue.send(Job::Read { query, answer }).await.map_err(|_| "the log is closed")?;
        let read = read.await.map_err(|_| "the log is closed")?;
        read.map_err(|error| format!("egress.db: {error}"))
    }

    /// What is added from now on, in the order it is written.
    pub(crate) fn follow(&self) -> broadcast::Receiver<Arc<EgressRecord>> {
        self.followers.subscribe()
    }

    pub(crate) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Returns when everything that was added is written.
    pub(crate) async fn close(&self) {
        drop(lock(&self.queue).take());
        let writer = lock(&self.writer).take();
        if let Some(writer) = writer {
            let _ = tokio::task::spawn_blocking(|| writer.join()).await;
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs until the log is closed, on a thread of its own.
fn write(
    mut connection: Connection,
    mut jobs: mpsc::Receiver<Job>,
    most: i64,
    followers: &broadcast::Sender<Arc<EgressRecord>>,
) {
    while let Some(job) = jobs.blocking_recv() {
        let mut batch = Vec::new();
        let mut reads = Vec::new();
        let mut sort = |job| match job {
            Job::Add(record) => batch.push(*record),
            Job::Read { query, answer } => reads.push((query, answer)),
        };
        let waits = matches!(job, Job::Add(_)) && jobs.is_empty();
        sort(job);
        if waits {
            std::thread::sleep(GATHER);
        }
        while let Ok(job) = jobs.try_recv() {
            sort(job);
        }
        match insert(&mut connection, &mut batch, most) {
            Ok(()) => {
                for record in batch {
                    // Nobody may be listening.
                    let _ = followers.send(Arc::new(record));
                }
            }
            Err(error) => tracing::warn!(%error, records = batch.len(), "egress.db: not written"),
        }
        for (query, answer) in reads {
            let _ = answer.send(select(&connection, &query));
        }
    }
}

fn insert(
    connection: &mut Connection,
    batch: &mut [EgressRecord],
    most: i64,
) -> rusqlite::Result<()> {
    if batch.is_empty() {
        return Ok(());
    }
    let transaction = connection.transaction()?;
    let mut last = 0;
    {
        let mut statement = transaction.prepare_cached(
            "INSERT INTO egress (at, sandbox, sandbox_id, run, host, port, address, verdict,
             reason, sent, received, duration_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        )?;
        for record in batch.iter_mut() {
            last = statement.insert(params![
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
            ])?;
            record.id = last;
        }
    }
    let first = last - i64::try_from(batch.len()).unwrap_or(0);
    if first / SWEEP_EVERY != last / SWEEP_EVERY {
        transaction.execute("DELETE FROM egress WHERE id <= ?", [last.saturating_sub(most)])?;
    }
    transaction.commit()
}

fn select(connection: &Connection, query: &Query) -> rusqlite::Result<Vec<EgressRecord>> {
    let mut statement = connection.prepare_cached(
        "SELECT id, at, sandbox, sandbox_id, run, host, port, address, verdict, reason, sent,
         received, duration_ms FROM egress
         WHERE id < ?1 AND (?2 IS NULL OR sandbox_id = ?2)
         AND (?4 = 0 OR verdict IN ('refused', 'cut')) ORDER BY id DESC LIMIT ?3",
    )?;
    let before = query.before.unwrap_or(i64::MAX);
    let rows = statement.query_map(
        params![before, query.sandbox_id, query.limit, query.refused],
        |row| {
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
            })
        },
    )?;
    rows.collect()
}

fn number(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(host: &str, verdict: EgressVerdict) -> EgressRecord {
        EgressRecord {
            id: 0,
            at: 7,
            sandbox: "live".to_owned(),
            sandbox_id: "sb-1".to_owned(),
            run: None,
            host: host.to_owned(),
            port: 443,
            address: Some("1.1.1.1".to_owned()),
            verdict,
            reason: None,
            sent: 3,
            received: 5,
            duration_ms: 9,
        }
    }

    fn all(limit: u32) -> Query {
        Query { limit, ..Query::default() }
    }

    #[tokio::test]
    async fn records_come_back_as_they_went_in_and_survive_a_restart() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("egress.db");
        let log = Log::open(&path, 100).unwrap();
        let mut follower = log.follow();
        log.add(record("a.example", EgressVerdict::Allowed));
        log.add(record("b.example", EgressVerdict::Refused));
        assert_eq!(follower.recv().await.unwrap().id, 1);
        log.close().await;
        let log = Log::open(&path, 100).unwrap();
        let read = log.read(all(10)).await.unwrap();
        let first = EgressRecord { id: 1, ..record("a.example", EgressVerdict::Allowed) };
        let second = EgressRecord { id: 2, ..record("b.example", EgressVerdict::Refused) };
        assert_eq!(read, [second.clone(), first.clone()]);
        assert_eq!(log.read(Query { before: Some(2), ..all(10) }).await.unwrap(), [first]);
        assert_eq!(log.read(Query { refused: true, ..all(10) }).await.unwrap(), [second]);
        let other = Query { sandbox_id: Some("sb-2".to_owned()), ..all(10) };
        assert_eq!(log.read(other).await.unwrap(), []);
    }

    #[tokio::test]
    async fn only_so_many_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let log = Log::open(&dir.path().join("egress.db"), 500).unwrap();
        for _ in 0..3000 {
            log.add(record("a.example", EgressVerdict::Allowed));
        }
        let kept = log.read(all(5000)).await.unwrap();
        assert_eq!(kept.first().map(|record| record.id), Some(3000));
        assert!((500..=500 + 1000).contains(&kept.len()), "{}", kept.len());
        assert_eq!(log.lost(), 0);
    }

    #[test]
    fn whoever_adds_never_waits_and_what_is_lost_is_counted() {
        let (queue, _nobody_reads) = mpsc::channel(1);
        let log = Log {
            queue: Arc::new(Mutex::new(Some(queue))),
            writer: Arc::default(),
            followers: broadcast::channel(1).0,
            lost: Arc::default(),
        };
        for _ in 0..4 {
            log.add(record("a.example", EgressVerdict::Allowed));
        }
        assert_eq!(log.lost(), 3);
    }
}
