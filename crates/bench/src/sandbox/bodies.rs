//! Request bodies that are made as they are sent.

use std::convert::Infallible;
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll};

use anyhow::Result;
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt;
use nacre_wire::client::{Body, full};

/// The same mebibyte over and over, with a known length.
struct Repeated {
    chunk: Bytes,
    left: u64,
}

impl http_body::Body for Repeated {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        let length = self.left.min(self.chunk.len() as u64);
        self.left -= length;
        Poll::Ready(Some(Ok(Frame::data(self.chunk.slice(..length as usize)))))
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

pub(super) fn repeated(length: u64) -> Body {
    // Not zeros: nothing on the way may treat them as a hole.
    let chunk =
        (0..1 << 20).map(|index: u32| index.to_le_bytes()[0] ^ index.to_le_bytes()[1]).collect();
    Repeated { chunk, left: length }.map_err(|never| match never {}).boxed_unsync()
}

/// Small enough here to be read at once; the time it takes is part of the measurement.
pub(crate) async fn file(path: &Path) -> Result<Body> {
    Ok(full(tokio::fs::read(path).await?))
}
