//! The body of a request, in batches that are worth a hop to another thread.

use std::io::{self, IoSlice};
use std::os::fd::AsFd;
use std::time::Duration;

use axum::body::{Body, Bytes};
use http_body_util::BodyExt;
use nacre_wire::{ApiError, ErrorKind};
use rustix::io::Errno;

/// How much is gathered before it is handed on.
const BATCH: usize = 512 * 1024;
/// How long the rest of a refused body is read, so that a client which writes before it reads
/// still gets the answer.
const LINGER: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(crate) struct Upload {
    body: Body,
    ended: bool,
}

/// Consecutive pieces of a body, as they came off the wire.
pub(crate) type Batch = Vec<Bytes>;

impl Upload {
    pub(crate) fn new(body: Body) -> Self {
        Self { body, ended: false }
    }

    pub(crate) fn ended(&self) -> bool {
        self.ended
    }

    /// The next pieces: at least [`BATCH`] bytes of them, or all that are left.
    pub(crate) async fn batch(&mut self) -> Result<Batch, ApiError> {
        crate::memory::moving();
        let mut batch = Vec::new();
        let mut size = 0;
        while size < BATCH && !self.ended {
            match self.body.frame().await {
                None => self.ended = true,
                Some(Ok(frame)) => {
                    if let Ok(bytes) = frame.into_data() {
                        size += bytes.len();
                        batch.push(bytes);
                    }
                }
                Some(Err(error)) => {
                    let message = format!("the upload broke off: {error}");
                    return Err(ApiError::new(ErrorKind::Unavailable, message));
                }
            }
        }
        Ok(batch)
    }

    pub(crate) async fn drain(mut self) {
        let rest = async { while let Some(Ok(_)) = self.body.frame().await {} };
        let _ = tokio::time::timeout(LINGER, rest).await;
    }
}

pub(crate) fn write_batch(fd: impl AsFd, batch: &[Bytes]) -> Result<u64, Errno> {
    // IOV_MAX; a batch of tiny pieces takes several calls.
    const AT_ONCE: usize = 1024;
    let mut written = 0;
    for pieces in batch.chunks(AT_ONCE) {
        let mut slices: Vec<IoSlice<'_>> = pieces.iter().map(|b| IoSlice::new(b)).collect();
        let mut slices = slices.as_mut_slice();
        IoSlice::advance_slices(&mut slices, 0);
        while !slices.is_empty() {
            match rustix::io::writev(&fd, slices) {
                Ok(0) => return Err(Errno::NOSPC),
                Ok(count) => {
                    written += count as u64;
                    IoSlice::advance_slices(&mut slices, count);
                }
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(written)
}

/// A body as a blocking reader, fed through a short queue of batches.
#[derive(Debug)]
pub(crate) struct BatchReader {
    batches: tokio::sync::mpsc::Receiver<Batch>,
    current: std::vec::IntoIter<Bytes>,
    piece: Bytes,
}

impl BatchReader {
    pub(crate) fn new(batches: tokio::sync::mpsc::Receiver<Batch>) -> Self {
        Self { batches, current: Vec::new().into_iter(), piece: Bytes::new() }
    }

    /// What is at hand; empty only at the end.
    pub(crate) fn peek(&mut self) -> &Bytes {
        while self.piece.is_empty() {
            if let Some(piece) = self.current.next() {
                self.piece = piece;
            } else if let Some(batch) = self.batches.blocking_recv() {
                self.current = batch.into_iter();
            } else {
                break;
            }
        }
        &self.piece
    }

    pub(crate) fn consume(&mut self, count: usize) {
        let _ = self.piece.split_to(count.min(self.piece.len()));
    }
}

impl io::Read for BatchReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.peek().len().min(buffer.len());
        buffer[..count].copy_from_slice(&self.piece[..count]);
        self.consume(count);
        Ok(count)
    }
}
