//! A command that another part of the supervisor runs and reads, and that leaves nothing behind.

use std::sync::Arc;

use bytes::Bytes;
use nacre_wire::ApiError;
use nacre_wire::exec::{ExecRequest, Exit, Stream};
use tokio_util::sync::CancellationToken;

use super::command::Command;
use super::commands::Commands;
use super::output::{Event, Reader};

/// One run of a service. Who holds it reads on to the end: the command waits for its reader.
pub(crate) struct Service {
    commands: Arc<Commands>,
    command: Arc<Command>,
    reader: Reader,
}

/// What a service has to say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Said {
    Output(Stream, Bytes),
    /// The last: the command has ended, and with it all that it started.
    Exit(Exit),
}

impl Commands {
    /// Starts a command for a caller inside the supervisor. Has to be awaited to the end.
    pub(crate) async fn serve(
        self: &Arc<Self>,
        request: &ExecRequest,
    ) -> Result<Service, ApiError> {
        self.surrounded().await;
        let (command, reader) = self.run(request).await?;
        Ok(Service { commands: Arc::clone(self), command, reader })
    }
}

impl Service {
    pub(crate) fn pid(&self) -> i32 {
        self.command.pid()
    }

    /// Cancelled, it asks the whole session to end, and ends it after a grace.
    pub(crate) fn end(&self) -> CancellationToken {
        self.command.end.clone()
    }

    pub(crate) async fn next(&mut self) -> Said {
        loop {
            match self.reader.next().await {
                Event::Output(bytes) => {
                    let stream = bytes.first().and_then(|byte| Stream::from_byte(*byte));
                    return Said::Output(stream.unwrap_or(Stream::Stdout), bytes.slice(1..));
                }
                // Only after an end that was asked for, when nobody reads for too long.
                Event::Gap(_) => {}
                Event::Exit(exit) => {
                    self.command.sweep().await;
                    // Its log is kept elsewhere, and one that keeps ending must not push the
                    // commands of people out of the list.
                    let _ = self.commands.remove(self.command.id()).await;
                    return Said::Exit(exit);
                }
            }
        }
    }
}
