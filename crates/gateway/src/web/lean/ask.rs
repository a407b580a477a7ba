//! One request through the door and the head of its answer.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use nacre_sandbox::BoxStream;
use tokio::io::AsyncWrite as _;

use super::answer::{self, Answer};
use super::client::{Client, joined, read_some};
use super::{Going, LONGEST_HEAD, Stream, spare};

pub(super) enum Asked {
    /// A plain answer, what was read of it (its head as well), and where the rest comes from.
    Answered(Answer, Bytes, BoxStream),
    /// Something came back that hyper has to read, or nothing will.
    Other(BoxStream, Bytes),
    /// Surely no byte of the request arrived anywhere.
    Unsent,
    ClientWent,
}

pub(super) async fn ask<S: Stream>(client: &mut Client<'_, S>, going: &Going) -> Asked {
    let door = &going.sandbox.door;
    while let Some(stream) = door.kept_plain(going.exchange.began()) {
        match Asking::new(stream, going).done(client).await {
            // The other side hung up while the connection was not in use.
            Asked::Unsent => {}
            asked => return asked,
        }
    }
    match door.dial().await {
        Ok(stream) => Asking::new(stream, going).done(client).await,
        Err(_) => Asked::Unsent,
    }
}

struct Asking<'g> {
    door: BoxStream,
    going: &'g Going,
    sent: usize,
    flushed: bool,
    read: Bytes,
}

enum Done {
    Answered(Answer),
    Other,
    ClientWent,
}

impl<'g> Asking<'g> {
    fn new(door: BoxStream, going: &'g Going) -> Self {
        Self { door, going, sent: 0, flushed: false, read: Bytes::new() }
    }

    async fn done<S: Stream>(mut self, client: &mut Client<'_, S>) -> Asked {
        match poll_fn(|cx| self.poll(cx, client)).await {
            Done::Answered(answer) => Asked::Answered(answer, self.read, self.door),
            Done::Other if self.sent == 0 => Asked::Unsent,
            Done::Other => Asked::Other(self.door, self.read),
            Done::ClientWent => Asked::ClientWent,
        }
    }

    fn poll<S: Stream>(&mut self, cx: &mut Context<'_>, client: &mut Client<'_, S>) -> Poll<Done> {
        if self.poll_send(cx).is_err() {
            return Poll::Ready(Done::Other);
        }
        while self.sent > 0 {
            let read = &mut self.read;
            let came = read_some(&mut self.door, cx, |bytes| {
                *read = joined(read, bytes);
                !bytes.is_empty()
            });
            match came {
                Poll::Ready(true) => {}
                Poll::Ready(false) => return Poll::Ready(Done::Other),
                Poll::Pending => break,
            }
            match answer::read(&self.read, self.going.bodiless, spare()) {
                answer::Read::Plain(answer) if self.flushed => {
                    return Poll::Ready(Done::Answered(answer));
                }
                answer::Read::Part if self.read.len() < LONGEST_HEAD => {}
                _ => return Poll::Ready(Done::Other),
            }
        }
        client.poll_gone(cx, self.going.size).map(|()| Done::ClientWent)
    }

    /// Sends as much as is taken now.
    fn poll_send(&mut self, cx: &mut Context<'_>) -> Result<(), ()> {
        while self.sent < self.going.head.len() {
            match Pin::new(&mut self.door).poll_write(cx, &self.going.head[self.sent..]) {
                Poll::Ready(Ok(size)) if size > 0 => self.sent += size,
                Poll::Ready(_) => return Err(()),
                Poll::Pending => return Ok(()),
            }
        }
        if !self.flushed {
            match Pin::new(&mut self.door).poll_flush(cx) {
                Poll::Ready(Ok(())) => self.flushed = true,
                Poll::Ready(Err(_)) => return Err(()),
                Poll::Pending => {}
            }
        }
        Ok(())
    }
}
