//! `usage.db`: every call, from the moment before it is made.
//!
//! Who makes a call appends a line to a [journal](journal) and goes on: nobody waits for the database, nor
//! for another thread. One thread owns the connection and folds what is in the journal into it, some times a
//! second while there is something. A killed gateway loses nothing, a power cut at most the last moments of
//! what is, after all, an estimate ([0029](../../../../../docs/decisions/0029-a-line-before-a-row.md)).
//!
//! A row is there before its call goes out (`open`) and completed after. What is `open` when the
//! gateway starts was under way when it died: its reservation counts (`kept`). Calls that were not made have
//! rows too (`refused`), fewer than there were calls, and never push out the others.

mod journal;
mod read;
mod rows;

use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use nacre_wire::{ApiError, ErrorKind};
use rusqlite::Connection;
use tokio::sync::oneshot;

use journal::{Entry, Journal, Turned, What};
pub(crate) use rows::{Begun, Ended, Outcome, Refused};

use crate::wal;

const SCHEMA: &str = "
    CREATE TABLE calls (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        at INTEGER NOT NULL,
        token TEXT NOT NULL,
        sandbox TEXT,
        run TEXT,
        conversation TEXT,
        provider TEXT NOT NULL,
        model TEXT NOT NULL,
        path TEXT NOT NULL,
        state TEXT NOT NULL,
        status INTEGER,
        input INTEGER NOT NULL,
        cached INTEGER NOT NULL DEFAULT 0,
        cache_write INTEGER NOT NULL DEFAULT 0,
        output INTEGER NOT NULL,
        nanodollars INTEGER NOT NULL,
        took_ms INTEGER,
        request_hash BLOB NOT NULL,
        response_hash BLOB
    ) STRICT;
    CREATE INDEX calls_by_time ON calls (at);
    CREATE INDEX calls_by_token ON calls (token);
    CREATE TABLE bodies (
        call INTEGER PRIMARY KEY REFERENCES calls(id) ON DELETE CASCADE,
        request BLOB NOT NULL,
        response BLOB NOT NULL
    ) STRICT;
";
/// Of a call that was refused: why, and how often within a while.
const WITH_REFUSALS: &str = "
    ALTER TABLE calls ADD COLUMN verdict TEXT;
    ALTER TABLE calls ADD COLUMN times INTEGER NOT NULL DEFAULT 1;
    CREATE INDEX calls_refused ON calls (id) WHERE state = 'refused';
";
/// Calls are kept for so long, and so many of them.
const KEPT_MS: u64 = 400 * 24 * 60 * 60 * 1000;
const MOST: i64 = 1_000_000;
const MOST_REFUSED: i64 = 20_000;
/// How long lines wait to be folded together. A fold waits for the disk, and on ext4 whoever writes to any file
/// meanwhile may wait with it: seldom enough that it is not felt in one call of a hundred.
const FOLD: Duration = Duration::from_secs(1);
/// So many that were not folded mean that the database cannot be written: no more calls then.
const MOST_WAITING: usize = 20_000;

type Work = Box<dyn FnOnce(&mut Connection) + Send>;

enum Message {
    /// There is something in the journal.
    Fold,
    Work(Work),
}

/// Cheap to clone. The thread ends with the last of them.
#[derive(Clone)]
pub(crate) struct Ledger {
    desk: Arc<Desk>,
    thread: Sender<Message>,
}

/// Held for one line, never across an await.
struct Desk(Mutex<Writing>);

struct Writing {
    journal: Journal,
    /// The number of the next call.
    next: i64,
}

impl Desk {
    /// What is to be folded, if there is anything.
    fn turn(&self) -> Option<Turned> {
        let mut writing = self.lock();
        (writing.journal.waiting() > 0).then(|| writing.journal.turn())
    }

    fn lock(&self) -> MutexGuard<'_, Writing> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ledger {
    pub(crate) fn open(path: &Path) -> Result<Self, String> {
        let wrong = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        let (mut journal, left) = Journal::open(path).map_err(|error| wrong(&error))?;
        let (connection, next) = prepare(path, &left).map_err(|error| wrong(&error))?;
        journal.forget_all().map_err(|error| wrong(&error))?;
        let desk = Arc::new(Desk(Mutex::new(Writing { journal, next })));
        let (thread, messages) = channel();
        let folding = Folding { connection, desk: desk.clone(), left: None };
        thread::Builder::new()
            .name("usage".to_owned())
            .spawn(move || folding.run(&messages))
            .map_err(|error| wrong(&error))?;
        Ok(Self { desk, thread })
    }

    /// The number of the call, which is written down when this returns. Without it no call is made.
    pub(crate) fn begin(&self, call: Begun) -> Result<i64, ApiError> {
        self.add(What::Begun(call))
    }

    /// The number of the row about calls that are not made.
    pub(crate) fn refuse(&self, call: Refused) -> Result<i64, ApiError> {
        self.add(What::Refused(call))
    }

    fn add(&self, what: What) -> Result<i64, ApiError> {
        let mut writing = self.desk.lock();
        if writing.journal.waiting() >= MOST_WAITING {
            let message = "usage.db cannot be written; the gateway's log says why";
            return Err(ApiError::new(ErrorKind::Internal, message));
        }
        let id = writing.next;
        self.append(&mut writing, Entry { id, what })?;
        writing.next += 1;
        Ok(id)
    }

    pub(crate) fn end(&self, id: i64, call: Ended) {
        self.amend(id, What::Ended(call));
    }

    /// The calls of this row were so many by now.
    pub(crate) fn refused_again(&self, id: i64, times: u64) {
        self.amend(id, What::Again { times });
    }

    fn amend(&self, id: i64, what: What) {
        let mut writing = self.desk.lock();
        if let Err(error) = self.append(&mut writing, Entry { id, what }) {
            tracing::error!(%error, "the end of a model call was not written down");
        }
    }

    fn append(&self, writing: &mut Writing, entry: Entry) -> Result<(), ApiError> {
        let first = writing.journal.append(entry).map_err(|error| failed(&error))?;
        if first && self.thread.send(Message::Fold).is_err() {
            tracing::error!("the thread that writes usage.db has ended");
        }
        Ok(())
    }

    /// Behind everything that was written down before.
    async fn ask<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, ApiError> {
        let (reply, answer) = oneshot::channel();
        let work: Work = Box::new(move |connection| {
            let _ = reply.send(work(connection));
        });
        let lost = || ApiError::new(ErrorKind::Internal, "usage.db is not read any more");
        self.thread.send(Message::Work(work)).map_err(|_| lost())?;
        answer.await.map_err(|_| lost())?.map_err(|error| failed(&error))
    }
}

fn failed(error: &dyn std::fmt::Display) -> ApiError {
    ApiError::new(ErrorKind::Internal, format!("usage.db: {error}"))
}

/// Also the number of the next call. What an earlier gateway left in its journal is on disk afterwards.
fn prepare(path: &Path, left: &[Entry]) -> rusqlite::Result<(Connection, i64)> {
    let mut connection = Connection::open(path)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    // A fold is on disk before its lines go, and nobody waits for it.
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "foreign_keys", "ON")?;
    let version: u32 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let transaction = connection.transaction()?;
    for (number, change) in [(1, SCHEMA), (2, WITH_REFUSALS)] {
        if version < number {
            transaction.execute_batch(change)?;
            transaction.pragma_update(None, "user_version", number)?;
        }
    }
    left.iter().try_for_each(|entry| entry.write(&transaction))?;
    transaction.execute("UPDATE calls SET state = 'kept' WHERE state = 'open'", [])?;
    forget_old(&transaction)?;
    let last = "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'calls'";
    let last: i64 = transaction.query_row(last, [], |row| row.get(0))?;
    transaction.commit()?;
    wal::tend(&mut connection, path)?;
    Ok((connection, last + 1))
}

/// Numbers of calls have gaps, where refusals were, so rows are counted; each kind for itself.
fn forget_old(transaction: &rusqlite::Transaction<'_>) -> rusqlite::Result<()> {
    let oldest = crate::clock::now_ms().saturating_sub(KEPT_MS);
    let oldest = i64::try_from(oldest).unwrap_or(0);
    transaction.execute("DELETE FROM calls WHERE at < ?", [oldest])?;
    transaction.execute(
        "DELETE FROM calls WHERE state = 'refused' AND id <=
            (SELECT id FROM calls WHERE state = 'refused' ORDER BY id DESC LIMIT 1 OFFSET ?)",
        [MOST_REFUSED],
    )?;
    let count = "SELECT (SELECT count(*) FROM calls) - (SELECT count(*) FROM calls WHERE state = 'refused')";
    let made: i64 = transaction.query_row(count, [], |row| row.get(0))?;
    if made > MOST {
        transaction.execute(
            "DELETE FROM calls WHERE id IN
                (SELECT id FROM calls WHERE state <> 'refused' ORDER BY id LIMIT ?)",
            [made - MOST],
        )?;
    }
    Ok(())
}

/// What the thread owns.
struct Folding {
    connection: Connection,
    desk: Arc<Desk>,
    /// What could not be folded yet. Its half of the journal waits for it.
    left: Option<Turned>,
}

impl Folding {
    fn run(mut self, messages: &Receiver<Message>) {
        // A fold can wait for a processor, a call should not: on Linux this is about the thread alone.
        if let Err(error) = rustix::process::nice(10) {
            tracing::debug!(%error, "usage.db is written with the priority of everything else");
        }
        while let Ok(message) = messages.recv() {
            match message {
                Message::Work(work) => self.answer(work),
                Message::Fold => self.gather(messages),
            }
        }
        self.fold();
    }

    /// Lets some lines come together. Who wants to know something does not wait for that.
    fn gather(&mut self, messages: &Receiver<Message>) {
        let mut until = Instant::now() + FOLD;
        loop {
            match messages.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(Message::Work(work)) => self.answer(work),
                Ok(Message::Fold) => {}
                Err(RecvTimeoutError::Timeout) if self.fold() => return,
                // A disk that is full now may have room later.
                Err(RecvTimeoutError::Timeout) => until = Instant::now() + FOLD,
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn answer(&mut self, work: Work) {
        self.fold();
        work(&mut self.connection);
    }

    /// Says whether all that was there when it was asked for is in the database.
    fn fold(&mut self) -> bool {
        let left = self.left.take();
        left.is_none_or(|left| self.settle(left))
            && self.desk.turn().is_none_or(|turned| self.settle(turned))
    }

    fn settle(&mut self, turned: Turned) -> bool {
        if let Err(error) = self.write(&turned.entries) {
            tracing::error!(%error, "usage.db cannot be written");
            self.left = Some(turned);
            return false;
        }
        if let Err(error) = turned.folded() {
            tracing::error!(%error, "the journal of usage.db cannot be emptied");
        }
        true
    }

    fn write(&mut self, entries: &[Entry]) -> rusqlite::Result<()> {
        let transaction = self.connection.transaction()?;
        entries.iter().try_for_each(|entry| entry.write(&transaction))?;
        transaction.commit()
    }
}

impl Entry {
    fn write(&self, transaction: &rusqlite::Transaction<'_>) -> rusqlite::Result<()> {
        match &self.what {
            What::Begun(call) => call.insert(self.id, transaction),
            What::Ended(call) => call.update(self.id, transaction),
            What::Refused(call) => call.insert(self.id, transaction),
            What::Again { times } => rows::again(self.id, *times, transaction),
        }
    }
}

#[cfg(test)]
mod tests;
