//! The body of a response, which drives the connection that it comes from.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;

use super::{Link, Source};

pub struct Download<B: Source> {
    incoming: Incoming,
    /// Absent when a task drives it, or nothing more has to come.
    link: Option<Link<B>>,
    /// How it broke off. It is told one turn later, so that what came before can be sent on: a
    /// server drops what it has gathered when a body fails.
    broken: Option<hyper::Error>,
}

impl<B: Source> Download<B> {
    pub(super) fn of(incoming: Incoming) -> Self {
        Self { incoming, link: None, broken: None }
    }

    pub(super) fn driving(incoming: Incoming, link: Option<Link<B>>) -> Self {
        let mut this = Self { incoming, link, broken: None };
        // Nobody asks an empty body for its end.
        if this.incoming.is_end_stream() {
            this.release(&mut Context::from_waker(std::task::Waker::noop()));
        }
        this
    }

    fn release(&mut self, cx: &mut Context<'_>) {
        if let Some(link) = self.link.take() {
            link.release(cx);
        }
    }
}

impl<B: Source> Body for Download<B> {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        if let Some(error) = self.broken.take() {
            return Poll::Ready(Some(Err(error)));
        }
        if self.link.as_mut().is_some_and(|link| link.drive(cx).is_ready()) {
            self.link = None;
        }
        let frame = ready!(Pin::new(&mut self.incoming).poll_frame(cx));
        if !matches!(frame, Some(Ok(_))) || self.incoming.is_end_stream() {
            self.release(cx);
        }
        match frame {
            Some(Err(error)) => {
                self.broken = Some(error);
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            frame => Poll::Ready(frame),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}
