//! A program that is spoken with while it runs, such as a server of tools.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use nacre_wire::{ApiError, ErrorKind};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::Result;

/// Of what a program remarks, the end that is kept.
const KEPT: usize = 4096;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Program {
    /// The program and its arguments.
    pub words: Vec<String>,
    /// Beside what every command there has.
    pub env: BTreeMap<String, String>,
}

impl Program {
    pub(super) fn named(&self) -> Result<(&str, &[String])> {
        match self.words.split_first() {
            Some((name, rest)) if !name.is_empty() => Ok((name, rest)),
            _ => Err(ApiError::new(ErrorKind::InvalidRequest, "no program is named")),
        }
    }
}

pub struct Opened {
    /// Dropped, it tells the program that nothing more comes.
    pub input: Box<dyn AsyncWrite + Send + Unpin>,
    pub output: Box<dyn AsyncRead + Send + Unpin>,
    pub remarks: Remarks,
}

/// The end of what a program wrote to its standard error, for when it does not do what it should.
#[derive(Debug, Clone, Default)]
pub struct Remarks(Arc<Mutex<VecDeque<u8>>>);

impl Remarks {
    pub(super) fn add(&self, bytes: &[u8]) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend(&bytes[bytes.len().saturating_sub(KEPT)..]);
        let over = kept.len().saturating_sub(KEPT);
        kept.drain(..over);
    }

    pub fn text(&self) -> String {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes: Vec<u8> = kept.iter().copied().collect();
        String::from_utf8_lossy(&bytes).trim().to_owned()
    }
}

pub(super) async fn listen(mut stderr: impl AsyncRead + Unpin, remarks: Remarks) {
    let mut buffer = vec![0; KEPT];
    while let Ok(length @ 1..) = stderr.read(&mut buffer).await {
        remarks.add(&buffer[..length]);
    }
}

/// Output, and what tells when nobody wants it any more.
pub(super) fn watched<R>(source: R) -> (Watched<R>, CancellationToken) {
    let dropped = CancellationToken::new();
    (Watched { source, _dropped: dropped.clone().drop_guard() }, dropped)
}

pub(super) struct Watched<R> {
    source: R,
    _dropped: DropGuard,
}

impl<R: AsyncRead + Unpin> AsyncRead for Watched<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.source).poll_read(cx, buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_what_a_program_remarks_the_end_is_kept() {
        let remarks = Remarks::default();
        remarks.add(b" first ");
        assert_eq!(remarks.text(), "first");
        remarks.add(&[b'x'; 3 * KEPT]);
        remarks.add(b"last\n");
        let text = remarks.text();
        assert!(text.ends_with("xlast") && text.len() < KEPT, "{}", text.len());
    }
}
