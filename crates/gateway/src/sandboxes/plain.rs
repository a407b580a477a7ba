//! Connections through the door that no HTTP library holds, while they wait for their next request.

use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use nacre_sandbox::BoxStream;
use tokio::io::{AsyncRead as _, ReadBuf};

/// More are opened when needed and dropped when done.
const KEPT: usize = 128;
/// Unused for longer, it is closed when it is next looked at.
const IDLE: Duration = Duration::from_secs(60);

/// The most recently used is used first, so that the others grow old.
#[derive(Default)]
pub(crate) struct Plain(Mutex<Vec<(BoxStream, Instant)>>);

impl Plain {
    /// One whose other end is still there, and has said nothing that nobody asked for.
    pub(crate) fn take(&self, now: Instant) -> Option<BoxStream> {
        loop {
            let (mut stream, since) = self.lock().pop()?;
            if now.duration_since(since) > IDLE {
                // Those below it have waited longer still.
                self.clear();
            } else if is_silent(&mut stream) {
                return Some(stream);
            }
        }
    }

    pub(crate) fn put(&self, stream: BoxStream, used: Instant) {
        let mut streams = self.lock();
        if streams.len() < KEPT {
            streams.push((stream, used));
        }
    }

    /// Lets go of every connection.
    pub(crate) fn clear(&self) {
        let old = std::mem::take(&mut *self.lock());
        drop(old);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(BoxStream, Instant)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_silent(stream: &mut BoxStream) -> bool {
    let mut byte = [0];
    let mut nobody = Context::from_waker(Waker::noop());
    Pin::new(stream).poll_read(&mut nobody, &mut ReadBuf::new(&mut byte)).is_pending()
}
