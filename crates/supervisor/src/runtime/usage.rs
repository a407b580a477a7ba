//! Whether anybody uses an instance of the app.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::time::{Duration, Instant};

/// Counted by those who ask; looked at by the manager.
#[derive(Debug)]
pub(crate) struct Usage(Mutex<Count>);

#[derive(Debug)]
struct Count {
    holding: usize,
    last: Instant,
}

impl Usage {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self(Mutex::new(Count { holding: 0, last: Instant::now() })))
    }

    /// For as long as what is returned lives, it is used.
    pub(crate) fn hold(self: &Arc<Self>) -> Hold {
        self.lock().holding += 1;
        Hold(Some(Arc::clone(self)))
    }

    /// When it will have been unused for so long, if nobody comes.
    pub(crate) fn idle_at(&self, patience: Duration, now: Instant) -> Instant {
        let count = self.lock();
        (if count.holding > 0 { now } else { count.last }) + patience
    }

    fn lock(&self) -> MutexGuard<'_, Count> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Somebody asks, or is connected.
#[derive(Debug)]
pub(crate) struct Hold(Option<Arc<Usage>>);

impl Hold {
    /// Of what nobody counts.
    pub(crate) fn of_nothing() -> Self {
        Self(None)
    }

    /// Held until the body is over.
    pub(crate) fn during(self, body: axum::body::Body) -> axum::body::Body {
        match self.0 {
            None => body,
            Some(_) => axum::body::Body::new(Held { body, _hold: self }),
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        if let Some(usage) = &self.0 {
            let mut count = usage.lock();
            count.holding = count.holding.saturating_sub(1);
            count.last = Instant::now();
        }
    }
}

struct Held {
    body: axum::body::Body,
    _hold: Hold,
}

impl Body for Held {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
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

    #[test]
    fn what_is_held_is_not_idle_and_the_last_use_counts() {
        const PATIENCE: Duration = Duration::from_secs(600);
        let usage = Usage::new();
        let begun = usage.lock().last;
        let later = begun + Duration::from_secs(100);
        assert_eq!(usage.idle_at(PATIENCE, later), begun + PATIENCE);
        let (one, two) = (usage.hold(), usage.hold());
        let body = two.during(axum::body::Body::empty());
        drop(one);
        assert_eq!(usage.idle_at(PATIENCE, later), later + PATIENCE);
        drop(body);
        let last = usage.lock().last;
        assert!(last >= begun);
        assert_eq!(usage.idle_at(PATIENCE, later), last + PATIENCE);
    }
}
