//! Two connections as one: raw bytes both ways, each direction ends by itself.
//!
//! Most upgraded connections are silent most of the time, so they own no buffer: bytes are read
//! into one that belongs to the thread, and only what the other side does not take at once is kept.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

const SCRATCH: usize = 64 * 1024;

thread_local! {
    static BUFFER: RefCell<Vec<u8>> = RefCell::new(vec![0; SCRATCH]);
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Near,
    Far,
}

/// What passed, and whose connection failed, if one did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Joined {
    pub to_far: u64,
    pub to_near: u64,
    pub broken: Option<Side>,
}

/// Returns when both directions have ended, or one connection failed. `early` came from the far
/// side before it was joined.
pub async fn join<N, F>(near: N, far: F, early: Bytes) -> Joined
where
    N: AsyncRead + AsyncWrite + Unpin,
    F: AsyncRead + AsyncWrite + Unpin,
{
    let mut tunnel = Tunnel::new(near, far).early(Side::Far, early);
    let broken = poll_fn(|cx| tunnel.poll(cx, &mut |_, _| {})).await;
    Joined { broken, ..tunnel.passed() }
}

/// Two connections while they are joined.
pub struct Tunnel<N, F> {
    pub near: N,
    pub far: F,
    there: Half,
    back: Half,
}

impl<N, F> Tunnel<N, F>
where
    N: AsyncRead + AsyncWrite + Unpin,
    F: AsyncRead + AsyncWrite + Unpin,
{
    pub fn new(near: N, far: F) -> Self {
        Self { near, far, there: Half::default(), back: Half::default() }
    }

    /// What came from a side before it was joined.
    pub fn early(mut self, from: Side, bytes: Bytes) -> Self {
        self.half(from).left = bytes;
        self
    }

    /// Passes on what there is. `seen` is told who sent what, as it is read. Ready when both
    /// directions have ended, or with the side that broke.
    pub fn poll(
        &mut self,
        cx: &mut Context<'_>,
        seen: &mut impl FnMut(Side, &[u8]),
    ) -> Poll<Option<Side>> {
        let Self { near, far, there, back } = self;
        let there = match there.poll(cx, near, far, &mut |bytes| seen(Side::Near, bytes)) {
            Poll::Ready(Err(End::Reading)) => return Poll::Ready(Some(Side::Near)),
            Poll::Ready(Err(End::Writing)) => return Poll::Ready(Some(Side::Far)),
            there => there.is_ready(),
        };
        let back = match back.poll(cx, far, near, &mut |bytes| seen(Side::Far, bytes)) {
            Poll::Ready(Err(End::Reading)) => return Poll::Ready(Some(Side::Far)),
            Poll::Ready(Err(End::Writing)) => return Poll::Ready(Some(Side::Near)),
            back => back.is_ready(),
        };
        if there && back { Poll::Ready(None) } else { Poll::Pending }
    }

    /// How much was passed on so far.
    pub fn passed(&self) -> Joined {
        Joined { to_far: self.there.moved, to_near: self.back.moved, broken: None }
    }

    /// What was read from a side and not yet passed on; `None` when that side has ended.
    pub fn rest(&mut self, from: Side) -> Option<Bytes> {
        let half = self.half(from);
        (half.state == State::Open).then(|| std::mem::take(&mut half.left))
    }

    fn half(&mut self, from: Side) -> &mut Half {
        match from {
            Side::Near => &mut self.there,
            Side::Far => &mut self.back,
        }
    }
}

/// Which end of a direction failed.
enum End {
    Reading,
    Writing,
}

/// One direction.
#[derive(Default)]
struct Half {
    /// Read and not yet written.
    left: Bytes,
    moved: u64,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum State {
    #[default]
    Open,
    /// The reader ended; the writer is told so.
    Closing,
    Closed,
}

impl Half {
    fn poll<R, W>(
        &mut self,
        cx: &mut Context<'_>,
        reader: &mut R,
        writer: &mut W,
        seen: &mut impl FnMut(&[u8]),
    ) -> Poll<Result<(), End>>
    where
        R: AsyncRead + Unpin,
        W: AsyncWrite + Unpin,
    {
        loop {
            ready!(self.poll_left(cx, writer)).map_err(|_| End::Writing)?;
            match self.state {
                State::Closed => return Poll::Ready(Ok(())),
                State::Closing => {
                    ready!(Pin::new(&mut *writer).poll_shutdown(cx)).map_err(|_| End::Writing)?;
                    self.state = State::Closed;
                }
                State::Open => {
                    let Poll::Ready(moved) = self.poll_move(cx, reader, writer, seen) else {
                        // Some writers gather (TLS); what they have must not wait for more.
                        return match Pin::new(&mut *writer).poll_flush(cx) {
                            Poll::Ready(Err(_)) => Poll::Ready(Err(End::Writing)),
                            Poll::Ready(Ok(())) | Poll::Pending => Poll::Pending,
                        };
                    };
                    moved?;
                }
            }
        }
    }

    fn poll_left<W: AsyncWrite + Unpin>(
        &mut self,
        cx: &mut Context<'_>,
        writer: &mut W,
    ) -> Poll<io::Result<()>> {
        while !self.left.is_empty() {
            let written = ready!(Pin::new(&mut *writer).poll_write(cx, &self.left))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.moved += written as u64;
            self.left.advance(written);
            if self.left.is_empty() {
                self.left = Bytes::new();
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Reads once, and writes what of it can be written now.
    fn poll_move<R, W>(
        &mut self,
        cx: &mut Context<'_>,
        reader: &mut R,
        writer: &mut W,
        seen: &mut impl FnMut(&[u8]),
    ) -> Poll<Result<(), End>>
    where
        R: AsyncRead + Unpin,
        W: AsyncWrite + Unpin,
    {
        BUFFER.with_borrow_mut(|buffer| {
            let mut buffer = ReadBuf::new(buffer);
            ready!(Pin::new(reader).poll_read(cx, &mut buffer)).map_err(|_| End::Reading)?;
            let read = buffer.filled();
            if read.is_empty() {
                self.state = State::Closing;
                return Poll::Ready(Ok(()));
            }
            seen(read);
            let written = match Pin::new(writer).poll_write(cx, read) {
                Poll::Ready(written) => written.map_err(|_| End::Writing)?,
                Poll::Pending => 0,
            };
            self.moved += written as u64;
            if written < read.len() {
                self.left = Bytes::copy_from_slice(&read[written..]);
            }
            Poll::Ready(Ok(()))
        })
    }
}
