//! The short way of the plainest requests: `GET` and `HEAD` of somebody with a session, for a sandbox
//! that runs, answered in the plainest way.
//!
//! ```text
//!  client ─▶ head ─▶ decide ─▶ door ─▶ head ─▶ client       one task, no library between
//!              └─ not plain ──────────────┴─▶ hyper, with all bytes read so far, from there on
//! ```
//! Nothing is decided, refused or repaired here. Heads are read by hyper's parser into the types that
//! hyper makes of them, [`decide`](super::decide) says what becomes of a request, and `headers` what
//! crosses. Whatever is not plain, and whatever goes wrong before the first byte of an answer is on its
//! way, goes to hyper, which serves the connection from there on. A request that has been sent through
//! the door goes along with its connection there, so that it is sent once ([`Begun`]).
//!
//! A connection owns no buffer while nothing is under way. Bytes are read into one that belongs to the
//! thread; a head is copied out of it, and a body that does not fit gets a buffer of its own.

mod answer;
mod ask;
mod body;
mod chunks;
mod client;
mod request;
mod streams;
mod write;

use std::cell::RefCell;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use http::{HeaderMap, Method};
use nacre_sandbox::BoxStream;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio_util::sync::CancellationToken;

use nacre_wire::conductor::relayed;

use super::cookies::Jar;
use super::decide::{self, Step};
use super::proxy::Way;
use super::{Site, headers, until};
use crate::observe::{Exchange, Via};
use crate::routes::Role;
use crate::sandboxes::Sandbox;
use answer::Answer;
use ask::Asked;
use body::Body;
use chunks::Chunks;
use client::{Client, Ended, Heard};
pub(crate) use streams::{Ahead, Begun};
use write::Frame;

/// Longer heads are hyper's business, which has its own limits.
const LONGEST_HEAD: usize = 16 * 1024;
/// What is read at once.
const SCRATCH: usize = 64 * 1024;
/// Of a body that does not come with its head, at once.
const PIECE: usize = 256 * 1024;
/// Maps of headers that a thread keeps, and how large they may be.
const SPARE_HEADERS: usize = 4;
const LARGEST_SPARE: usize = 128;

thread_local! {
    static BUFFER: RefCell<Box<[u8]>> = RefCell::new(vec![0; SCRATCH].into());
    /// Maps to use again.
    static HEADERS: RefCell<Vec<HeaderMap>> = const { RefCell::new(Vec::new()) };
}

pub(crate) trait Stream: AsyncRead + AsyncWrite + Unpin {}
impl<S: AsyncRead + AsyncWrite + Unpin> Stream for S {}

/// A connection for hyper, with what was read from it, and with what has become of the first request.
pub(crate) struct Rest<S> {
    pub(crate) stream: Ahead<S>,
    pub(crate) begun: Option<Begun>,
}

impl<S> Rest<S> {
    /// Nothing was read yet.
    pub(crate) fn whole(stream: S) -> Self {
        Self { stream: Ahead::new(Bytes::new(), stream), begun: None }
    }
}

/// A request that goes to a sandbox.
struct Going {
    /// As the client sent it, in bytes.
    size: usize,
    bodiless: bool,
    head: Vec<u8>,
    role: Role,
    jar: Option<Jar>,
    ended: CancellationToken,
    sandbox: Arc<Sandbox>,
    exchange: Exchange,
}

enum Routed {
    Part,
    Other,
    Going(Box<Going>),
}

/// Serves what is plain, until the connection is over or something else comes.
pub(crate) async fn serve<S: Stream>(
    site: &Site,
    stop: &CancellationToken,
    stream: S,
    peer: SocketAddr,
) -> Option<Rest<S>> {
    let mut client = Client::new(stream, stop);
    loop {
        let going = match client.hear(|bytes| route(site, peer, bytes)).await {
            Heard::Going(going) => going,
            Heard::Other => return Some(client.leave(None)),
            Heard::End => {
                let _ = client.stream.shutdown().await;
                return None;
            }
        };
        match ask::ask(&mut client, &going).await {
            Asked::Answered(answer, read, door) => {
                client.unread.advance(going.size);
                let last = pass_on(site, &mut client, going, answer, read, door).await?;
                if last {
                    let _ = client.stream.shutdown().await;
                    return None;
                }
            }
            Asked::Other(door, read) => {
                let Going { sandbox, exchange, .. } = *going;
                let begun = Begun::new(sandbox, exchange.began(), door, read);
                exchange.forget();
                return Some(client.leave(Some(begun)));
            }
            Asked::Unsent => {
                going.exchange.forget();
                return Some(client.leave(None));
            }
            Asked::ClientWent => return None,
        }
    }
}

/// What the bytes that a connection begins with come to.
fn route(site: &Site, peer: SocketAddr, bytes: &Bytes) -> Routed {
    let (mut parts, size) = match request::read(bytes, spare()) {
        request::Read::Plain(parts, size) => (parts, size),
        request::Read::Part if bytes.len() < LONGEST_HEAD => return Routed::Part,
        request::Read::Part | request::Read::Other => return Routed::Other,
    };
    let app = &site.app;
    let Ok(Step::On(passage)) = decide::decide(app, peer.ip(), &mut parts) else {
        return Routed::Other;
    };
    // What comes up again needs a ticket, and that may have to wait.
    if relayed(passage.path.path()) {
        return Routed::Other;
    }
    let Some(sandbox) = app.sandboxes.by_role(passage.role) else { return Routed::Other };
    if sandbox.require_running().is_err() {
        return Routed::Other;
    }
    let forwarded = passage.forwarded(app);
    let way = Way { observer: &app.observer, sandbox: &sandbox, via: Via::Role(passage.role) };
    let exchange = way.inward(&forwarded, &mut parts);
    let head = write::request(&parts.method, passage.path.as_str(), &parts.headers);
    keep(parts.headers);
    Routed::Going(Box::new(Going {
        size,
        bodiless: parts.method == Method::HEAD,
        head,
        role: passage.role,
        jar: forwarded.jar,
        ended: passage.pass.ended().clone(),
        sandbox,
        exchange,
    }))
}

/// Sends the answer on, and says whether the connection is over; `None` when it broke off.
async fn pass_on<S: Stream>(
    site: &Site,
    client: &mut Client<'_, S>,
    mut going: Box<Going>,
    answer: Answer,
    mut read: Bytes,
    mut door: BoxStream,
) -> Option<bool> {
    let Going { jar, role, ended, sandbox, exchange, .. } = &mut *going;
    let (role, ended) = (*role, &*ended);
    let Answer { status, headers: mut map, mut body, size } = answer;
    let way = Way { observer: &site.app.observer, sandbox, via: Via::Role(role) };
    exchange.answered_lean(status.as_u16());
    headers::outward(&mut map, false, *jar);
    way.sign(&mut map);
    site.app.sandboxes.count(role, sandbox, false, status.as_u16());
    let frame = Frame { chunked: body.is_chunked(), last: client.stop.is_cancelled() };
    read.advance(size);
    let mut out = write::answer(status, &map, frame, read.len());
    keep(map);
    let mut ended = Ended::of(body.may_exceed(until::SHORT).then(|| ended.clone()));
    exchange.passes(0);
    let taken = body.pass(&read, &mut out);
    client.send(&out, &mut ended).await?;
    let taken = taken.ok()?;
    exchange.passes(taken.data);
    let mut clean = taken.used == read.len();
    if !body.is_over() {
        drop((read, out));
        clean = stream_on(client, &mut door, &mut body, &mut ended, exchange).await?;
    }
    exchange.passed();
    if clean {
        sandbox.door.keep_plain(door, exchange.began());
    }
    Some(frame.last)
}

/// Passes on what did not come with the head. Says whether the door has said nothing else.
async fn stream_on<S: Stream>(
    client: &mut Client<'_, S>,
    door: &mut BoxStream,
    body: &mut Body,
    ended: &mut Ended,
    exchange: &mut Exchange,
) -> Option<bool> {
    match body {
        Body::Sized(left) => sized_on(client, door, left, ended, exchange).await,
        Body::Chunked(chunks) => chunks_on(client, door, chunks, ended, exchange).await,
    }
}

async fn sized_on<S: Stream>(
    client: &mut Client<'_, S>,
    door: &mut BoxStream,
    left: &mut u64,
    ended: &mut Ended,
    exchange: &mut Exchange,
) -> Option<bool> {
    let mut buffer = vec![0; usize::try_from(*left).unwrap_or(PIECE).min(PIECE)];
    loop {
        let read = |cx: &mut Context<'_>| {
            let mut buffer = ReadBuf::new(&mut buffer);
            let read = ready!(Pin::new(&mut *door).poll_read(cx, &mut buffer));
            let size = buffer.filled().len();
            Poll::Ready(if read.is_ok() && size > 0 { Some(size) } else { None })
        };
        let size = client.while_there(ended, read).await?;
        let taken = body::take(left, size);
        exchange.passes(taken.data);
        client.send(&buffer[..taken.used], ended).await?;
        if *left == 0 {
            return Some(taken.used == size);
        }
    }
}

/// Events come now and then for hours, so nothing is kept while nothing comes.
async fn chunks_on<S: Stream>(
    client: &mut Client<'_, S>,
    door: &mut BoxStream,
    chunks: &mut Chunks,
    ended: &mut Ended,
    exchange: &mut Exchange,
) -> Option<bool> {
    loop {
        let mut framed = Vec::new();
        let read = |cx: &mut Context<'_>| {
            client::read_some(door, cx, |bytes| match bytes {
                [] => None,
                _ => Some((bytes.len(), chunks.pass(bytes, &mut framed))),
            })
        };
        let (size, taken) = client.while_there(ended, read).await?;
        exchange.passes(taken.map_or(0, |taken| taken.data));
        // What came before a mistake is passed on.
        client.send(&framed, ended).await?;
        let taken = taken.ok()?;
        if chunks.is_over() {
            return Some(taken.used == size);
        }
    }
}

/// Of this thread, or a new one.
fn spare() -> HeaderMap {
    HEADERS.with_borrow_mut(Vec::pop).unwrap_or_default()
}

fn keep(mut headers: HeaderMap) {
    headers.clear();
    HEADERS.with_borrow_mut(|kept| {
        if kept.len() < SPARE_HEADERS && headers.capacity() <= LARGEST_SPARE {
            kept.push(headers);
        }
    });
}
