//! Panics are counted and logged; whoever caused one gets an error, and the rest goes on.

use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::FutureExt;

static SEEN: AtomicU64 = AtomicU64::new(0);
static INSTALL: Once = Once::new();

/// A panic that was caught.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Panicked;

/// Counts and logs panics of this process from now on.
pub fn install() {
    INSTALL.call_once(|| {
        panic::set_hook(Box::new(|info| {
            SEEN.fetch_add(1, Ordering::Relaxed);
            tracing::error!("contained: {info}");
        }));
    });
}

/// How many there were since [`install`].
pub fn seen() -> u64 {
    SEEN.load(Ordering::Relaxed)
}

/// Runs a future; a panic in it is a value.
pub async fn contain<F: Future>(future: F) -> Result<F::Output, Panicked> {
    AssertUnwindSafe(future).catch_unwind().await.map_err(|_| Panicked)
}
