//! Whose computer it is.

use rusqlite::{OptionalExtension, Transaction, params};

use super::{Store, StoreError, to_sql};

impl Store {
    pub(crate) async fn owner(&self) -> Result<Option<String>, StoreError> {
        self.run(|connection| {
            let found = connection.query_row("SELECT did FROM owner", [], |row| row.get(0));
            Ok(found.optional()?)
        })
        .await
    }

    /// Makes them the owner. When that is somebody new, all that let the one before in ends with it.
    /// `true` when it changed.
    pub(crate) async fn set_owner(&self, did: String, now_ms: u64) -> Result<bool, StoreError> {
        self.run(move |connection| {
            let transaction = connection.transaction()?;
            let found: Option<String> =
                transaction.query_row("SELECT did FROM owner", [], |row| row.get(0)).optional()?;
            if found.as_deref() == Some(did.as_str()) {
                return Ok(false);
            }
            end_everything(&transaction)?;
            transaction.execute(
                "INSERT OR REPLACE INTO owner (one, did, since) VALUES (1, ?, ?)",
                params![did, to_sql(now_ms)],
            )?;
            transaction.commit()?;
            Ok(true)
        })
        .await
    }

    /// As [`Store::set_owner`], only when there is none. Of two that race, one gets `false`.
    pub(crate) async fn claim(&self, did: String, now_ms: u64) -> Result<bool, StoreError> {
        self.run(move |connection| {
            let transaction = connection.transaction()?;
            let claimed = transaction.execute(
                "INSERT OR IGNORE INTO owner (one, did, since) VALUES (1, ?, ?)",
                params![did, to_sql(now_ms)],
            )?;
            if claimed == 0 {
                return Ok(false);
            }
            end_everything(&transaction)?;
            transaction.commit()?;
            Ok(true)
        })
        .await
    }
}

fn end_everything(transaction: &Transaction<'_>) -> Result<(), StoreError> {
    for table in ["sessions", "tokens", "recovery_codes", "passkeys", "sign_in"] {
        transaction.execute(&format!("DELETE FROM {table}"), [])?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::SecretHash;

    #[tokio::test]
    async fn a_computer_is_claimed_once_and_a_new_owner_starts_clean() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("control.db")).unwrap();
        assert_eq!(store.owner().await.unwrap(), None);
        assert!(store.claim("did:plc:a".to_owned(), 1).await.unwrap());
        assert!(!store.claim("did:plc:b".to_owned(), 2).await.unwrap());
        assert_eq!(store.owner().await.unwrap().as_deref(), Some("did:plc:a"));

        let link = SecretHash([1; 32]);
        store.replace_sign_in(link, 1000).await.unwrap();
        assert!(!store.set_owner("did:plc:a".to_owned(), 3).await.unwrap());
        assert!(store.set_owner("did:plc:b".to_owned(), 4).await.unwrap());
        assert!(!store.take_sign_in(link, 1001).await.unwrap());
        assert_eq!(store.owner().await.unwrap().as_deref(), Some("did:plc:b"));
    }
}
