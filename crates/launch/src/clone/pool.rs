//! Jobs that make more jobs, on a few threads.

use std::sync::{Condvar, Mutex, PoisonError};

use crate::Result;

/// More than this only wait for each other in the filesystem.
const MOST_THREADS: usize = 8;

struct Queue<J> {
    /// The newest is taken first: a tree is walked depth first, and few directories are open.
    jobs: Vec<J>,
    /// Threads that may still add to it.
    working: usize,
    failed: Option<crate::Error>,
}

/// Runs `first` and everything it leads to. Stops at the first error.
pub(super) fn run<J: Send>(
    first: J,
    work: impl Fn(J, &mut Vec<J>) -> Result<()> + Sync,
) -> Result<()> {
    let queue = Mutex::new(Queue { jobs: vec![first], working: 0, failed: None });
    let changed = Condvar::new();
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| worker(&queue, &changed, &work));
        }
    });
    match queue.into_inner().unwrap_or_else(PoisonError::into_inner).failed {
        Some(error) => Err(error),
        None => Ok(()),
    }
}

fn worker<J: Send>(
    queue: &Mutex<Queue<J>>,
    changed: &Condvar,
    work: &(impl Fn(J, &mut Vec<J>) -> Result<()> + Sync),
) {
    let mut state = queue.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        if state.failed.is_some() {
            return;
        }
        let Some(job) = state.jobs.pop() else {
            if state.working == 0 {
                return;
            }
            state = changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            continue;
        };
        state.working += 1;
        drop(state);
        let mut more = Vec::new();
        let done = work(job, &mut more);
        state = queue.lock().unwrap_or_else(PoisonError::into_inner);
        state.working -= 1;
        state.jobs.append(&mut more);
        if let Err(error) = done {
            state.failed.get_or_insert(error);
        }
        changed.notify_all();
    }
}
