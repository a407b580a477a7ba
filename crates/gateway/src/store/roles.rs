//! The roles as pointers that move together, and what moved when.

use std::time::{Duration, Instant};

use nacre_sandbox::SandboxId;
use nacre_wire::roles::{SwapKind, SwapRecord};
use rusqlite::{OptionalExtension, Transaction, params};

use super::tables::{Desired, parse};
use super::{Store, StoreError, commit_at_once, wait_for_disk};
use crate::routes::Role;

/// A name that no sandbox can have, for the moment in which two change theirs.
const BETWEEN: &str = "~";

/// A swap as it was written down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoredSwap {
    pub(crate) id: i64,
    pub(crate) record: SwapRecord,
    /// What the watch compares with, as it wrote it.
    pub(crate) baseline: Option<String>,
}

/// A change of both pointers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Move {
    pub(crate) record: SwapRecord,
    pub(crate) baseline: Option<String>,
}

/// A swap that has happened.
#[derive(Debug)]
pub(crate) struct Written {
    pub(crate) id: i64,
    /// Until both pointers had moved.
    pub(crate) moved_in: Duration,
    /// Until a power cut could not take it back; absent when the disk did not confirm that.
    pub(crate) durable_in: Option<Duration>,
}

impl Store {
    /// Makes what was dev live and what was live dev, and writes down that it happened. Both or
    /// neither: a crash leaves one of the two. Who has a role goes by its name. `then` follows in the
    /// same breath, on the thread that wrote: neither the disk nor a turn for anybody else is waited for
    /// in between. Who asked is answered when the disk has it: until then a power cut takes it back. When
    /// the disk does not say so the roles have moved all the same, and that is what is answered.
    pub(crate) async fn swap_roles(
        &self,
        live: &SandboxId,
        dev: &SandboxId,
        moved: Move,
        then: impl FnOnce() + Send + 'static,
    ) -> Result<Written, StoreError> {
        let (live, dev) = (live.as_str().to_owned(), dev.as_str().to_owned());
        let log = self.log.clone();
        self.run(move |connection| {
            let begun = Instant::now();
            let id = commit_at_once(connection, |transaction| {
                expect(transaction, Role::Live, &live)?;
                expect(transaction, Role::Dev, &dev)?;
                rename(transaction, &live, BETWEEN)?;
                assign(transaction, Role::Live, &dev)?;
                assign(transaction, Role::Dev, &live)?;
                insert_swap(transaction, &moved)
            })?;
            then();
            let moved_in = begun.elapsed();
            let durable_in = wait_for_disk(&log).then(|| begun.elapsed());
            Ok(Written { id, moved_in, durable_in })
        })
        .await
    }

    /// Gives the role `dev` to a finished copy. What had it before is to be destroyed, and loses
    /// role and name in the same step.
    pub(crate) async fn give_dev(
        &self,
        new: &SandboxId,
        old: Option<&SandboxId>,
    ) -> Result<(), StoreError> {
        let (new, old) = (new.as_str().to_owned(), old.map(|id| id.as_str().to_owned()));
        self.run(move |connection| {
            let transaction = connection.transaction()?;
            if let Some(old) = old {
                expect(&transaction, Role::Dev, &old)?;
                rename(&transaction, &old, &old)?;
                set_desired(&transaction, &old, Desired::Destroying)?;
            }
            assign(&transaction, Role::Dev, &new)?;
            set_desired(&transaction, &new, Desired::Running)?;
            transaction.commit()?;
            Ok(())
        })
        .await
    }

    pub(crate) async fn last_swap(&self) -> Result<Option<StoredSwap>, StoreError> {
        self.run(|connection| {
            let found = connection.query_row(
                "SELECT id, at, kind, live_before, live_after, reason, watched_until, verdict, baseline
                 FROM swaps ORDER BY id DESC LIMIT 1",
                [],
                read_swap,
            );
            Ok(found.optional()?)
        })
        .await
    }

    /// The end of watching a swap.
    pub(crate) async fn judge_swap(&self, id: i64, verdict: String) -> Result<(), StoreError> {
        self.run(move |connection| {
            connection.execute(
                "UPDATE swaps SET verdict = ?, watched_until = NULL, baseline = NULL WHERE id = ?",
                params![verdict, id],
            )?;
            Ok(())
        })
        .await
    }
}

fn expect(transaction: &Transaction<'_>, role: Role, id: &str) -> Result<(), StoreError> {
    let owner: Option<String> = transaction
        .query_row("SELECT sandbox_id FROM roles WHERE role = ?", [role.as_str()], |row| row.get(0))
        .optional()?;
    if owner.as_deref() == Some(id) { Ok(()) } else { Err(StoreError::RoleMoved(role.as_str())) }
}

fn assign(transaction: &Transaction<'_>, role: Role, id: &str) -> Result<(), StoreError> {
    transaction.execute(
        "INSERT INTO roles (role, sandbox_id) VALUES (?, ?)
         ON CONFLICT (role) DO UPDATE SET sandbox_id = excluded.sandbox_id",
        params![role.as_str(), id],
    )?;
    rename(transaction, id, role.as_str())
}

fn rename(transaction: &Transaction<'_>, id: &str, name: &str) -> Result<(), StoreError> {
    transaction.execute("UPDATE sandboxes SET name = ? WHERE id = ?", params![name, id])?;
    Ok(())
}

fn set_desired(
    transaction: &Transaction<'_>,
    id: &str,
    desired: Desired,
) -> Result<(), StoreError> {
    let sql = "UPDATE sandboxes SET desired = ? WHERE id = ?";
    transaction.execute(sql, params![desired.as_str(), id])?;
    Ok(())
}

fn insert_swap(transaction: &Transaction<'_>, moved: &Move) -> Result<i64, StoreError> {
    let record = &moved.record;
    transaction.execute(
        "INSERT INTO swaps (at, kind, live_before, live_after, reason, watched_until, baseline)
         VALUES (?, ?, ?, ?, ?, ?, ?)",
        params![
            signed(record.at),
            kind_text(record.kind),
            record.before,
            record.after,
            record.reason,
            record.watched_until.map(signed),
            moved.baseline,
        ],
    )?;
    Ok(transaction.last_insert_rowid())
}

fn read_swap(row: &rusqlite::Row<'_>) -> rusqlite::Result<StoredSwap> {
    let unsigned = |value: i64| u64::try_from(value).unwrap_or(0);
    Ok(StoredSwap {
        id: row.get(0)?,
        record: SwapRecord {
            at: unsigned(row.get(1)?),
            kind: kind_of(&row.get::<_, String>(2)?),
            before: row.get(3)?,
            after: row.get(4)?,
            reason: row.get(5)?,
            watched_until: row.get::<_, Option<i64>>(6)?.map(unsigned),
            verdict: row.get(7)?,
        },
        baseline: row.get(8)?,
    })
}

fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn kind_text(kind: SwapKind) -> &'static str {
    match kind {
        SwapKind::Swap => "swap",
        SwapKind::Rollback => "rollback",
        SwapKind::AutoRollback => "auto_rollback",
    }
}

fn kind_of(text: &str) -> SwapKind {
    match text {
        "swap" => SwapKind::Swap,
        "rollback" => SwapKind::Rollback,
        _ => SwapKind::AutoRollback,
    }
}

impl StoredSwap {
    /// The sandbox that was live before it.
    pub(crate) fn before(&self) -> Result<SandboxId, StoreError> {
        parse(&self.record.before, "id", self.record.before.parse())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Row;
    use nacre_sandbox::SandboxSpec;

    fn row(id: &str, name: &str, desired: Desired) -> Row {
        Row {
            id: id.parse().unwrap(),
            name: name.to_owned(),
            driver: "fake".to_owned(),
            spec: SandboxSpec::default(),
            desired,
            created_at: 1,
            run: None,
            unseeded: false,
        }
    }

    fn moved() -> Move {
        let record = SwapRecord {
            at: 7,
            kind: SwapKind::Swap,
            before: "sb-1".to_owned(),
            after: "sb-2".to_owned(),
            reason: None,
            watched_until: Some(9),
            verdict: None,
        };
        Move { record, baseline: Some("{}".to_owned()) }
    }

    async fn names(store: &Store) -> Vec<String> {
        let rows = store.sandboxes().await.unwrap();
        rows.iter().map(|row| format!("{} {} {:?}", row.id, row.name, row.desired)).collect()
    }

    #[tokio::test]
    async fn both_pointers_and_both_names_move_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("control.db")).unwrap();
        store.insert(row("sb-1", "live", Desired::Running), Some(Role::Live)).await.unwrap();
        store.insert(row("sb-2", "sb-2", Desired::Cloning), None).await.unwrap();
        let (one, two) = ("sb-1".parse().unwrap(), "sb-2".parse().unwrap());
        store.give_dev(&two, None).await.unwrap();
        assert_eq!(names(&store).await, ["sb-1 live Running", "sb-2 dev Running"]);

        let id = store.swap_roles(&one, &two, moved(), || ()).await.unwrap().id;
        assert_eq!(names(&store).await, ["sb-1 dev Running", "sb-2 live Running"]);
        let mut roles = store.roles().await.unwrap();
        roles.sort_by_key(|(role, _)| role.as_str());
        assert_eq!(roles, [(Role::Dev, one.clone()), (Role::Live, two.clone())]);
        let stale = store.swap_roles(&one, &two, moved(), || panic!("nothing moved")).await;
        assert!(matches!(stale, Err(StoreError::RoleMoved("live"))), "{stale:?}");
        assert_eq!(names(&store).await, ["sb-1 dev Running", "sb-2 live Running"]);

        let last = store.last_swap().await.unwrap().unwrap();
        assert_eq!((last.id, last.record, last.baseline), (id, moved().record, moved().baseline));
        store.judge_swap(id, "kept".to_owned()).await.unwrap();
        let last = store.last_swap().await.unwrap().unwrap().record;
        assert_eq!((last.watched_until, last.verdict.as_deref()), (None, Some("kept")));
    }

    /// Both roles taken: `sb-1` is live, `sb-2` is dev.
    async fn with_both(store: &Store) -> (SandboxId, SandboxId) {
        store.insert(row("sb-1", "live", Desired::Running), Some(Role::Live)).await.unwrap();
        store.insert(row("sb-2", "dev", Desired::Running), Some(Role::Dev)).await.unwrap();
        ("sb-1".parse().unwrap(), "sb-2".parse().unwrap())
    }

    #[tokio::test]
    async fn a_swap_that_does_not_fit_on_the_disk_moves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("control.db")).unwrap();
        let (one, two) = with_both(&store).await;
        let full = |connection: &mut rusqlite::Connection, more: u32| {
            let pages: u32 = connection.pragma_query_value(None, "page_count", |row| row.get(0))?;
            connection.pragma_update(None, "max_page_count", pages + more)?;
            Ok(())
        };
        store.run(move |connection| full(connection, 0)).await.unwrap();
        let large = Move { baseline: Some("x".repeat(1 << 20)), ..moved() };
        let refused = store.swap_roles(&one, &two, large, || panic!("nothing moved")).await;
        let error = crate::sandboxes::errors::from_store(refused.unwrap_err());
        assert_eq!(error.kind, nacre_wire::ErrorKind::NoSpace, "{error}");
        assert_eq!(names(&store).await, ["sb-1 live Running", "sb-2 dev Running"]);
        assert_eq!(store.last_swap().await.unwrap(), None);

        store.run(move |connection| full(connection, 1000)).await.unwrap();
        store.swap_roles(&one, &two, moved(), || ()).await.unwrap();
        assert_eq!(names(&store).await, ["sb-1 dev Running", "sb-2 live Running"]);
    }

    #[tokio::test]
    async fn a_swap_that_the_disk_does_not_confirm_is_not_called_durable() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("control.db")).unwrap();
        let (one, two) = with_both(&store).await;
        let gone = Store { log: dir.path().join("gone").into(), ..store.clone() };
        assert_eq!(gone.swap_roles(&one, &two, moved(), || ()).await.unwrap().durable_in, None);
        let written = store.swap_roles(&two, &one, moved(), || ()).await.unwrap();
        assert!(written.durable_in.is_some_and(|durable| durable >= written.moved_in));
    }

    #[tokio::test]
    async fn a_new_dev_takes_role_and_name_of_the_old_one() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("control.db")).unwrap();
        store.insert(row("sb-1", "dev", Desired::Running), Some(Role::Dev)).await.unwrap();
        store.insert(row("sb-2", "sb-2", Desired::Cloning), None).await.unwrap();
        let (old, new) = ("sb-1".parse().unwrap(), "sb-2".parse().unwrap());
        store.give_dev(&new, Some(&old)).await.unwrap();
        assert_eq!(names(&store).await, ["sb-1 sb-1 Destroying", "sb-2 dev Running"]);
        assert_eq!(store.roles().await.unwrap(), [(Role::Dev, new)]);
    }
}
