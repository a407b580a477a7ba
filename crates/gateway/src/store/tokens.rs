//! Tokens for programs.

use nacre_wire::access::Scope;
use rusqlite::{ErrorCode, Row, params};

use super::{Store, StoreError, from_sql, to_sql};
use crate::secret::SecretHash;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TokenRow {
    pub(crate) id: String,
    pub(crate) hash: SecretHash,
    pub(crate) name: String,
    pub(crate) scopes: Vec<Scope>,
    pub(crate) created_at: u64,
    pub(crate) expires_at: Option<u64>,
    pub(crate) used_at: Option<u64>,
}

impl Store {
    pub(crate) async fn tokens(&self) -> Result<Vec<TokenRow>, StoreError> {
        self.run(|connection| {
            let mut statement = connection.prepare(
                "SELECT id, hash, name, scopes, created_at, expires_at, used_at
                 FROM tokens ORDER BY created_at, id",
            )?;
            let rows = statement.query_map([], read)?.collect::<Result<_, _>>()?;
            Ok(rows)
        })
        .await
    }

    /// `false` when there is one of this name.
    pub(crate) async fn add_token(&self, row: TokenRow) -> Result<bool, StoreError> {
        self.run(move |connection| {
            let scopes: Vec<&str> = row.scopes.iter().map(|scope| scope.as_str()).collect();
            let added = connection.execute(
                "INSERT INTO tokens (id, hash, name, scopes, created_at, expires_at)
                 VALUES (?, ?, ?, ?, ?, ?)",
                params![
                    row.id,
                    row.hash.0,
                    row.name,
                    scopes.join(" "),
                    to_sql(row.created_at),
                    row.expires_at.map(to_sql)
                ],
            );
            match added {
                Ok(_) => Ok(true),
                Err(error) if error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) => {
                    Ok(false)
                }
                Err(error) => Err(error.into()),
            }
        })
        .await
    }

    pub(crate) async fn remove_tokens(&self, ids: Vec<String>) -> Result<(), StoreError> {
        self.run(move |connection| {
            let transaction = connection.transaction()?;
            for id in ids {
                transaction.execute("DELETE FROM tokens WHERE id = ?", [id])?;
            }
            transaction.commit()?;
            Ok(())
        })
        .await
    }

    pub(crate) async fn tokens_used(&self, used: Vec<(String, u64)>) -> Result<(), StoreError> {
        self.run(move |connection| {
            let transaction = connection.transaction()?;
            for (id, at) in used {
                let at = to_sql(at);
                transaction
                    .execute("UPDATE tokens SET used_at = ? WHERE id = ?", params![at, id])?;
            }
            transaction.commit()?;
            Ok(())
        })
        .await
    }
}

/// A scope this version does not know grants nothing.
fn read(row: &Row<'_>) -> rusqlite::Result<TokenRow> {
    let scopes: String = row.get(3)?;
    Ok(TokenRow {
        id: row.get(0)?,
        hash: SecretHash(row.get(1)?),
        name: row.get(2)?,
        scopes: scopes.split(' ').filter_map(Scope::parse).collect(),
        created_at: from_sql(row.get(4)?),
        expires_at: row.get::<_, Option<i64>>(5)?.map(from_sql),
        used_at: row.get::<_, Option<i64>>(6)?.map(from_sql),
    })
}
