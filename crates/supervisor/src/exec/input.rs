//! A command's standard input. Writers wait until the command reads: nothing is buffered here.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use tokio::io::unix::AsyncFd;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

/// What a terminal takes for the end of input.
const CTRL_D: &[u8] = &[4];

pub(super) struct Input {
    /// Locked across a whole message, so that the messages of two clients do not mix.
    sink: Mutex<Sink>,
    /// Ends a write that waits for a command which will not read any more.
    closed: CancellationToken,
}

enum Sink {
    Closed,
    Pipe(Arc<AsyncFd<OwnedFd>>),
    Terminal(Arc<AsyncFd<OwnedFd>>),
}

/// Whether the command can still get input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fed {
    Taken,
    Closed,
}

impl Input {
    pub(super) fn none() -> Self {
        Self::new(Sink::Closed)
    }

    pub(super) fn pipe(stdin: Arc<AsyncFd<OwnedFd>>) -> Self {
        Self::new(Sink::Pipe(stdin))
    }

    pub(super) fn terminal(master: Arc<AsyncFd<OwnedFd>>) -> Self {
        Self::new(Sink::Terminal(master))
    }

    fn new(sink: Sink) -> Self {
        Self { sink: Mutex::new(sink), closed: CancellationToken::new() }
    }

    /// Returns when the command's pipe has taken all of it, or takes no more.
    pub(super) async fn write(&self, bytes: &[u8]) -> Fed {
        let fed = tokio::select! {
            biased;
            () = self.closed.cancelled() => None,
            fed = self.feed(bytes) => Some(fed),
        };
        fed.unwrap_or_else(|| {
            self.close();
            Fed::Closed
        })
    }

    /// No more input: closes the pipe, or presses Ctrl-D on a terminal.
    pub(super) async fn finish(&self) {
        let mut sink = self.sink.lock().await;
        match &*sink {
            Sink::Closed => {}
            Sink::Pipe(_) => *sink = Sink::Closed,
            Sink::Terminal(master) => {
                let _ = write_all(master, CTRL_D).await;
            }
        }
    }

    /// The command has ended.
    pub(super) fn close(&self) {
        self.closed.cancel();
        if let Ok(mut sink) = self.sink.try_lock() {
            *sink = Sink::Closed;
        }
    }

    async fn feed(&self, bytes: &[u8]) -> Fed {
        let mut sink = self.sink.lock().await;
        let written = match &*sink {
            Sink::Closed => return Fed::Closed,
            Sink::Pipe(fd) | Sink::Terminal(fd) => write_all(fd, bytes).await,
        };
        match written {
            Ok(()) => Fed::Taken,
            Err(_) => {
                *sink = Sink::Closed;
                Fed::Closed
            }
        }
    }
}

async fn write_all(fd: &AsyncFd<OwnedFd>, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        let mut ready = fd.writable().await?;
        match ready.try_io(|fd| Ok(rustix::io::write(fd.get_ref(), bytes)?)) {
            Ok(Ok(count)) => bytes = &bytes[count..],
            Ok(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
            Ok(Err(error)) => return Err(error),
            Err(_would_block) => {}
        }
    }
    Ok(())
}
