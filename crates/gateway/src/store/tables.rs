//! Sandboxes and the roles that point to them.

use nacre_sandbox::{SandboxId, SandboxSpec};
use nacre_wire::WirePath;
use nacre_wire::control::Limits;
use rusqlite::{Connection, ErrorCode, params};
use serde::{Deserialize, Serialize};

use super::{Store, StoreError};
use crate::routes::Role;

/// What a sandbox should be. `Creating`, `Cloning` and `Destroying` are only seen at start-up, when
/// the process died in between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Desired {
    Creating,
    /// A copy that nothing points to yet.
    Cloning,
    Stopped,
    Running,
    Paused,
    Destroying,
}

impl Desired {
    const ALL: [Self; 6] = [
        Self::Creating,
        Self::Cloning,
        Self::Stopped,
        Self::Running,
        Self::Paused,
        Self::Destroying,
    ];

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Creating => "creating",
            Self::Cloning => "cloning",
            Self::Stopped => "stopped",
            Self::Running => "running",
            Self::Paused => "paused",
            Self::Destroying => "destroying",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|desired| desired.as_str() == text)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) id: SandboxId,
    pub(crate) name: String,
    pub(crate) driver: String,
    pub(crate) spec: SandboxSpec,
    pub(crate) desired: Desired,
    pub(crate) created_at: u64,
    /// The one-shot run that it was made for.
    pub(crate) run: Option<RunTie>,
    /// Its workspace is still to get the desktop.
    pub(crate) unseeded: bool,
}

/// What binds a sandbox to its run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RunTie {
    pub(crate) id: String,
    /// It stays when the run is over. Otherwise it never outlives it.
    #[serde(default)]
    pub(crate) kept: bool,
}

/// [`SandboxSpec`] as JSON; fields are only ever added.
#[derive(Serialize, Deserialize, Default)]
#[serde(default)]
struct StoredSpec {
    rootfs: Option<WirePath>,
    limits: Limits,
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<RunTie>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    unseeded: bool,
}

impl Store {
    pub(crate) async fn sandboxes(&self) -> Result<Vec<Row>, StoreError> {
        self.run(|connection| {
            let mut statement = connection.prepare(
                "SELECT id, name, driver, spec, desired, created_at FROM sandboxes ORDER BY rowid",
            )?;
            let mut rows = statement.query([])?;
            let mut sandboxes = Vec::new();
            while let Some(row) = rows.next()? {
                sandboxes.push(read_row(row)?);
            }
            Ok(sandboxes)
        })
        .await
    }

    /// Adds the row and, when nobody has it, the role, in one step.
    pub(crate) async fn insert(&self, row: Row, role: Option<Role>) -> Result<(), StoreError> {
        self.run(move |connection| {
            let transaction = connection.transaction()?;
            insert_row(&transaction, &row)?;
            if let Some(role) = role {
                transaction.execute(
                    "INSERT OR IGNORE INTO roles (role, sandbox_id) VALUES (?, ?)",
                    params![role.as_str(), row.id.as_str()],
                )?;
            }
            transaction.commit()?;
            Ok(())
        })
        .await
    }

    pub(crate) async fn set_desired(
        &self,
        id: &SandboxId,
        desired: Desired,
    ) -> Result<(), StoreError> {
        let id = id.as_str().to_owned();
        self.run(move |connection| {
            connection.execute(
                "UPDATE sandboxes SET desired = ? WHERE id = ? AND desired <> ?1",
                params![desired.as_str(), id],
            )?;
            Ok(())
        })
        .await
    }

    /// From now on the sandbox is one like any other.
    pub(crate) async fn keep_after_run(&self, id: &SandboxId) -> Result<(), StoreError> {
        let id = id.as_str().to_owned();
        self.run(move |connection| {
            connection.execute(
                "UPDATE sandboxes SET spec = json_set(spec, '$.run.kept', json('true')) WHERE id = ?",
                [id],
            )?;
            Ok(())
        })
        .await
    }

    /// Those that are still to get the desktop.
    pub(crate) async fn unseeded(&self) -> Result<Vec<SandboxId>, StoreError> {
        let rows = self.sandboxes().await?;
        Ok(rows.into_iter().filter(|row| row.unseeded).map(|row| row.id).collect())
    }

    pub(crate) async fn set_seeded(&self, id: &SandboxId) -> Result<(), StoreError> {
        let id = id.as_str().to_owned();
        self.run(move |connection| {
            connection.execute(
                "UPDATE sandboxes SET spec = json_remove(spec, '$.unseeded') WHERE id = ?",
                [id],
            )?;
            Ok(())
        })
        .await
    }

    /// Removes the row and with it the roles that pointed there.
    pub(crate) async fn delete(&self, id: &SandboxId) -> Result<(), StoreError> {
        let id = id.as_str().to_owned();
        self.run(move |connection| {
            connection.execute("DELETE FROM sandboxes WHERE id = ?", [id])?;
            Ok(())
        })
        .await
    }

    pub(crate) async fn roles(&self) -> Result<Vec<(Role, SandboxId)>, StoreError> {
        self.run(|connection| {
            let mut statement = connection.prepare("SELECT role, sandbox_id FROM roles")?;
            let mut rows = statement.query([])?;
            let mut roles = Vec::new();
            while let Some(row) = rows.next()? {
                let (role, id): (String, String) = (row.get(0)?, row.get(1)?);
                // A role this version does not know is left alone for the version that does.
                if let Some(role) = Role::parse(&role) {
                    roles.push((role, parse(&id, "id", id.parse::<SandboxId>())?));
                }
            }
            Ok(roles)
        })
        .await
    }
}

fn insert_row(connection: &Connection, row: &Row) -> Result<(), StoreError> {
    let stored = StoredSpec {
        rootfs: row.spec.rootfs.as_ref().map(WirePath::from),
        limits: row.spec.limits,
        run: row.run.clone(),
        unseeded: row.unseeded,
    };
    let spec = parse(row.id.as_str(), "spec", serde_json::to_string(&stored))?;
    let inserted = connection.execute(
        "INSERT INTO sandboxes (id, name, driver, spec, desired, created_at)
         VALUES (?, ?, ?, ?, ?, ?)",
        params![
            row.id.as_str(),
            row.name,
            row.driver,
            spec,
            row.desired.as_str(),
            i64::try_from(row.created_at).unwrap_or(i64::MAX)
        ],
    );
    match inserted {
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) => {
            Err(StoreError::NameTaken(row.name.clone()))
        }
        other => other.map(|_| ()).map_err(StoreError::from),
    }
}

fn read_row(row: &rusqlite::Row<'_>) -> Result<Row, StoreError> {
    let id: String = row.get(0)?;
    let spec: StoredSpec =
        parse(&id, "spec", serde_json::from_str(row.get_ref(3)?.as_str().unwrap_or("")))?;
    let desired: String = row.get(4)?;
    Ok(Row {
        name: row.get(1)?,
        driver: row.get(2)?,
        spec: SandboxSpec { rootfs: spec.rootfs.map(|path| path.0), limits: spec.limits },
        desired: parse(&id, "desired", Desired::parse(&desired).ok_or(&desired))?,
        created_at: u64::try_from(row.get::<_, i64>(5)?).unwrap_or(0),
        run: spec.run,
        unseeded: spec.unseeded,
        id: parse(&id, "id", id.parse())?,
    })
}

pub(super) fn parse<T>(
    id: &str,
    column: &'static str,
    parsed: Result<T, impl std::fmt::Display>,
) -> Result<T, StoreError> {
    parsed.map_err(|why| StoreError::Corrupt { id: id.to_owned(), column, why: why.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(id: &str, name: &str) -> Row {
        Row {
            id: id.parse().unwrap(),
            name: name.to_owned(),
            driver: "fake".to_owned(),
            spec: SandboxSpec {
                rootfs: Some("/srv/\u{fe}".into()),
                limits: Limits { pids: Some(7), ..Default::default() },
            },
            desired: Desired::Creating,
            created_at: 42,
            run: Some(RunTie { id: format!("run-{id}"), kept: false }),
            unseeded: name == "live",
        }
    }

    #[tokio::test]
    async fn a_row_comes_back_as_it_went_in_and_takes_its_role_with_it() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("control.db")).unwrap();
        store.insert(row("sb-1", "live"), Some(Role::Live)).await.unwrap();
        store.insert(row("sb-2", "other"), Some(Role::Live)).await.unwrap();
        assert_eq!(store.sandboxes().await.unwrap(), [row("sb-1", "live"), row("sb-2", "other")]);
        assert_eq!(store.roles().await.unwrap(), [(Role::Live, "sb-1".parse().unwrap())]);

        let id = "sb-1".parse().unwrap();
        store.set_desired(&id, Desired::Running).await.unwrap();
        assert_eq!(store.sandboxes().await.unwrap()[0].desired, Desired::Running);
        store.keep_after_run(&id).await.unwrap();
        let kept = Some(RunTie { id: "run-sb-1".to_owned(), kept: true });
        assert_eq!(store.sandboxes().await.unwrap()[0].run, kept);
        assert_eq!(store.unseeded().await.unwrap(), std::slice::from_ref(&id));
        store.set_seeded(&id).await.unwrap();
        assert_eq!(store.unseeded().await.unwrap(), []);
        store.delete(&id).await.unwrap();
        assert_eq!(store.roles().await.unwrap(), []);
    }

    #[tokio::test]
    async fn a_name_is_taken_once() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("control.db")).unwrap();
        store.insert(row("sb-1", "a"), None).await.unwrap();
        let again = store.insert(row("sb-2", "a"), None).await;
        assert!(matches!(again, Err(StoreError::NameTaken(name)) if name == "a"));
    }
}
