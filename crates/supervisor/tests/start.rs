//! What other processes may do to a command between its birth and its program: whoever shares its
//! user can send it signals, and the supervisor must not care.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "in helpers of tests")]

mod support;

use std::time::Duration;

use nacre_wire::exec::{ClientControl, ExecRequest, ServerControl};
use nacre_wire::{ApiError, ErrorKind};
use rustix::process::{Pid, Signal, kill_process};
use support::{PATIENCE, Said, Socket, Supervisor, argv, gone};

/// Looks for its program in so many places that there is time to meddle with it.
fn slow() -> ExecRequest {
    let mut request = argv(&["no-such-program"]);
    request.env.insert("PATH".into(), Some("/-:".repeat(100_000)));
    request
}

/// The state and the parent of a process.
fn look(pid: i32) -> Option<(char, u32)> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    Some((fields.next()?.chars().next()?, fields.next()?.parse().ok()?))
}

fn child_of(supervisor: &Supervisor) -> Option<i32> {
    std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .find(|pid| look(*pid).is_some_and(|(_, parent)| parent == supervisor.pid()))
}

/// Starts a slow command and returns it once it has had this signal before its program, with its
/// conversation; one that was quicker is tried again.
async fn meddle(
    supervisor: &Supervisor,
    signal: Signal,
    then: impl Fn(i32) -> bool,
) -> (i32, Socket) {
    let meddling = async {
        loop {
            let mut socket = supervisor.socket("/supervisor/exec").await;
            socket.control(&ClientControl::Start(Box::new(slow()))).await;
            let pid = loop {
                match child_of(supervisor) {
                    Some(pid) => break pid,
                    None => tokio::time::sleep(Duration::from_millis(1)).await,
                }
            };
            let process = Pid::from_raw(pid).unwrap();
            if kill_process(process, signal).is_ok() && then(pid) {
                return (pid, socket);
            }
            refusal(&mut socket).await;
            gone(pid).await;
        }
    };
    tokio::time::timeout(PATIENCE, meddling).await.expect("a signal in time")
}

async fn refusal(socket: &mut Socket) -> ApiError {
    match socket.next().await {
        Some(Said::Control(ServerControl::Error(error))) => error,
        other => panic!("expected an error: {other:?}"),
    }
}

fn stops(pid: i32) -> bool {
    loop {
        match look(pid) {
            Some(('T', _)) => return true,
            Some(('Z', _)) | None => return false,
            Some(_) => std::thread::yield_now(),
        }
    }
}

#[tokio::test]
async fn one_that_is_stopped_holds_up_nobody_and_is_given_up() {
    let supervisor = Supervisor::start().await;
    let (pid, mut socket) = meddle(&supervisor, Signal::STOP, stops).await;
    assert_eq!(supervisor.sh("exit 3").await.finish().await.code(), Some(3));
    assert_eq!(look(pid).map(|(state, _)| state), Some('T'), "others do not wait for it");
    let error = refusal(&mut socket).await;
    assert_eq!(error.kind, ErrorKind::Unavailable, "{error:?}");
    assert!(error.message.contains("stopped"), "{error:?}");
    gone(pid).await;
    assert_eq!(supervisor.sh("exit 4").await.finish().await.code(), Some(4));
}

#[tokio::test]
async fn one_that_is_stopped_for_a_moment_goes_on() {
    let supervisor = Supervisor::start().await;
    let (pid, mut socket) = meddle(&supervisor, Signal::STOP, stops).await;
    kill_process(Pid::from_raw(pid).unwrap(), Signal::CONT).unwrap();
    assert_eq!(refusal(&mut socket).await.kind, ErrorKind::NotFound);
    gone(pid).await;
}

#[tokio::test]
async fn one_that_is_killed_has_ended_so() {
    let supervisor = Supervisor::start().await;
    let before = supervisor.stats().await.open_fds;
    let (pid, mut socket) = loop {
        let (pid, mut socket) = meddle(&supervisor, Signal::KILL, |_| true).await;
        match socket.next().await {
            Some(Said::Control(ServerControl::Started { .. })) => break (pid, socket),
            // It had ended by itself and waited to be collected.
            Some(Said::Control(ServerControl::Error(_))) => {}
            other => panic!("expected a start: {other:?}"),
        }
    };
    let exit = socket.finish().await.exit.unwrap();
    assert_eq!((exit.code, exit.signal.as_deref()), (None, Some("KILL")));
    gone(pid).await;
    assert_eq!(supervisor.sh("exit 5").await.finish().await.code(), Some(5));
    supervisor.open_files_back_to(before).await;
}
