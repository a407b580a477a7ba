//! `usage.db`: every call, from the moment before it is made.
//!
//! One thread owns the connection. What arrives while it writes is written together in the next
//! transaction, so that many calls at once cost few. A commit is in the kernel's hands when it
//! returns and is not waited for on disk (`synchronous = NORMAL`): a killed gateway loses nothing,
//! a power cut loses at most the last moments of what is, after all, an estimate.
//!
//! A row is written before its call goes out (`open`) and completed after. What is `open` when the
//! gateway starts was under way when it died: its reservation counts (`kept`).

mod read;
mod rows;

use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use nacre_wire::{ApiError, ErrorKind};
use rusqlite::{Connection, Transaction};
use tokio::sync::oneshot;

pub(crate) use rows::{Begun, Ended, Outcome};

use crate::{prompt, wal};

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
/// Written together at most.
const BATCH: usize = 256;
/// Calls are kept for so long, and so many of them.
const KEPT_MS: u64 = 400 * 24 * 60 * 60 * 1000;
const MOST: i64 = 1_000_000;

type Work = Box<dyn FnOnce(&mut Connection) + Send>;

enum Message {
    Begin(Box<Begun>, oneshot::Sender<rusqlite::Result<i64>>),
    End(Box<Ended>),
    Work(Work),
}

/// Cheap to clone. The thread ends with the last of them.
#[derive(Clone)]
pub(crate) struct Ledger(Sender<Message>);

impl Ledger {
    pub(crate) fn open(path: &Path) -> Result<Self, String> {
        let connection = prepare(path).map_err(|error| format!("usage.db: {error}"))?;
        let (sender, receiver) = channel();
        thread::Builder::new()
            .name("usage".to_owned())
            .spawn(move || {
                prompt::prompt();
                run(connection, &receiver);
            })
            .map_err(|error| format!("usage.db: {error}"))?;
        Ok(Self(sender))
    }

    /// Returns when the row is written. Without it no call is made.
    pub(crate) async fn begin(&self, call: Begun) -> Result<i64, ApiError> {
        let (reply, written) = oneshot::channel();
        let lost = || ApiError::new(ErrorKind::Internal, "usage.db is not written any more");
        self.0.send(Message::Begin(Box::new(call), reply)).map_err(|_| lost())?;
        written.await.map_err(|_| lost())?.map_err(|error| failed(&error))
    }

    /// Never waits: it is told from where nobody could.
    pub(crate) fn end(&self, call: Ended) {
        if self.0.send(Message::End(Box::new(call))).is_err() {
            tracing::error!("the end of a model call was not written down");
        }
    }

    /// Behind everything that was told before.
    async fn ask<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, ApiError> {
        let (reply, answer) = oneshot::channel();
        let work: Work = Box::new(move |connection| {
            let _ = reply.send(work(connection));
        });
        let lost = || ApiError::new(ErrorKind::Internal, "usage.db is not read any more");
        self.0.send(Message::Work(work)).map_err(|_| lost())?;
        answer.await.map_err(|_| lost())?.map_err(|error| failed(&error))
    }
}

fn failed(error: &rusqlite::Error) -> ApiError {
    ApiError::new(ErrorKind::Internal, format!("usage.db: {error}"))
}

fn prepare(path: &Path) -> rusqlite::Result<Connection> {
    let mut connection = Connection::open(path)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    connection.pragma_update(None, "foreign_keys", "ON")?;
    let version: u32 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let transaction = connection.transaction()?;
    if version == 0 {
        transaction.execute_batch(SCHEMA)?;
        transaction.pragma_update(None, "user_version", 1)?;
    }
    transaction.execute("UPDATE calls SET state = 'kept' WHERE state = 'open'", [])?;
    let oldest = crate::clock::now_ms().saturating_sub(KEPT_MS);
    transaction.execute(
        "DELETE FROM calls WHERE at < ? OR id <= (SELECT max(id) FROM calls) - ?",
        rusqlite::params![i64::try_from(oldest).unwrap_or(0), MOST],
    )?;
    transaction.commit()?;
    wal::tend(&mut connection, path)?;
    Ok(connection)
}

fn run(mut connection: Connection, messages: &Receiver<Message>) {
    while let Ok(first) = messages.recv() {
        let mut batch = vec![first];
        batch.extend(messages.try_iter().take(BATCH - 1));
        write(&mut connection, batch);
    }
}

/// Calls in one transaction, other work by itself and in its turn.
fn write(connection: &mut Connection, batch: Vec<Message>) {
    let mut messages = batch.into_iter().peekable();
    while messages.peek().is_some() {
        let calls: Vec<_> =
            std::iter::from_fn(|| messages.next_if(|message| !matches!(message, Message::Work(_))))
                .collect();
        if !calls.is_empty() {
            write_calls(connection, calls);
        }
        if let Some(Message::Work(work)) =
            messages.next_if(|message| matches!(message, Message::Work(_)))
        {
            work(connection);
        }
    }
}

fn write_calls(connection: &mut Connection, calls: Vec<Message>) {
    let mut begun = Vec::new();
    let written = connection.transaction().and_then(|transaction| {
        for call in calls {
            write_call(&transaction, call, &mut begun);
        }
        transaction.commit()
    });
    if let Err(error) = &written {
        tracing::error!(%error, "usage.db cannot be written");
    }
    for (reply, row) in begun {
        // Nobody goes on with a row that was not kept.
        let row = row.and_then(|row| match written {
            Ok(()) => Ok(row),
            Err(_) => Err(rusqlite::Error::QueryReturnedNoRows),
        });
        let _ = reply.send(row);
    }
}

type Begins = Vec<(oneshot::Sender<rusqlite::Result<i64>>, rusqlite::Result<i64>)>;

fn write_call(transaction: &Transaction<'_>, call: Message, begun: &mut Begins) {
    match call {
        Message::Begin(call, reply) => begun.push((reply, call.insert(transaction))),
        Message::End(call) => {
            if let Err(error) = call.update(transaction) {
                tracing::error!(%error, "the end of a model call was not written down");
            }
        }
        Message::Work(_) => {}
    }
}

#[cfg(test)]
mod tests;
