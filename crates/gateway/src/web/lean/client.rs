//! The browser's side of a connection.

use std::future::{Future as _, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};
use tokio_util::sync::{
    CancellationToken, WaitForCancellationFuture, WaitForCancellationFutureOwned,
};

use super::{Ahead, BUFFER, Begun, Going, Rest, Routed, Stream};
use crate::web::serve::HEADER_TIMEOUT;

/// A head that comes in more of them is slow, and reading it again with every piece would cost more
/// than it brings: hyper looks for its end first.
const MOST_PIECES: usize = 4;

pub(super) struct Client<'s, S> {
    pub(super) stream: S,
    pub(super) stop: &'s CancellationToken,
    /// From the head of the request that is under way.
    pub(super) unread: Bytes,
    stopped: Pin<Box<WaitForCancellationFuture<'s>>>,
    /// For a head to be there. It is set again when it is found to be early, not with every request.
    timer: Pin<Box<Sleep>>,
    /// Nothing was answered yet.
    fresh: bool,
}

pub(super) enum Heard {
    Going(Box<Going>),
    /// For hyper to deal with.
    Other,
    End,
}

enum More {
    Bytes,
    Stop,
    End,
}

impl<'s, S: Stream> Client<'s, S> {
    pub(super) fn new(stream: S, stop: &'s CancellationToken) -> Self {
        let timer = Box::pin(sleep_until(Instant::now() + HEADER_TIMEOUT));
        let stopped = Box::pin(stop.cancelled());
        Self { stream, stop, unread: Bytes::new(), stopped, timer, fresh: true }
    }

    /// Waits for the next request.
    pub(super) async fn hear(&mut self, mut route: impl FnMut(&Bytes) -> Routed) -> Heard {
        let deadline = Instant::now() + HEADER_TIMEOUT;
        for _ in 0..MOST_PIECES {
            if self.unread.is_empty() {
                // It may be the last piece of something large.
                self.unread = Bytes::new();
            } else {
                match route(&self.unread) {
                    Routed::Going(going) => {
                        self.fresh = false;
                        return Heard::Going(going);
                    }
                    Routed::Other => return Heard::Other,
                    Routed::Part => {}
                }
            }
            match poll_fn(|cx| self.poll_more(cx, deadline)).await {
                More::Bytes => {}
                More::Stop | More::End if self.unread.is_empty() && !self.fresh => {
                    return Heard::End;
                }
                // How a request ends that never was one is hyper's to know.
                More::Stop => return Heard::Other,
                More::End if self.unread.is_empty() => return Heard::End,
                More::End => return Heard::Other,
            }
        }
        Heard::Other
    }

    fn poll_more(&mut self, cx: &mut Context<'_>, deadline: Instant) -> Poll<More> {
        if let Poll::Ready(read) = self.poll_read(cx) {
            return Poll::Ready(if read { More::Bytes } else { More::End });
        }
        if self.stopped.as_mut().poll(cx).is_ready() {
            return Poll::Ready(More::Stop);
        }
        while self.timer.as_mut().poll(cx).is_ready() {
            if self.timer.deadline() >= deadline {
                // Whoever says nothing is told nothing.
                self.unread = Bytes::new();
                return Poll::Ready(More::End);
            }
            self.timer.as_mut().reset(deadline);
        }
        Poll::Pending
    }

    /// Reads once; `false` when there is no more.
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<bool> {
        let unread = &mut self.unread;
        read_some(&mut self.stream, cx, |read| {
            *unread = joined(unread, read);
            !read.is_empty()
        })
    }

    /// Notices that the client has gone while something is under way for it. One that has sent more
    /// already is not listened to until that is dealt with.
    pub(super) fn poll_gone(&mut self, cx: &mut Context<'_>, dealt_with: usize) -> Poll<()> {
        while self.unread.len() <= dealt_with {
            match self.poll_read(cx) {
                Poll::Ready(true) => {}
                Poll::Ready(false) => return Poll::Ready(()),
                Poll::Pending => break,
            }
        }
        Poll::Pending
    }

    /// What `read` comes to; `None` when there is nobody to read it for any more.
    pub(super) async fn while_there<T>(
        &mut self,
        ended: &mut Ended,
        mut read: impl FnMut(&mut Context<'_>) -> Poll<Option<T>>,
    ) -> Option<T> {
        poll_fn(|cx| match read(cx) {
            Poll::Ready(read) => Poll::Ready(read.filter(|_| !ended.is_over())),
            Poll::Pending if ended.poll(cx).is_ready() => Poll::Ready(None),
            Poll::Pending => self.poll_gone(cx, 0).map(|()| None),
        })
        .await
    }

    /// `None` when not all of it went out.
    pub(super) async fn send(&mut self, mut bytes: &[u8], ended: &mut Ended) -> Option<()> {
        let stream = &mut self.stream;
        poll_fn(|cx| {
            while !bytes.is_empty() {
                match Pin::new(&mut *stream).poll_write(cx, bytes) {
                    Poll::Ready(Ok(size)) if size > 0 => bytes = &bytes[size..],
                    Poll::Ready(_) => return Poll::Ready(None),
                    Poll::Pending => return ended.poll(cx).map(|()| None),
                }
            }
            match Pin::new(&mut *stream).poll_flush(cx) {
                Poll::Ready(flushed) => Poll::Ready(flushed.ok()),
                Poll::Pending => ended.poll(cx).map(|()| None),
            }
        })
        .await
    }

    pub(super) fn leave(self, begun: Option<Begun>) -> Rest<S> {
        Rest { stream: Ahead::new(self.unread, self.stream), begun }
    }
}

/// Reads once into the thread's buffer, and hands out what came: nothing, at the end and when it broke.
pub(super) fn read_some<T>(
    stream: &mut (impl AsyncRead + Unpin),
    cx: &mut Context<'_>,
    take: impl FnOnce(&[u8]) -> T,
) -> Poll<T> {
    BUFFER.with_borrow_mut(|buffer| {
        let mut buffer = ReadBuf::new(buffer);
        match Pin::new(stream).poll_read(cx, &mut buffer) {
            Poll::Ready(Ok(())) => Poll::Ready(take(buffer.filled())),
            Poll::Ready(Err(_)) => Poll::Ready(take(&[])),
            Poll::Pending => Poll::Pending,
        }
    })
}

pub(super) fn joined(before: &Bytes, more: &[u8]) -> Bytes {
    if before.is_empty() { Bytes::copy_from_slice(more) } else { [before, more].concat().into() }
}

/// The end of what let a request in, if it lasts long enough for that to matter.
pub(super) struct Ended(Option<(CancellationToken, Pin<Box<WaitForCancellationFutureOwned>>)>);

impl Ended {
    pub(super) fn of(token: Option<CancellationToken>) -> Self {
        Self(token.map(|token| (token.clone(), Box::pin(token.cancelled_owned()))))
    }

    fn is_over(&self) -> bool {
        self.0.as_ref().is_some_and(|(token, _)| token.is_cancelled())
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match &mut self.0 {
            Some((_, cancelled)) => cancelled.as_mut().poll(cx),
            None => Poll::Pending,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncWriteExt;
    use tokio::time::{advance, timeout};

    /// What is heard when nothing is ever whole.
    async fn hear(client: &mut Client<'_, impl Stream>) -> &'static str {
        match client.hear(|_| Routed::Part).await {
            Heard::Going(_) => "going",
            Heard::Other => "other",
            Heard::End => "end",
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_says_nothing_or_is_slow_is_let_go_in_time() {
        let stop = CancellationToken::new();
        for said in ["", "GET /"] {
            let (mut near, far) = tokio::io::duplex(64);
            let mut client = Client::new(far, &stop);
            near.write_all(said.as_bytes()).await.unwrap();
            let began = Instant::now();
            assert_eq!(hear(&mut client).await, "end");
            assert_eq!(began.elapsed(), HEADER_TIMEOUT);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_time_counts_from_the_end_of_the_last_request() {
        let stop = CancellationToken::new();
        let (_near, far) = tokio::io::duplex(64);
        let mut client = Client::new(far, &stop);
        assert!(timeout(HEADER_TIMEOUT / 2, hear(&mut client)).await.is_err());
        advance(HEADER_TIMEOUT).await;
        let began = Instant::now();
        assert_eq!(hear(&mut client).await, "end");
        assert_eq!(began.elapsed(), HEADER_TIMEOUT);
    }

    #[tokio::test]
    async fn a_head_in_many_pieces_is_left_to_hyper_with_all_of_them() {
        let stop = CancellationToken::new();
        let (mut near, far) = tokio::io::duplex(1);
        let mut client = Client::new(far, &stop);
        let writing = tokio::spawn(async move { near.write_all(b"GET / HTTP/1.1").await });
        assert_eq!(hear(&mut client).await, "other");
        assert_eq!(client.unread, b"GET "[..]);
        writing.abort();
    }

    #[tokio::test]
    async fn a_connection_ends_for_hyper_unless_nothing_was_said() {
        let stop = CancellationToken::new();
        for (said, expected) in [("", "end"), ("GET /", "other")] {
            let (mut near, far) = tokio::io::duplex(64);
            near.write_all(said.as_bytes()).await.unwrap();
            drop(near);
            assert_eq!(hear(&mut Client::new(far, &stop)).await, expected);
        }
        // Of a gateway that stops, a first request may still come.
        stop.cancel();
        for (fresh, expected) in [(true, "other"), (false, "end")] {
            let (_near, far) = tokio::io::duplex(64);
            let mut client = Client::new(far, &stop);
            client.fresh = fresh;
            assert_eq!(hear(&mut client).await, expected);
        }
    }
}
