//! An answer that ends with what let its request in.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::response::Response;
use hyper::body::{Frame, SizeHint};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// What is known to be at most this long is over before anybody could mind.
pub(super) const SHORT: u64 = 256 * 1024;

/// Cuts the answer off when `ended` is cancelled. It is not ended properly: half of a file must not
/// look like the whole.
pub(crate) fn until(ended: &CancellationToken, response: Response) -> Response {
    let short = response.body().size_hint().exact().is_some_and(|length| length <= SHORT);
    if short {
        return response;
    }
    let ended = Box::pin(ended.clone().cancelled_owned());
    response.map(|body| Body::new(Until { body, ended }))
}

struct Until {
    body: Body,
    ended: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl HttpBody for Until {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.ended.as_mut().poll(context).is_ready() {
            return Poll::Ready(Some(Err(axum::Error::new("the session ended"))));
        }
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt;

    #[tokio::test]
    async fn an_answer_without_end_is_cut_off() {
        let (sender, receiver) = tokio::sync::mpsc::channel::<Result<Bytes, std::io::Error>>(1);
        let stream = futures_util::stream::unfold(receiver, |mut receiver| async move {
            Some((receiver.recv().await?, receiver))
        });
        let ended = CancellationToken::new();
        let mut body = until(&ended, Response::new(Body::from_stream(stream))).into_body();
        sender.send(Ok(Bytes::from_static(b"a"))).await.unwrap();
        assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "a");
        let waiting = tokio::spawn(async move { body.frame().await });
        ended.cancel();
        assert!(waiting.await.unwrap().unwrap().is_err());
    }

    #[tokio::test]
    async fn a_short_answer_is_left_alone() {
        let ended = CancellationToken::new();
        ended.cancel();
        let body = until(&ended, Response::new(Body::from("whole"))).into_body();
        assert_eq!(body.collect().await.unwrap().to_bytes(), "whole");
    }
}
