//! What happens in a run, as lines in a file. Those who follow read the file, so it does not matter when
//! they come or how slow they are, and nothing is kept in memory for them.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Bytes;
use futures_util::Stream;
use nacre_wire::runs::{RunEvent, RunUpdate};
use tokio::sync::watch;

use super::record::piece;
use crate::clock::now_ms;

/// What an agent says beyond this is not kept.
const MOST_OUTPUT: u64 = 64 << 20;
/// Read at once.
const PIECE: u64 = 256 * 1024;

#[derive(Debug)]
pub(super) struct EventLog {
    path: PathBuf,
    writer: Mutex<Writer>,
    shown: watch::Sender<Shown>,
}

#[derive(Debug)]
struct Writer {
    /// Absent when the run had ended before we started.
    file: Option<File>,
    last: u64,
    truncated: bool,
}

/// How much there is to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Shown {
    bytes: u64,
    /// Nothing will be added.
    over: bool,
}

impl EventLog {
    pub(super) fn create(path: PathBuf) -> io::Result<Self> {
        let file = OpenOptions::new().append(true).create_new(true).mode(0o600).open(&path)?;
        let writer = Writer { file: Some(file), last: 0, truncated: false };
        let shown = watch::channel(Shown { bytes: 0, over: false }).0;
        Ok(Self { path, writer: Mutex::new(writer), shown })
    }

    /// Of a run that has ended.
    pub(super) fn of_the_past(path: PathBuf) -> Self {
        let bytes = std::fs::metadata(&path).map_or(0, |metadata| metadata.len());
        let writer = Writer { file: None, last: 0, truncated: false };
        let shown = watch::channel(Shown { bytes, over: true }).0;
        Self { path, writer: Mutex::new(writer), shown }
    }

    /// Those who follow have it when this returns, or as soon as they read.
    pub(super) fn keep(&self, update: RunUpdate) {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let output = matches!(update, RunUpdate::Agent { .. } | RunUpdate::Output { .. });
        let over = matches!(update, RunUpdate::Ended { .. });
        let update = match (output, self.shown.borrow().bytes >= MOST_OUTPUT) {
            (true, true) if writer.truncated => return,
            (true, true) => {
                writer.truncated = true;
                RunUpdate::Truncated
            }
            _ => update,
        };
        let written = writer.write(update).unwrap_or_else(|error| {
            tracing::error!(path = %self.path.display(), %error, "an event of a run is lost");
            0
        });
        self.shown.send_modify(|shown| {
            *shown = Shown { bytes: shown.bytes + written, over: shown.over || over };
        });
    }

    /// Every line from the first on, until the last event.
    pub(super) fn read(&self) -> io::Result<impl Stream<Item = io::Result<Bytes>> + use<>> {
        let file = Arc::new(File::open(&self.path)?);
        let shown = self.shown.subscribe();
        Ok(futures_util::stream::try_unfold((file, shown, 0), |(file, mut shown, at)| async move {
            let news = shown.wait_for(|shown| shown.bytes > at || shown.over).await;
            let end = news.map(|shown| shown.bytes).unwrap_or(at);
            if end <= at {
                return Ok(None);
            }
            let piece = piece(file.clone(), at, (end - at).min(PIECE)).await?;
            let next = at + piece.len() as u64;
            // It was cut off by somebody else.
            if piece.is_empty() {
                return Ok(None);
            }
            Ok(Some((piece, (file, shown, next))))
        }))
    }
}

impl Writer {
    fn write(&mut self, update: RunUpdate) -> io::Result<u64> {
        let Some(file) = &mut self.file else { return Ok(0) };
        let event = RunEvent { seq: self.last + 1, at: now_ms(), update };
        let mut line = serde_json::to_vec(&event)?;
        line.push(b'\n');
        file.write_all(&line)?;
        self.last += 1;
        Ok(line.len() as u64)
    }
}

/// Adds the last line to the log of a run whose gateway was killed. Half a line at its end is dropped.
pub(super) fn conclude(path: &Path, update: RunUpdate) -> io::Result<()> {
    let text = match std::fs::read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(error),
    };
    let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let lines = text[..whole].iter().filter(|byte| **byte == b'\n').count() as u64;
    let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
    file.set_len(whole as u64)?;
    Writer { file: Some(file), last: lines, truncated: false }.write(update).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::StreamExt;
    use nacre_wire::exec::Stream as From;

    fn said(line: &str) -> RunUpdate {
        RunUpdate::Output { stream: From::Stdout, line: line.to_owned() }
    }

    fn lines(bytes: &[u8]) -> Vec<RunEvent> {
        let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        lines.map(|line| serde_json::from_slice(line).unwrap()).collect()
    }

    async fn all(log: &EventLog) -> Vec<RunEvent> {
        let mut stream = std::pin::pin!(log.read().unwrap());
        let mut bytes = Vec::new();
        while let Some(piece) = stream.next().await {
            bytes.extend_from_slice(&piece.unwrap());
        }
        lines(&bytes)
    }

    #[tokio::test]
    async fn who_comes_late_gets_all_of_it_and_then_what_comes() {
        let dir = tempfile::tempdir().unwrap();
        let log = EventLog::create(dir.path().join("events")).unwrap();
        log.keep(said("a"));
        log.keep(said("b"));
        let mut stream = Box::pin(log.read().unwrap());
        let first = lines(&stream.next().await.unwrap().unwrap());
        assert_eq!(first.iter().map(|event| event.seq).collect::<Vec<_>>(), [1, 2]);
        let waiting = tokio::spawn(async move { stream.next().await });
        log.keep(said("c"));
        let next = lines(&waiting.await.unwrap().unwrap().unwrap());
        assert_eq!((next[0].seq, &next[0].update), (3, &said("c")));
    }

    #[tokio::test]
    async fn a_log_that_was_cut_off_is_concluded_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("events");
        let log = EventLog::create(path.clone()).unwrap();
        log.keep(said("a"));
        OpenOptions::new().append(true).open(&path).unwrap().write_all(b"{\"se").unwrap();
        drop(log);
        conclude(&path, RunUpdate::Truncated).unwrap();
        let events = all(&EventLog::of_the_past(path)).await;
        let expected = [(1, said("a")), (2, RunUpdate::Truncated)];
        let found: Vec<_> = events.into_iter().map(|event| (event.seq, event.update)).collect();
        assert_eq!(found, expected);
    }
}
