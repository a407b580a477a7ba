//! What people call a sandbox now. It changes when a role moves.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

#[derive(Debug, Clone)]
pub(crate) struct Label(Arc<Mutex<Arc<str>>>);

impl Label {
    pub(crate) fn new(name: &str) -> Self {
        Self(Arc::new(Mutex::new(name.into())))
    }

    pub(crate) fn get(&self) -> Arc<str> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn set(&self, name: &str) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = name.into();
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.get())
    }
}
