//! Recovery codes: a set that is replaced as a whole, each of which works once.

use rusqlite::params;

use super::{Store, StoreError, to_sql};
use crate::secret::SecretHash;

impl Store {
    /// Makes these the only ones that work.
    pub(crate) async fn replace_codes(&self, hashes: Vec<SecretHash>) -> Result<(), StoreError> {
        self.run(move |connection| {
            let transaction = connection.transaction()?;
            transaction.execute("DELETE FROM recovery_codes", [])?;
            for hash in hashes {
                transaction.execute("INSERT INTO recovery_codes (hash) VALUES (?)", [hash.0])?;
            }
            transaction.commit()?;
            Ok(())
        })
        .await
    }

    /// Uses a code up. Of two that race with one, one gets `false`.
    pub(crate) async fn take_code(&self, hash: SecretHash, now: u64) -> Result<bool, StoreError> {
        self.run(move |connection| {
            let found = connection.execute(
                "UPDATE recovery_codes SET used_at = ? WHERE hash = ? AND used_at IS NULL",
                params![to_sql(now), hash.0],
            )?;
            Ok(found > 0)
        })
        .await
    }

    pub(crate) async fn codes_left(&self) -> Result<u32, StoreError> {
        self.run(|connection| {
            let count = "SELECT count(*) FROM recovery_codes WHERE used_at IS NULL";
            Ok(connection.query_row(count, [], |row| row.get(0))?)
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_code_works_once_and_a_new_set_ends_the_old() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("control.db")).unwrap();
        let [a, b, c] = [1, 2, 3].map(|byte| SecretHash([byte; 32]));
        store.replace_codes(vec![a, b]).await.unwrap();
        assert!(store.take_code(a, 1).await.unwrap());
        assert!(!store.take_code(a, 2).await.unwrap());
        assert_eq!(store.codes_left().await.unwrap(), 1);
        store.replace_codes(vec![c]).await.unwrap();
        assert!(!store.take_code(b, 3).await.unwrap());
        assert!(store.take_code(c, 3).await.unwrap());
    }
}
