//! Collects ended processes: the one place that waits for children.
//!
//! The kernel's signal wakes it; nothing polls. A process is entered in the table under the same
//! lock as it is forked, and leaves it under the same lock as it is waited for, so an exit is
//! never missed and a signal is never sent to a number that already means another process.

use std::collections::HashMap;
use std::io;
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
    table: Mutex<HashMap<i32, oneshot::Sender<Ended>>>,
}

impl Reaper {
    /// Starts collecting, on the current runtime.
    pub(super) fn start(reap: Reap) -> io::Result<Arc<Self>> {
        let reaper = Arc::new(Self { reap, table: Mutex::default() });
        let child_signal = signal(SignalKind::child())?;
        tokio::spawn(Arc::clone(&reaper).run(child_signal));
        Ok(reaper)
    }

    /// Runs `fork`, which returns the new process, and promises its end.
    pub(super) fn fork(
        &self,
        fork: impl FnOnce() -> io::Result<i32>,
    ) -> io::Result<(i32, oneshot::Receiver<Ended>)> {
        let mut table = self.lock();
        let pid = fork()?;
        let (sender, receiver) = oneshot::channel();
        table.insert(pid, sender);
        Ok((pid, receiver))
    }

    /// Runs `act` unless the process has been collected; its number cannot change hands meanwhile.
    pub(super) fn while_alive<T>(&self, pid: i32, act: impl FnOnce() -> T) -> Option<T> {
        let table = self.lock();
        table.contains_key(&pid).then(act)
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
                    announce(table.remove(&pid), ended);
                }
            }
            Reap::Commands => {
                let ended: Vec<_> = table.keys().filter_map(|pid| wait(*pid)).collect();
                for (pid, ended) in ended {
                    announce(table.remove(&pid), ended);
                }
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<i32, oneshot::Sender<Ended>>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn announce(waiting: Option<oneshot::Sender<Ended>>, ended: Ended) {
    if let Some(waiting) = waiting {
        // Nobody waits for a command that could not be started.
        let _ = waiting.send(ended);
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
