//! The recent log of one process, across its restarts.
//!
//! Lines are numbered for as long as the supervisor lives. Readers keep a number of their own, so
//! any number of them share what is kept and none can make it grow.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nacre_wire::exec::Stream;
use nacre_wire::processes::{LogLine, LogStream};
use tokio::sync::watch;

use super::clock::now_ms;

const KEPT: usize = 256 * 1024;
/// What a kept line costs besides its text.
const OVERHEAD: usize = 64;
/// A longer line is kept in pieces.
const LONGEST: usize = 8 * 1024;

#[derive(Debug)]
pub(crate) struct Log {
    lines: Mutex<Lines>,
    /// The number of the last line; closed with the log.
    last: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Lines {
    kept: VecDeque<LogLine>,
    bytes: usize,
    last: u64,
    closed: bool,
    /// The beginnings of lines, of standard output and of standard error.
    open: [Vec<u8>; 2],
}

/// What a reader finds.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found {
    Lines(Vec<LogLine>),
    /// Nothing more for now.
    Nothing,
    /// Nothing more ever.
    End,
}

impl Log {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { lines: Mutex::default(), last: watch::Sender::new(0) })
    }

    /// Adds what the process printed.
    pub(crate) fn print(&self, stream: Stream, bytes: &[u8]) {
        let mut lines = self.lock();
        let (index, name) = match stream {
            Stream::Stdout => (0, LogStream::Stdout),
            Stream::Stderr => (1, LogStream::Stderr),
        };
        let mut open = std::mem::take(&mut lines.open[index]);
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            for part in piece.chunks(LONGEST) {
                open.extend_from_slice(part);
                if open.ends_with(b"\n") || open.len() >= LONGEST {
                    lines.push(name, &open);
                    open.clear();
                }
            }
        }
        lines.open[index] = open;
        self.tell(lines);
    }

    /// Adds what the supervisor has to say, after all that the process began to print.
    pub(crate) fn note(&self, text: &str) {
        let mut lines = self.lock();
        for (index, name) in [(0, LogStream::Stdout), (1, LogStream::Stderr)] {
            let open = std::mem::take(&mut lines.open[index]);
            if !open.is_empty() {
                lines.push(name, &open);
            }
        }
        lines.push(LogStream::Supervisor, text.as_bytes());
        self.tell(lines);
    }

    pub(crate) fn last(&self) -> u64 {
        self.lock().last
    }

    /// The last lines, at most `most`.
    pub(crate) fn tail(&self, most: usize) -> Vec<LogLine> {
        let lines = self.lock();
        let skipped = lines.kept.len().saturating_sub(most);
        lines.kept.iter().skip(skipped).cloned().collect()
    }

    /// At most `most` lines after the one numbered `after`. A number that is still to come is
    /// from another life of the supervisor and means nothing.
    pub(crate) fn after(&self, after: u64, most: usize) -> Found {
        let lines = self.lock();
        let after = if after > lines.last { 0 } else { after };
        let first = lines.kept.partition_point(|line| line.seq <= after);
        let found: Vec<_> = lines.kept.iter().skip(first).take(most).cloned().collect();
        match (found.is_empty(), lines.closed) {
            (false, _) => Found::Lines(found),
            (true, true) => Found::End,
            (true, false) => Found::Nothing,
        }
    }

    /// Told of every change; ask before [`Log::after`].
    pub(crate) fn news(&self) -> watch::Receiver<u64> {
        self.last.subscribe()
    }

    /// Nothing is added any more.
    pub(crate) fn close(&self) {
        let mut lines = self.lock();
        lines.closed = true;
        self.tell(lines);
    }

    fn tell(&self, lines: MutexGuard<'_, Lines>) {
        let last = lines.last;
        drop(lines);
        self.last.send_replace(last);
    }

    fn lock(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lines {
    fn push(&mut self, stream: LogStream, bytes: &[u8]) {
        let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
        let text = String::from_utf8_lossy(bytes).into_owned();
        self.last += 1;
        self.bytes += text.len() + OVERHEAD;
        self.kept.push_back(LogLine { seq: self.last, at: now_ms(), stream, text });
        while self.bytes > KEPT {
            let Some(oldest) = self.kept.pop_front() else { break };
            self.bytes -= oldest.text.len() + OVERHEAD;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(log: &Log, after: u64) -> Vec<(u64, String)> {
        match log.after(after, usize::MAX) {
            Found::Lines(lines) => lines.into_iter().map(|line| (line.seq, line.text)).collect(),
            Found::Nothing | Found::End => Vec::new(),
        }
    }

    #[test]
    fn lines_are_put_together_and_their_rest_comes_with_the_end() {
        let log = Log::new();
        log.print(Stream::Stdout, b"one\r\ntw");
        log.print(Stream::Stderr, b"oh");
        log.print(Stream::Stdout, b"o\nthr");
        assert_eq!(texts(&log, 0), [(1, "one".into()), (2, "two".into())]);
        log.note("ended");
        let rest = [(3, "thr".into()), (4, "oh".into()), (5, "ended".into())];
        assert_eq!(texts(&log, 2), rest);
        assert_eq!(texts(&log, 99).len(), 5, "a number of another life");
        log.close();
        assert_eq!(log.after(5, 1), Found::End);
    }

    #[test]
    fn what_is_kept_is_bounded_however_it_is_printed() {
        let log = Log::new();
        for _ in 0..100_000 {
            log.print(Stream::Stdout, b"\n");
        }
        log.print(Stream::Stderr, &vec![b'x'; 4 * KEPT]);
        let lines = log.lock();
        assert!(lines.bytes <= KEPT && lines.open[1].len() < LONGEST);
        assert!(lines.kept.iter().all(|line| line.text.len() <= LONGEST));
        assert_eq!(lines.kept.back().map(|line| line.seq), Some(lines.last));
    }

    #[test]
    fn bytes_that_are_no_text_stay_bounded_too() {
        let log = Log::new();
        log.print(Stream::Stdout, &vec![0xff; 2 * KEPT]);
        assert!(log.lock().bytes <= KEPT);
    }
}
