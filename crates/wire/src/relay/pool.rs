//! Connections that wait for their next request.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::{Link, Source};

/// More are opened when needed and dropped when done.
const KEPT: usize = 128;
/// Unused for longer, it is closed when it is next looked at.
const IDLE: Duration = Duration::from_secs(60);

/// The most recently used is used first, so that the others grow old.
pub struct Pool<B: Source>(Mutex<Vec<(Link<B>, Instant)>>);

impl<B: Source> Default for Pool<B> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<B: Source> Pool<B> {
    /// One whose other end is still there.
    pub fn take(self: &Arc<Self>) -> Option<Link<B>> {
        loop {
            let (mut link, since) = self.lock().pop()?;
            if since.elapsed() > IDLE {
                // Those below it have waited longer still.
                self.clear();
            } else if link.is_fresh() {
                return Some(link.belongs_to(self));
            }
        }
    }

    /// Lets go of every connection.
    pub fn clear(&self) {
        let old = std::mem::take(&mut *self.lock());
        drop(old);
    }

    pub(super) fn put(&self, link: Link<B>) {
        let mut links = self.lock();
        if links.len() < KEPT {
            links.push((link, Instant::now()));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(Link<B>, Instant)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
