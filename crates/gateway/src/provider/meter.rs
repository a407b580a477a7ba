//! The answer of a provider on its way to the client: passed on as it is, and read on the way.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};
use nacre_wire::relay::Download;

use super::body::Place;
use super::mask::Mask;
use super::tally::Tally;

type Ended = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Dropped before its end, it takes the connection to the provider with it.
pub(crate) struct Metered {
    body: Download<Body>,
    tally: Tally,
    /// Comes to its end when the call has to. Absent when it did.
    ended: Option<Ended>,
    /// Until the request has gone out it takes up memory.
    place: Option<Place>,
    mask: Option<Mask>,
    /// No more comes from the provider.
    whole: bool,
}

impl Metered {
    pub(crate) fn new(
        body: Download<Body>,
        tally: Tally,
        ended: Ended,
        place: Place,
        mask: Option<Mask>,
    ) -> Self {
        Self { body, tally, ended: Some(ended), place: Some(place), mask, whole: false }
    }

    /// What of it may go on, if anything may by now.
    fn pass(&mut self, data: Bytes) -> Option<Bytes> {
        let passed = match &mut self.mask {
            None => data,
            Some(mask) => {
                let passed = mask.pass(data);
                match self.whole {
                    true => mask.with_rest(passed),
                    false => passed,
                }
            }
        };
        self.tally.read(&passed);
        (!passed.is_empty()).then_some(passed)
    }

    fn holds(&self) -> usize {
        self.mask.as_ref().map_or(0, Mask::holds)
    }
}

impl HttpBody for Metered {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = &mut *self;
        if this.ended.as_mut().is_none_or(|ended| ended.as_mut().poll(cx).is_ready()) {
            this.ended = None;
            this.tally.settle(false);
            return Poll::Ready(Some(Err(axum::Error::new("the call was ended"))));
        }
        while !this.whole {
            let frame = ready!(Pin::new(&mut this.body).poll_frame(cx));
            this.place = None;
            // A server does not ask again for the end of what it knows the length of.
            this.whole = frame.is_none() || this.body.is_end_stream();
            let data = match frame.transpose() {
                Ok(frame) => frame.and_then(|frame| frame.into_data().ok()).unwrap_or_default(),
                Err(error) => {
                    this.tally.settle(false);
                    return Poll::Ready(Some(Err(axum::Error::new(error))));
                }
            };
            let passed = this.pass(data);
            if this.whole {
                this.tally.settle(true);
            }
            if let Some(data) = passed {
                return Poll::Ready(Some(Ok(Frame::data(data))));
            }
        }
        Poll::Ready(None)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream() && self.holds() == 0
    }

    fn size_hint(&self) -> SizeHint {
        let (inner, held) = (self.body.size_hint(), self.holds() as u64);
        let mut hint = SizeHint::new();
        hint.set_lower(inner.lower().saturating_add(held));
        if let Some(upper) = inner.upper() {
            hint.set_upper(upper.saturating_add(held));
        }
        hint
    }
}
