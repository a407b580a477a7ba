//! What an earlier run of a process left on its port.
//!
//! The end of a run takes its whole session along, but not a child that made a session of its own. Such a
//! one keeps the port: the next run cannot have it, and its probe would take the old one for the new. So
//! every run carries a mark in its environment, and before a start whoever listens on the port is looked
//! at. One with the mark of this process is ended. Any other is left alone, and named.

use std::collections::BTreeSet;
use std::fs;
use std::os::fd::OwnedFd;
use std::time::Duration;

use nacre_wire::ports::PortProcess;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep};

use super::log::Log;
use crate::files::identity::act_as;
use crate::ports;
use crate::users;

const VARIABLE: &str = "NACRE_PROCESS";
const GRACE: Duration = Duration::from_secs(2);
const TICK: Duration = Duration::from_millis(20);

/// What all runs of one process have in their environment, in one life of the supervisor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mark(String);

impl Mark {
    pub(crate) fn new(name: &str, life: &str) -> Self {
        Self(format!("{name}/{life}"))
    }

    pub(crate) fn variable(&self) -> (String, String) {
        (VARIABLE.to_owned(), self.0.clone())
    }

    /// `environment` as the kernel shows it.
    fn is_in(&self, environment: &[u8]) -> bool {
        let marked = format!("{VARIABLE}={}", self.0);
        environment.split(|byte| *byte == 0).any(|entry| entry == marked.as_bytes())
    }
}

/// Somebody who takes connections on the port.
#[derive(Debug)]
struct Holder {
    process: PortProcess,
    /// To end it, when it is of an earlier run.
    left: Option<OwnedFd>,
}

/// Ends what earlier runs left on the port, and returns who holds it then.
pub(crate) async fn clear(port: u16, mark: &Mark, log: &Log) -> Option<PortProcess> {
    let began = Instant::now();
    let mut told = BTreeSet::new();
    loop {
        let holders = holders(port, mark.clone()).await;
        let is_late = began.elapsed() >= GRACE;
        if began.elapsed() >= 2 * GRACE || holders.iter().all(|holder| holder.left.is_none()) {
            return holders.into_iter().next().map(|holder| holder.process);
        }
        for Holder { process: PortProcess { pid, name }, left } in &holders {
            let Some(left) = left else { continue };
            // One that is gone by now needs no signal.
            if told.insert(*pid) {
                log.note(&format!(
                    "ends process {pid} ({name}), which an earlier run left on port {port}"
                ));
                let _ = pidfd_send_signal(left, Signal::TERM);
            } else if is_late {
                let _ = pidfd_send_signal(left, Signal::KILL);
            }
        }
        sleep(TICK).await;
    }
}

async fn holders(port: u16, mark: Mark) -> Vec<Holder> {
    let found = spawn_blocking(move || {
        let look = |(uid, process): (u32, PortProcess)| {
            let left = left(uid, process.pid, &mark);
            Holder { process, left }
        };
        ports::holders(port).into_iter().map(look).collect()
    });
    found.await.unwrap_or_default()
}

fn left(uid: u32, pid: i32, mark: &Mark) -> Option<OwnedFd> {
    // Before the look at it, so that what is ended is what was looked at, whoever has the number then.
    let process = pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()?;
    let user = users::lookup(&uid.to_string()).ok()?;
    // Root of a sandbox may not look into a process of another user.
    let _acting = act_as(&user).ok()?;
    let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
    mark.is_in(&environment).then_some(process)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_of_one_process_in_one_life() {
        let mark = Mark::new("runtime", "a1");
        let check = |environment: &[u8], expected: bool| {
            assert_eq!(
                mark.is_in(environment),
                expected,
                "{}",
                String::from_utf8_lossy(environment)
            );
        };
        check(b"HOME=/\0NACRE_PROCESS=runtime/a1\0PORT=1\0", true);
        check(b"NACRE_PROCESS=runtime/a10\0", false);
        check(b"NACRE_PROCESS=runtime@dev/a1\0", false);
        check(b"X=NACRE_PROCESS=runtime/a1\0", false);
        check(b"", false);
    }

    #[tokio::test]
    async fn one_without_the_mark_is_left_alone_and_named() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let log = Log::new();
        let holder = clear(port, &Mark::new("runtime", "a1"), &log).await.unwrap();
        assert_eq!(holder.pid, i32::try_from(std::process::id()).unwrap());
        drop(listener);
        assert_eq!(clear(port, &Mark::new("runtime", "a1"), &log).await, None);
        assert_eq!(log.last(), 0);
    }
}
