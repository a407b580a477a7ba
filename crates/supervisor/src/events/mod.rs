//! What happens in the sandbox, for whoever listens on `/ws`.
//!
//! [`Events`] numbers what is published and keeps the last of it ([`ring`]). A client reads at
//! its own pace from there ([`socket`]) and learns of it when it missed something, so a slow one
//! costs nothing. While at least one client listens, changes of files are published too
//! ([`files`]); with none, nothing is watched.

mod files;
mod ring;
mod socket;

#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nacre_wire::events::{Event, EventMessage};
use tokio::sync::watch;

pub use socket::router;

use self::ring::Ring;
use crate::users::User;
use crate::watch::Watchers;

/// What the hub needs to watch the workspace.
#[derive(Debug, Clone)]
pub struct Context {
    pub workspace: PathBuf,
    pub user: User,
    pub watchers: Watchers,
}

/// The hub. Cheap to clone.
#[derive(Clone)]
pub struct Events {
    inner: Arc<Inner>,
}

struct Inner {
    /// Differs with every life of the supervisor.
    run: String,
    ring: Mutex<Ring>,
    last: watch::Sender<u64>,
    clients: watch::Sender<usize>,
    /// Directories that are watched; `None` while there is no watch.
    watching: watch::Sender<Option<u64>>,
}

impl Events {
    /// On the current runtime.
    pub fn start(context: Context) -> Self {
        let events = Self::new();
        tokio::spawn(files::feed(events.clone(), context));
        events
    }

    fn new() -> Self {
        let inner = Inner {
            run: run(),
            ring: Mutex::default(),
            last: watch::Sender::new(0),
            clients: watch::Sender::new(0),
            watching: watch::Sender::new(None),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Tells everybody. Never waits.
    pub fn publish(&self, event: Event) {
        let mut ring = self.ring();
        let message = EventMessage { seq: ring.last() + 1, event };
        match serde_json::to_string(&message) {
            Ok(text) => ring.push(text.into()),
            Err(error) => {
                tracing::error!(%error, "an event cannot be written as JSON");
                return;
            }
        }
        let last = ring.last();
        drop(ring);
        self.inner.last.send_replace(last);
    }

    /// How many clients there are now, and when that changes.
    pub(crate) fn clients(&self) -> watch::Receiver<usize> {
        self.inner.clients.subscribe()
    }

    /// The number of the last event.
    pub fn last(&self) -> u64 {
        self.ring().last()
    }

    pub fn run(&self) -> &str {
        &self.inner.run
    }

    fn ring(&self) -> MutexGuard<'_, Ring> {
        self.inner.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a client for as long as what is returned lives.
    fn join(&self) -> Listener {
        self.inner.clients.send_modify(|count| *count += 1);
        Listener { events: self.clone() }
    }
}

struct Listener {
    events: Events,
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.events.inner.clients.send_modify(|count| *count = count.saturating_sub(1));
    }
}

/// A name for this life that no earlier one had.
fn run() -> String {
    let mut bytes = [0_u8; 8];
    let random = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
    if random != Ok(bytes.len()) {
        let since = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
        bytes = (since.as_nanos() as u64).to_ne_bytes();
    }
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
