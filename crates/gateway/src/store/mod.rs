//! `control.db`: what should be true, and who is signed in.
//!
//! One connection behind a mutex, used from blocking threads: every write is a transaction that is
//! on disk when the call returns. Rows are written before the driver acts and corrected after, so
//! a crash in between leaves a row that says what was meant (see `sandboxes::startup`).

mod audit;
mod egress;
mod owner;
mod passkeys;
mod policy_tokens;
mod recovery;
mod roles;
mod sessions;
mod tables;
mod tokens;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::{Connection, OpenFlags, Transaction};

pub(crate) use egress::OwnEgress;
pub(crate) use passkeys::PasskeyRow;
pub(crate) use policy_tokens::PolicyTokenRow;
pub(crate) use roles::Move;
pub(crate) use sessions::{SIGN_IN_LIFETIME, SessionRow};
pub(crate) use tables::{Desired, Row, RunTie};
pub(crate) use tokens::TokenRow;

use crate::{prompt, wal};

/// Each entry brings `user_version` up by one. Append only.
const MIGRATIONS: &[&str] = &[
    "
    CREATE TABLE sandboxes (
        id TEXT PRIMARY KEY,
        name TEXT NOT NULL UNIQUE,
        driver TEXT NOT NULL,
        spec TEXT NOT NULL,
        desired TEXT NOT NULL,
        created_at INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE roles (
        role TEXT PRIMARY KEY,
        sandbox_id TEXT NOT NULL REFERENCES sandboxes(id) ON DELETE CASCADE
    ) STRICT;
    CREATE TABLE sign_in (hash BLOB PRIMARY KEY, expires_at INTEGER NOT NULL) STRICT;
    CREATE TABLE sessions (
        hash BLOB PRIMARY KEY,
        created_at INTEGER NOT NULL,
        expires_at INTEGER NOT NULL
    ) STRICT;
",
    "
    CREATE TABLE swaps (
        id INTEGER PRIMARY KEY,
        at INTEGER NOT NULL,
        kind TEXT NOT NULL,
        live_before TEXT NOT NULL,
        live_after TEXT NOT NULL,
        reason TEXT,
        watched_until INTEGER,
        baseline TEXT,
        verdict TEXT
    ) STRICT;
",
    // Sessions of before had no names to be revoked by; their browsers sign in again.
    "
    DROP TABLE sessions;
    CREATE TABLE sessions (
        id TEXT PRIMARY KEY,
        hash BLOB NOT NULL UNIQUE,
        method TEXT NOT NULL,
        address TEXT,
        agent TEXT,
        created_at INTEGER NOT NULL,
        seen_at INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE owner (
        one INTEGER PRIMARY KEY CHECK (one = 1),
        did TEXT NOT NULL,
        since INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE tokens (
        id TEXT PRIMARY KEY,
        hash BLOB NOT NULL UNIQUE,
        name TEXT NOT NULL UNIQUE,
        scopes TEXT NOT NULL,
        created_at INTEGER NOT NULL,
        expires_at INTEGER,
        used_at INTEGER
    ) STRICT;
    CREATE TABLE recovery_codes (hash BLOB PRIMARY KEY, used_at INTEGER) STRICT;
    CREATE TABLE passkeys (
        id BLOB PRIMARY KEY,
        name TEXT NOT NULL,
        host TEXT NOT NULL,
        key BLOB NOT NULL,
        counter INTEGER NOT NULL,
        created_at INTEGER NOT NULL,
        used_at INTEGER
    ) STRICT;
    CREATE TABLE audit (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        at INTEGER NOT NULL,
        event TEXT NOT NULL,
        who TEXT,
        address TEXT,
        detail TEXT
    ) STRICT;
",
    "
    CREATE TABLE egress_modes (
        sandbox_id TEXT PRIMARY KEY REFERENCES sandboxes(id) ON DELETE CASCADE,
        mode TEXT NOT NULL
    ) STRICT;
    CREATE TABLE egress_rules (
        id INTEGER PRIMARY KEY,
        sandbox_id TEXT NOT NULL REFERENCES sandboxes(id) ON DELETE CASCADE,
        target TEXT NOT NULL,
        effect TEXT NOT NULL,
        private INTEGER NOT NULL,
        UNIQUE (sandbox_id, target)
    ) STRICT;
",
    // `*` stops every provider.
    "
    CREATE TABLE policy_tokens (
        id TEXT PRIMARY KEY,
        hash BLOB NOT NULL UNIQUE,
        name TEXT NOT NULL,
        automatic INTEGER NOT NULL,
        scope TEXT NOT NULL,
        created_at INTEGER NOT NULL,
        expires_at INTEGER
    ) STRICT;
    CREATE TABLE stopped_providers (name TEXT PRIMARY KEY, at INTEGER NOT NULL) STRICT;
",
];

#[derive(Debug, thiserror::Error)]
pub(crate) enum StoreError {
    #[error("control.db: {0}")]
    Sqlite(#[from] rusqlite::Error),
    #[error("control.db was written by a newer nacre (schema {found}, this one knows {known})")]
    Newer { found: usize, known: usize },
    #[error("control.db: {column} of sandbox \"{id}\" is unreadable: {why}")]
    Corrupt { id: String, column: &'static str, why: String },
    #[error("a sandbox called \"{0}\" exists already")]
    NameTaken(String),
    #[error("the role {0} has moved meanwhile")]
    RoleMoved(&'static str),
    #[error("control.db: the task that used it was cut short")]
    Interrupted,
}

/// Cheap to clone; all clones share the connection.
#[derive(Clone)]
pub(crate) struct Store {
    connection: Arc<Mutex<Connection>>,
    /// The write-ahead log, where commits go first.
    log: Arc<Path>,
}

impl Store {
    pub(crate) fn open(path: &Path) -> Result<Self, StoreError> {
        let mut connection = Connection::open_with_flags(path, OpenFlags::default())?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.pragma_update(None, "foreign_keys", "ON")?;
        migrate(&mut connection)?;
        wal::tend(&mut connection, path)?;
        let mut log = path.as_os_str().to_owned();
        log.push("-wal");
        let log = PathBuf::from(log).into();
        Ok(Self { connection: Arc::new(Mutex::new(connection)), log })
    }

    /// Runs `work` on a blocking thread. It runs to its end even when the caller goes away.
    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let connection = self.connection.clone();
        tokio::task::spawn_blocking(move || {
            prompt::prompt();
            // A panic elsewhere rolled its transaction back, so the connection is still good.
            work(&mut connection.lock().unwrap_or_else(PoisonError::into_inner))
        })
        .await
        .map_err(|_| StoreError::Interrupted)?
    }
}

/// A transaction that is whole and in the kernel's hands when this returns, so that a gateway that is killed
/// loses nothing, and is not waited for on disk. [`wait_for_disk`] does.
fn commit_at_once<T>(
    connection: &mut Connection,
    work: impl FnOnce(&Transaction<'_>) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    let done = connection.transaction().map_err(StoreError::from).and_then(|transaction| {
        let done = work(&transaction)?;
        transaction.commit()?;
        Ok(done)
    });
    connection.pragma_update(None, "synchronous", "FULL")?;
    done
}

/// Whatever was committed before is on disk when this says so. SQLite holds no locks on its log, which closing
/// it here would end.
fn wait_for_disk(log: &Path) -> bool {
    let synced = File::open(log).and_then(|file| file.sync_data());
    if let Err(error) = &synced {
        tracing::error!(path = %log.display(), %error, "a power cut now may take the last change back");
    }
    synced.is_ok()
}

/// As the database keeps a time or a count; what does not fit is as far as it goes.
fn to_sql(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn from_sql(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

fn migrate(connection: &mut Connection) -> Result<(), StoreError> {
    let found: u32 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let (found, known) = (found as usize, MIGRATIONS.len());
    if found > known {
        return Err(StoreError::Newer { found, known });
    }
    for (index, sql) in MIGRATIONS.iter().enumerate().skip(found) {
        let transaction = connection.transaction()?;
        transaction.execute_batch(sql)?;
        transaction.pragma_update(None, "user_version", (index + 1).to_string())?;
        transaction.commit()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opening_twice_migrates_once_and_a_newer_file_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("control.db");
        Store::open(&path).unwrap();
        Store::open(&path).unwrap();
        Connection::open(&path).unwrap().pragma_update(None, "user_version", 99).unwrap();
        assert!(matches!(Store::open(&path), Err(StoreError::Newer { found: 99, .. })));
    }
}
