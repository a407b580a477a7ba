//! The output of one command on its way from the pipes to whoever reads it.
//!
//! One buffer per command ([`Ring`]), any number of readers ([`Reader`]). At most one reader is
//! *lossless*: the pipes are not read faster than it reads, so the command waits for it. The
//! others are told how much they missed. A terminal also has a [`Screen`], which is what its
//! readers get first and after a gap.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::{BufMut, Bytes, BytesMut};
use nacre_wire::exec::{Exit, Stream, TtySize};
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use super::ring::{Found, Ring};
use super::screen::Screen;

const KEPT: usize = 256 * 1024;
/// Large enough to make a message cheap, small enough to stay below what malloc maps afresh.
const LARGEST_MESSAGE: usize = 64 * 1024 - 1;
const LARGEST_READ: usize = 128 * 1024;
/// A terminal is emulated under the lock; readers and resizes should not wait long for it.
const LARGEST_TERMINAL_READ: usize = 16 * 1024;

pub(super) struct Output {
    state: Mutex<State>,
    /// Something to read: bytes, or the end.
    news: Notify,
    /// The lossless reader has read, or is gone.
    room: Notify,
}

struct State {
    ring: Ring,
    view: View,
    /// Where the lossless reader is.
    keep: Option<u64>,
    exit: Option<Exit>,
}

/// What a reader that missed the beginning is shown.
enum View {
    /// The bytes that are left.
    Plain,
    Terminal(Box<Screen>),
    /// The last picture of a terminal whose command has ended.
    Still(Bytes),
}

/// What a reader gets next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Event {
    /// A byte that names the [`Stream`], and output.
    Output(Bytes),
    /// This many bytes were skipped.
    Gap(u64),
    Exit(Exit),
}

/// What came of an attempt to take output from a pipe.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Taken {
    Bytes(usize),
    End,
    /// The lossless reader has to read first.
    Full,
}

impl Output {
    pub(super) fn new(tty: Option<TtySize>) -> Arc<Self> {
        let view = tty.map_or(View::Plain, |size| View::Terminal(Box::new(Screen::new(size))));
        let state = State { ring: Ring::new(KEPT), view, keep: None, exit: None };
        Arc::new(Self { state: Mutex::new(state), news: Notify::new(), room: Notify::new() })
    }

    /// Moves bytes from a pipe to the buffer; `read` fills what it is given.
    pub(super) fn take(
        &self,
        stream: Stream,
        read: impl FnOnce(&mut [u8]) -> io::Result<usize>,
    ) -> io::Result<Taken> {
        let mut state = self.lock();
        let State { ring, view, keep, .. } = &mut *state;
        let most = match view {
            View::Terminal(_) => LARGEST_TERMINAL_READ,
            View::Plain | View::Still(_) => LARGEST_READ,
        };
        let Some(count) = ring.write_with(stream, *keep, most, read)? else {
            return Ok(Taken::Full);
        };
        if count == 0 {
            return Ok(Taken::End);
        }
        if let View::Terminal(screen) = view {
            screen.show(ring.last(count));
        }
        drop(state);
        self.news.notify_waiters();
        Ok(Taken::Bytes(count))
    }

    /// Completes when a reader makes room after this call; ask before [`Output::take`].
    pub(super) fn room(&self) -> Notified<'_> {
        self.room.notified()
    }

    pub(super) fn resize(&self, size: TtySize) {
        if let View::Terminal(screen) = &mut self.lock().view {
            screen.resize(size);
        }
    }

    /// Stops waiting for the lossless reader: it may miss bytes from now on, and is told so.
    pub(super) fn release(&self) {
        self.lock().keep = None;
        self.room.notify_waiters();
    }

    /// No reader waits any longer than for what is here and this exit.
    pub(super) fn finish(&self, exit: Exit) {
        let mut state = self.lock();
        if let View::Terminal(screen) = &state.view {
            state.view = View::Still(Bytes::from(screen.redraw()));
        }
        state.exit = Some(exit);
        drop(state);
        self.news.notify_waiters();
    }

    pub(super) fn exit(&self) -> Option<Exit> {
        self.lock().exit.clone()
    }

    /// Waits for [`Output::finish`].
    pub(super) async fn finished(&self) -> Exit {
        loop {
            let news = self.news.notified();
            if let Some(exit) = self.exit() {
                return exit;
            }
            news.await;
        }
    }

    /// Bytes of output so far.
    pub(super) fn total(&self) -> u64 {
        self.lock().ring.end()
    }

    /// What is left of it, or what the terminal shows.
    pub(super) fn recent(&self) -> Bytes {
        let state = self.lock();
        if let Some(picture) = state.picture() {
            return picture;
        }
        let mut recent = BytesMut::new();
        let mut position = state.ring.start();
        while let Found::Bytes(_, first, second) = state.ring.read(position, KEPT) {
            recent.put_slice(first);
            recent.put_slice(second);
            position += (first.len() + second.len()) as u64;
        }
        recent.freeze()
    }

    /// Bytes of memory held for readers to come.
    pub(super) fn footprint(&self) -> usize {
        let state = self.lock();
        let view = match &state.view {
            View::Plain | View::Terminal(_) => 0,
            View::Still(picture) => picture.len(),
        };
        state.ring.footprint() + view
    }

    /// Gives that memory back, unless the lossless reader still needs it.
    pub(super) fn clear(&self) {
        let mut state = self.lock();
        if state.keep.is_some() {
            return;
        }
        state.ring.clear();
        if matches!(state.view, View::Still(_)) {
            state.view = View::Still(Bytes::new());
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One client's way through the output of a command.
pub(super) struct Reader {
    output: Arc<Output>,
    position: u64,
    lossless: bool,
    /// A picture to send before anything else.
    picture: Option<Bytes>,
    /// Reused from message to message once the socket has let go of the last one.
    buffer: BytesMut,
}

impl Reader {
    /// For the client that starts the command: it misses nothing, and the command waits for it.
    pub(super) fn lossless(output: &Arc<Output>) -> Self {
        output.lock().keep = Some(0);
        Self::at(output, 0, None).and_keeps()
    }

    /// For a client that joins: first what is left of the output so far, or the screen.
    pub(super) fn joining(output: &Arc<Output>) -> Self {
        let state = output.lock();
        let picture = state.picture();
        let position = if picture.is_some() { state.ring.end() } else { state.ring.start() };
        drop(state);
        Self::at(output, position, picture)
    }

    fn at(output: &Arc<Output>, position: u64, picture: Option<Bytes>) -> Self {
        let output = Arc::clone(output);
        Self { output, position, lossless: false, picture, buffer: BytesMut::new() }
    }

    fn and_keeps(mut self) -> Self {
        self.lossless = true;
        self
    }

    /// The next event; after [`Event::Exit`] there is none. Nothing is lost when the future is
    /// dropped.
    pub(super) async fn next(&mut self) -> Event {
        let output = Arc::clone(&self.output);
        loop {
            let news = output.news.notified();
            if let Some(event) = self.now() {
                return event;
            }
            news.await;
        }
    }

    fn now(&mut self) -> Option<Event> {
        if let Some(picture) = self.picture.take() {
            return Some(Event::Output(tagged(&picture)));
        }
        let output = Arc::clone(&self.output);
        let mut state = output.lock();
        match state.ring.read(self.position, LARGEST_MESSAGE) {
            Found::Bytes(stream, first, second) => {
                let length = first.len() + second.len();
                self.buffer.reserve(1 + length);
                self.buffer.put_u8(stream as u8);
                self.buffer.put_slice(first);
                self.buffer.put_slice(second);
                self.position += length as u64;
                self.advance(&mut state);
                Some(Event::Output(self.buffer.split().freeze()))
            }
            Found::Gone(oldest) => {
                self.picture = state
                    .picture()
                    .map(|picture| [b"\x1b[3J".as_slice(), &picture].concat().into());
                let next = if self.picture.is_some() { state.ring.end() } else { oldest };
                let bytes = next - self.position;
                self.position = next;
                Some(Event::Gap(bytes))
            }
            Found::Nothing => state.exit.clone().map(Event::Exit),
        }
    }

    fn advance(&self, state: &mut State) {
        if self.lossless && state.keep.is_some() {
            state.keep = Some(self.position);
            self.output.room.notify_waiters();
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        if self.lossless {
            self.output.release();
        }
    }
}

impl State {
    fn picture(&self) -> Option<Bytes> {
        match &self.view {
            View::Plain => None,
            View::Terminal(screen) => Some(Bytes::from(screen.redraw())),
            View::Still(picture) => Some(picture.clone()),
        }
    }
}

fn tagged(bytes: &[u8]) -> Bytes {
    let mut message = BytesMut::with_capacity(1 + bytes.len());
    message.put_u8(Stream::Stdout as u8);
    message.put_slice(bytes);
    message.freeze()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DONE: Exit = Exit { code: Some(0), signal: None, timed_out: false, out_of_memory: false };

    fn give(output: &Output, stream: Stream, bytes: &[u8]) -> Taken {
        let fill = |room: &mut [u8]| {
            let count = room.len().min(bytes.len());
            room[..count].copy_from_slice(&bytes[..count]);
            Ok(count)
        };
        output.take(stream, fill).unwrap()
    }

    #[tokio::test]
    async fn readers_see_the_streams_apart_and_then_the_exit() {
        let output = Output::new(None);
        let mut reader = Reader::lossless(&output);
        give(&output, Stream::Stdout, b"out");
        give(&output, Stream::Stderr, b"err");
        output.finish(DONE);
        assert_eq!(reader.next().await, Event::Output(Bytes::from_static(b"\x01out")));
        assert_eq!(reader.next().await, Event::Output(Bytes::from_static(b"\x02err")));
        assert_eq!(reader.next().await, Event::Exit(DONE));
    }

    #[tokio::test]
    async fn the_lossless_reader_holds_the_command_back_and_a_joining_one_misses_bytes() {
        let output = Output::new(None);
        let mut starter = Reader::lossless(&output);
        let mut late = Reader::joining(&output);
        let mut given = 0;
        while let Taken::Bytes(count) = give(&output, Stream::Stdout, &[7; 10_000]) {
            given += count;
        }
        assert_eq!(given, KEPT);
        let Event::Output(first) = starter.next().await else { panic!("output expected") };
        let freed = first.len() - 1;
        assert_eq!(give(&output, Stream::Stdout, &vec![7; freed]), Taken::Bytes(freed));
        assert_eq!(late.next().await, Event::Gap(freed as u64));
    }

    #[tokio::test]
    async fn a_terminal_shows_its_screen_to_who_joins_and_keeps_it_when_it_ends() {
        let output = Output::new(Some(TtySize { cols: 20, rows: 4 }));
        give(&output, Stream::Stdout, b"gone\x1b[H\x1b[Jhello");
        output.finish(DONE);
        let mut reader = Reader::joining(&output);
        let Event::Output(picture) = reader.next().await else { panic!("a picture expected") };
        let text = String::from_utf8_lossy(&picture);
        assert!(text.contains("hello") && !text.contains("gone"), "{text:?}");
        assert_eq!(reader.next().await, Event::Exit(DONE));
    }
}
