//! The answer of a provider on its way to the client: passed on as it is, and read on the way.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};
use nacre_wire::relay::Download;
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::WaitForCancellationFutureOwned;

use super::tally::Tally;

/// Dropped before its end, it takes the connection to the provider with it.
pub(crate) struct Metered {
    pub(crate) body: Download<Body>,
    pub(crate) tally: Tally,
    /// Cancelled when the call has to end.
    pub(crate) ended: Pin<Box<WaitForCancellationFutureOwned>>,
    /// Until the request has gone out it takes up memory.
    pub(crate) place: Option<OwnedSemaphorePermit>,
}

impl HttpBody for Metered {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.ended.as_mut().poll(cx).is_ready() {
            self.tally.settle(false);
            return Poll::Ready(Some(Err(axum::Error::new("the call was ended"))));
        }
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        self.place = None;
        match &frame {
            Some(Ok(frame)) => {
                if let Some(data) = frame.data_ref() {
                    self.tally.read(data);
                }
                // A server does not ask again for the end of what it knows the length of.
                if self.body.is_end_stream() {
                    self.tally.settle(true);
                }
            }
            Some(Err(_)) => self.tally.settle(false),
            None => self.tally.settle(true),
        }
        Poll::Ready(frame.map(|frame| frame.map_err(axum::Error::new)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
