//! What went out: as many connections as the owner wants, in `egress.db`.
//!
//! ```text
//!  opened, ended ─▶ queue ─▶ writer thread ─▶ egress.db, one transaction for all that waited
//!                              └─▶ followers
//! ```
//! A connection has a row from the moment it is open, which its end completes: what a gateway that was
//! killed had open is in the record. One that ends before its row was written costs one row all the same.
//!
//! Whoever adds a record never waits: when the disk is so slow that the queue is full, the record is
//! counted as lost. The end of one whose beginning was taken always has room. The file is apart from
//! `control.db`, so that traffic cannot hold up the control plane, and a power cut may take the last
//! seconds of it.

mod batch;
mod keep;
mod table;
#[cfg(test)]
mod tests;
mod writer;

use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};

use nacre_wire::egress::EgressRecord;
use tokio::sync::{broadcast, oneshot};

use table::Table;
use writer::Writer;

/// Records that may wait for the disk.
const QUEUE: usize = 8192;
/// Records that a follower may be behind.
const BEHIND: usize = 1024;

enum Job {
    Opened { entry: Entry, record: Box<EgressRecord>, passed: Arc<Passed> },
    Ended { entry: Option<Entry>, record: Box<EgressRecord> },
    Read { query: Query, answer: oneshot::Sender<rusqlite::Result<Vec<EgressRecord>>> },
}

/// A connection that the log was told is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Entry(u64);

/// What has passed over a connection so far.
#[derive(Debug, Default)]
pub(crate) struct Passed {
    pub(crate) sent: AtomicU64,
    pub(crate) received: AtomicU64,
}

impl Passed {
    pub(crate) fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    pub(crate) fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }
}

/// Which records.
#[derive(Debug, Clone, Default)]
pub(crate) struct Query {
    pub(crate) sandbox_id: Option<String>,
    pub(crate) before: Option<i64>,
    pub(crate) limit: u32,
    pub(crate) refused: bool,
    /// Without those that are open.
    pub(crate) ended: bool,
}

#[derive(Clone)]
pub(crate) struct Log(Arc<Inner>);

struct Inner {
    queue: Mutex<Option<mpsc::Sender<Job>>>,
    /// Those in the queue that the disk has to keep up with.
    waiting: Arc<AtomicUsize>,
    writer: Mutex<Option<std::thread::JoinHandle<()>>>,
    followers: broadcast::Sender<Arc<EgressRecord>>,
    lost: Arc<AtomicU64>,
    next: AtomicU64,
}

impl Log {
    /// Keeps `most` connections that were made, and a part as many that were not.
    pub(crate) fn open(path: &Path, most: u64) -> rusqlite::Result<Self> {
        let table = Table::open(path, most)?;
        let (queue, jobs) = mpsc::channel();
        let log = Self::with(queue);
        let writer = Writer::new(
            table,
            log.0.followers.clone(),
            Arc::clone(&log.0.lost),
            Arc::clone(&log.0.waiting),
        );
        let thread = std::thread::Builder::new()
            .name("egress-log".to_owned())
            .spawn(move || writer.run(&jobs))
            .map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))?;
        *lock(&log.0.writer) = Some(thread);
        Ok(log)
    }

    fn with(queue: mpsc::Sender<Job>) -> Self {
        Self(Arc::new(Inner {
            queue: Mutex::new(Some(queue)),
            waiting: Arc::default(),
            writer: Mutex::default(),
            followers: broadcast::channel(BEHIND).0,
            lost: Arc::default(),
            next: AtomicU64::new(0),
        }))
    }

    /// The connection is there. `None` when there was no room for it: then its end is all there will be.
    pub(crate) fn opened(&self, record: EgressRecord, passed: &Arc<Passed>) -> Option<Entry> {
        let entry = Entry(self.0.next.fetch_add(1, Ordering::Relaxed));
        let (record, passed) = (Box::new(record), Arc::clone(passed));
        self.add(Job::Opened { entry, record, passed }).then_some(entry)
    }

    /// It has ended, or was not made. Its `id` is chosen by the writer.
    pub(crate) fn ended(&self, entry: Option<Entry>, record: EgressRecord) {
        if !self.add(Job::Ended { entry, record: Box::new(record) }) {
            self.0.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn add(&self, job: Job) -> bool {
        // There are no more of those than connections that are open.
        let has_room = matches!(job, Job::Ended { entry: Some(_), .. });
        if !has_room && self.0.waiting.fetch_add(1, Ordering::Relaxed) >= QUEUE {
            self.0.waiting.fetch_sub(1, Ordering::Relaxed);
            return false;
        }
        lock(&self.0.queue).as_ref().is_some_and(|queue| queue.send(job).is_ok())
    }

    /// Newest first. All that was added before is there.
    pub(crate) async fn read(&self, query: Query) -> Result<Vec<EgressRecord>, String> {
        let (answer, read) = oneshot::channel();
        let queue = lock(&self.0.queue).clone().ok_or("the log is closed")?;
        queue.send(Job::Read { query, answer }).map_err(|_| "the log is closed")?;
        // Another clone of it would keep the writer going.
        drop(queue);
        let read = read.await.map_err(|_| "the log is closed")?;
        read.map_err(|error| format!("egress.db: {error}"))
    }

    /// What ends from now on, in the order it is written.
    pub(crate) fn follow(&self) -> broadcast::Receiver<Arc<EgressRecord>> {
        self.0.followers.subscribe()
    }

    pub(crate) fn lost(&self) -> u64 {
        self.0.lost.load(Ordering::Relaxed)
    }

    /// Returns when everything that was added is written, and what is still open is said to have ended.
    pub(crate) async fn close(&self) {
        drop(lock(&self.0.queue).take());
        let writer = lock(&self.0.writer).take();
        if let Some(writer) = writer {
            let _ = tokio::task::spawn_blocking(|| writer.join()).await;
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
