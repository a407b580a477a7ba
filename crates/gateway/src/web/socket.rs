//! The life of an upgraded connection: bytes both ways, and a close frame when its role moves or its
//! session ends.
//!
//! Bytes are passed on as they come. For a WebSocket the headers of its frames are followed, and
//! nothing else of them, to know where one ends: there the gateway can say a word of its own without
//! breaking anything. What is not a WebSocket is just closed.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::body::Bytes;
use http::HeaderMap;
use http::header::UPGRADE;
use nacre_wire::access::{SESSION_ENDED, SESSION_ENDED_REASON};
use nacre_wire::relay::{Joined, Side};
use nacre_wire::roles::{ROLE_MOVED, ROLE_MOVED_REASON};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::sandboxes::roles::Ends;

/// What one direction holds while nothing happens, and at most.
const SMALL: usize = 2 * 1024;
const LARGE: usize = 64 * 1024;
/// How long a frame that is under way may take to end, and the other side to answer a close.
const LAST_WORDS: Duration = Duration::from_secs(2);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    WebSocket,
    Other,
}

impl Protocol {
    /// What a request asks to switch to.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let upgrade = headers.get(UPGRADE).and_then(|value| value.to_str().ok());
        match upgrade {
            Some(value) if value.eq_ignore_ascii_case("websocket") => Self::WebSocket,
            _ => Self::Other,
        }
    }
}

/// Who sends a frame: a client masks what it sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sender {
    Client,
    Server,
}

/// Where in a stream of frames we are (RFC 6455, section 5.2).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Frames {
    header: [u8; 14],
    filled: usize,
    /// Of the payload, still to come.
    left: u64,
    closed: bool,
}

impl Frames {
    /// Between two frames, and none of them closed the connection.
    pub(crate) fn at_boundary(&self) -> bool {
        self.filled == 0 && self.left == 0 && !self.closed
    }

    /// Takes all of `bytes` in.
    pub(crate) fn pass(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            bytes = &bytes[self.step(bytes)..];
        }
    }

    /// Takes in what belongs to the frame that is under way, and says how much that was.
    pub(crate) fn finish(&mut self, bytes: &[u8]) -> usize {
        let mut taken = 0;
        while taken < bytes.len() && !(self.filled == 0 && self.left == 0) {
            taken += self.step(&bytes[taken..]);
        }
        taken
    }

    /// At least one byte, and at most to the end of a header or a payload.
    fn step(&mut self, bytes: &[u8]) -> usize {
        if self.left > 0 {
            let step = usize::try_from(self.left).unwrap_or(usize::MAX).min(bytes.len());
            self.left -= step as u64;
            return step;
        }
        let wanted = self.header_length();
        let step = (wanted - self.filled).min(bytes.len());
        self.header[self.filled..self.filled + step].copy_from_slice(&bytes[..step]);
        self.filled += step;
        if self.filled >= 2 && self.filled == self.header_length() {
            self.closed |= self.header[0] & 0x0f == 0x8;
            self.left = self.payload_length();
            self.filled = 0;
        }
        step
    }

    /// As far as can be told from what there is of it.
    fn header_length(&self) -> usize {
        if self.filled < 2 {
            return 2;
        }
        let extended = match self.header[1] & 0x7f {
            126 => 2,
            127 => 8,
            _ => 0,
        };
        let mask = if self.header[1] & 0x80 == 0 { 0 } else { 4 };
        2 + extended + mask
    }

    fn payload_length(&self) -> u64 {
        let extended = |length: usize| {
            self.header[2..2 + length].iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte))
        };
        match self.header[1] & 0x7f {
            126 => extended(2),
            127 => extended(8),
            short => u64::from(short),
        }
    }
}

/// Why the gateway closes a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Close {
    RoleMoved,
    SessionEnded,
}

impl Close {
    fn words(self) -> (u16, &'static str) {
        match self {
            Self::RoleMoved => (ROLE_MOVED, ROLE_MOVED_REASON),
            Self::SessionEnded => (SESSION_ENDED, SESSION_ENDED_REASON),
        }
    }
}

impl Ends {
    /// Returns when either has come. Who is no longer let in is told that, whatever else happened.
    async fn come(&self) -> Close {
        tokio::select! {
            biased;
            () = self.session.cancelled() => Close::SessionEnded,
            () = self.moved.cancelled() => Close::RoleMoved,
        }
    }
}

/// A close frame that says why. With a mask of zeros the payload is as it is.
fn close_frame(sender: Sender, why: Close) -> Vec<u8> {
    let masked = sender == Sender::Client;
    let (code, reason) = why.words();
    let length = 2 + reason.len() as u8;
    let mut frame = vec![0x88, length | if masked { 0x80 } else { 0 }];
    if masked {
        frame.extend([0; 4]);
    }
    frame.extend(code.to_be_bytes());
    frame.extend(reason.as_bytes());
    frame
}

/// Passes bytes between the two until both are done, or one of `ends` comes. `early` came from the sandbox
/// before they were joined.
pub(crate) async fn join<C, S>(
    client: C,
    sandbox: S,
    early: Bytes,
    protocol: Protocol,
    ends: Ends,
) -> Joined
where
    C: AsyncRead + AsyncWrite + Send,
    S: AsyncRead + AsyncWrite + Send,
{
    let (client_read, client_write) = tokio::io::split(client);
    let (sandbox_read, sandbox_write) = tokio::io::split(sandbox);
    let [there, back] = [AtomicU64::new(0), AtomicU64::new(0)];
    let inward = Direction { protocol, sender: Sender::Client, ends: &ends, passed: &there };
    let outward = Direction { protocol, sender: Sender::Server, ends: &ends, passed: &back };
    let inward = inward.pump(client_read, sandbox_write, Bytes::new());
    let outward = outward.pump(sandbox_read, client_write, early);
    // An end that breaks takes the other with it; one that has said all does not.
    let done = async { tokio::try_join!(inward, outward) };
    // Either end may simply go away; that is how most terminals are closed.
    let broken = tokio::select! {
        ended = done => ended.err(),
        () = async {
            ends.come().await;
            tokio::time::sleep(LAST_WORDS * 2).await;
        } => None,
    };
    Joined { to_far: there.into_inner(), to_near: back.into_inner(), broken }
}

struct Direction<'a> {
    protocol: Protocol,
    sender: Sender,
    ends: &'a Ends,
    /// Bytes passed on.
    passed: &'a AtomicU64,
}

impl Direction<'_> {
    /// When it is to go it ends the frame that is under way, says so, and reads on without passing
    /// anything more, so that the other side's answer does not reset the connection. Fails with the
    /// side that broke.
    async fn pump<R, W>(self, mut from: R, mut to: W, early: Bytes) -> Result<(), Side>
    where
        R: AsyncRead + Unpin,
        W: AsyncWrite + Unpin,
    {
        let (source, sink) = match self.sender {
            Sender::Client => (Side::Near, Side::Far),
            Sender::Server => (Side::Far, Side::Near),
        };
        let mut frames = Frames::default();
        to.write_all(&early).await.map_err(|_| sink)?;
        self.note(&mut frames, &early);
        let mut buffer = vec![0; SMALL];
        let why = loop {
            let count = tokio::select! {
                biased;
                why = self.ends.come() => break why,
                read = from.read(&mut buffer) => read.map_err(|_| source)?,
            };
            if count == 0 {
                return to.shutdown().await.map_err(|_| sink);
            }
            to.write_all(&buffer[..count]).await.map_err(|_| sink)?;
            self.note(&mut frames, &buffer[..count]);
            resize(&mut buffer, count);
        };
        if self.protocol == Protocol::WebSocket {
            let last = say_goodbye(&mut from, &mut to, frames, (self.sender, why));
            let _ = tokio::time::timeout(LAST_WORDS, last).await;
        }
        to.shutdown().await.map_err(|_| sink)?;
        let drained = async { while from.read(&mut buffer).await.is_ok_and(|count| count > 0) {} };
        let _ = tokio::time::timeout(LAST_WORDS, drained).await;
        Ok(())
    }

    fn note(&self, frames: &mut Frames, bytes: &[u8]) {
        self.passed.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        if self.protocol == Protocol::WebSocket {
            frames.pass(bytes);
        }
    }
}

async fn say_goodbye<R, W>(
    from: &mut R,
    to: &mut W,
    mut frames: Frames,
    (sender, why): (Sender, Close),
) -> std::io::Result<()>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let mut buffer = vec![0; SMALL];
    while !frames.at_boundary() && !frames.closed {
        let count = from.read(&mut buffer).await?;
        if count == 0 {
            return Ok(());
        }
        let rest = frames.finish(&buffer[..count]);
        to.write_all(&buffer[..rest]).await?;
    }
    if frames.at_boundary() {
        to.write_all(&close_frame(sender, why)).await?;
        to.flush().await?;
    }
    Ok(())
}

/// Grows while there is more than fits, and is small again when there is not.
fn resize(buffer: &mut Vec<u8>, count: usize) {
    if count == buffer.len() && count < LARGE {
        buffer.resize(count * 4, 0);
        buffer.truncate(LARGE);
    } else if count < SMALL / 2 && buffer.len() > SMALL {
        *buffer = vec![0; SMALL];
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn frame(opcode: u8, payload: usize, masked: bool) -> Vec<u8> {
        let mask = if masked { 0x80 } else { 0 };
        let mut frame = vec![0x80 | opcode];
        match payload {
            0..126 => frame.push(payload as u8 | mask),
            126..65_536 => {
                frame.push(126 | mask);
                frame.extend((payload as u16).to_be_bytes());
            }
            _ => {
                frame.push(127 | mask);
                frame.extend((payload as u64).to_be_bytes());
            }
        }
        if masked {
            frame.extend([1, 2, 3, 4]);
        }
        frame.resize(frame.len() + payload, 0x88);
        frame
    }

    fn frames() -> impl Strategy<Value = Vec<Vec<u8>>> {
        let size = prop_oneof![0..200_usize, 120..130_usize, 65_530..65_540_usize];
        prop::collection::vec((0..3_u8, size, any::<bool>()), 1..8)
            .prop_map(|all| all.into_iter().map(|(op, size, mask)| frame(op, size, mask)).collect())
    }

    proptest! {
        #[test]
        fn a_boundary_is_found_however_the_stream_is_cut(
            frames in frames(),
            cuts in prop::collection::vec(1..5000_usize, 1..50),
        ) {
            let stream = frames.concat();
            let mut ends = std::collections::BTreeSet::from([0]);
            let mut sum = 0;
            for frame in &frames {
                sum += frame.len();
                ends.insert(sum);
            }
            let mut tracker = Frames::default();
            let (mut at, mut cuts) = (0, cuts.iter().cycle());
            while at < stream.len() {
                let next = (at + cuts.next().unwrap()).min(stream.len());
                tracker.pass(&stream[at..next]);
                at = next;
                prop_assert_eq!(tracker.at_boundary(), ends.contains(&at));
            }
        }

        #[test]
        fn finishing_stops_exactly_at_the_end_of_the_frame(
            frames in frames(),
            cut in any::<prop::sample::Index>(),
        ) {
            let stream = frames.concat();
            let at = cut.index(stream.len());
            let mut tracker = Frames::default();
            tracker.pass(&stream[..at]);
            let taken = tracker.finish(&stream[at..]);
            let mut sum = 0;
            let end = frames.iter().map(|frame| { sum += frame.len(); sum }).find(|end| *end >= at);
            let expected = if at == 0 { 0 } else { end.unwrap() - at };
            prop_assert_eq!(taken, expected);
        }
    }

    #[test]
    fn after_a_close_there_is_nothing_to_add() {
        let mut tracker = Frames::default();
        tracker.pass(&close_frame(Sender::Server, Close::RoleMoved));
        assert!(!tracker.at_boundary());
        let mut tracker = Frames::default();
        tracker.pass(&close_frame(Sender::Client, Close::RoleMoved));
        assert!(!tracker.at_boundary());
    }

    #[tokio::test]
    async fn a_frame_under_way_is_finished_before_the_close() {
        let (client, mut browser) = tokio::io::duplex(1 << 20);
        let (sandbox, mut app) = tokio::io::duplex(1 << 20);
        let ends = Ends::default();
        let joined =
            tokio::spawn(join(client, sandbox, Bytes::new(), Protocol::WebSocket, ends.clone()));
        let message = frame(2, 1000, false);
        app.write_all(&message[..100]).await.unwrap();
        let mut seen = vec![0; 100];
        browser.read_exact(&mut seen).await.unwrap();
        ends.moved.cancel();
        app.write_all(&message[100..]).await.unwrap();
        app.write_all(&frame(1, 5, false)).await.unwrap();
        browser.read_to_end(&mut seen).await.unwrap();
        assert_eq!(seen, [message, close_frame(Sender::Server, Close::RoleMoved)].concat());
        drop(browser);
        let mut told = Vec::new();
        app.read_to_end(&mut told).await.unwrap();
        assert_eq!(told, close_frame(Sender::Client, Close::RoleMoved));
        drop(app);
        joined.await.unwrap();
    }

    #[tokio::test]
    async fn a_session_that_ended_is_what_is_told_even_if_the_role_moved_too() {
        let (client, mut browser) = tokio::io::duplex(1 << 16);
        let (sandbox, app) = tokio::io::duplex(1 << 16);
        let ends = Ends::default();
        ends.moved.cancel();
        ends.session.cancel();
        tokio::spawn(join(client, sandbox, Bytes::new(), Protocol::WebSocket, ends));
        let mut seen = Vec::new();
        browser.read_to_end(&mut seen).await.unwrap();
        assert_eq!(seen, close_frame(Sender::Server, Close::SessionEnded));
        assert_eq!(seen[2..4], 4002_u16.to_be_bytes());
        drop(app);
    }

    #[tokio::test]
    async fn what_is_not_a_websocket_is_just_closed() {
        let (client, mut browser) = tokio::io::duplex(1 << 16);
        let (sandbox, app) = tokio::io::duplex(1 << 16);
        let ends = Ends::default();
        tokio::spawn(join(client, sandbox, Bytes::new(), Protocol::Other, ends.clone()));
        ends.moved.cancel();
        let mut seen = Vec::new();
        browser.read_to_end(&mut seen).await.unwrap();
        assert_eq!(seen, b"");
        drop(app);
    }

    #[tokio::test]
    async fn an_end_that_breaks_takes_the_other_with_it() {
        let (client, browser) = tokio::io::duplex(16);
        let (sandbox, mut app) = tokio::io::duplex(16);
        let joined =
            tokio::spawn(join(client, sandbox, Bytes::new(), Protocol::Other, Ends::default()));
        drop(browser);
        let mut seen = Vec::new();
        app.read_to_end(&mut seen).await.unwrap();
        app.write_all(&[0; 16]).await.unwrap();
        joined.await.unwrap();
    }

    #[tokio::test]
    async fn one_side_that_has_said_all_does_not_end_the_other() {
        let (client, mut browser) = tokio::io::duplex(1 << 16);
        let (sandbox, mut app) = tokio::io::duplex(1 << 16);
        tokio::spawn(join(client, sandbox, Bytes::new(), Protocol::Other, Ends::default()));
        browser.write_all(b"question").await.unwrap();
        browser.shutdown().await.unwrap();
        let mut asked = Vec::new();
        app.read_to_end(&mut asked).await.unwrap();
        assert_eq!(asked, b"question");
        app.write_all(b"answer").await.unwrap();
        app.shutdown().await.unwrap();
        let mut answer = Vec::new();
        browser.read_to_end(&mut answer).await.unwrap();
        assert_eq!(answer, b"answer");
    }
}
