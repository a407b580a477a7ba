//! Starts the process that reads packets, when there is one to read.
//!
//! pid 1 holds the device and looks at nothing that comes out of it: `nacre-guest net` does, as a
//! user that owns nothing, with the device as its only descriptor. A sandbox whose programs all use
//! the proxy never has that process. When it dies it is started again with the next packet.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::Uid;
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader, Interest};

/// `nobody`, on every distribution.
const NOBODY: u32 = 65_534;
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// What it may say in one line.
const LONGEST_LINE: u64 = 1024;

/// Never returns.
pub(super) async fn keep(device: OwnedFd) {
    // SAFETY: it owns the descriptor, which stays the same and open as long as it is registered.
    let registered = unsafe { AsyncFd::register_with_interest(device, Interest::READABLE) };
    let device = match registered {
        Ok(device) => device,
        Err(error) => {
            tracing::warn!(%error, "packets cannot be waited for");
            return;
        }
    };
    let mut pause = FIRST_PAUSE;
    for turn in 0_u32.. {
        match device.readable().await {
            // It is another process that will read; whether there is more is asked afresh.
            Ok(mut ready) => ready.clear_ready(),
            Err(_) => return,
        }
        let started = tokio::time::Instant::now();
        match start(device.get_ref(), turn) {
            Ok(said) => listen(said).await,
            Err(error) => tracing::warn!(%error, "the process for packets did not start"),
        }
        // What was healthy for long and ended is back at once.
        pause = if started.elapsed() > LONGEST_PAUSE { FIRST_PAUSE } else { pause * 2 };
        pause = pause.min(LONGEST_PAUSE);
        tokio::time::sleep(pause).await;
    }
}

/// `turn`: how many were started before, whose names are not to be mistaken for those of this one.
fn start(device: &OwnedFd, turn: u32) -> io::Result<impl AsyncRead + Unpin + use<>> {
    let device = device.as_fd().try_clone_to_owned()?;
    // Our own program: it has no other name in here.
    let mut command = Command::new("/proc/self/exe");
    command.arg("net").arg(turn.to_string()).env_clear().current_dir("/");
    command.stdin(Stdio::from(device)).stdout(Stdio::piped()).stderr(Stdio::null());
    if can_be_nobody() {
        command.uid(NOBODY).gid(NOBODY);
    }
    let mut child = command.spawn()?;
    let said = child.stdout.take().ok_or_else(|| io::Error::other("it has no output"))?;
    tracing::info!(pid = child.id(), "packets are read");
    // Who waits for children waits for this one too.
    drop(child);
    tokio::net::unix::pipe::Receiver::from_owned_fd(OwnedFd::from(said))
}

/// Where only one id is mapped, everybody is root.
fn can_be_nobody() -> bool {
    let map = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    let holds = |line: &str| {
        let mut numbers = line.split_whitespace().map(str::parse::<u64>);
        match (numbers.next(), numbers.next(), numbers.next()) {
            (Some(Ok(inside)), _, Some(Ok(count))) => {
                (inside..inside + count).contains(&u64::from(NOBODY))
            }
            _ => false,
        }
    };
    rustix::process::geteuid() == Uid::ROOT && map.lines().any(holds)
}

/// Returns when it has ended.
async fn listen(said: impl AsyncRead + Unpin) {
    let mut said = BufReader::new(said);
    loop {
        let mut line = Vec::new();
        match (&mut said).take(LONGEST_LINE).read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => break,
            Ok(_) => tracing::warn!("packets: {}", String::from_utf8_lossy(&line).trim_end()),
        }
    }
    tracing::info!("packets are no longer read");
}
