//! Whether the sandbox that a turn acts on still has the role that it began with.

use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use nacre_agent::events::Update;
use nacre_agent::model::{Call, Tool};
use nacre_agent::tools::{Ready, Toolbox};

use crate::routes::Role;
use crate::sandboxes::Sandboxes;

/// Has no tools, and looks before each step: a model that is not told of a swap does to live what it
/// means for dev.
pub(super) struct Whereabouts {
    sandboxes: Sandboxes,
    /// By id.
    sandbox: String,
    told: Mutex<Role>,
}

impl Whereabouts {
    pub(super) fn new(sandboxes: Sandboxes, sandbox: &str, role: Role) -> Self {
        Self { sandboxes, sandbox: sandbox.to_owned(), told: Mutex::new(role) }
    }

    /// Of a sandbox that has lost its role, the last one stands.
    fn role(&self) -> Option<Role> {
        let here = |role: &Role| {
            self.sandboxes.by_role(*role).is_some_and(|found| found.id.as_str() == self.sandbox)
        };
        Role::ALL.into_iter().find(here)
    }
}

#[async_trait]
impl Toolbox for Whereabouts {
    async fn refresh(&self) -> Vec<Update> {
        let Some(role) = self.role() else { return Vec::new() };
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if std::mem::replace(&mut *told, role) == role {
            return Vec::new();
        }
        vec![Update::Moved { role: role.as_str().to_owned(), sandbox: self.sandbox.clone() }]
    }

    fn tools(&self) -> Vec<Tool> {
        Vec::new()
    }

    fn prepare(&self, _: &Call) -> Option<Result<Box<dyn Ready>, String>> {
        None
    }
}
