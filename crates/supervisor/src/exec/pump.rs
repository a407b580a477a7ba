//! Moves what a command prints from its pipe, or its terminal, to its [`Output`].

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use nacre_wire::exec::Stream;
use rustix::fs::OFlags;
use tokio::io::unix::AsyncFd;
use tokio_util::sync::CancellationToken;

use super::output::{Output, Taken};

/// A pipe that was filled to what the kernel gives by default becomes this large. Not larger:
/// the kernel counts pipes per user, and all sandboxes of a host user share that budget.
const LARGE_PIPE: usize = 256 * 1024;
const FILLED: usize = 64 * 1024;
/// No pipe holds more than this, so no more was written before the command exited.
const MOST_IN_FLIGHT: usize = 1024 * 1024;

/// Whether there can be more to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Drained {
    /// All writers are gone.
    ToTheEnd,
    /// All the command wrote was read; a process it left behind may write on.
    StillOpen,
}

pub(super) struct Pump {
    pub(super) source: Arc<AsyncFd<OwnedFd>>,
    pub(super) stream: Stream,
    pub(super) output: Arc<Output>,
}

impl Pump {
    /// Reads until everything the command itself wrote is in the output.
    pub(super) async fn until_drained(&self, exited: &CancellationToken) -> Drained {
        tokio::select! {
            biased;
            () = exited.cancelled() => self.rest_of_pipe().await,
            () = self.until_end() => Drained::ToTheEnd,
        }
    }

    /// Reads until all writers are gone.
    pub(super) async fn until_end(&self) {
        let mut enlarged = false;
        loop {
            let room = self.output.room();
            let Ok(mut ready) = self.source.readable().await else { return };
            match ready.try_io(|source| self.take(source)) {
                Ok(Ok(Taken::Bytes(count))) if count >= FILLED && !enlarged => {
                    enlarged = true;
                    // Refused when the user has too many large pipes: then it stays slower.
                    let _ = rustix::pipe::fcntl_setpipe_size(self.source.get_ref(), LARGE_PIPE);
                }
                Ok(Ok(Taken::Bytes(_))) | Err(_) => {}
                Ok(Ok(Taken::Full)) => room.await,
                // A terminal without a program says EIO.
                Ok(Ok(Taken::End) | Err(_)) => return,
            }
        }
    }

    async fn rest_of_pipe(&self) -> Drained {
        let mut taken = 0;
        while taken < MOST_IN_FLIGHT {
            let room = self.output.room();
            match self.take(&self.source) {
                Ok(Taken::Bytes(count)) => taken += count,
                Ok(Taken::Full) => room.await,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Ok(Taken::End) | Err(_) => return Drained::ToTheEnd,
            }
        }
        Drained::StillOpen
    }

    fn take(&self, source: &AsyncFd<OwnedFd>) -> io::Result<Taken> {
        self.output.take(self.stream, |room| {
            loop {
                match rustix::io::read(source.get_ref(), &mut *room) {
                    Err(rustix::io::Errno::INTR) => {}
                    result => return Ok(result?),
                }
            }
        })
    }
}

/// Makes one of our ends of a stream ready for the runtime.
pub(super) fn watched(fd: OwnedFd) -> io::Result<Arc<AsyncFd<OwnedFd>>> {
    let flags = rustix::fs::fcntl_getfl(&fd)?;
    rustix::fs::fcntl_setfl(&fd, flags | OFlags::NONBLOCK)?;
    // SAFETY: an `OwnedFd` is one open descriptor until it is dropped, and nothing takes it out.
    let watched = unsafe { AsyncFd::register(fd) };
    Ok(Arc::new(watched.map_err(|error| error.into_parts().1)?))
}
