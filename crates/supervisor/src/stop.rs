//! The way out when the driver stops the sandbox.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

use crate::exec::Commands;

/// Commands have two seconds from TERM to KILL; this is for the whole.
const PATIENCE: Duration = Duration::from_secs(5);
const TICK: Duration = Duration::from_millis(10);

/// Ends all commands and, as pid 1, every other process in the sandbox.
pub(crate) async fn everything(commands: &Commands) {
    let deadline = Instant::now() + PATIENCE;
    let alone = std::process::id() == 1;
    if alone {
        signal_all(libc::SIGTERM);
    }
    if timeout(PATIENCE, commands.end_all()).await.is_err() {
        tracing::warn!("some commands did not end in time");
    }
    // What is left when pid 1 exits the kernel kills; daemons get until the deadline.
    while alone && others_left() && Instant::now() < deadline {
        sleep(TICK).await;
    }
}

fn signal_all(signal: i32) {
    // SAFETY: a plain system call; as pid 1, -1 means everything in this sandbox but ourselves.
    unsafe { libc::kill(-1, signal) };
}

fn others_left() -> bool {
    // SAFETY: as above, and signal 0 only asks.
    unsafe { libc::kill(-1, 0) == 0 }
}
