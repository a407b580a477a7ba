//! Tokens for model calls, and the providers that are stopped.

use nacre_wire::models::PolicyScope;
use rusqlite::{Row, params};

use super::{Store, StoreError, from_sql, tables, to_sql};
use crate::secret::SecretHash;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PolicyTokenRow {
    pub(crate) id: String,
    pub(crate) hash: SecretHash,
    pub(crate) name: String,
    pub(crate) automatic: bool,
    pub(crate) scope: PolicyScope,
    pub(crate) created_at: u64,
    pub(crate) expires_at: Option<u64>,
}

impl Store {
    pub(crate) async fn policy_tokens(&self) -> Result<Vec<PolicyTokenRow>, StoreError> {
        self.run(|connection| {
            let mut statement = connection.prepare(
                "SELECT id, hash, name, automatic, scope, created_at, expires_at
                 FROM policy_tokens ORDER BY created_at, id",
            )?;
            let mut rows = statement.query([])?;
            let mut tokens = Vec::new();
            while let Some(row) = rows.next()? {
                tokens.push(read(row)?);
            }
            Ok(tokens)
        })
        .await
    }

    pub(crate) async fn add_policy_token(&self, row: PolicyTokenRow) -> Result<(), StoreError> {
        self.run(move |connection| {
            let scope = tables::parse(&row.id, "scope", serde_json::to_string(&row.scope))?;
            connection.execute(
                "INSERT INTO policy_tokens (id, hash, name, automatic, scope, created_at, expires_at)
                 VALUES (?, ?, ?, ?, ?, ?, ?)",
                params![
                    row.id,
                    row.hash.0,
                    row.name,
                    row.automatic,
                    scope,
                    to_sql(row.created_at),
                    row.expires_at.map(to_sql)
                ],
            )?;
            Ok(())
        })
        .await
    }

    pub(crate) async fn remove_policy_tokens(&self, ids: Vec<String>) -> Result<(), StoreError> {
        self.run(move |connection| {
            let transaction = connection.transaction()?;
            for id in ids {
                transaction.execute("DELETE FROM policy_tokens WHERE id = ?", [id])?;
            }
            transaction.commit()?;
            Ok(())
        })
        .await
    }

    /// Names, and `*` for all of them.
    pub(crate) async fn stopped_providers(&self) -> Result<Vec<String>, StoreError> {
        self.run(|connection| {
            let mut statement = connection.prepare("SELECT name FROM stopped_providers")?;
            let names = statement.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
            Ok(names)
        })
        .await
    }

    pub(crate) async fn stop_provider(&self, name: String, at: u64) -> Result<(), StoreError> {
        self.run(move |connection| {
            let sql = "INSERT OR REPLACE INTO stopped_providers (name, at) VALUES (?, ?)";
            connection.execute(sql, params![name, to_sql(at)])?;
            Ok(())
        })
        .await
    }

    pub(crate) async fn start_provider(&self, name: String) -> Result<(), StoreError> {
        self.run(move |connection| {
            connection.execute("DELETE FROM stopped_providers WHERE name = ?", [name])?;
            Ok(())
        })
        .await
    }
}

/// A scope that cannot be read is no reason to allow more.
fn read(row: &Row<'_>) -> Result<PolicyTokenRow, StoreError> {
    let id: String = row.get(0)?;
    let scope: String = row.get(4)?;
    Ok(PolicyTokenRow {
        scope: tables::parse(&id, "scope", serde_json::from_str(&scope))?,
        id,
        hash: SecretHash(row.get(1)?),
        name: row.get(2)?,
        automatic: row.get(3)?,
        created_at: from_sql(row.get(5)?),
        expires_at: row.get::<_, Option<i64>>(6)?.map(from_sql),
    })
}
