//! The recent output of a command, addressed by how many bytes came before.
//!
//! Readers keep a position of their own and find out by it that they fell behind, so any number
//! of them share one buffer and none of them can make it grow. The buffer starts empty and
//! doubles up to its limit as output arrives.

use std::collections::VecDeque;
use std::io;

use nacre_wire::exec::Stream;

const SMALLEST: usize = 4 * 1024;
/// A command that alternates between its streams byte by byte must not cost more in bookkeeping
/// than in output.
const MOST_RUNS: usize = 4096;

#[derive(Debug)]
pub(super) struct Ring {
    /// Empty or a power of two long; the byte at position `p` is at `p % len`.
    buffer: Box<[u8]>,
    limit: usize,
    start: u64,
    end: u64,
    /// Stretches of one stream, by where they end.
    runs: VecDeque<Run>,
}

#[derive(Debug, Clone, Copy)]
struct Run {
    stream: Stream,
    end: u64,
}

/// What a reader finds at its position.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found<'a> {
    /// Bytes of one stream, in two parts where the buffer wraps.
    Bytes(Stream, &'a [u8], &'a [u8]),
    /// Everything so far was read.
    Nothing,
    /// The position is gone; the oldest byte still here is at this one.
    Gone(u64),
}

impl Ring {
    /// `limit` is a power of two.
    pub(super) fn new(limit: usize) -> Self {
        debug_assert!(limit.is_power_of_two() && limit >= SMALLEST);
        Self { buffer: Box::default(), limit, start: 0, end: 0, runs: VecDeque::new() }
    }

    pub(super) fn start(&self) -> u64 {
        self.start
    }

    /// How many bytes were ever written.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// Bytes of memory held.
    pub(super) fn footprint(&self) -> usize {
        self.buffer.len() + self.runs.capacity() * size_of::<Run>()
    }

    /// Lets `fill` write the next bytes of `stream` in place and returns how many it wrote, or
    /// `None` when the reader at `keep`, whose bytes may not be overwritten, has to read first.
    pub(super) fn write_with(
        &mut self,
        stream: Stream,
        keep: Option<u64>,
        most: usize,
        fill: impl FnOnce(&mut [u8]) -> io::Result<usize>,
    ) -> io::Result<Option<usize>> {
        self.make_room();
        let room = self.room(stream, keep).min(most);
        if room == 0 {
            return Ok(None);
        }
        let at = self.index(self.end);
        let until = self.buffer.len().min(at + room);
        let written = fill(&mut self.buffer[at..until])?;
        self.commit(stream, written);
        Ok(Some(written))
    }

    /// The bytes at `position`, at most `most` of them.
    pub(super) fn read(&self, position: u64, most: usize) -> Found<'_> {
        if position < self.start {
            return Found::Gone(self.start);
        }
        let run = self.runs.partition_point(|run| run.end <= position);
        let Some(run) = self.runs.get(run) else { return Found::Nothing };
        let length = usize::try_from(run.end - position).unwrap_or(usize::MAX).min(most);
        let at = self.index(position);
        let first = length.min(self.buffer.len() - at);
        Found::Bytes(run.stream, &self.buffer[at..at + first], &self.buffer[..length - first])
    }

    /// The bytes of the last [`Ring::write_with`], which wrote `count`.
    pub(super) fn last(&self, count: usize) -> &[u8] {
        let at = self.index(self.end.saturating_sub(count as u64));
        self.buffer.get(at..at + count).unwrap_or_default()
    }

    /// Gives the memory back; readers find a gap.
    pub(super) fn clear(&mut self) {
        self.buffer = Box::default();
        self.runs = VecDeque::new();
        self.start = self.end;
    }

    fn used(&self) -> usize {
        // Never more than the buffer's length, which is a usize.
        (self.end - self.start) as usize
    }

    fn index(&self, position: u64) -> usize {
        if self.buffer.is_empty() { 0 } else { (position % self.buffer.len() as u64) as usize }
    }

    fn make_room(&mut self) {
        let length = self.buffer.len();
        if length == self.limit || length - self.used() >= SMALLEST / 2 {
            return;
        }
        let mut larger = vec![0; (length * 2).max(SMALLEST)].into_boxed_slice();
        let (at, used) = (self.index(self.start), self.used());
        let first = used.min(length - at);
        put(&mut larger, self.start, &self.buffer[at..at + first]);
        put(&mut larger, self.start + first as u64, &self.buffer[..used - first]);
        self.buffer = larger;
    }

    fn room(&self, stream: Stream, keep: Option<u64>) -> usize {
        let Some(keep) = keep.map(|keep| keep.max(self.start)) else { return self.buffer.len() };
        let new_run = self.runs.back().is_none_or(|run| run.stream != stream);
        let first_unread = self.runs.front().is_some_and(|run| run.end > keep);
        if new_run && self.runs.len() >= MOST_RUNS && first_unread {
            return 0;
        }
        self.buffer.len() - (self.end - keep) as usize
    }

    fn commit(&mut self, stream: Stream, written: usize) {
        if written == 0 {
            return;
        }
        self.end += written as u64;
        match self.runs.back_mut() {
            Some(run) if run.stream == stream => run.end = self.end,
            _ => self.runs.push_back(Run { stream, end: self.end }),
        }
        self.start = self.start.max(self.end.saturating_sub(self.buffer.len() as u64));
        while let Some(run) = self.runs.front().copied() {
            if run.end > self.start && self.runs.len() <= MOST_RUNS {
                break;
            }
            self.start = self.start.max(run.end);
            self.runs.pop_front();
        }
    }
}

/// Puts bytes where a ring of this length keeps them.
fn put(buffer: &mut [u8], position: u64, bytes: &[u8]) {
    let at = (position % buffer.len() as u64) as usize;
    let first = bytes.len().min(buffer.len() - at);
    buffer[at..at + first].copy_from_slice(&bytes[..first]);
    buffer[..bytes.len() - first].copy_from_slice(&bytes[first..]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LIMIT: usize = 8 * 1024;

    fn write(ring: &mut Ring, stream: Stream, keep: Option<u64>, bytes: &[u8]) -> Option<usize> {
        ring.write_with(stream, keep, bytes.len(), |room| {
            room.copy_from_slice(&bytes[..room.len()]);
            Ok(room.len())
        })
        .unwrap()
    }

    fn read_all(ring: &Ring, mut position: u64) -> Vec<(Stream, u8)> {
        let mut all = Vec::new();
        while let Found::Bytes(stream, a, b) = ring.read(position, 100) {
            all.extend(a.iter().chain(b).map(|byte| (stream, *byte)));
            position += (a.len() + b.len()) as u64;
        }
        all
    }

    #[test]
    fn a_reader_that_fell_behind_learns_where_to_go_on() {
        let mut ring = Ring::new(LIMIT);
        while ring.end() < 3 * LIMIT as u64 {
            write(&mut ring, Stream::Stdout, None, &[7; 1000]);
        }
        assert_eq!(ring.read(0, 10), Found::Gone(ring.end() - LIMIT as u64));
        assert_eq!(ring.read(ring.end(), 10), Found::Nothing);
    }

    #[test]
    fn bytes_a_reader_still_needs_are_never_overwritten() {
        let mut ring = Ring::new(LIMIT);
        while write(&mut ring, Stream::Stdout, Some(0), &[1; 999]).is_some() {}
        assert_eq!((ring.start(), ring.end()), (0, LIMIT as u64));
        assert_eq!(write(&mut ring, Stream::Stdout, Some(5), &[2; 999]), Some(5));
    }

    #[test]
    fn alternating_streams_stay_bounded() {
        let mut ring = Ring::new(LIMIT);
        for n in 0..20_000 {
            let stream = if n % 2 == 0 { Stream::Stdout } else { Stream::Stderr };
            write(&mut ring, stream, None, &[0]);
        }
        assert!(ring.runs.len() <= MOST_RUNS);
        assert!(ring.footprint() < LIMIT + 4 * MOST_RUNS * size_of::<Run>());
    }

    #[test]
    fn an_empty_ring_holds_no_memory_and_a_cleared_one_neither() {
        let mut ring = Ring::new(LIMIT);
        assert_eq!(ring.footprint(), 0);
        write(&mut ring, Stream::Stdout, None, &[7; 100]);
        ring.clear();
        assert_eq!((ring.footprint(), ring.read(0, 1)), (0, Found::Gone(100)));
        write(&mut ring, Stream::Stdout, None, b"again");
        assert_eq!(read_all(&ring, 100).len(), 5);
    }

    proptest! {
        #[test]
        fn what_is_read_is_the_end_of_what_was_written(
            writes in prop::collection::vec((any::<bool>(), 1usize..3000), 0..30)
        ) {
            let mut ring = Ring::new(LIMIT);
            let mut model = Vec::new();
            for (index, (err, length)) in writes.into_iter().enumerate() {
                let stream = if err { Stream::Stderr } else { Stream::Stdout };
                let bytes = vec![index as u8; length];
                let written = write(&mut ring, stream, None, &bytes).unwrap();
                model.extend(bytes[..written].iter().map(|byte| (stream, *byte)));
            }
            prop_assert_eq!(ring.end(), model.len() as u64);
            prop_assert!(model.len() - ring.start() as usize <= LIMIT);
            prop_assert_eq!(read_all(&ring, ring.start()), &model[ring.start() as usize..]);
        }
    }
}
