//! The short way while something happens around it: sessions and roles that end, doors and clients that
//! go, and the gateway itself.

use std::sync::Arc;
use std::time::Duration;

use nacre_sandbox::fake::FakeDriver;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc::unbounded_channel;

use crate::host::Host;
use crate::raw::{Stage, Wire, within};
use crate::sessions::revoke_all;
use crate::swap::FORWARD;
use crate::world;

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

#[tokio::test]
async fn a_request_that_was_sent_is_never_sent_again() {
    let stage = Stage::set().await;
    let mut client = stage.asks("GET /1", "").await;
    let (_, mut app) = stage.arrives().await;
    app.send(OK).await;
    client.head().await;
    client.expect("ok").await;
    let dials = stage.host.world.counts().dials;
    client.send(stage.head("GET /2", "")).await;
    assert!(app.head().await.starts_with("GET /2 "), "on the connection that is there");
    drop(app);
    assert!(client.head().await.starts_with("HTTP/1.1 503 "));
    assert_eq!(stage.host.world.counts().dials, dials);
    assert_eq!(stage.host.lean().await, 1);
}

#[tokio::test]
async fn a_stale_connection_is_replaced() {
    let stage = Stage::set().await;
    let mut client = stage.asks("GET /1", "").await;
    let (_, mut app) = stage.arrives().await;
    app.send(OK).await;
    client.head().await;
    client.expect("ok").await;
    drop(app);
    client.send(stage.head("GET /2", "")).await;
    let (head, mut app) = stage.arrives().await;
    assert!(head.starts_with("GET /2 "), "{head}");
    app.send(OK).await;
    assert!(client.head().await.starts_with("HTTP/1.1 200 "));
    assert_eq!(stage.host.lean().await, 2);
}

/// What came too early, or twice, is nobody's answer.
#[tokio::test]
async fn what_a_door_says_unasked_is_not_an_answer() {
    let stage = Stage::set().await;
    let mut client = stage.asks("GET /1", "").await;
    let (_, mut app) = stage.arrives().await;
    app.send(format!("{OK}HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil")).await;
    client.head().await;
    client.expect("ok").await;
    client.send(stage.head("GET /2", "")).await;
    let (_, mut fresh) = stage.arrives().await;
    fresh.send(OK).await;
    client.head().await;
    client.expect("ok").await;
    app.ends().await;
    // The same a moment later, while the connection waits.
    fresh.send("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil").await;
    client.send(stage.head("GET /3", "")).await;
    let (head, mut app) = stage.arrives().await;
    assert!(head.starts_with("GET /3 "), "{head}");
    app.send(OK).await;
    client.head().await;
    client.expect("ok").await;
}

#[tokio::test]
async fn a_client_that_goes_is_gone_for_the_app() {
    let stage = Stage::set().await;
    let mut client = stage.asks("GET /large", "").await;
    let (_, mut app) = stage.arrives().await;
    app.send("HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\nhalf").await;
    client.head().await;
    client.expect("half").await;
    drop(client);
    app.ends().await;
}

#[tokio::test]
async fn a_long_answer_is_cut_off_with_its_session_also_when_nobody_reads_it() {
    let stage = Stage::set().await;
    let mut client = stage.asks("GET /large", "").await;
    let (_, mut app) = stage.arrives().await;
    app.send("HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n").await;
    client.head().await;
    let piece = vec![b'x'; 1 << 20];
    // Until the client's side is full.
    while let Ok(written) =
        tokio::time::timeout(Duration::from_millis(300), app.0.write(&piece)).await
    {
        written.unwrap();
    }
    revoke_all(&stage.host).await;
    within("the app is cut off", async { while app.0.write(&piece).await.is_ok() {} }).await;
    let mut rest = Vec::new();
    let _ = within("so is the client", client.0.read_to_end(&mut rest)).await;
}

#[tokio::test]
async fn a_session_is_asked_for_with_every_request() {
    let stage = Stage::set().await;
    let mut client = stage.asks("GET /1", "").await;
    let (_, mut app) = stage.arrives().await;
    app.send(OK).await;
    client.head().await;
    client.expect("ok").await;
    revoke_all(&stage.host).await;
    client.send(stage.head("GET /2", "")).await;
    assert!(client.head().await.starts_with("HTTP/1.1 401 "));
}

/// A computer whose live and dev are as always, but for `/held`, which the test answers.
#[tokio::test]
async fn a_request_in_flight_finishes_where_it_began() {
    let (sender, mut held) = unbounded_channel();
    let world = FakeDriver::new(Arc::new(move |guest, stream| {
        let sender = sender.clone();
        Box::pin(async move {
            let mut head = Vec::new();
            let mut stream = stream;
            while !head.ends_with(b"\r\n\r\n") {
                let Ok(byte) = stream.read_u8().await else { return };
                head.push(byte);
            }
            if head.starts_with(b"GET /held ") {
                let _ = sender.send(Wire(stream));
                return;
            }
            let (reader, writer) = tokio::io::split(stream);
            let reader = std::io::Cursor::new(head).chain(reader);
            world::serve(guest, tokio::io::join(reader, writer)).await;
        })
    }));
    let host = Host::start_in(world).await;
    host.put_app("live", "one").await;
    host.make_dev().await;
    host.put_app("dev", "two").await;
    let cookie = host.sign_in().await;
    let request =
        format!("GET /held HTTP/1.1\r\nhost: {}\r\ncookie: {cookie}\r\n\r\n", host.address);
    let mut waiting = Vec::new();
    for _ in 0..2 {
        let mut client = Wire(TcpStream::connect(host.address).await.unwrap());
        client.send(&request).await;
        waiting.push((client, within("it arrives", held.recv()).await.unwrap()));
    }
    host.swap(FORWARD).await.unwrap();
    // One is answered plainly, the other so that hyper has to take over.
    let answers =
        ["content-length: 3\r\n\r\nold", "connection: close\r\ncontent-length: 3\r\n\r\nold"];
    for ((client, app), answer) in waiting.iter_mut().zip(answers) {
        app.send(format!("HTTP/1.1 200 OK\r\n{answer}")).await;
        let head = client.head().await;
        assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
        client.expect("old").await;
    }
    let now = host.get("/who", &[("cookie", &cookie)]).await;
    assert_eq!(now.text(), "two");
}

#[tokio::test]
async fn a_gateway_that_stops_answers_what_is_under_way_and_lets_the_idle_go() {
    let mut stage = Stage::set().await;
    let mut idle = stage.asks("GET /1", "").await;
    let (_, mut app) = stage.arrives().await;
    app.send(OK).await;
    idle.head().await;
    idle.expect("ok").await;
    let mut busy = stage.asks("GET /2", "").await;
    // Either on the connection that is there or, from another lane, on a new one.
    let mut app = tokio::select! {
        (_, app) = stage.arrives() => app,
        _ = app.head() => app,
    };
    let stopping = stage.host.stop(false);
    let client = async {
        idle.ends().await;
        app.send(OK).await;
        let head = busy.head().await;
        assert!(head.contains("\r\nconnection: close\r\n"), "{head}");
        busy.expect("ok").await;
        busy.ends().await;
    };
    tokio::join!(stopping, client);
}
