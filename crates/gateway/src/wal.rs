//! Copying a write-ahead log back into its database, away from whoever commits.
//!
//! Left to itself SQLite does this inside of the commit that makes the log long enough, with two waits for the
//! disk: once in a while one caller pays for a thousand pages of others. Here a thread with a connection of
//! its own does it beside the commits that follow. A log that grows faster than it is copied is copied by
//! the commit after all, so its length has an end.

use std::os::raw::c_int;
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use rusqlite::Connection;
use rusqlite::hooks::Wal;

/// Pages in the log from which it is copied. As SQLite has it.
const LONG: c_int = 1000;
/// From here on the commit waits for the copy: 64 MiB.
const TOO_LONG: c_int = 16 * 1024;

/// From now on commits of `connection`, which is in WAL mode, leave the log to a thread. That ends with the
/// connection.
pub(crate) fn tend(connection: &mut Connection, path: &Path) -> rusqlite::Result<()> {
    let (long, told) = sync_channel(1);
    let path = path.to_owned();
    let spawned = thread::Builder::new().name("wal".to_owned()).spawn(move || copy(&path, &told));
    spawned.map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))?;
    connection.wal_hook(Some(move |wal: &mut Wal, pages| committed(wal, pages, &long)))
}

fn committed(wal: &mut Wal, pages: c_int, long: &SyncSender<()>) -> rusqlite::Result<()> {
    if pages >= TOO_LONG {
        return wal.checkpoint();
    }
    if pages >= LONG {
        // It is told already, or has ended, and then the log gets too long.
        let _ = long.try_send(());
    }
    Ok(())
}

fn copy(path: &Path, told: &Receiver<()>) {
    while told.recv().is_ok() {
        // Opened for each: a connection that stays would be the one that closes the database.
        let copied = Connection::open(path)
            .and_then(|connection| connection.query_row("PRAGMA wal_checkpoint", [], |_| Ok(())));
        if let Err(error) = copied {
            tracing::warn!(path = %path.display(), %error, "cannot copy a write-ahead log back");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    fn open(path: &Path) -> Connection {
        let mut connection = Connection::open(path).unwrap();
        connection.pragma_update(None, "journal_mode", "WAL").unwrap();
        connection.pragma_update(None, "synchronous", "OFF").unwrap();
        connection.execute_batch("CREATE TABLE IF NOT EXISTS t (a BLOB)").unwrap();
        tend(&mut connection, path).unwrap();
        connection
    }

    #[test]
    fn a_long_log_is_copied_while_commits_go_on() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.db");
        let connection = open(&path);
        let size = || std::fs::metadata(&path).unwrap().len();
        let began = Instant::now();
        let mut rows = 0;
        while size() < 4 << 20 {
            assert!(began.elapsed() < Duration::from_secs(60), "the log is not copied");
            connection.execute("INSERT INTO t VALUES (zeroblob(40000))", []).unwrap();
            rows += 1;
        }
        drop(connection);
        let found: u32 =
            open(&path).query_row("SELECT count(*) FROM t", [], |row| row.get(0)).unwrap();
        assert_eq!(found, rows);
    }

    #[test]
    fn a_log_that_nobody_copies_has_an_end() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.db");
        let mut connection = open(&path);
        let (nobody, told) = sync_channel(1);
        drop(told);
        let hook = move |wal: &mut Wal, pages| committed(wal, pages, &nobody);
        connection.wal_hook(Some(hook)).unwrap();
        for _ in 0..40 {
            connection.execute("INSERT INTO t VALUES (zeroblob(4000000))", []).unwrap();
        }
        let log = std::fs::metadata(dir.path().join("a.db-wal")).unwrap().len();
        assert!(log < 80 << 20, "{log}");
    }
}
