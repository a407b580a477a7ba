//! The body of a request: counted, held back for `Expect: 100-continue`, and read to its end when
//! the next hop does not want it.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::header::EXPECT;
use http::{Request, StatusCode};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use tokio::sync::Notify;

use super::Source;

/// A server that does not know `Expect` says nothing; clients wait about as long.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long a body that nobody wants is still read. A connection that is closed with unread bytes
/// in it is reset, and the client may lose the response that says why.
const LINGER: Duration = Duration::from_secs(5);

pub struct Upload<B: Source> {
    /// Absent once it is over.
    body: Option<B>,
    gate: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    /// Absent for a request without a body.
    progress: Option<Arc<Progress>>,
}

/// How far an upload is, for others.
#[derive(Debug, Default)]
pub struct Progress {
    bytes: AtomicU64,
    state: AtomicU8,
}

const FLOWING: u8 = 0;
/// Waits for `100 Continue`.
const HELD: u8 = 1;
/// A final response came instead; the body must not be asked for any more.
const REFUSED: u8 = 2;
const OVER: u8 = 3;

impl Progress {
    /// Bytes taken from the client so far.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    pub(super) fn is_under_way(&self) -> bool {
        matches!(self.state(), FLOWING | HELD)
    }

    /// The final response is here.
    pub(super) fn answered(&self) {
        let _ = self.state.compare_exchange(HELD, REFUSED, Ordering::AcqRel, Ordering::Acquire);
    }

    fn state(&self) -> u8 {
        self.state.load(Ordering::Acquire)
    }

    fn set(&self, state: u8) {
        self.state.store(state, Ordering::Release);
    }
}

impl<B: Source> Upload<B> {
    /// Takes over the body of a request that is about to be handed on.
    pub fn of(request: Request<B>) -> Request<Self> {
        let (parts, body) = request.into_parts();
        if body.is_end_stream() {
            return Request::from_parts(parts, Self { body: None, gate: None, progress: None });
        }
        let expects = parts
            .headers
            .get(EXPECT)
            .is_some_and(|expected| expected.as_bytes().eq_ignore_ascii_case(b"100-continue"));
        let progress = Arc::new(Progress::default());
        let upload = Self { body: Some(body), gate: None, progress: Some(progress.clone()) };
        let mut request = Request::from_parts(parts, upload);
        if expects {
            let go_on = Arc::new(Notify::new());
            progress.set(HELD);
            request.body_mut().gate = Some(Box::pin(gate(progress, go_on.clone())));
            hyper::ext::on_informational(&mut request, move |response| {
                if response.status() == StatusCode::CONTINUE {
                    go_on.notify_one();
                }
            });
        }
        request
    }

    pub fn progress(&self) -> Option<Arc<Progress>> {
        self.progress.clone()
    }

    fn over(&mut self) {
        self.body = None;
        if let Some(progress) = &self.progress {
            progress.set(OVER);
        }
    }
}

/// Ends when the body may flow; never, when it was refused.
async fn gate(progress: Arc<Progress>, go_on: Arc<Notify>) {
    let _ = tokio::time::timeout(PATIENCE, go_on.notified()).await;
    if progress.state() == REFUSED {
        std::future::pending::<()>().await;
    }
    progress.set(FLOWING);
}

impl<B: Source> Body for Upload<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        if let Some(gate) = &mut self.gate {
            ready!(gate.as_mut().poll(cx));
            self.gate = None;
        }
        let Some(body) = &mut self.body else { return Poll::Ready(None) };
        let frame = ready!(Pin::new(&mut *body).poll_frame(cx));
        let over = body.is_end_stream();
        match &frame {
            Some(Ok(frame)) => {
                if let (Some(data), Some(progress)) = (frame.data_ref(), &self.progress) {
                    progress.bytes.fetch_add(data.len() as u64, Ordering::Relaxed);
                }
                if over {
                    self.over();
                }
            }
            Some(Err(_)) | None => self.over(),
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or(SizeHint::with_exact(0), Body::size_hint)
    }
}

impl<B: Source> Drop for Upload<B> {
    fn drop(&mut self) {
        let Some(mut body) = self.body.take() else { return };
        if let Some(progress) = &self.progress {
            progress.set(OVER);
        }
        // A client that still waits for `100 Continue` has sent nothing.
        if self.gate.is_none()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            runtime.spawn(tokio::time::timeout(LINGER, async move {
                while let Some(Ok(_)) = body.frame().await {}
            }));
        }
    }
}
