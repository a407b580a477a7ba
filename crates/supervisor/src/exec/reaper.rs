//! Collects ended processes: the one place that waits for children.
//!
//! The kernel's signal wakes it; nothing polls. A process is entered in the table before it is
//! started, with its number where the kernel writes it before the process runs, and leaves it under
//! the same lock as it is waited for. So an exit is never missed and a signal is never sent to a
//! number that already means another process; and no lock is held while a process starts.

use std::io;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    Exited(i32),
    Signalled(i32),
}

/// Which children to collect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reap {
    /// All of them, orphans of the sandbox included: for pid 1 and for a subreaper.
    Everything,
    /// Only the commands: for a process that has other children, which are not ours.
    Commands,
}

pub(super) struct Reaper {
    reap: Reap,
    table: Mutex<Vec<Expected>>,
}

/// A process that somebody waits for.
struct Expected {
    number: Number,
    ended: oneshot::Sender<Ended>,
}

/// The number of a process, zero until it has one.
pub(super) type Number = Arc<AtomicI32>;

/// A process that is about to be started. Without [`Birth::started`] it was not, and is forgotten.
pub(super) struct Birth {
    reaper: Arc<Reaper>,
    number: Number,
    started: bool,
}

impl Birth {
    /// For the kernel to write to and others to read.
    pub(super) fn number(&self) -> &Number {
        &self.number
    }

    /// Returns its number.
    pub(super) fn started(mut self) -> i32 {
        self.started = true;
        self.number.load(Ordering::Acquire)
    }
}

impl Drop for Birth {
    fn drop(&mut self) {
        if !self.started {
            self.reaper.lock().retain(|expected| !Arc::ptr_eq(&expected.number, &self.number));
        }
    }
}

impl Reaper {
    /// Starts collecting, on the current runtime.
    pub(super) fn start(reap: Reap) -> io::Result<Arc<Self>> {
        let reaper = Arc::new(Self { reap, table: Mutex::default() });
        let child_signal = signal(SignalKind::child())?;
        tokio::spawn(Arc::clone(&reaper).run(child_signal));
        Ok(reaper)
    }

    /// Promises the end of a process that the caller is about to start.
    pub(super) fn expect(self: &Arc<Self>) -> (Birth, oneshot::Receiver<Ended>) {
        let number = Number::default();
        let (ended, receiver) = oneshot::channel();
        self.lock().push(Expected { number: Arc::clone(&number), ended });
        (Birth { reaper: Arc::clone(self), number, started: false }, receiver)
    }

    /// Runs `act` unless the process has been collected; its number cannot change hands meanwhile.
    pub(super) fn while_alive<T>(&self, pid: i32, act: impl FnOnce() -> T) -> Option<T> {
        let table = self.lock();
        table.iter().any(|expected| expected.is(pid)).then(act)
    }

    /// Ends a process that may not have started yet, or have ended.
    pub(super) fn kill(&self, number: &Number) {
        let pid = number.load(Ordering::Acquire);
        // SAFETY: a plain system call on numbers; while it is in the table this one is a child's.
        self.while_alive(pid, || unsafe { libc::kill(pid, libc::SIGKILL) });
    }

    async fn run(self: Arc<Self>, mut child_signal: Signal) {
        // The stream only ends with the runtime.
        while child_signal.recv().await.is_some() {
            self.collect();
        }
    }

    fn collect(&self) {
        let mut table = self.lock();
        match self.reap {
            Reap::Everything => {
                while let Some((pid, ended)) = wait(-1) {
                    if let Some(at) = table.iter().position(|expected| expected.is(pid)) {
                        table.swap_remove(at).announce(ended);
                    }
                }
            }
            Reap::Commands => {
                let waited = |expected: &Expected| wait(expected.pid()?).map(|(_, ended)| ended);
                let mut at = 0;
                while let Some(expected) = table.get(at) {
                    match waited(expected) {
                        Some(ended) => table.swap_remove(at).announce(ended),
                        None => at += 1,
                    }
                }
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Expected>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Expected {
    fn pid(&self) -> Option<i32> {
        Some(self.number.load(Ordering::Acquire)).filter(|pid| *pid > 0)
    }

    fn is(&self, pid: i32) -> bool {
        self.pid() == Some(pid)
    }

    fn announce(self, ended: Ended) {
        // Nobody waits for a command that could not be started.
        let _ = self.ended.send(ended);
    }
}

/// One ended child, or none at the moment.
fn wait(pid: i32) -> Option<(i32, Ended)> {
    let mut status = 0;
    // SAFETY: waitpid writes to `status`, which outlives the call.
    let pid = unsafe { libc::waitpid(pid, &raw mut status, libc::WNOHANG) };
    if pid <= 0 {
        return None;
    }
    let ended = if libc::WIFEXITED(status) {
        Ended::Exited(libc::WEXITSTATUS(status))
    } else {
        Ended::Signalled(libc::WTERMSIG(status))
    };
    Some((pid, ended))
}
