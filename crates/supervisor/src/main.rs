//! The guest binary.

use std::ffi::OsString;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;

use anyhow::{Context, bail};
use nacre_supervisor::exec::Reap;
use nacre_supervisor::history::Place;
use nacre_supervisor::{Config, run, users};

fn main() -> anyhow::Result<()> {
    let mut args = std::env::args_os().skip(1);
    match args.next().as_ref().and_then(|mode| mode.to_str()) {
        Some("launch") => supervise(nacre_launch::main()),
        Some("net") => packets(args),
        Some("serve") => serve(args),
        _ => bail!("usage: nacre-guest launch | serve --door PATH --workspace DIR [--history DIR]"),
    }
}

/// Reads the packets of the device that is standard input; the supervisor starts this.
fn packets(mut args: impl Iterator<Item = OsString>) -> anyhow::Result<()> {
    let turn = args.next().and_then(|turn| turn.to_str()?.parse().ok()).unwrap_or_default();
    // SAFETY: the supervisor gave us the device as standard input and nothing else uses it.
    let device = unsafe { OwnedFd::from_raw_fd(0) };
    nacre_supervisor::net::run(device, turn).inspect_err(|error| println!("{error:#}"))
}

/// Serves as pid 1 of the sandbox that has just been built around this process.
fn supervise(guest: nacre_launch::Guest) -> anyhow::Result<()> {
    log_to_stderr();
    // The same directory that is bound at `/workspace`, through the mount that the store is on: a
    // file can only be moved between directories of one mount.
    let data = PathBuf::from(format!("/proc/self/fd/{}", guest.data.as_raw_fd()));
    let history = Place {
        workspace: guest.workspace.clone(),
        root: data.join("workspace"),
        store: data.join("history"),
        data: Some(guest.data),
    };
    run(Config {
        door: guest.door,
        workspace: guest.workspace,
        default_user: users::lookup(&guest.user)?,
        reap: Reap::Everything,
        host_socket: Some(guest.host_socket),
        device: guest.device,
        history: Some(history),
    })
}

fn log_to_stderr() {
    // The log is on the owner's disk, which may be full. What cannot be logged is not worth a panic.
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .log_internal_errors(false)
        .init();
}

/// Serves on a socket of its own, outside a sandbox: for tests.
fn serve(mut args: impl Iterator<Item = OsString>) -> anyhow::Result<()> {
    let (mut door, mut workspace, mut store) = (None, None, None);
    while let Some(flag) = args.next() {
        let value = args.next().map(PathBuf::from);
        match flag.to_str() {
            Some("--door") => door = value,
            Some("--workspace") => workspace = value,
            Some("--history") => store = value,
            _ => bail!("unknown option {}", flag.display()),
        }
    }
    let door = door.context("--door is missing")?;
    let workspace = workspace.context("--workspace is missing")?;
    log_to_stderr();
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
        .context("cannot adopt orphans")?;
    let history = store.map(|store| Place {
        workspace: workspace.clone(),
        root: workspace.clone(),
        store,
        data: None,
    });
    run(Config {
        door: UnixListener::bind(&door).with_context(|| format!("door {}", door.display()))?,
        workspace,
        default_user: users::lookup(&rustix::process::getuid().as_raw().to_string())?,
        reap: Reap::Everything,
        host_socket: None,
        device: None,
        history,
    })
}
