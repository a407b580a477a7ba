//! HTTP/2 by hand on one side, and the sandbox's supervisor on the other: what each is told of what
//! the other does.

use bytes::Bytes;
use h2::client::{ResponseFuture, SendRequest};
use h2::{Reason, RecvStream, SendStream};
use http::{HeaderMap, Method, Request, StatusCode};
use tokio_util::task::AbortOnDropHandle;

use crate::raw::{Doors, within};
use crate::tls::{NAME, Secure};

/// One connection of a signed-in browser to a gateway whose live sandbox is played by the test.
struct Stage {
    secure: Secure,
    doors: Doors,
    cookie: String,
    sender: SendRequest<Bytes>,
    _connection: AbortOnDropHandle<Result<(), h2::Error>>,
}

/// A request on its way.
struct Asked {
    answer: ResponseFuture,
    body: SendStream<Bytes>,
}

impl Asked {
    async fn answered(self) -> (StatusCode, HeaderMap, RecvStream) {
        let (parts, body) = within("it is answered", self.answer).await.unwrap().into_parts();
        (parts.status, parts.headers, body)
    }
}

impl Stage {
    async fn set() -> Self {
        let (world, doors) = Doors::build();
        let secure = Secure::start_in(world).await;
        let cookie = secure.sign_in().await;
        let (sender, connection) = h2::client::handshake(secure.connect_h2().await).await.unwrap();
        let connection = AbortOnDropHandle::new(tokio::spawn(connection));
        Self { secure, doors, cookie, sender, _connection: connection }
    }

    fn request(&self, line: &str, headers: &[(&str, &str)]) -> Request<()> {
        let (method, path) = line.split_once(' ').unwrap();
        let mut request = Request::builder()
            .method(method)
            .uri(format!("https://{NAME}{path}"))
            .header("origin", format!("https://{NAME}"))
            .header("cookie", &self.cookie);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap()
    }

    async fn send(&self, request: Request<()>, ends: bool) -> Asked {
        let mut sender = self.sender.clone().ready().await.unwrap();
        let (answer, body) = sender.send_request(request, ends).unwrap();
        Asked { answer, body }
    }

    /// One without a body.
    async fn asks(&self, line: &str) -> Asked {
        self.send(self.request(line, &[]), true).await
    }
}

async fn next(body: &mut RecvStream) -> Bytes {
    let piece = within("a piece comes", body.data()).await.expect("a piece, not the end").unwrap();
    body.flow_control().release_capacity(piece.len()).unwrap();
    piece
}

#[tokio::test]
async fn a_request_that_is_reset_ends_at_the_app_and_no_other_with_it() {
    let stage = Stage::set().await;
    let other = stage.asks("GET /other").await;
    let (_, mut others) = stage.doors.arrives().await;

    let mut unanswered = stage.asks("GET /slow").await;
    let (head, mut app) = stage.doors.arrives().await;
    assert!(head.starts_with("GET /slow "), "{head}");
    unanswered.body.send_reset(Reason::CANCEL);
    app.ends().await;

    let mut uploading = stage.send(stage.request("POST /files/a", &[]), false).await;
    uploading.body.send_data("half".into(), false).unwrap();
    let (_, mut app) = stage.doors.arrives().await;
    app.expect("4\r\nhalf\r\n").await;
    uploading.body.send_reset(Reason::CANCEL);
    app.ends().await;

    others.send("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await;
    let (status, _, mut body) = other.answered().await;
    assert_eq!((status, next(&mut body).await), (StatusCode::OK, "ok".into()));
}

#[tokio::test]
async fn events_come_as_they_are_sent_until_the_browser_has_enough() {
    let stage = Stage::set().await;
    let asked = stage.asks("GET /events").await;
    let (_, mut app) = stage.doors.arrives().await;
    app.send("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n").await;
    app.send("transfer-encoding: chunked\r\n\r\n").await;
    let (status, headers, mut body) = asked.answered().await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(headers["content-type"], "text/event-stream");
    assert!(!headers.contains_key("transfer-encoding"));
    for event in ["data: 1\n\n", "data: 2\n\n"] {
        app.send(format!("{:x}\r\n{event}\r\n", event.len())).await;
        assert_eq!(next(&mut body).await, event);
    }
    // Whoever lets go of it sends RST_STREAM.
    drop(body);
    app.ends().await;
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_a_reset_and_not_an_end() {
    let stage = Stage::set().await;
    let asked = stage.asks("GET /events").await;
    let (_, mut app) = stage.doors.arrives().await;
    app.send("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n").await;
    let (_, _, mut body) = asked.answered().await;
    assert_eq!(next(&mut body).await, "half");
    drop(app);
    let broken = within("it ends", body.data()).await.expect("not as if it were whole");
    assert!(broken.unwrap_err().is_reset());
}

#[tokio::test]
async fn trailers_pass_both_ways_over_http_2() {
    let stage = Stage::set().await;
    let request = stage.request("POST /", &[("te", "trailers"), ("trailer", "x-sum")]);
    let mut asked = stage.send(request, false).await;
    let sum =
        |value: &str| HeaderMap::from_iter([("x-sum".parse().unwrap(), value.parse().unwrap())]);
    asked.body.send_data("a".into(), false).unwrap();
    asked.body.send_trailers(sum("up")).unwrap();
    let (head, mut app) = stage.doors.arrives().await;
    assert!(
        head.contains("\r\nte: trailers\r\n") && head.contains("\r\ntrailer: x-sum\r\n"),
        "{head}"
    );
    app.expect("1\r\na\r\n0\r\nx-sum: up\r\n\r\n").await;
    app.send("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ntrailer: x-sum\r\n\r\n").await;
    app.send("1\r\nb\r\n0\r\nx-sum: down\r\n\r\n").await;
    let (_, _, mut body) = asked.answered().await;
    assert_eq!(next(&mut body).await, "b");
    assert!(within("the body ends", body.data()).await.is_none());
    assert_eq!(within("trailers come", body.trailers()).await.unwrap(), Some(sum("down")));
}

#[tokio::test]
async fn hostile_paths_are_refused_over_http_2_and_the_rest_pass_as_they_are() {
    let stage = Stage::set().await;
    for path in [
        "/dev/../admin/sandboxes",
        "/dev/%2e%2E/admin",
        "//admin/sandboxes",
        "/admin//sandboxes",
        "/dev%2fadmin",
        "/dev%2F",
        "/DEV/",
        "/dev\\admin",
        "/dev/%5c",
        "/a%00",
        "/a%zz",
    ] {
        let (status, headers, mut body) = stage.asks(&format!("GET {path}")).await.answered().await;
        let said = next(&mut body).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{path}: {said:?}");
        assert!(said.windows(15).any(|part| part == b"invalid_request"), "{path}: {said:?}");
        assert!(!headers.contains_key("connection"), "{path}");
    }
    let connect = Request::builder().method(Method::CONNECT).uri(format!("{NAME}:443"));
    let (status, ..) = stage.send(connect.body(()).unwrap(), true).await.answered().await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert!(stage.doors.nothing_arrived().await);

    let path = "/npm/@scope%2Fname//A?x=%2F..";
    let asked = stage.asks(&format!("GET {path}")).await;
    let (head, mut app) = stage.doors.arrives().await;
    assert!(head.starts_with(&format!("GET {path} HTTP/1.1\r\n")), "{head}");
    assert!(head.contains(&format!("\r\nhost: {NAME}\r\n")), "{head}");
    app.send("HTTP/1.1 204 No Content\r\n\r\n").await;
    assert_eq!(asked.answered().await.0, StatusCode::NO_CONTENT);
    drop(stage.secure);
}
