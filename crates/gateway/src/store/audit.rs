//! What happened at the door of the computer.

use nacre_wire::access::AuditEvent;
use rusqlite::params;

use super::{Store, StoreError, from_sql, to_sql};

/// The oldest beyond these are dropped, so that nobody fills the disk by failing.
const MOST: i64 = 20_000;
/// How often that is looked at, in events.
const SWEEP_EVERY: i64 = 500;

impl Store {
    /// Its `id` is chosen here.
    pub(crate) async fn record(&self, event: AuditEvent) -> Result<(), StoreError> {
        self.run(move |connection| {
            connection.execute(
                "INSERT INTO audit (at, event, who, address, detail) VALUES (?, ?, ?, ?, ?)",
                params![to_sql(event.at), event.event, event.who, event.address, event.detail],
            )?;
            let id = connection.last_insert_rowid();
            if id % SWEEP_EVERY == 0 {
                connection.execute("DELETE FROM audit WHERE id <= ?", [id - MOST])?;
            }
            Ok(())
        })
        .await
    }

    /// Newest first, older than `before`.
    pub(crate) async fn audit(
        &self,
        before: Option<i64>,
        limit: u32,
    ) -> Result<Vec<AuditEvent>, StoreError> {
        self.run(move |connection| {
            let mut statement = connection.prepare_cached(
                "SELECT id, at, event, who, address, detail FROM audit
                 WHERE id < ? ORDER BY id DESC LIMIT ?",
            )?;
            let read = |row: &rusqlite::Row<'_>| {
                Ok(AuditEvent {
                    id: row.get(0)?,
                    at: from_sql(row.get(1)?),
                    event: row.get(2)?,
                    who: row.get(3)?,
                    address: row.get(4)?,
                    detail: row.get(5)?,
                })
            };
            let rows = statement.query_map(params![before.unwrap_or(i64::MAX), limit], read)?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn events_come_newest_first_and_page_by_page() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("control.db")).unwrap();
        for at in 1..=5 {
            let event = AuditEvent {
                id: 0,
                at,
                event: "sign_in".to_owned(),
                who: None,
                address: None,
                detail: None,
            };
            store.record(event).await.unwrap();
        }
        let ids = async |before| {
            let page = store.audit(before, 2).await.unwrap();
            page.iter().map(|event| event.id).collect::<Vec<_>>()
        };
        assert_eq!(ids(None).await, [5, 4]);
        assert_eq!(ids(Some(4)).await, [3, 2]);
        assert_eq!(ids(Some(2)).await, [1]);
        assert_eq!(ids(Some(1)).await, [0; 0]);
    }
}
