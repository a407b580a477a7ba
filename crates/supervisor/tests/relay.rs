//! The way from the door to an app, byte by byte, with the test in the place of both.

#![allow(clippy::unwrap_used, reason = "the helpers here are tests too")]

mod support;

use support::PATIENCE;
use support::story::Story;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::time::timeout;

/// A supervisor whose app is this test: the process sleeps, the port is ours.
struct Stage {
    story: Story,
    app: TcpListener,
}

impl Stage {
    async fn set() -> Self {
        let app = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = app.local_addr().unwrap().port();
        let config = format!("[runtime]\ncommand = \"exec sleep 1000\"\nport = {port}\n");
        let mut story = Story::with(&config).await;
        story.ready("runtime").await;
        Self { story, app }
    }

    async fn asks(&self, head: &str) -> Wire<UnixStream> {
        let mut client = Wire(self.story.supervisor.connect().await);
        client.send(head.replace("\r\n\r\n", "\r\nhost: door\r\n\r\n")).await;
        client
    }

    /// The next request that reaches the app. Connections without one only looked whether it is up.
    async fn arrives(&self) -> (String, Wire<TcpStream>) {
        loop {
            let (stream, _) = timeout(PATIENCE, self.app.accept()).await.unwrap().unwrap();
            let mut wire = Wire(stream);
            if let Some(head) = wire.try_head().await {
                return (head, wire);
            }
        }
    }
}

struct Wire<S>(S);

impl<S: AsyncRead + AsyncWrite + Unpin> Wire<S> {
    async fn send(&mut self, text: impl AsRef<[u8]>) {
        timeout(PATIENCE, self.0.write_all(text.as_ref())).await.unwrap().unwrap();
    }

    async fn try_head(&mut self) -> Option<String> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(timeout(PATIENCE, self.0.read_u8()).await.unwrap().ok()?);
        }
        Some(String::from_utf8(head).unwrap().to_lowercase())
    }

    async fn head(&mut self) -> String {
        self.try_head().await.unwrap()
    }

    async fn expect(&mut self, text: &str) {
        let mut got = vec![0; text.len()];
        timeout(PATIENCE, self.0.read_exact(&mut got)).await.unwrap().unwrap();
        assert_eq!(String::from_utf8_lossy(&got), text);
    }

    async fn rest(&mut self) -> String {
        let mut got = Vec::new();
        // A connection that is cut off may end in an error; what matters is that it ends.
        let _ = timeout(PATIENCE, self.0.read_to_end(&mut got)).await.unwrap();
        String::from_utf8(got).unwrap()
    }
}

#[tokio::test]
async fn chunks_and_trailers_pass_both_ways() {
    let stage = Stage::set().await;
    let head = "POST /a HTTP/1.1\r\ntransfer-encoding: chunked\r\ntrailer: x-sum\r\n\
                connection: te\r\nte: trailers\r\n\r\n";
    let mut client = stage.asks(head).await;
    let (head, mut app) = stage.arrives().await;
    assert!(head.contains("te: trailers\r\n") && head.contains("trailer: x-sum\r\n"), "{head}");
    client.send("1\r\na\r\n0\r\nx-sum: up\r\n\r\n").await;
    app.expect("1\r\na\r\n0\r\nx-sum: up\r\n\r\n").await;
    app.send("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ntrailer: x-sum\r\n\r\n").await;
    app.send("1\r\nb\r\n0\r\nx-sum: down\r\n\r\n").await;
    assert!(client.head().await.contains("trailer: x-sum\r\n"));
    client.expect("1\r\nb\r\n0\r\nx-sum: down\r\n\r\n").await;
}

#[tokio::test]
async fn head_keeps_its_length() {
    let stage = Stage::set().await;
    let mut client = stage.asks("HEAD /big HTTP/1.1\r\n\r\n").await;
    let (_, mut app) = stage.arrives().await;
    app.send("HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n").await;
    assert!(client.head().await.contains("\r\ncontent-length: 1000000\r\n"));
}

#[tokio::test]
async fn an_old_app_that_ends_its_answer_by_closing_is_understood() {
    let stage = Stage::set().await;
    let mut client = stage.asks("GET /old HTTP/1.1\r\n\r\n").await;
    let (_, mut app) = stage.arrives().await;
    app.send("HTTP/1.0 200 OK\r\n\r\nall ").await;
    client.head().await;
    client.expect("4\r\nall \r\n").await;
    app.send("of it").await;
    drop(app);
    client.expect("5\r\nof it\r\n0\r\n\r\n").await;
}

#[tokio::test]
async fn an_app_decides_whether_a_body_is_sent() {
    let put = "PUT / HTTP/1.1\r\nexpect: 100-continue\r\ncontent-length: 4\r\n\r\n";
    let stage = Stage::set().await;
    let mut client = stage.asks(put).await;
    let (head, mut app) = stage.arrives().await;
    assert!(head.contains("expect: 100-continue\r\n"), "{head}");
    app.send("HTTP/1.1 100 Continue\r\n\r\n").await;
    client.expect("HTTP/1.1 100 Continue\r\n\r\n").await;
    client.send("body").await;
    app.expect("body").await;

    let mut client = stage.asks(put).await;
    let (_, mut app) = stage.arrives().await;
    app.send("HTTP/1.1 413 Too Large\r\ncontent-length: 3\r\n\r\nno!").await;
    assert!(client.head().await.starts_with("http/1.1 413 "));
    client.expect("no!").await;
    assert_eq!(app.rest().await, "");

    let mut client = stage.asks(put).await;
    let (_, mut app) = stage.arrives().await;
    client.expect("HTTP/1.1 100 Continue\r\n\r\n").await;
    client.send("body").await;
    app.expect("body").await;
}

#[tokio::test]
async fn an_early_answer_reaches_a_client_that_still_sends() {
    let stage = Stage::set().await;
    let mut client = stage.asks("POST / HTTP/1.1\r\ncontent-length: 8000000\r\n\r\n").await;
    client.send(vec![b'x'; 1_000_000]).await;
    let (_, mut app) = stage.arrives().await;
    app.send("HTTP/1.1 403 Forbidden\r\nconnection: close\r\ncontent-length: 2\r\n\r\nno").await;
    assert!(client.head().await.starts_with("http/1.1 403 "));
    drop(app);
    client.send(vec![b'x'; 7_000_000]).await;
    client.expect("no").await;
}

#[tokio::test]
async fn who_goes_is_gone_for_the_app() {
    let stage = Stage::set().await;
    let mut client =
        stage.asks("POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n").await;
    let (_, mut app) = stage.arrives().await;
    app.expect("4\r\nhalf\r\n").await;
    client.0.shutdown().await.unwrap();
    drop(client);
    assert_eq!(app.rest().await, "");

    let mut client = stage.asks("GET /endless HTTP/1.1\r\n\r\n").await;
    let (_, mut app) = stage.arrives().await;
    app.send("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nmore\r\n").await;
    client.head().await;
    client.expect("4\r\nmore\r\n").await;
    drop(client);
    assert_eq!(app.rest().await, "");
}

#[tokio::test]
async fn each_direction_of_an_upgrade_ends_by_itself() {
    let stage = Stage::set().await;
    let ask = "GET /chat HTTP/1.1\r\nconnection: upgrade\r\nupgrade: chat\r\n\r\n";
    let mut client = stage.asks(ask).await;
    let (_, mut app) = stage.arrives().await;
    app.send("HTTP/1.1 101 Go\r\nconnection: upgrade\r\nupgrade: chat\r\n\r\nwelcome").await;
    assert!(client.head().await.starts_with("http/1.1 101 "));
    client.expect("welcome").await;
    client.send("last words").await;
    client.0.shutdown().await.unwrap();
    assert_eq!(app.rest().await, "last words");
    app.send("an answer").await;
    drop(app);
    assert_eq!(client.rest().await, "an answer");
}
