//! Passkeys: public keys, and how often each says it was used.

use rusqlite::{Row, params};

use super::{Store, StoreError, from_sql, to_sql};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PasskeyRow {
    /// What the authenticator calls it.
    pub(crate) id: Vec<u8>,
    pub(crate) name: String,
    /// The host it was made for and works at.
    pub(crate) host: String,
    /// As `auth::webauthn` writes it.
    pub(crate) key: Vec<u8>,
    pub(crate) counter: u32,
    pub(crate) created_at: u64,
    pub(crate) used_at: Option<u64>,
}

impl Store {
    pub(crate) async fn passkeys(&self) -> Result<Vec<PasskeyRow>, StoreError> {
        self.run(|connection| {
            let mut statement = connection.prepare_cached(
                "SELECT id, name, host, key, counter, created_at, used_at
                 FROM passkeys ORDER BY created_at",
            )?;
            let rows = statement.query_map([], read)?.collect::<Result<_, _>>()?;
            Ok(rows)
        })
        .await
    }

    /// `false` when it is there already.
    pub(crate) async fn add_passkey(&self, row: PasskeyRow) -> Result<bool, StoreError> {
        self.run(move |connection| {
            let added = connection.execute(
                "INSERT OR IGNORE INTO passkeys (id, name, host, key, counter, created_at)
                 VALUES (?, ?, ?, ?, ?, ?)",
                params![row.id, row.name, row.host, row.key, row.counter, to_sql(row.created_at)],
            )?;
            Ok(added > 0)
        })
        .await
    }

    /// Writes down that it was used, if nobody used it with this count before: of two that race with
    /// one answer, one gets `false`.
    pub(crate) async fn passkey_used(
        &self,
        id: Vec<u8>,
        before: u32,
        counter: u32,
        now: u64,
    ) -> Result<bool, StoreError> {
        self.run(move |connection| {
            let found = connection.execute(
                "UPDATE passkeys SET counter = ?, used_at = ? WHERE id = ? AND counter = ?",
                params![counter, to_sql(now), id, before],
            )?;
            Ok(found > 0)
        })
        .await
    }

    /// `false` when there is none such.
    pub(crate) async fn remove_passkey(&self, id: Vec<u8>) -> Result<bool, StoreError> {
        self.run(move |connection| {
            Ok(connection.execute("DELETE FROM passkeys WHERE id = ?", [id])? > 0)
        })
        .await
    }
}

fn read(row: &Row<'_>) -> rusqlite::Result<PasskeyRow> {
    Ok(PasskeyRow {
        id: row.get(0)?,
        name: row.get(1)?,
        host: row.get(2)?,
        key: row.get(3)?,
        counter: row.get(4)?,
        created_at: from_sql(row.get(5)?),
        used_at: row.get::<_, Option<i64>>(6)?.map(from_sql),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_passkey_is_added_once_and_its_count_moves_once() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("control.db")).unwrap();
        let row = PasskeyRow {
            id: vec![1, 2],
            name: "phone".to_owned(),
            host: "pc.example".to_owned(),
            key: vec![3],
            counter: 4,
            created_at: 5,
            used_at: None,
        };
        assert!(store.add_passkey(row.clone()).await.unwrap());
        assert!(!store.add_passkey(row.clone()).await.unwrap());
        assert!(store.passkey_used(vec![1, 2], 4, 6, 9).await.unwrap());
        assert!(!store.passkey_used(vec![1, 2], 4, 7, 9).await.unwrap());
        let used = PasskeyRow { counter: 6, used_at: Some(9), ..row };
        assert_eq!(store.passkeys().await.unwrap(), [used]);
        assert!(store.remove_passkey(vec![1, 2]).await.unwrap());
        assert!(!store.remove_passkey(vec![1, 2]).await.unwrap());
    }
}
