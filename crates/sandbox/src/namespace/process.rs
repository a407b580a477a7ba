//! A process that may not be our child, without mistaking another one for it.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// What names a process for as long as the machine is up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Identity {
    pub(super) pid: i32,
    /// Clock ticks after boot at which it started.
    started: u64,
    boot: String,
}

#[derive(Debug)]
pub(super) struct Process {
    pub(super) identity: Identity,
    fd: OwnedFd,
}

impl Process {
    pub(super) fn open(pid: i32) -> io::Result<Self> {
        let number = Pid::from_raw(pid).ok_or(io::ErrorKind::InvalidInput)?;
        let fd = pidfd_open(number, PidfdFlags::NONBLOCK)?;
        let identity = Identity { pid, started: started(pid)?, boot: boot_id()? };
        Ok(Self { identity, fd })
    }

    /// The process `identity` was taken from, if it still runs.
    pub(super) fn find(identity: &Identity) -> Option<Self> {
        let process = Self::open(identity.pid).ok()?;
        (process.identity == *identity && !process.has_exited()).then_some(process)
    }

    pub(super) fn has_exited(&self) -> bool {
        self.exits_within(Duration::ZERO)
    }

    /// Blocks the thread until it has ended or the time is over.
    pub(super) fn exits_within(&self, time: Duration) -> bool {
        let time =
            Timespec { tv_sec: time.as_secs().cast_signed(), tv_nsec: time.subsec_nanos().into() };
        let mut fds = [PollFd::new(&self.fd, PollFlags::IN)];
        poll(&mut fds, Some(&time)).is_ok_and(|ready| ready == 1)
    }

    pub(super) fn signal(&self, signal: Signal) {
        // An error means that it is gone.
        let _ = pidfd_send_signal(&self.fd, signal);
    }

    pub(super) fn kill(&self) {
        self.signal(Signal::KILL);
    }

    pub(super) async fn exited(&self) {
        let watched = self.fd.try_clone().and_then(|fd| {
            // SAFETY: an OwnedFd keeps its descriptor open until the AsyncFd that owns it is gone.
            Ok(unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) }?)
        });
        match watched {
            Ok(fd) => {
                let _ = fd.readable().await;
            }
            // Out of descriptors: ask now and then instead.
            Err(_) => {
                while !self.has_exited() {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            }
        }
    }
}

fn boot_id() -> io::Result<String> {
    Ok(fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned())
}

/// Field 22 of `/proc/PID/stat`, counted after the name, which may hold anything.
fn started(pid: i32) -> io::Result<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    stat.rsplit_once(") ")
        .and_then(|(_, fields)| fields.split(' ').nth(19)?.parse().ok())
        .ok_or_else(|| io::Error::other(format!("cannot read the start time of process {pid}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_process_with_the_same_number_is_not_found() {
        let own = Process::open(std::process::id().cast_signed()).unwrap();
        assert!(Process::find(&own.identity).is_some());
        let earlier = Identity { started: own.identity.started - 1, ..own.identity.clone() };
        assert!(Process::find(&earlier).is_none());
    }

    #[tokio::test]
    async fn an_exit_is_noticed() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let process = Process::open(child.id().cast_signed()).unwrap();
        assert!(!process.has_exited());
        process.kill();
        process.exited().await;
        assert!(process.has_exited());
        child.wait().unwrap();
    }
}
