//! Threads that others wait for and that have little to do each time.
//!
//! A thread that wakes on a busy machine waits for its turn behind whoever runs, for as long as their slice
//! lasts, which is some milliseconds. Linux gives those an earlier turn who ask for shorter slices (6.12 and
//! later; needs no right, and costs nothing but being interrupted sooner). Older kernels ignore it.

use std::cell::Cell;

/// The shortest that the kernel takes.
const SLICE_NS: u64 = 100_000;

thread_local! {
    static ASKED: Cell<bool> = const { Cell::new(false) };
}

/// From now on the current thread gets its turns soon.
pub(crate) fn prompt() {
    if ASKED.replace(true) {
        return;
    }
    let size = size_of::<libc::sched_attr>();
    // SAFETY: the structure is plain numbers, for which zero is a value.
    let mut wanted: libc::sched_attr = unsafe { std::mem::zeroed() };
    wanted.size = u32::try_from(size).unwrap_or(0);
    wanted.sched_policy = u32::try_from(libc::SCHED_OTHER).unwrap_or(0);
    wanted.sched_runtime = SLICE_NS;
    // SAFETY: the structure lives through the call and says how long it is; 0 is the current thread.
    // An answer that it cannot be changes nothing.
    unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const wanted, 0) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_asks_once_and_stays_an_ordinary_one() {
        std::thread::spawn(|| {
            prompt();
            prompt();
            // SAFETY: 0 is the current thread.
            let policy = unsafe { libc::sched_getscheduler(0) };
            assert_eq!(policy, libc::SCHED_OTHER);
            assert!(ASKED.get());
        })
        .join()
        .unwrap();
    }
}
