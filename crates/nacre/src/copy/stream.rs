//! Between blocking readers and writers and HTTP bodies, a chunk at a time.

use std::io::{self, Read, Write};

use bytes::{Buf, Bytes};
use futures_util::StreamExt;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Frame, Incoming};
use nacre_wire::client::{Body, BoxError};
use tokio::sync::mpsc;

use super::progress::Progress;

pub(crate) const CHUNK: usize = 256 * 1024;
/// Chunks that wait between the two sides.
const QUEUE: usize = 4;

/// A body that `produce` writes on a thread of its own. An error breaks the body off, so that the
/// other side never takes a part for the whole.
pub(crate) fn written(
    progress: Progress,
    produce: impl FnOnce(&mut dyn Write) -> io::Result<()> + Send + 'static,
) -> Body {
    let (sender, receiver) = mpsc::channel::<Result<Bytes, BoxError>>(QUEUE);
    tokio::task::spawn_blocking(move || {
        let sink = Sink { sender: sender.clone(), progress };
        let mut buffered = io::BufWriter::with_capacity(CHUNK, sink);
        let produced = produce(&mut buffered).and_then(|()| buffered.flush());
        if let Err(error) = produced {
            let _ = sender.blocking_send(Err(error.into()));
        }
    });
    let chunks = futures_util::stream::unfold(receiver, |mut receiver| async move {
        receiver.recv().await.map(|chunk| (chunk, receiver))
    });
    StreamBody::new(chunks.map(|chunk| chunk.map(Frame::data))).boxed_unsync()
}

struct Sink {
    sender: mpsc::Sender<Result<Bytes, BoxError>>,
    progress: Progress,
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let gone = |_| io::Error::from(io::ErrorKind::BrokenPipe);
        self.sender.blocking_send(Ok(Bytes::copy_from_slice(bytes))).map_err(gone)?;
        self.progress.add(bytes.len());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Lets `consume` read the body on a thread of its own.
pub(crate) async fn read<T: Send + 'static>(
    mut body: Incoming,
    progress: Progress,
    consume: impl FnOnce(&mut dyn Read) -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let (sender, receiver) = mpsc::channel::<io::Result<Bytes>>(QUEUE);
    let consuming = tokio::task::spawn_blocking(move || {
        consume(&mut Source { receiver, current: Bytes::new(), progress })
    });
    while let Some(frame) = body.frame().await {
        let chunk = match frame {
            Ok(frame) => frame.into_data().map(Ok),
            Err(error) => Ok(Err(io::Error::other(format!("the stream broke off: {error}")))),
        };
        let Ok(chunk) = chunk else { continue };
        let broken = chunk.is_err();
        if sender.send(chunk).await.is_err() || broken {
            break;
        }
    }
    drop(sender);
    consuming.await.map_err(io::Error::other)?
}

struct Source {
    receiver: mpsc::Receiver<io::Result<Bytes>>,
    current: Bytes,
    progress: Progress,
}

impl Read for Source {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.current.is_empty() {
            match self.receiver.blocking_recv() {
                Some(chunk) => self.current = chunk?,
                None => return Ok(0),
            }
            self.progress.add(self.current.len());
        }
        let count = buffer.len().min(self.current.len());
        self.current.copy_to_slice(&mut buffer[..count]);
        Ok(count)
    }
}

/// One sandbox's answer as another's request.
pub(crate) fn counted(body: Incoming, progress: Progress) -> Body {
    body.map_frame(move |frame| {
        progress.add(frame.data_ref().map_or(0, Bytes::len));
        frame
    })
    .map_err(BoxError::from)
    .boxed_unsync()
}
