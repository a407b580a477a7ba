//! Moving roles between sandboxes, in memory. What is true is in `control.db`; this follows it.
//!
//! A handle ([`Sandbox`]) belongs to one tenure of a role: when the role moves, the table gets a new
//! handle for the same sandbox, and the token of the old one is cancelled. So a request that holds a
//! handle finishes where it began, and a WebSocket knows when to go.

use std::sync::Arc;

use nacre_sandbox::SandboxId;
use nacre_wire::roles::RolesStatus;
use nacre_wire::{ApiError, ErrorKind};
use tokio::sync::OwnedMutexGuard;
use tokio_util::sync::CancellationToken;

use super::health::{self, RoleHealth};
use super::{Sandbox, Sandboxes, errors};
use crate::routes::Role;

/// What ties an upgraded connection to the role it was opened for, and to what let it in.
#[derive(Clone)]
pub(crate) struct Tie {
    pub(crate) ends: Ends,
    /// Absent for who asked for the sandbox and not for a role.
    pub(crate) health: Option<Arc<RoleHealth>>,
}

/// What ends an upgraded connection besides its two sides.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ends {
    /// The role went to another sandbox.
    pub(crate) moved: CancellationToken,
    /// The session, or the token, was revoked or has expired.
    pub(crate) session: CancellationToken,
}

impl Tie {
    /// For a connection to a sandbox by its name.
    pub(crate) fn by_name(session: CancellationToken) -> Self {
        Self { ends: Ends { session, ..Ends::default() }, health: None }
    }
}

/// Counters of each role.
#[derive(Debug, Default)]
pub(super) struct Healths {
    live: Arc<RoleHealth>,
    dev: Arc<RoleHealth>,
}

impl Sandboxes {
    pub(super) fn health(&self, role: Role) -> &Arc<RoleHealth> {
        match role {
            Role::Live => &self.0.healths.live,
            Role::Dev => &self.0.healths.dev,
        }
    }

    /// Counts an answer. What began before the role moved says nothing about who has it since.
    pub(crate) fn count(&self, role: Role, sandbox: &Sandbox, upgrade: bool, status: u16) {
        if !sandbox.has_moved() {
            self.health(role).count(upgrade, status);
        }
    }

    /// For a connection that is to end when the role leaves this sandbox, or the session ends.
    pub(crate) fn tie(&self, role: Role, sandbox: &Sandbox, session: CancellationToken) -> Tie {
        let ends = Ends { moved: sandbox.moved.clone(), session };
        Tie { ends, health: Some(self.health(role).clone()) }
    }

    /// Only one change of roles at a time.
    pub(super) fn change_roles(&self) -> Result<OwnedMutexGuard<()>, ApiError> {
        self.0.changing_roles.clone().try_lock_owned().map_err(|_| {
            ApiError::new(ErrorKind::Unavailable, "another change of live and dev is under way")
                .hint("wait for it to end; nacre status shows it")
        })
    }

    /// Makes such a change as a task of its own: a client that leaves does not leave it half-done.
    pub(super) async fn change_detached<T, E>(
        &self,
        what: &str,
        change: impl Future<Output = Result<T, E>> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<ApiError> + Send + 'static,
    {
        let changing = self.change_roles()?;
        let changed = self.0.tasks.spawn(async move {
            let changed = change.await;
            drop(changing);
            changed
        });
        let cut = |_| ApiError::new(ErrorKind::Internal, format!("{what} was cut short"));
        changed.await.map_err(cut)?
    }

    /// Points roles to other sandboxes: from this instant every new request goes there. Connections
    /// of handles that are no longer the role's are told to go.
    pub(super) fn point(
        &self,
        changes: &[(Role, Option<&SandboxId>)],
        rename: &[(&SandboxId, &str)],
    ) {
        let mut ended = Vec::new();
        {
            let mut table = self.table();
            for (id, name) in rename {
                let Some(old) = table.sandboxes.get(*id).cloned() else { continue };
                table.sandboxes.insert((*id).clone(), Arc::new(old.renamed(name)));
                ended.push(old);
            }
            for (role, owner) in changes {
                match owner {
                    Some(id) => table.roles.insert(*role, (*id).clone()),
                    None => table.roles.remove(role),
                };
            }
        }
        for handle in ended {
            handle.moved.cancel();
        }
    }

    pub(crate) async fn roles_status(&self) -> Result<RolesStatus, ApiError> {
        let info = |role| self.by_role(role).map(|sandbox| self.info(&sandbox));
        let last = self.0.store.last_swap().await.map_err(errors::from_store)?;
        Ok(RolesStatus {
            live: info(Role::Live),
            dev: info(Role::Dev),
            copying: self.copying(),
            last_swap: last.map(|swap| swap.record),
            checks: self.last_checks(),
        })
    }

    /// Keeps what is usual for each role, until the gateway stops.
    pub(super) fn keep_health(&self) {
        let this = self.clone();
        self.0.tasks.spawn(async move {
            loop {
                for role in Role::ALL {
                    this.health(role).keep();
                }
                tokio::select! {
                    () = this.0.stop.cancelled() => return,
                    () = tokio::time::sleep(health::EVERY) => {}
                }
            }
        });
    }
}

impl Sandbox {
    /// The role that this handle was for belongs to another sandbox, or to another handle of this one.
    pub(crate) fn has_moved(&self) -> bool {
        self.moved.is_cancelled()
    }

    /// The same sandbox for its next tenure.
    fn renamed(&self, name: &str) -> Self {
        self.label.set(name);
        Self {
            id: self.id.clone(),
            name: name.to_owned(),
            door: self.door.clone(),
            label: self.label.clone(),
            moved: CancellationToken::new(),
            driver: self.driver.clone(),
            spec: self.spec.clone(),
            created_at: self.created_at,
            run: self.run.clone(),
            requests: self.requests.clone(),
            view: self.view.clone(),
        }
    }
}
