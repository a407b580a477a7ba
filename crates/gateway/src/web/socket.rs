//! The life of an upgraded connection: bytes both ways, and a close frame when its role moves or its
//! session ends.
//!
//! Bytes are passed on as they come. For a WebSocket the headers of its frames are followed, and
//! nothing else of them, to know where one ends: there the gateway can say a word of its own without
//! breaking anything. What is not a WebSocket is just closed.

use std::future::poll_fn;
use std::time::Duration;

use axum::body::Bytes;
use http::HeaderMap;
use http::header::UPGRADE;
use nacre_wire::access::{SESSION_ENDED, SESSION_ENDED_REASON};
use nacre_wire::relay::{Joined, Side, Tunnel};
use nacre_wire::roles::{ROLE_MOVED, ROLE_MOVED_REASON};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::sandboxes::roles::Ends;

/// What is read at once of a frame that is still to end.
const PIECE: usize = 2 * 1024;
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

/// What came from a side before the two were joined.
#[derive(Default)]
pub(crate) struct Early {
    pub(crate) client: Bytes,
    pub(crate) sandbox: Bytes,
}

/// Passes bytes between the two until both are done, or one of `ends` comes.
pub(crate) async fn join<C, S>(
    client: C,
    sandbox: S,
    early: Early,
    protocol: Protocol,
    ends: Ends,
) -> Joined
where
    C: AsyncRead + AsyncWrite + Unpin,
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut places = Places::of(protocol);
    places.pass(Side::Near, &early.client);
    places.pass(Side::Far, &early.sandbox);
    let mut tunnel = Tunnel::new(client, sandbox)
        .early(Side::Near, early.client)
        .early(Side::Far, early.sandbox);
    // Either end may simply go away; that is how most terminals are closed.
    let ended = tokio::select! {
        biased;
        why = ends.come() => Err(why),
        broken = poll_fn(|cx| tunnel.poll(cx, &mut |side, bytes| places.pass(side, bytes))) => {
            Ok(broken)
        }
    };
    match ended {
        Ok(broken) => Joined { broken, ..tunnel.passed() },
        Err(why) => Box::pin(part(tunnel, places, why)).await,
    }
}

/// Where both directions of a WebSocket are; nothing of what is none.
struct Places(Option<[Frames; 2]>);

impl Places {
    fn of(protocol: Protocol) -> Self {
        Self((protocol == Protocol::WebSocket).then(Default::default))
    }

    fn pass(&mut self, from: Side, bytes: &[u8]) {
        if let Some(frames) = &mut self.0 {
            frames[from as usize].pass(bytes);
        }
    }
}

/// It is to go: ends the frames that are under way, says why, and reads on without passing anything
/// more, so that an answer does not reset the connection.
async fn part<C, S>(mut tunnel: Tunnel<C, S>, places: Places, why: Close) -> Joined
where
    C: AsyncRead + AsyncWrite + Unpin,
    S: AsyncRead + AsyncWrite + Unpin,
{
    let passed = tunnel.passed();
    let rests = [tunnel.rest(Side::Near), tunnel.rest(Side::Far)];
    let [near, far] = places.0.map_or([None, None], |frames| frames.map(Some));
    let (client_read, client_write) = tokio::io::split(tunnel.near);
    let (sandbox_read, sandbox_write) = tokio::io::split(tunnel.far);
    let [near_rest, far_rest] = rests;
    let inward = Parting { sender: Sender::Client, why, frames: near, rest: near_rest };
    let outward = Parting { sender: Sender::Server, why, frames: far, rest: far_rest };
    let (more_in, more_out) = tokio::join!(
        inward.part(client_read, sandbox_write),
        outward.part(sandbox_read, client_write)
    );
    Joined { to_far: passed.to_far + more_in, to_near: passed.to_near + more_out, broken: None }
}

/// The end of one direction.
struct Parting {
    sender: Sender,
    why: Close,
    /// Absent when it carries no frames.
    frames: Option<Frames>,
    /// Read and not yet passed on; absent when the sender has said all.
    rest: Option<Bytes>,
}

impl Parting {
    /// Returns how many bytes it still passed on.
    async fn part<R, W>(self, mut from: R, mut to: W) -> u64
    where
        R: AsyncRead + Unpin,
        W: AsyncWrite + Unpin,
    {
        let mut passed = 0;
        if let (Some(frames), Some(rest)) = (self.frames, self.rest) {
            let close = close_frame(self.sender, self.why);
            let last = say_goodbye(&mut from, &mut to, frames, rest, &close, &mut passed);
            let _ = tokio::time::timeout(LAST_WORDS, last).await;
        }
        let drained = async {
            to.shutdown().await?;
            let mut buffer = vec![0; PIECE];
            while from.read(&mut buffer).await? > 0 {}
            std::io::Result::Ok(())
        };
        let _ = tokio::time::timeout(LAST_WORDS, drained).await;
        passed
    }
}

async fn say_goodbye<R, W>(
    from: &mut R,
    to: &mut W,
    mut frames: Frames,
    rest: Bytes,
    close: &[u8],
    passed: &mut u64,
) -> std::io::Result<()>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    to.write_all(&rest).await?;
    *passed += rest.len() as u64;
    let mut buffer = vec![0; PIECE];
    while !frames.at_boundary() && !frames.closed {
        let count = from.read(&mut buffer).await?;
        if count == 0 {
            return Ok(());
        }
        let ours = frames.finish(&buffer[..count]);
        to.write_all(&buffer[..ours]).await?;
        *passed += ours as u64;
    }
    if frames.at_boundary() {
        to.write_all(close).await?;
        to.flush().await?;
    }
    Ok(())
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
        let joined = tokio::spawn(join(
            client,
            sandbox,
            Early::default(),
            Protocol::WebSocket,
            ends.clone(),
        ));
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
        tokio::spawn(join(client, sandbox, Early::default(), Protocol::WebSocket, ends));
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
        tokio::spawn(join(client, sandbox, Early::default(), Protocol::Other, ends.clone()));
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
            tokio::spawn(join(client, sandbox, Early::default(), Protocol::Other, Ends::default()));
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
        tokio::spawn(join(client, sandbox, Early::default(), Protocol::Other, Ends::default()));
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
