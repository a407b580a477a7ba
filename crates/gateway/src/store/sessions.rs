//! One-time sign-in links and the sessions they open.

use std::time::Duration;

use rusqlite::params;

use super::{Store, StoreError};
use crate::secret::SecretHash;

pub(crate) const SIGN_IN_LIFETIME: Duration = Duration::from_secs(10 * 60);
pub(crate) const SESSION_LIFETIME: Duration = Duration::from_secs(30 * 24 * 60 * 60);

impl Store {
    /// Makes this the only link that works.
    pub(crate) async fn replace_sign_in(
        &self,
        hash: SecretHash,
        now_ms: u64,
    ) -> Result<(), StoreError> {
        self.run(move |connection| {
            let transaction = connection.transaction()?;
            transaction.execute("DELETE FROM sign_in", [])?;
            transaction.execute(
                "INSERT INTO sign_in (hash, expires_at) VALUES (?, ?)",
                params![hash.0, after(now_ms, SIGN_IN_LIFETIME)],
            )?;
            transaction.commit()?;
            Ok(())
        })
        .await
    }

    /// Trades a link for a session. Of two that race with one link, one gets `false`: the delete
    /// that finds the row and the insert are one transaction.
    pub(crate) async fn redeem(
        &self,
        sign_in: SecretHash,
        session: SecretHash,
        now_ms: u64,
    ) -> Result<bool, StoreError> {
        self.run(move |connection| {
            let transaction = connection.transaction()?;
            let found = transaction.execute(
                "DELETE FROM sign_in WHERE hash = ? AND expires_at > ?",
                params![sign_in.0, clamp(now_ms)],
            )?;
            if found == 0 {
                return Ok(false);
            }
            transaction.execute("DELETE FROM sessions WHERE expires_at <= ?", [clamp(now_ms)])?;
            transaction.execute(
                "INSERT INTO sessions (hash, created_at, expires_at) VALUES (?, ?, ?)",
                params![session.0, clamp(now_ms), after(now_ms, SESSION_LIFETIME)],
            )?;
            transaction.commit()?;
            Ok(true)
        })
        .await
    }

    /// When the session ends, in Unix milliseconds; `None` when there is no such session.
    pub(crate) async fn session_expiry(
        &self,
        session: SecretHash,
    ) -> Result<Option<u64>, StoreError> {
        self.run(move |connection| {
            let mut statement =
                connection.prepare_cached("SELECT expires_at FROM sessions WHERE hash = ?")?;
            let mut rows = statement.query(params![session.0])?;
            let expiry = rows.next()?.map(|row| row.get::<_, i64>(0)).transpose()?;
            Ok(expiry.map(|ms| u64::try_from(ms).unwrap_or(0)))
        })
        .await
    }
}

fn clamp(ms: u64) -> i64 {
    i64::try_from(ms).unwrap_or(i64::MAX)
}

fn after(now_ms: u64, lifetime: Duration) -> i64 {
    clamp(now_ms.saturating_add(u64::try_from(lifetime.as_millis()).unwrap_or(u64::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINK: SecretHash = SecretHash([1; 32]);
    const SESSION: SecretHash = SecretHash([2; 32]);

    async fn store() -> (tempfile::TempDir, Store) {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("control.db")).unwrap();
        store.replace_sign_in(LINK, 1000).await.unwrap();
        (dir, store)
    }

    #[tokio::test]
    async fn a_link_works_once_and_only_the_newest() {
        let (_dir, store) = store().await;
        assert!(store.redeem(LINK, SESSION, 2000).await.unwrap());
        assert!(!store.redeem(LINK, SecretHash([3; 32]), 2000).await.unwrap());
        assert_eq!(store.session_expiry(SESSION).await.unwrap(), Some(2000 + 30 * 86_400_000));
        assert_eq!(store.session_expiry(SecretHash([3; 32])).await.unwrap(), None);

        store.replace_sign_in(LINK, 3000).await.unwrap();
        store.replace_sign_in(SecretHash([4; 32]), 3000).await.unwrap();
        assert!(!store.redeem(LINK, SecretHash([5; 32]), 3000).await.unwrap());
    }

    #[tokio::test]
    async fn a_link_expires() {
        let (_dir, store) = store().await;
        assert!(!store.redeem(LINK, SESSION, 1000 + 600_000).await.unwrap());
        assert!(store.redeem(LINK, SESSION, 1000 + 599_999).await.unwrap());
    }
}
