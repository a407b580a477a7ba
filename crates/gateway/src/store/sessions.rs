//! One-time sign-in links, and the sessions that signing in opens.

use std::time::Duration;

use nacre_wire::access::SignInMethod;
use rusqlite::{Row, params};

use super::{Store, StoreError, from_sql, to_sql};
use crate::secret::SecretHash;

pub(crate) const SIGN_IN_LIFETIME: Duration = Duration::from_secs(10 * 60);

/// A session as it is kept. When it ends follows from its times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SessionRow {
    /// Names it, and opens nothing.
    pub(crate) id: String,
    pub(crate) hash: SecretHash,
    pub(crate) method: SignInMethod,
    pub(crate) address: Option<String>,
    pub(crate) agent: Option<String>,
    pub(crate) created_at: u64,
    pub(crate) seen_at: u64,
}

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
            let lifetime = u64::try_from(SIGN_IN_LIFETIME.as_millis()).unwrap_or(u64::MAX);
            transaction.execute(
                "INSERT INTO sign_in (hash, expires_at) VALUES (?, ?)",
                params![hash.0, to_sql(now_ms.saturating_add(lifetime))],
            )?;
            transaction.commit()?;
            Ok(())
        })
        .await
    }

    /// Uses a link up. Of two that race with one link, one gets `false`.
    pub(crate) async fn take_sign_in(
        &self,
        hash: SecretHash,
        now_ms: u64,
    ) -> Result<bool, StoreError> {
        self.run(move |connection| {
            let found = connection.execute(
                "DELETE FROM sign_in WHERE hash = ? AND expires_at > ?",
                params![hash.0, to_sql(now_ms)],
            )?;
            Ok(found > 0)
        })
        .await
    }

    pub(crate) async fn sessions(&self) -> Result<Vec<SessionRow>, StoreError> {
        self.run(|connection| {
            let mut statement = connection.prepare(
                "SELECT id, hash, method, address, agent, created_at, seen_at FROM sessions",
            )?;
            let rows = statement.query_map([], read)?.collect::<Result<_, _>>()?;
            Ok(rows)
        })
        .await
    }

    /// Adds one and removes others, in one step.
    pub(crate) async fn add_session(
        &self,
        row: SessionRow,
        removed: Vec<String>,
    ) -> Result<(), StoreError> {
        self.run(move |connection| {
            let transaction = connection.transaction()?;
            for id in removed {
                transaction.execute("DELETE FROM sessions WHERE id = ?", [id])?;
            }
            transaction.execute(
                "INSERT INTO sessions (id, hash, method, address, agent, created_at, seen_at)
                 VALUES (?, ?, ?, ?, ?, ?, ?)",
                params![
                    row.id,
                    row.hash.0,
                    row.method.as_str(),
                    row.address,
                    row.agent,
                    to_sql(row.created_at),
                    to_sql(row.seen_at)
                ],
            )?;
            transaction.commit()?;
            Ok(())
        })
        .await
    }

    pub(crate) async fn remove_sessions(&self, ids: Vec<String>) -> Result<(), StoreError> {
        self.run(move |connection| {
            let transaction = connection.transaction()?;
            for id in ids {
                transaction.execute("DELETE FROM sessions WHERE id = ?", [id])?;
            }
            transaction.commit()?;
            Ok(())
        })
        .await
    }

    /// When each was last used.
    pub(crate) async fn sessions_seen(&self, seen: Vec<(String, u64)>) -> Result<(), StoreError> {
        self.run(move |connection| {
            let transaction = connection.transaction()?;
            for (id, at) in seen {
                let at = to_sql(at);
                transaction
                    .execute("UPDATE sessions SET seen_at = ? WHERE id = ?", params![at, id])?;
            }
            transaction.commit()?;
            Ok(())
        })
        .await
    }
}

fn read(row: &Row<'_>) -> rusqlite::Result<SessionRow> {
    Ok(SessionRow {
        id: row.get(0)?,
        hash: SecretHash(row.get(1)?),
        method: SignInMethod::parse(&row.get::<_, String>(2)?),
        address: row.get(3)?,
        agent: row.get(4)?,
        created_at: from_sql(row.get(5)?),
        seen_at: from_sql(row.get(6)?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINK: SecretHash = SecretHash([1; 32]);

    async fn store() -> (tempfile::TempDir, Store) {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("control.db")).unwrap();
        store.replace_sign_in(LINK, 1000).await.unwrap();
        (dir, store)
    }

    fn row(id: &str) -> SessionRow {
        SessionRow {
            id: id.to_owned(),
            hash: SecretHash([id.as_bytes()[0]; 32]),
            method: SignInMethod::Account,
            address: Some("127.0.0.1".to_owned()),
            agent: None,
            created_at: 5,
            seen_at: 6,
        }
    }

    #[tokio::test]
    async fn a_link_works_once_and_only_the_newest() {
        let (_dir, store) = store().await;
        assert!(store.take_sign_in(LINK, 2000).await.unwrap());
        assert!(!store.take_sign_in(LINK, 2000).await.unwrap());
        store.replace_sign_in(LINK, 3000).await.unwrap();
        store.replace_sign_in(SecretHash([4; 32]), 3000).await.unwrap();
        assert!(!store.take_sign_in(LINK, 3000).await.unwrap());
    }

    #[tokio::test]
    async fn a_link_expires() {
        let (_dir, store) = store().await;
        assert!(!store.take_sign_in(LINK, 1000 + 600_000).await.unwrap());
        assert!(store.take_sign_in(LINK, 1000 + 599_999).await.unwrap());
    }

    #[tokio::test]
    async fn a_session_comes_back_as_it_went_in() {
        let (_dir, store) = store().await;
        store.add_session(row("a"), vec![]).await.unwrap();
        store.add_session(row("b"), vec!["a".to_owned()]).await.unwrap();
        store.sessions_seen(vec![("b".to_owned(), 9)]).await.unwrap();
        assert_eq!(store.sessions().await.unwrap(), [SessionRow { seen_at: 9, ..row("b") }]);
        store.remove_sessions(vec!["b".to_owned()]).await.unwrap();
        assert_eq!(store.sessions().await.unwrap(), []);
    }
}
