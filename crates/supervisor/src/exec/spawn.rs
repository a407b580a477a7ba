//! From a [`Program`] to a running process, as the parent sees it: streams, fork, and the wait
//! for the child to say that it failed or, by the exec that closes its pipe to us, that it did
//! not.

use std::io;
use std::os::fd::OwnedFd;

use nacre_wire::exec::TtySize;
use nacre_wire::{ApiError, ErrorKind};
use rustix::fs::{Mode, OFlags};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::sync::oneshot;

use super::child::{Child, ChildStreams, Stage};
use super::program::Program;
use super::reaper::{Ended, Reaper};
use crate::limits::Limits;

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
    program: &Program,
    reaper: &Reaper,
    limits: &Limits,
) -> Result<Spawned, ApiError> {
    let cannot = |error: io::Error| ApiError::io(format!("cannot start {}", program.name), &error);
    let (streams, child_streams) = streams(program).map_err(cannot)?;
    let (report, child_report) =
        pipe_with(PipeFlags::CLOEXEC).map_err(|error| cannot(error.into()))?;
    let (pid, ended) = reaper
        .fork(|| Child::new(program, &child_streams, &child_report, limits).fork())
        .map_err(cannot)?;
    drop((child_streams, child_report));
    match failure(report).await.map_err(cannot)? {
        None => Ok(Spawned { pid, ended, streams }),
        Some((stage, error)) => Err(explain(program, stage, &error)),
    }
}

fn streams(program: &Program) -> io::Result<(Streams, ChildStreams)> {
    if let Some(size) = program.tty {
        return terminal(size, program.user.uid);
    }
    let (stdin, child_stdin) = if program.stdin {
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
        (Some(writer), reader)
    } else {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
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

/// Waits for the exec, which closes the pipe, or for what the child says went wrong.
async fn failure(report: OwnedFd) -> io::Result<Option<(Stage, io::Error)>> {
    let mut said = Vec::with_capacity(8);
    pipe::Receiver::from_owned_fd(report)?.read_to_end(&mut said).await?;
    let Some((&stage, errno)) = said.split_first() else { return Ok(None) };
    let errno = errno.try_into().map_or(libc::EIO, i32::from_ne_bytes);
    Ok(Some((Stage::from_byte(stage), io::Error::from_raw_os_error(errno))))
}

fn explain(program: &Program, stage: Stage, error: &io::Error) -> ApiError {
    let name = &program.name;
    match stage {
        Stage::Session | Stage::Streams => ApiError::io(format!("cannot start {name}"), error),
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
