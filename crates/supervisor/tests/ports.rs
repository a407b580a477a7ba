//! What listens in a sandbox: told, connected to, and shown to browsers.

#![allow(clippy::unwrap_used, reason = "the helpers here are tests too")]

mod support;

use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use futures_util::{SinkExt, StreamExt};
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Bytes, Frame, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use nacre_wire::ErrorKind;
use nacre_wire::error::ErrorBody;
use nacre_wire::ports::PortList;
use nacre_wire::relay::Raw;
use support::Supervisor;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_tungstenite::tungstenite::Message;

async fn bind(address: &str) -> (TcpListener, u16) {
    let listener = TcpListener::bind(address).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, port)
}

/// A port that nobody has any more.
async fn free_port() -> u16 {
    bind("127.0.0.1:0").await.1
}

/// Answers only when the other side has said all it has to say: backwards.
async fn reverse(listener: TcpListener) {
    loop {
        let (mut stream, _) = listener.accept().await.unwrap();
        tokio::spawn(async move {
            let mut said = Vec::new();
            stream.read_to_end(&mut said).await.unwrap();
            said.reverse();
            stream.write_all(&said).await.unwrap();
        });
    }
}

#[tokio::test]
async fn what_listens_is_listed_with_who_it_is() {
    let supervisor = Supervisor::start().await;
    let (_four, port) = bind("127.0.0.1:0").await;
    let (_six, other) = bind("[::1]:0").await;
    let list: PortList = supervisor.get("/supervisor/ports").await;
    for (port, address) in [(port, "127.0.0.1"), (other, "::1")] {
        let found = list.ports.iter().find(|found| found.port == port).unwrap();
        let process = found.process.as_ref().unwrap();
        assert_eq!(found.address, address);
        assert_eq!(process.pid, i32::try_from(std::process::id()).unwrap());
    }
    let numbers: Vec<_> = list.ports.iter().map(|found| found.port).collect();
    assert!(numbers.is_sorted(), "{numbers:?}");
    let gone = free_port().await;
    let list: PortList = supervisor.get("/supervisor/ports").await;
    assert!(list.ports.iter().all(|found| found.port != gone));
}

#[tokio::test]
async fn a_connection_carries_bytes_and_each_direction_ends_by_itself() {
    let supervisor = Supervisor::start().await;
    for address in ["127.0.0.1:0", "[::1]:0"] {
        let (listener, port) = bind(address).await;
        tokio::spawn(reverse(listener));
        let client = supervisor.client();
        let mut open = Vec::new();
        for index in 0..50_u8 {
            let mut stream = client.open_port(port).await.unwrap().stream;
            stream.write_all(&[index, 0, 255]).await.unwrap();
            open.push((index, stream));
        }
        for (index, mut stream) in open {
            stream.shutdown().await.unwrap();
            let mut answer = Vec::new();
            stream.read_to_end(&mut answer).await.unwrap();
            assert_eq!(answer, [255, 0, index], "{address}");
        }
    }
}

#[tokio::test]
async fn much_passes_and_whoever_goes_away_is_missed() {
    const SIZE: usize = 8 << 20;
    let supervisor = Supervisor::start().await;
    let (listener, port) = bind("127.0.0.1:0").await;
    let serving = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(&vec![7; SIZE]).await.unwrap();
        // The next thing that comes is the end.
        stream.read(&mut [0]).await.unwrap_or(0)
    });
    let Raw { mut stream, early } = supervisor.client().open_port(port).await.unwrap();
    let mut rest = vec![0; SIZE - early.len()];
    stream.read_exact(&mut rest).await.unwrap();
    assert!(early.iter().chain(&rest).all(|byte| *byte == 7));
    drop(stream);
    assert_eq!(serving.await.unwrap(), 0);
}

#[tokio::test]
async fn what_cannot_be_opened_is_said_and_why() {
    let supervisor = Supervisor::start().await;
    let port = free_port().await;
    let error = supervisor.client().open_port(port).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert_eq!(error.to_string(), format!("nothing listens on port {port} in this sandbox"));
    for path in ["/supervisor/ports/0", "/supervisor/ports/x", "/supervisor/ports/3000"] {
        let (status, body) = supervisor.call("GET", path, "").await;
        let error: ErrorBody = serde_json::from_slice(&body).unwrap();
        assert_eq!(
            (status, error.error.kind),
            (StatusCode::BAD_REQUEST, ErrorKind::InvalidRequest),
            "{path}"
        );
    }
    let (status, body) = supervisor.call("GET", &format!("/ports/{port}/"), "").await;
    let error: ErrorBody = serde_json::from_slice(&body).unwrap();
    assert_eq!((status, error.error.kind), (StatusCode::NOT_FOUND, ErrorKind::NotFound));
}

#[tokio::test]
async fn somebody_who_looks_sees_a_page_that_comes_back() {
    let supervisor = Supervisor::start().await;
    let port = free_port().await;
    let request = Request::get(format!("/ports/{port}/a"))
        .header("host", "door")
        .header("accept", "text/html,*/*")
        .body(Full::default())
        .unwrap();
    let response = supervisor.send(request).await;
    assert_eq!(response.status(), StatusCode::NOT_FOUND);
    assert!(response.headers()["content-type"].to_str().unwrap().starts_with("text/html"));
    let body = response.into_body().collect().await.unwrap().to_bytes();
    let page = std::str::from_utf8(&body).unwrap();
    assert!(page.contains(&format!("<h1>Nothing listens on port {port}</h1>")), "{page}");
    assert!(page.contains("http-equiv=\"refresh\""), "{page}");
}

/// Says what it was asked; redirects; sets a cookie; streams what the test sends.
async fn serve(listener: TcpListener, pieces: mpsc::Receiver<&'static str>) {
    let pieces = Arc::new(Mutex::new(Some(pieces)));
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let pieces = pieces.clone();
        let service = service_fn(move |request: Request<Incoming>| {
            let pieces = pieces.clone();
            async move { Ok::<_, Infallible>(say(&request, &pieces)) }
        });
        let mut http = hyper::server::conn::http1::Builder::new();
        tokio::spawn(http.keep_alive(false).serve_connection(TokioIo::new(stream), service));
    }
}

type Said = http_body_util::combinators::UnsyncBoxBody<Bytes, Infallible>;

fn say(
    request: &Request<Incoming>,
    pieces: &Mutex<Option<mpsc::Receiver<&'static str>>>,
) -> Response<Said> {
    let mut response = Response::builder();
    match request.uri().path() {
        "/stream" => {
            let pieces = pieces.lock().unwrap().take().unwrap();
            let frames = futures_util::stream::unfold(pieces, |mut pieces| async move {
                let piece = pieces.recv().await?;
                Some((Ok(Frame::data(Bytes::from(piece))), pieces))
            });
            return response.body(StreamBody::new(frames).boxed_unsync()).unwrap();
        }
        "/old" => response = response.status(302).header("location", "/new?a"),
        "/cookie" => {
            response = response.header("set-cookie", "a=1; Path=/");
            response = response.header("set-cookie", "b=2");
        }
        _ => {}
    }
    let header = |name: &str| request.headers().get(name).map(|value| value.to_str().unwrap());
    let said = format!("{} {:?}", request.uri(), header("x-forwarded-prefix"));
    response.body(Full::from(said).boxed_unsync()).unwrap()
}

async fn ask(supervisor: &Supervisor, path: &str, headers: &[(&str, &str)]) -> Response<Incoming> {
    let mut request = Request::get(path).header("host", "door");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    supervisor.send(request.body(Full::default()).unwrap()).await
}

async fn text(response: Response<Incoming>) -> String {
    let body = response.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(body.to_vec()).unwrap()
}

#[tokio::test]
async fn a_browser_finds_a_port_below_its_own_path() {
    let supervisor = Supervisor::start().await;
    let (listener, port) = bind("127.0.0.1:0").await;
    let (sender, pieces) = mpsc::channel(1);
    tokio::spawn(serve(listener, pieces));
    let at = format!("/ports/{port}");

    let mut stream = ask(&supervisor, &format!("{at}/stream"), &[]).await.into_body();
    for piece in ["data: one\n\n", "data: two\n\n"] {
        sender.send(piece).await.unwrap();
        let frame = stream.frame().await.unwrap().unwrap();
        assert_eq!(frame.into_data().unwrap(), piece, "as it is made");
    }
    drop(sender);

    let answer = ask(&supervisor, &format!("{at}/a%20b?c=/d"), &[]).await;
    assert_eq!(text(answer).await, format!("/a%20b?c=/d Some({at:?})"));
    let below = [("x-forwarded-prefix", "/dev")];
    let answer = ask(&supervisor, &format!("{at}/"), &below).await;
    assert_eq!(text(answer).await, format!("/ Some(\"/dev{at}\")"));

    let missing = ask(&supervisor, &format!("{at}?q"), &below).await;
    assert_eq!(missing.status(), StatusCode::TEMPORARY_REDIRECT);
    assert_eq!(missing.headers()["location"], format!("/dev{at}/?q").as_str());
    let moved = ask(&supervisor, &format!("{at}/old"), &below).await;
    assert_eq!(moved.headers()["location"], format!("/dev{at}/new?a").as_str());
    let cookies = ask(&supervisor, &format!("{at}/cookie"), &below).await;
    let cookies: Vec<_> = cookies.headers().get_all("set-cookie").iter().collect();
    assert_eq!(cookies, [format!("a=1; Path={at}/").as_str(), "b=2"]);

    // At the root of a host of its own nothing is moved, and nothing is the supervisor's.
    let host = format!("{port}--live.pc.example");
    let own = [("x-forwarded-host", host.as_str())];
    let answer = ask(&supervisor, &format!("{at}/supervisor/health"), &own).await;
    assert_eq!(text(answer).await, "/supervisor/health None");
    let moved = ask(&supervisor, &format!("{at}/old"), &own).await;
    assert_eq!(moved.headers()["location"], "/new?a");
}

#[tokio::test]
async fn a_socket_of_a_page_reaches_the_port() {
    let supervisor = Supervisor::start().await;
    let (listener, port) = bind("127.0.0.1:0").await;
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let mut socket = tokio_tungstenite::accept_async(stream).await.unwrap();
        while let Some(Ok(message)) = socket.next().await {
            if message.is_text() {
                socket.send(message).await.unwrap();
            }
        }
    });
    let stream = supervisor.connect().await;
    let url = format!("ws://door/ports/{port}/hot");
    let (mut socket, _) = tokio_tungstenite::client_async(url, stream).await.unwrap();
    socket.send(Message::text("there and back")).await.unwrap();
    assert_eq!(socket.next().await.unwrap().unwrap(), Message::text("there and back"));
}
