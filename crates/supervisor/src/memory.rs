//! Keeps the supervisor small: a hundred of them share a machine.
//!
//! Buffers of a transfer come and go by the thousand, so the allocator may keep them while it lasts:
//! handing each back to the kernel costs more than the copying. When things are quiet again, all that
//! is free goes back.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Larger than any buffer we use.
const KEEP: i32 = 4 << 20;
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Pieces of transfers since the start.
static MOVED: AtomicU64 = AtomicU64::new(0);

/// Sets the allocator up; before the first thread. Its defaults suit servers with memory and cores
/// to spare.
pub(crate) fn bound() {
    #[cfg(target_env = "gnu")]
    // SAFETY: mallopt only sets parameters of the allocator.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 2);
        libc::mallopt(libc::M_TRIM_THRESHOLD, KEEP);
        libc::mallopt(libc::M_MMAP_THRESHOLD, KEEP);
    }
}

/// Notes that large buffers are in use.
pub(crate) fn moving() {
    MOVED.fetch_add(1, Ordering::Relaxed);
}

/// Gives memory back whenever transfers have come to rest. Never returns.
pub(crate) async fn watch() {
    let (mut seen, mut given) = (0, 0);
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let now = MOVED.load(Ordering::Relaxed);
        if now == seen && now != given {
            given = now;
            give_back();
        }
        seen = now;
    }
}

/// Returns what is free to the kernel. Takes a moment: for after a burst of work.
pub(crate) fn give_back() {
    #[cfg(target_env = "gnu")]
    // SAFETY: malloc_trim may be called at any time from any thread.
    unsafe {
        libc::malloc_trim(0);
    }
}
