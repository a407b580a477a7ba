//! The threads that serve browsers, each with a runtime of its own.
//!
//! ```text
//! listener ─▶ the lane with the fewest connections ─▶ its thread: TLS, HTTP, the door
//! ```
//! A connection stays on its lane, and so do the connections to doors that its requests use: passing
//! a request on wakes no other thread. What must not wait for a lane, or make one wait, is run by the
//! runtime that started the gateway ([`super::Site`] hands the control plane to it).

use std::cell::Cell;
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::thread;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// More than this many processors are not needed to serve one person.
const MOST: usize = 8;
/// The place of every thread that is no lane.
const ELSEWHERE: usize = 0;
/// How many places [`here`] can name.
pub(crate) const PLACES: usize = MOST + 1;

thread_local! {
    static PLACE: Cell<usize> = const { Cell::new(ELSEWHERE) };
}

/// Which lane this thread is; all other threads share one place.
pub(crate) fn here() -> usize {
    PLACE.get()
}

/// Begins a task on the thread that runs it.
type Begin = Box<dyn FnOnce() + Send>;

/// Dropped, the threads end, and what still runs on them with it.
pub(crate) struct Lanes(Vec<Lane>);

struct Lane {
    begins: UnboundedSender<Begin>,
    /// As many more references as tasks are under way.
    tasks: Arc<()>,
}

impl Lanes {
    /// One for each processor.
    pub(crate) fn start() -> io::Result<Self> {
        let count = thread::available_parallelism().map_or(1, usize::from).min(MOST);
        (1..=count).map(Lane::start).collect::<io::Result<_>>().map(Self)
    }

    /// Calls `begin` on the lane that has the least to do, and runs what it returns there.
    pub(crate) fn spawn<F>(&self, begin: impl FnOnce() -> F + Send + 'static)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let least = self.0.iter().min_by_key(|lane| Arc::strong_count(&lane.tasks));
        let Some(lane) = least else { return };
        let counted = lane.tasks.clone();
        // It fails only when the thread is gone, and then so is everything else.
        let _ = lane.begins.send(Box::new(move || {
            let task = begin();
            tokio::spawn(async move {
                task.await;
                drop(counted);
            });
        }));
    }
}

impl Lane {
    fn start(place: usize) -> io::Result<Self> {
        let (begins, receiver) = unbounded_channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        thread::Builder::new().name(format!("lane-{place}")).spawn(move || {
            PLACE.set(place);
            runtime.block_on(run(receiver));
        })?;
        Ok(Self { begins, tasks: Arc::default() })
    }
}

async fn run(mut begins: UnboundedReceiver<Begin>) {
    while let Some(begin) = begins.recv().await {
        begin();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn work_goes_where_the_least_is_and_stays_there() {
        let lanes = Lanes::start().unwrap();
        let (sender, places) = channel();
        let (ends, mut begun) = (tokio::sync::watch::channel(()), Vec::new());
        for _ in &lanes.0 {
            let (sender, mut end) = (sender.clone(), ends.1.clone());
            lanes.spawn(move || {
                sender.send(here()).unwrap();
                async move {
                    let _ = end.changed().await;
                    sender.send(here()).unwrap();
                }
            });
            begun.push(places.recv().unwrap());
        }
        begun.sort_unstable();
        assert_eq!(begun, (1..=lanes.0.len()).collect::<Vec<_>>());
        drop(ends.0);
        drop(sender);
        let mut ended: Vec<_> = places.iter().collect();
        ended.sort_unstable();
        assert_eq!(ended, begun);
        assert_eq!(here(), ELSEWHERE);
    }

    #[test]
    fn threads_end_with_the_lanes() {
        let lanes = Lanes::start().unwrap();
        let (sender, ended) = channel::<()>();
        lanes.spawn(move || async move {
            std::future::pending::<()>().await;
            drop(sender);
        });
        drop(lanes);
        assert!(ended.recv().is_err(), "what ran there is dropped");
    }
}
