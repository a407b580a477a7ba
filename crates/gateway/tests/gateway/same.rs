//! The short way and hyper's come to the same: the same bytes are sent to a gateway with the one and
//! to a gateway without it, and the same reaches the door and comes back.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use nacre_sandbox::fake::FakeDriver;
use proptest::prelude::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::net::TcpStream;
use tokio::sync::watch;

use crate::host::Host;
use crate::raw::within;

/// What the door says to each path, and whether it hangs up then.
type Script = HashMap<String, (Vec<u8>, bool)>;

/// A gateway before a door that answers by script.
struct Side {
    host: Host,
    cookie: String,
    door: Arc<Door>,
}

struct Door {
    script: Mutex<Script>,
    heads: Mutex<Vec<String>>,
    /// Connections end when this moves on.
    round: watch::Sender<usize>,
    open: AtomicUsize,
}

impl Door {
    async fn serve(&self, mut stream: DuplexStream) {
        self.open.fetch_add(1, Ordering::SeqCst);
        let mut round = self.round.subscribe();
        round.mark_unchanged();
        tokio::select! {
            () = self.answer(&mut stream) => {}
            _ = round.changed() => {}
        }
        drop(stream);
        self.open.fetch_sub(1, Ordering::SeqCst);
    }

    async fn answer(&self, stream: &mut DuplexStream) {
        let mut head = Vec::new();
        while let Ok(byte) = stream.read_u8().await {
            head.push(byte);
            if !head.ends_with(b"\r\n\r\n") {
                continue;
            }
            let text = String::from_utf8_lossy(&head).into_owned();
            head.clear();
            if text.starts_with("GET /supervisor/version ") {
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").await;
                continue;
            }
            let path = text.split(' ').nth(1).unwrap_or_default().to_owned();
            self.heads.lock().unwrap().push(text);
            let said = self.script.lock().unwrap().get(&path).cloned();
            let (said, hang_up) = said.unwrap_or((answer("ok"), false));
            if stream.write_all(&said).await.is_err() || hang_up {
                return;
            }
        }
    }

    /// Ends all connections, and waits until they have ended.
    async fn next_round(&self) {
        self.round.send_modify(|round| *round += 1);
        while self.open.load(Ordering::SeqCst) > 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

fn answer(body: &str) -> Vec<u8> {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ndate: then\r\n";
    format!("{head}content-length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

impl Side {
    async fn set(lean: bool) -> Self {
        let door = Arc::new(Door {
            script: Mutex::default(),
            heads: Mutex::default(),
            round: watch::channel(0).0,
            open: AtomicUsize::new(0),
        });
        let ours = door.clone();
        let world = FakeDriver::new(Arc::new(move |_, stream| {
            let door = ours.clone();
            Box::pin(async move { door.serve(stream).await })
        }));
        let host = Host::start_lean(world, lean).await;
        let cookie = host.sign_in().await;
        Self { host, cookie, door }
    }

    /// What reached the door and what came back, without what differs from run to run.
    async fn run(&self, pieces: &[Vec<u8>], script: &Script) -> (Vec<String>, Vec<u8>) {
        self.door.next_round().await;
        *self.door.script.lock().unwrap() = script.clone();
        self.door.heads.lock().unwrap().clear();
        let mut stream = TcpStream::connect(self.host.address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        for piece in pieces {
            // It may have been refused already.
            if stream.write_all(&self.fill(piece)).await.is_err() {
                break;
            }
            tokio::task::yield_now().await;
        }
        let mut back = Vec::new();
        let _ = within("the connection ends", stream.read_to_end(&mut back)).await;
        let address = self.host.address.to_string();
        let heads = self.door.heads.lock().unwrap();
        let heads = heads.iter().map(|head| head.replace(&address, "HOST")).collect();
        (heads, back)
    }

    /// `@HOST` and `@COOKIE` are those of this gateway.
    fn fill(&self, piece: &[u8]) -> Vec<u8> {
        let replaced = replace(piece, b"@HOST", self.host.address.to_string().as_bytes());
        replace(&replaced, b"@COOKIE", self.cookie.as_bytes())
    }
}

fn replace(text: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.windows(from.len()).position(|window| window == from) {
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(to);
        rest = &rest[at + from.len()..];
    }
    out.extend_from_slice(rest);
    out
}

/// An answer: its first line, its headers in order and without the time of day, its body unframed, and
/// whether that came to its end.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    line: String,
    headers: Vec<String>,
    body: String,
    whole: bool,
}

fn seen(mut bytes: &[u8], methods: &[&str]) -> Vec<Seen> {
    let mut all = Vec::new();
    for index in 0.. {
        let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else { break };
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        bytes = &bytes[end + 4..];
        let mut lines = head.split("\r\n").map(str::to_owned);
        let line = lines.next().unwrap();
        let mut headers: Vec<_> = lines
            .filter(|line| !line.starts_with("date: ") || line == "date: then")
            .map(|line| if line.contains("'nonce-") { "a nonce".to_owned() } else { line })
            .collect();
        headers.sort();
        let bare = methods.get(index) == Some(&"HEAD")
            || [" 204 ", " 304 "].iter().any(|code| line.contains(code));
        let length = headers.iter().find_map(|line| line.strip_prefix("content-length: "));
        let (body, whole) = if bare {
            (Vec::new(), true)
        } else if headers.iter().any(|line| line == "transfer-encoding: chunked") {
            unchunk(&mut bytes)
        } else {
            // hyper passes a list of equal ones on.
            let length = length.and_then(|length| length.split(',').next());
            let length: usize = length.map_or(0, |length| length.parse().unwrap());
            let got = length.min(bytes.len());
            let body = bytes[..got].to_vec();
            bytes = &bytes[got..];
            (body, got == length)
        };
        // A page with a nonce has it inside as well.
        let nonce = headers.iter().any(|line| line == "a nonce");
        let body = if nonce { "a page".into() } else { String::from_utf8_lossy(&body) };
        all.push(Seen { line, headers, body: body.into_owned(), whole });
    }
    assert!(bytes.is_empty(), "{}", String::from_utf8_lossy(bytes));
    all
}

/// Of chunks as both write them: no extensions, no trailers.
fn unchunk(bytes: &mut &[u8]) -> (Vec<u8>, bool) {
    let mut body = Vec::new();
    while let Some(end) = bytes.windows(2).position(|window| window == b"\r\n") {
        let size = usize::from_str_radix(std::str::from_utf8(&bytes[..end]).unwrap(), 16).unwrap();
        let rest = &bytes[end + 2..];
        if rest.len() < size + 2 {
            *bytes = &[];
            return (body, false);
        }
        body.extend_from_slice(&rest[..size]);
        assert_eq!(&rest[size..size + 2], b"\r\n");
        *bytes = &rest[size + 2..];
        if size == 0 {
            return (body, true);
        }
    }
    (body, false)
}

struct Pair {
    lean: Side,
    hyper: Side,
}

impl Pair {
    async fn set() -> Self {
        Self { lean: Side::set(true).await, hyper: Side::set(false).await }
    }

    /// Fails unless both come to the same. Says how many requests took the short way.
    async fn check(&self, pieces: &[Vec<u8>], script: &Script) -> u64 {
        let whole = pieces.concat();
        let text = String::from_utf8_lossy(&whole).into_owned();
        let methods: Vec<&str> = text
            .lines()
            .filter(|line| line.contains(" HTTP/1."))
            .map(|line| line.split(' ').next().unwrap())
            .collect();
        let before = self.lean.host.lean().await;
        let (heads, back) = self.lean.run(pieces, script).await;
        let taken = self.lean.host.lean().await - before;
        let (expected_heads, expected) = self.hyper.run(pieces, script).await;
        let about = || {
            let said = script.values().map(|(said, _)| String::from_utf8_lossy(said));
            format!("{text:.2000?} {:.2000?}", said.collect::<Vec<_>>())
        };
        assert_eq!(heads, expected_heads, "{}", about());
        let (back, expected) = (seen(&back, &methods), seen(&expected, &methods));
        assert_eq!(back, expected, "{}", about());
        assert_eq!(self.hyper.host.lean().await, 0);
        taken
    }

    /// One after the other, and a last one so that the connection ends.
    async fn check_requests(&self, requests: &[&str]) -> u64 {
        let mut pieces: Vec<_> = requests.iter().map(|it| it.as_bytes().to_vec()).collect();
        pieces.push(LAST.as_bytes().to_vec());
        self.check(&pieces, &Script::new()).await
    }

    /// One request that is answered with these bytes.
    async fn check_answer(&self, method: &str, said: &[u8], hang_up: bool) -> u64 {
        let script = Script::from([("/a".to_owned(), (said.to_vec(), hang_up))]);
        let request = format!("{method} /a HTTP/1.1\r\nhost: @HOST\r\ncookie: @COOKIE\r\n\r\n");
        self.check(&[request.into_bytes(), LAST.as_bytes().to_vec()], &script).await
    }
}

const LAST: &str =
    "GET /last HTTP/1.1\r\nhost: @HOST\r\ncookie: @COOKIE\r\nconnection: close\r\n\r\n";

#[tokio::test]
async fn plain_requests_take_the_short_way() {
    let pair = Pair::set().await;
    for (request, taken) in [
        ("GET / HTTP/1.1\r\nhost: @HOST\r\ncookie: @COOKIE\r\n\r\n", 1),
        ("HEAD / HTTP/1.1\r\nhost: @HOST\r\ncookie: @COOKIE\r\n\r\n", 1),
        (
            "GET /a/b?c=%20d#e HTTP/1.1\r\nHost: @HOST\r\nCookie: x=y; @COOKIE; nacre_app_live_a=1\r\n\r\n",
            1,
        ),
        (
            "GET / HTTP/1.1\r\nhost: @HOST\r\ncookie: a=b\r\ncookie: @COOKIE\r\naccept: */*\r\n\r\n",
            1,
        ),
        (
            "GET / HTTP/1.1\r\nhost: @HOST\r\ncookie: @COOKIE\r\nconnection: Keep-Alive\r\nkeep-alive: 5\r\n\r\n",
            1,
        ),
        (
            "GET / HTTP/1.1\r\nhost: @HOST\r\ncookie: @COOKIE\r\nx-nacre-user: mallory\r\nx-forwarded-for: 1.2.3.4\r\nforwarded: for=1\r\n\r\n",
            1,
        ),
        ("GET / HTTP/1.1\r\nhost: @HOST\r\ncookie: @COOKIE\r\nx-high: \u{e9}\r\n\r\n", 1),
        ("GET / HTTP/1.1\nhost: @HOST\ncookie: @COOKIE\n\n", 1),
        // Refused, or not for a sandbox that is there, or not for a sandbox at all.
        ("GET / HTTP/1.1\r\nhost: @HOST\r\ncookie: nacre_session=0\r\n\r\n", 0),
        ("GET / HTTP/1.1\r\nhost: @HOST\r\naccept: text/html\r\n\r\n", 0),
        ("GET / HTTP/1.1\r\nhost: evil.example\r\ncookie: @COOKIE\r\n\r\n", 0),
        ("GET / HTTP/1.1\r\ncookie: @COOKIE\r\n\r\n", 0),
        (
            "GET /sw.js HTTP/1.1\r\nhost: @HOST\r\ncookie: @COOKIE\r\nservice-worker: script\r\n\r\n",
            0,
        ),
        ("GET /dev HTTP/1.1\r\nhost: @HOST\r\ncookie: @COOKIE\r\n\r\n", 0),
        ("GET /dev/x HTTP/1.1\r\nhost: @HOST\r\ncookie: @COOKIE\r\n\r\n", 0),
        ("GET /login HTTP/1.1\r\nhost: @HOST\r\n\r\n", 0),
        // Not plain.
        ("OPTIONS / HTTP/1.1\r\nhost: @HOST\r\ncookie: @COOKIE\r\n\r\n", 0),
        (
            "POST / HTTP/1.1\r\nhost: @HOST\r\ncookie: @COOKIE\r\norigin: http://@HOST\r\ncontent-length: 0\r\n\r\n",
            0,
        ),
        ("GET / HTTP/1.1\r\nhost: @HOST\r\ncookie: @COOKIE\r\ncontent-length: 0\r\n\r\n", 0),
        ("GET / HTTP/1.1\r\nhost: @HOST\r\ncookie: @COOKIE\r\nte: trailers\r\n\r\n", 0),
        ("GET / HTTP/1.1\r\nhost: @HOST\r\ncookie: @COOKIE\r\nexpect: 100-continue\r\n\r\n", 0),
        (
            "GET / HTTP/1.1\r\nhost: @HOST\r\ncookie: @COOKIE\r\nconnection: x-a\r\nx-a: 1\r\n\r\n",
            0,
        ),
        (
            "GET / HTTP/1.1\r\nhost: @HOST\r\ncookie: @COOKIE\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n",
            0,
        ),
        (
            "GET / HTTP/1.1\r\nhost: @HOST\r\ncookie: @COOKIE\r\nauthorization: Basic eDp5\r\n\r\n",
            0,
        ),
        ("\r\nGET / HTTP/1.1\r\nhost: @HOST\r\ncookie: @COOKIE\r\n\r\n", 0),
    ] {
        assert_eq!(pair.check_requests(&[request]).await, taken, "{request}");
    }
}

#[tokio::test]
async fn what_is_no_request_is_refused_alike() {
    let pair = Pair::set().await;
    let long = "x".repeat(70 * 1024);
    let session = "host: @HOST\r\ncookie: @COOKIE\r\n";
    for request in [
        format!("GET / HTTP/1.0\r\n{session}\r\n"),
        format!("GET / HTTP/1.1\r\n{session}host: @HOST\r\n\r\n"),
        format!("GET / HTTP/1.1\r\n{session} folded\r\n\r\n"),
        "GET / HTTP/1.1\r\nhost : @HOST\r\ncookie: @COOKIE\r\n\r\n".to_owned(),
        format!("GET  / HTTP/1.1\r\n{session}\r\n"),
        format!("GET /\0 HTTP/1.1\r\n{session}\r\n"),
        format!("GET /\u{e9} HTTP/1.1\r\n{session}\r\n"),
        format!("GET /../admin HTTP/1.1\r\n{session}\r\n"),
        format!("GET //admin HTTP/1.1\r\n{session}\r\n"),
        format!("GET /DEV/ HTTP/1.1\r\n{session}\r\n"),
        format!("GET /a%2 HTTP/1.1\r\n{session}\r\n"),
        format!("GET http://@HOST/ HTTP/1.1\r\n{session}\r\n"),
        format!("GET * HTTP/1.1\r\n{session}\r\n"),
        format!("get / HTTP/1.1\r\n{session}\r\n"),
        format!("GET / HTTP/2.0\r\n{session}\r\n"),
        format!("GET / HTTP/1.1\r\n{session}x: a\0b\r\n\r\n"),
        format!("GET / HTTP/1.1\r\n{session}x: a\rb\r\n\r\n"),
        format!("GET / HTTP/1.1\r\n{session}x\r\n\r\n"),
        format!("GET / HTTP/1.1\r\n{session}: x\r\n\r\n"),
        format!("GET / HTTP/1.1\r\n{session}content-length: 4\r\ncontent-length: 5\r\n\r\nbody"),
        format!(
            "GET / HTTP/1.1\r\n{session}transfer-encoding: chunked\r\ncontent-length: 5\r\n\r\n0\r\n\r\n"
        ),
        format!("GET / HTTP/1.1\r\n{session}{}\r\n", "x: y\r\n".repeat(101)),
        format!("GET / HTTP/1.1\r\n{session}x-long: {long}\r\n\r\n"),
        format!("GET /{long} HTTP/1.1\r\n{session}\r\n"),
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(),
        "\x16\x03\x01\x02\0\x01\0\x01\x7c\x03\x03".to_owned(),
    ] {
        assert_eq!(pair.check_requests(&[&request]).await, 0, "{request}");
    }
}

#[tokio::test]
async fn requests_in_one_go_are_answered_one_after_the_other() {
    let pair = Pair::set().await;
    let plain = "GET /p HTTP/1.1\r\nhost: @HOST\r\ncookie: @COOKIE\r\n\r\n";
    let head = "HEAD /h HTTP/1.1\r\nhost: @HOST\r\ncookie: @COOKIE\r\n\r\n";
    let post = "POST /q HTTP/1.1\r\nhost: @HOST\r\ncookie: @COOKIE\r\norigin: http://@HOST\r\n\
                content-length: 0\r\n\r\n";
    assert_eq!(pair.check_requests(&[plain, head, plain]).await, 3);
    assert_eq!(pair.check_requests(&[&format!("{plain}{head}{plain}{plain}")]).await, 4);
    assert_eq!(pair.check_requests(&[&format!("{plain}{post}{plain}")]).await, 1);
    assert_eq!(pair.check_requests(&[&format!("{plain}nonsense\r\n\r\n{plain}")]).await, 1);
}

#[tokio::test]
async fn a_head_may_come_in_any_pieces() {
    let pair = Pair::set().await;
    let request = "GET /p HTTP/1.1\r\nhost: @HOST\r\ncookie: @COOKIE\r\n\r\n";
    // The names stand for more than they say, so they are not cut.
    let host = request.find("@HOST").unwrap();
    let cuts = (1..request.len()).filter(|at| {
        let inside = |start: usize, length: usize| *at > start && *at < start + length;
        !inside(host, 5) && !inside(request.find("@COOKIE").unwrap(), 7)
    });
    for at in cuts {
        let (first, second) = request.split_at(at);
        pair.check_requests(&[first, second]).await;
    }
    let bytes: Vec<String> = request.chars().map(String::from).collect();
    let mut pieces: Vec<&str> = bytes.iter().map(String::as_str).collect();
    let cookie = request.find("@COOKIE").unwrap();
    pieces.splice(cookie..cookie + 7, ["@COOKIE"]);
    pieces.splice(host..host + 5, ["@HOST"]);
    pair.check_requests(&pieces).await;
}

#[tokio::test]
async fn answers_of_every_kind_come_back_alike() {
    let pair = Pair::set().await;
    let long = "x".repeat(70 * 1024);
    let sized =
        format!("HTTP/1.1 200 OK\r\ndate: then\r\ncontent-length: {}\r\n\r\n{long}", long.len());
    let headed = format!("HTTP/1.1 200 OK\r\nx: {long}\r\ncontent-length: 0\r\n\r\n");
    let many = format!("HTTP/1.1 200 OK\r\n{}content-length: 0\r\n\r\n", "x: y\r\n".repeat(101));
    let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    for (said, taken) in [
        ("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", 1),
        (
            "HTTP/1.1 404 Not Found\r\ncontent-length: 2\r\nset-cookie: a=1; Path=/\r\nset-cookie: b\r\n\r\nno",
            1,
        ),
        (
            "HTTP/1.1 302 Found\r\nlocation: /x\r\ncontent-length: 0\r\nkeep-alive: 1\r\nalt-svc: x\r\n\r\n",
            1,
        ),
        (
            "HTTP/1.1 500 Internal Server Error\r\ncontent-length: 1\r\nclear-site-data: *\r\n\r\nx",
            1,
        ),
        ("HTTP/1.1 204 No Content\r\n\r\n", 1),
        ("HTTP/1.1 304 Not Modified\r\netag: x\r\n\r\n", 1),
        (&sized, 1),
        (&format!("{chunked}2\r\nhi\r\n0\r\n\r\n"), 1),
        (&format!("{chunked}2 ;a=b\r\nhi\r\n00\r\nx-sum: 1\r\n\r\n"), 1),
        (&format!("{chunked}A\r\n0123456789\r\n1\r\nx\r\n0\r\n\r\n"), 1),
        (&format!("{chunked}{:x}\r\n{long}\r\n0\r\n\r\n", long.len()), 1),
        // Too much, and too odd.
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhiHTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nbad",
            1,
        ),
        ("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok", 0),
        (
            "HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok",
            0,
        ),
        ("HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\n\r\n", 0),
        ("HTTP/1.1 200 Fine\r\ncontent-length: 2\r\n\r\nok", 0),
        ("HTTP/1.1 200\r\ncontent-length: 2\r\n\r\nok", 0),
        ("HTTP/1.1 299 \r\ncontent-length: 2\r\n\r\nok", 0),
        ("HTTP/1.1 304 Not Modified\r\ncontent-length: 5\r\n\r\n", 0),
        ("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok", 0),
        ("HTTP/1.1 200 OK\r\nconnection: x\r\nx: y\r\ncontent-length: 2\r\n\r\nok", 0),
        ("HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 2\r\n\r\nok", 0),
        ("HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\nok", 0),
        ("HTTP/1.1 200 OK\r\ncontent-length: +2\r\n\r\nok", 0),
        ("HTTP/1.1 200 OK\r\ncontent-length: 2, 2\r\n\r\nok", 0),
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
            0,
        ),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ncontent-length: 2\r\n\r\n2\r\nok\r\n0\r\n\r\n",
            0,
        ),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", 0),
        ("HTTP/1.1 200 OK\r\ncontent-length: 2\r\nx: y\r\n folded\r\n\r\nok", 0),
        ("HTTP/1.1 200 OK\r\nx : y\r\ncontent-length: 2\r\n\r\nok", 0),
        ("HTTP/1.1 200 OK\ncontent-length: 2\n\nok", 1),
        ("nonsense\r\n\r\n", 0),
        (&headed, 0),
        (&many, 0),
    ] {
        assert_eq!(pair.check_answer("GET", said.as_bytes(), false).await, taken, "{said:.200}");
    }
    for (said, taken) in [
        ("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n", 1),
        ("HTTP/1.1 200 OK\r\n\r\n", 1),
        ("HTTP/1.1 204 No Content\r\n\r\n", 1),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", 0),
    ] {
        assert_eq!(pair.check_answer("HEAD", said.as_bytes(), false).await, taken, "{said}");
    }
}

/// Wherever it stops.
#[tokio::test]
async fn a_door_that_hangs_up_is_told_of_alike() {
    let pair = Pair::set().await;
    for said in [
        "HTTP/1.1 200 OK\r\ndate: then\r\ncontent-length: 10\r\n\r\n0123456789",
        "HTTP/1.1 200 OK\r\ndate: then\r\ntransfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n4\r\nrest\r\n0\r\n\r\n",
    ] {
        for at in 0..said.len() {
            pair.check_answer("GET", &said.as_bytes()[..at], true).await;
        }
    }
    for said in [
        "HTTP/1.1 200 OK\r\n\r\nto the end",
        "HTTP/1.0 200 OK\r\n\r\nto the end",
        "HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nhalf!!",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nhalf\r\nx\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n0\r\nx\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1000000000000000000\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2;\nhi\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\nhi\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n-2\r\nhi\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\n",
    ] {
        pair.check_answer("GET", said.as_bytes(), true).await;
    }
}

/// Lines of requests and answers that are good, odd or bad; most of them good.
fn header() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => ("[a-z-]{1,12}", "[ -~]{0,20}").prop_map(|(name, value)| format!("x-{name}: {value}\r\n")),
        2 => Just("accept: text/html\r\n".to_owned()),
        1 => Just("connection: keep-alive\r\n".to_owned()),
        1 => Just("cookie: nacre_app_live_a=1; b=2\r\n".to_owned()),
        1 => Just("X-Nacre-User: mallory\r\n".to_owned()),
        1 => "[!-~]{1,8}:[\\x00-\\xff]{0,8}\r\n",
        1 => prop::sample::select(vec![
            "te: trailers\r\n", "upgrade: x\r\n", "host: other\r\n", "content-length: 0\r\n",
            "transfer-encoding: chunked\r\n", "connection: close\r\n", "expect: x\r\n",
        ]).prop_map(str::to_owned),
    ]
}

fn request() -> impl Strategy<Value = String> {
    let method = prop_oneof![6 => Just("GET"), 2 => Just("HEAD"), 1 => Just("PUT")];
    let path = prop_oneof![4 => "/a", 4 => "/[a-z0-9/._-]{0,12}", 1 => "/[!-~]{0,12}"];
    (method, path, prop::collection::vec(header(), 0..4)).prop_map(|(method, path, headers)| {
        let headers = headers.concat();
        format!("{method} {path} HTTP/1.1\r\nhost: @HOST\r\ncookie: @COOKIE\r\n{headers}\r\n")
    })
}

fn said() -> impl Strategy<Value = Vec<u8>> {
    let status =
        prop::sample::select(vec!["200 OK", "204 No Content", "404 Not Found", "100 Continue"]);
    let line = prop_oneof![
        6 => "x-[a-z]{1,8}: [ -~]{0,20}\r\n",
        2 => Just("set-cookie: a=1; Secure\r\n".to_owned()),
        1 => Just("cross-origin-opener-policy: same-origin\r\n".to_owned()),
        1 => Just("connection: close\r\n".to_owned()),
    ];
    let body = prop_oneof![
        4 => "[ -~]{0,40}".prop_map(|body| format!("content-length: {}\r\n\r\n{body}", body.len())),
        4 => prop::collection::vec("[ -~]{1,20}", 0..4).prop_map(|pieces| {
            let chunks: String =
                pieces.iter().map(|piece| format!("{:x}\r\n{piece}\r\n", piece.len())).collect();
            format!("transfer-encoding: chunked\r\n\r\n{chunks}0\r\n\r\n")
        }),
        1 => "transfer-encoding: chunked\r\n\r\n[0-3a;\r\n]{0,12}",
        1 => "content-length: [0-9,]{0,3}\r\n\r\n[a-z]{0,4}",
    ];
    (status, prop::collection::vec(line, 0..4), body).prop_map(|(status, lines, body)| {
        format!("HTTP/1.1 {status}\r\n{}{body}", lines.concat()).into_bytes()
    })
}

#[test]
fn whatever_is_sent_comes_to_the_same() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let pair = runtime.block_on(Pair::set());
    let config = ProptestConfig { failure_persistence: None, ..Default::default() };
    let (requests, short) = (prop::collection::vec(request(), 1..4), Cell::new(0));
    proptest!(config, |(requests in requests, said in said())| {
        let script = Script::from([("/a".to_owned(), (said, true))]);
        let mut pieces: Vec<_> = requests.into_iter().map(String::into_bytes).collect();
        pieces.push(LAST.as_bytes().to_vec());
        short.set(short.get() + runtime.block_on(pair.check(&pieces, &script)));
    });
    assert!(short.get() > 0, "no request took the short way");
}
