//! The log on its way out. Whoever logs only appends to a buffer; one thread writes it out, many
//! lines at a time. A reader that does not take them (a stopped terminal, a slow journal) costs
//! lines, which are counted, and never holds up a request.

use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use super::DroppedLines;

/// Some thousand lines.
const LIMIT: usize = 1 << 20;
/// How long lines are gathered before they are written.
const GATHER: Duration = Duration::from_millis(20);
/// How long the last lines may take when the program ends.
const LAST_LINES: Duration = Duration::from_secs(1);

/// What loggers write to.
pub struct Spool {
    state: Mutex<State>,
    changed: Condvar,
    dropped: DroppedLines,
}

#[derive(Default)]
struct State {
    waiting: Vec<u8>,
    closing: bool,
    done: bool,
}

/// Dropped, it sees to the lines that still wait.
pub struct LogGuard(Arc<Spool>);

impl Spool {
    pub fn start(to: impl Write + Send + 'static) -> io::Result<(Arc<Self>, LogGuard)> {
        let spool = Arc::new(Self {
            state: Mutex::default(),
            changed: Condvar::new(),
            dropped: DroppedLines::default(),
        });
        let ours = spool.clone();
        thread::Builder::new().name("log".to_owned()).spawn(move || ours.write_out(to))?;
        Ok((spool.clone(), LogGuard(spool)))
    }

    fn write_out(&self, mut to: impl Write) {
        let mut lines = Vec::new();
        loop {
            let idle = |state: &mut State| state.waiting.is_empty() && !state.closing;
            let state = self.changed.wait_while(self.lock(), idle);
            let closing = state.unwrap_or_else(PoisonError::into_inner).closing;
            if !closing {
                thread::sleep(GATHER);
            }
            std::mem::swap(&mut lines, &mut self.lock().waiting);
            // Nobody is left to tell that the log cannot be written.
            let _ = to.write_all(&lines).and_then(|()| to.flush());
            lines.clear();
            let mut state = self.lock();
            if closing && state.waiting.is_empty() {
                state.done = true;
                self.changed.notify_all();
                return;
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The subscriber writes one whole line at a time.
impl Write for &Spool {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let mut state = self.lock();
        if state.waiting.len() + line.len() > LIMIT {
            self.dropped.add(1);
            return Ok(line.len());
        }
        let wake = state.waiting.is_empty();
        state.waiting.extend_from_slice(line);
        drop(state);
        if wake {
            self.changed.notify_one();
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl LogGuard {
    /// Counts the lines that were lost.
    pub fn dropped(&self) -> DroppedLines {
        self.0.dropped.clone()
    }
}

impl Drop for LogGuard {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.closing = true;
        self.0.changed.notify_all();
        let unfinished = |state: &mut State| !state.done;
        let _ = self.0.changed.wait_timeout_while(state, LAST_LINES, unfinished);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Receiver, Sender, channel};

    /// Takes one write for every permit.
    struct Slow(Receiver<()>, Sender<Vec<u8>>);

    impl Write for Slow {
        fn write(&mut self, lines: &[u8]) -> io::Result<usize> {
            let _ = self.0.recv();
            let _ = self.1.send(lines.to_vec());
            Ok(lines.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_reader_that_does_not_read_costs_lines_and_no_time() {
        let (permit, permits) = channel();
        let (sender, written) = channel();
        let (spool, guard) = Spool::start(Slow(permits, sender)).unwrap();
        let line = vec![b'x'; 1024];
        // The first are in the hands of the writer, which waits; the buffer takes its limit.
        for _ in 0..4096 {
            (&*spool).write_all(&line).unwrap();
        }
        let dropped = guard.dropped().count();
        assert!((2048..4096).contains(&dropped), "{dropped}");
        drop(permit);
        drop(guard);
        drop(spool);
        let written: usize = written.iter().map(|lines: Vec<u8>| lines.len()).sum();
        assert_eq!(written as u64, (4096 - dropped) * 1024, "all others came through, in whole");
    }

    #[test]
    fn the_last_lines_are_written_before_the_end() {
        let (permit, permits) = channel();
        let (sender, written) = channel();
        drop(permit);
        let (spool, guard) = Spool::start(Slow(permits, sender)).unwrap();
        (&*spool).write_all(b"one\n").unwrap();
        (&*spool).write_all(b"two\n").unwrap();
        drop(guard);
        drop(spool);
        assert_eq!(written.iter().flatten().collect::<Vec<u8>>(), b"one\ntwo\n");
    }
}
