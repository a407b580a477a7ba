//! One connection to the next hop, and one exchange over it.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, Connection, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::task::unconstrained;

use super::{Download, Pool, Source, Upload};
use crate::client::BoxStream;

/// An idle connection, or one that is busy with one exchange.
pub struct Link<B: Source> {
    sender: SendRequest<Upload<B>>,
    /// Large, and handed from place to place with every request.
    connection: Box<Connection<TokioIo<BoxStream>, Upload<B>>>,
    /// Where it goes when it is free again.
    home: Option<Arc<Pool<B>>>,
}

pub enum Answer<B: Source> {
    Response(Response<Download<B>>),
    /// The next hop speaks another protocol from here on.
    Switched(Response<()>, Raw),
}

/// What is left of a connection that switched protocols.
#[derive(Debug)]
pub struct Raw {
    pub stream: BoxStream,
    /// What came right behind the response.
    pub early: Bytes,
}

pub struct Failed<B: Source> {
    pub error: io::Error,
    /// The request, when surely no byte of it went out.
    pub unsent: Option<Box<Request<Upload<B>>>>,
}

impl<B: Source> Link<B> {
    pub async fn open(stream: BoxStream, home: Option<Arc<Pool<B>>>) -> io::Result<Self> {
        let opened = http1::handshake(TokioIo::new(stream)).await;
        let (sender, connection) = opened.map_err(io::Error::other)?;
        Ok(Self { sender, connection: Box::new(connection), home })
    }

    /// The connection itself, when nothing came that nobody asked for.
    pub fn into_stream(self) -> Option<BoxStream> {
        let parts = self.connection.into_parts();
        parts.read_buf.is_empty().then(|| parts.io.into_inner())
    }

    /// Sends one request and waits for the head of its response.
    pub async fn exchange(self, request: Request<Upload<B>>) -> Result<Answer<B>, Failed<B>> {
        let Self { mut sender, connection, home } = self;
        let progress = request.body().progress();
        let mut connection = Some(connection);
        // A task that has done much is told to wait for what is there already, which would look as if a
        // connection that ended had brought nothing.
        let mut sending = pin!(unconstrained(sender.try_send_request(request)));
        let mut over = false;
        let answered = poll_fn(|cx| {
            if let (false, Some(connection)) = (over, &mut connection) {
                over = connection.poll_without_shutdown(cx).is_ready();
            }
            match sending.as_mut().poll(cx) {
                Poll::Pending if over => {
                    // What waits in a connection that ended is given back when it is dropped.
                    connection = None;
                    sending.as_mut().poll(cx)
                }
                answered => answered,
            }
        })
        .await;
        let mut response = answered.map_err(|mut failed| Failed {
            unsent: failed.take_message().map(Box::new),
            error: io::Error::other(failed.into_error()),
        })?;
        // The version is about the connection to the next hop; ours has its own.
        *response.version_mut() = http::Version::HTTP_11;
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            return switched(response, connection, over).await;
        }
        if let Some(progress) = &progress {
            progress.answered();
        }
        let link = connection.filter(|_| !over).map(|connection| Self { sender, connection, home });
        Ok(Answer::Response(response.map(|incoming| match (link, progress) {
            (Some(link), Some(progress)) if progress.is_under_way() => {
                tokio::spawn(link.see_to_the_end());
                Download::of(incoming)
            }
            (link, _) => Download::driving(incoming, link),
        })))
    }

    /// Whether the other end is still there and nothing unexpected came from it.
    pub(super) fn is_fresh(&mut self) -> bool {
        self.drive(&mut Context::from_waker(Waker::noop())).is_pending() && self.sender.is_ready()
    }

    pub(super) fn drive(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.connection.poll_without_shutdown(cx).map(|_| ())
    }

    /// Goes back where it came from, if its exchange is over on both sides.
    pub(super) fn release(mut self, cx: &mut Context<'_>) {
        if self.home.is_some() && self.drive(cx).is_pending() && self.sender.is_ready() {
            self.go_home();
        }
    }

    fn go_home(mut self) {
        if let Some(home) = self.home.take() {
            home.put(self);
        }
    }

    pub(super) fn belongs_to(mut self, home: &Arc<Pool<B>>) -> Self {
        self.home = Some(home.clone());
        self
    }

    async fn see_to_the_end(mut self) {
        let free = poll_fn(|cx| match self.drive(cx) {
            Poll::Ready(()) => Poll::Ready(false),
            Poll::Pending => self.sender.poll_ready(cx).map(|ready| ready.is_ok()),
        })
        .await;
        if free {
            self.go_home();
        }
    }
}

async fn switched<B: Source>(
    response: Response<Incoming>,
    connection: Option<Box<Connection<TokioIo<BoxStream>, Upload<B>>>>,
    over: bool,
) -> Result<Answer<B>, Failed<B>> {
    let failed = |error| Failed { error, unsent: None };
    let mut connection = connection
        .ok_or_else(|| failed(io::Error::new(io::ErrorKind::UnexpectedEof, "it hung up")))?;
    if !over {
        poll_fn(|cx| connection.poll_without_shutdown(cx))
            .await
            .map_err(|error| failed(io::Error::other(error)))?;
    }
    let parts = connection.into_parts();
    // Even when nothing is left in it, the buffer holds on to its memory.
    let early = if parts.read_buf.is_empty() { Bytes::new() } else { parts.read_buf };
    let raw = Raw { stream: parts.io.into_inner(), early };
    Ok(Answer::Switched(response.map(drop), raw))
}
