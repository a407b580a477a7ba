//! Streams that something was read from, or written to, before they came to hyper.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use bytes::{Buf, Bytes};
use nacre_sandbox::BoxStream;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::sandboxes::Sandbox;

/// A stream of which some bytes were read ahead.
#[derive(Debug)]
pub(crate) struct Ahead<S> {
    early: Bytes,
    stream: S,
}

impl<S> Ahead<S> {
    pub(crate) fn new(early: Bytes, stream: S) -> Self {
        // Even when empty it can hold on to memory.
        let early = if early.is_empty() { Bytes::new() } else { early };
        Self { early, stream }
    }

    /// The stream, and what came before what is still in it; `read` was read from here already.
    pub(crate) fn into_parts(self, read: Bytes) -> (S, Bytes) {
        let early = match (read.is_empty(), self.early.is_empty()) {
            (true, _) => self.early,
            (false, true) => read,
            (false, false) => [read, self.early].concat().into(),
        };
        (self.stream, early)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Ahead<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.early.is_empty() {
            return Pin::new(&mut self.stream).poll_read(cx, buffer);
        }
        let size = self.early.len().min(buffer.remaining());
        buffer.put_slice(&self.early[..size]);
        self.early.advance(size);
        if self.early.is_empty() {
            self.early = Bytes::new();
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Ahead<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// A request that went through the door, and what has come of its answer. It goes with the request to
/// hyper, which reads the answer as if it had sent the request itself: nothing is sent twice.
#[derive(Clone)]
pub(crate) struct Begun {
    pub(crate) sandbox: Arc<Sandbox>,
    pub(crate) at: Instant,
    /// There is one; requests are cloned in theory.
    stream: Arc<Mutex<Option<BoxStream>>>,
}

impl Begun {
    pub(super) fn new(sandbox: Arc<Sandbox>, at: Instant, stream: BoxStream, read: Bytes) -> Self {
        let stream = Said { stream: Ahead::new(read, stream), reader: None, said: false };
        Self { sandbox, at, stream: Arc::new(Mutex::new(Some(Box::new(stream)))) }
    }

    pub(crate) fn take(&self) -> Option<BoxStream> {
        self.stream.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// A stream whose other side has the request already. What is written is the same once more, and goes
/// nowhere. Until then nothing is read: an answer that comes before its request would be an error.
#[derive(Debug)]
struct Said {
    stream: Ahead<BoxStream>,
    reader: Option<Waker>,
    said: bool,
}

impl AsyncRead for Said {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.said {
            self.reader = Some(cx.waker().clone());
            return Poll::Pending;
        }
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Said {
    fn poll_write(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.said = true;
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
