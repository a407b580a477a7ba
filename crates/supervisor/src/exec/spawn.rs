//! From a [`Program`] to a running process, as the parent sees it: streams, the start on a thread
//! that may stand still for it, and what to say when it fails.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use nacre_wire::exec::TtySize;
use nacre_wire::{ApiError, ErrorKind};
use rustix::fs::{Mode, OFlags};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use tokio::sync::oneshot;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::child::{Child, ChildStreams, Stage};
use super::program::Program;
use super::reaper::{Birth, Ended, Reaper};
use crate::limits::Limits;

/// How long a process may take to run its program. It waits for the kernel only, unless another
/// process of its user stops it in between, and then its thread stands still with it.
const PATIENCE: Duration = Duration::from_secs(5);

/// A process that runs the program, and our ends of its streams.
pub(super) struct Spawned {
    pub(super) pid: i32,
    pub(super) ended: oneshot::Receiver<Ended>,
    pub(super) streams: Streams,
}

pub(super) enum Streams {
    Pipes { stdin: Option<OwnedFd>, stdout: OwnedFd, stderr: OwnedFd },
    Terminal { master: OwnedFd },
}

/// Starts the program and waits until it runs or is known not to.
pub(super) async fn spawn(
    program: Program,
    reaper: &Arc<Reaper>,
    limits: Limits,
) -> Result<(Program, Spawned), ApiError> {
    let name = program.name.clone();
    let (birth, ended) = reaper.expect();
    let number = Arc::clone(birth.number());
    let mut starting = spawn_blocking(move || {
        let started = start(&program, birth, limits)?;
        Ok((program, started))
    });
    let started = match timeout(PATIENCE, &mut starting).await {
        Ok(started) => started,
        Err(_) => {
            reaper.kill(&number);
            let _ = starting.await;
            return Err(ApiError::new(
                ErrorKind::Unavailable,
                format!("cannot start {name}: it was stopped before it could run"),
            )
            .hint("another process in this sandbox stops those of its user"));
        }
    };
    let (program, (pid, streams)) = started.unwrap_or_else(|_| {
        Err(ApiError::new(ErrorKind::Internal, format!("the supervisor failed to start {name}")))
    })?;
    Ok((program, Spawned { pid, ended, streams }))
}

/// Blocks until the program runs or is known not to.
fn start(program: &Program, birth: Birth, limits: Limits) -> Result<(i32, Streams), ApiError> {
    let (streams, child_streams) = streams(program)
        .map_err(|error| ApiError::io(format!("cannot start {}", program.name), &error))?;
    let child = Child::new(program, &child_streams, limits);
    let started = child.start(birth.number());
    if let Err((Stage::Birth, error)) = started {
        return Err(explain(program, Stage::Birth, &error));
    }
    // There is a process to collect, whether it runs the program or not.
    let pid = birth.started();
    started.map_err(|(stage, error)| explain(program, stage, &error))?;
    limits.apply_to(pid);
    Ok((pid, streams))
}

fn streams(program: &Program) -> io::Result<(Streams, ChildStreams)> {
    if let Some(size) = program.tty {
        return terminal(size, program.user.uid);
    }
    let (stdin, child_stdin) = if program.stdin {
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
        (Some(writer), reader)
    } else {
        // Whatever root of the sandbox may have put there, it is not waited for.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        (None, rustix::fs::open("/dev/null", flags, Mode::empty())?)
    };
    let (stdout, child_stdout) = pipe_with(PipeFlags::CLOEXEC)?;
    let (stderr, child_stderr) = pipe_with(PipeFlags::CLOEXEC)?;
    let child = ChildStreams { stdin: child_stdin, stdout: child_stdout, stderr: child_stderr };
    Ok((Streams::Pipes { stdin, stdout, stderr }, child))
}

fn terminal(size: TtySize, uid: u32) -> io::Result<(Streams, ChildStreams)> {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    unlockpt(&master)?;
    // Not by name: which /dev/pts a name means depends on the mount namespace.
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let slave = ioctl_tiocgptpeer(&master, flags)?;
    tcsetwinsize(&master, winsize(size))?;
    // Programs open /dev/tty again as the user they run as. Where there is only one user this
    // may be refused, and is not needed.
    let _ = rustix::fs::fchown(&slave, Some(rustix::fs::Uid::from_raw(uid)), None);
    let _ = rustix::fs::fchmod(&slave, Mode::from_raw_mode(0o620));
    let child =
        ChildStreams { stdin: slave.try_clone()?, stdout: slave.try_clone()?, stderr: slave };
    Ok((Streams::Terminal { master }, child))
}

pub(super) fn winsize(size: TtySize) -> Winsize {
    Winsize { ws_row: size.rows, ws_col: size.cols, ws_xpixel: 0, ws_ypixel: 0 }
}

fn explain(program: &Program, stage: Stage, error: &io::Error) -> ApiError {
    let name = &program.name;
    match stage {
        Stage::Birth | Stage::Session | Stage::Streams => {
            ApiError::io(format!("cannot start {name}"), error)
        }
        Stage::User => ApiError::io(format!("cannot become user {}", program.user.name), error),
        Stage::Directory => {
            ApiError::io(format!("working directory {}", program.cwd.display()), error)
        }
        Stage::Program => match error.raw_os_error() {
            Some(libc::ENOENT) if !name.contains('/') => {
                ApiError::new(ErrorKind::NotFound, format!("program {name}: not found in PATH"))
            }
            Some(libc::E2BIG) => ApiError::new(
                ErrorKind::TooLarge,
                format!("program {name}: arguments and environment are too long"),
            ),
            _ => ApiError::io(format!("program {name}"), error),
        },
    }
}
