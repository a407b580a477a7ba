//! What passes through the door, and how.

use axum::body::{Body, Bytes};
use futures_util::StreamExt;
use http::StatusCode;
use http_body_util::BodyExt;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::host::Host;
use crate::raw::Stage;

#[tokio::test]
async fn the_sandbox_sees_the_request_but_no_secret() {
    let host = Host::start().await;
    let cookie = host.sign_in().await;
    let headers = [
        ("cookie", cookie.as_str()),
        ("authorization", "Bearer secret"),
        ("x-nacre-user", "mallory"),
        ("x-forwarded-for", "8.8.8.8"),
        ("accept", "text/plain"),
    ];
    let answer = host.get("/a%2Fb//c?d=e%20f", &headers).await;
    let address = host.address;
    let expected = format!(
        "GET /a%2Fb//c?d=e%20f\naccept: text/plain\nhost: {address}\nx-forwarded-for: 127.0.0.1\n\
         x-forwarded-host: {address}\nx-forwarded-proto: http\nx-nacre-user: owner"
    );
    assert_eq!(answer.text(), expected);
    let set = answer.headers["set-cookie"].to_str().unwrap();
    assert!(set.starts_with("nacre_app_live_nacre_session=evil;"), "the session is not its: {set}");
}

#[tokio::test]
async fn bodies_stream_both_ways_at_once() {
    let host = Host::start().await;
    let (cookie, origin) = (host.sign_in().await, host.origin());
    let (sender, receiver) = tokio::sync::mpsc::channel::<Result<Bytes, std::io::Error>>(1);
    let body = Body::from_stream(futures_util::stream::unfold(receiver, |mut receiver| async {
        receiver.recv().await.map(|chunk| (chunk, receiver))
    }));
    let headers = [("cookie", cookie.as_str()), ("origin", origin.as_str())];
    let request = host.build("POST", "/stream", &headers, body);
    let mut echoed = host.send(request).await.into_body().into_data_stream();
    // Each chunk comes back before the next is sent: nothing waits for the whole body.
    for round in 0..5u8 {
        sender.send(Ok(Bytes::from(vec![round; 1000]))).await.unwrap();
        let mut got = Vec::new();
        while got.len() < 1000 {
            got.extend_from_slice(&echoed.next().await.unwrap().unwrap());
        }
        assert_eq!(got, vec![round; 1000]);
    }
    drop(sender);
    assert!(echoed.next().await.is_none());
}

#[tokio::test]
async fn a_large_body_arrives_whole() {
    const CHUNK: usize = 1 << 20;
    const CHUNKS: usize = 64;
    let host = Host::start().await;
    let (cookie, origin) = (host.sign_in().await, host.origin());
    let chunks = futures_util::stream::iter(0..CHUNKS)
        .map(|n| Ok::<_, std::io::Error>(Bytes::from(vec![n as u8; CHUNK])));
    let headers = [("cookie", cookie.as_str()), ("origin", origin.as_str())];
    let request = host.build("POST", "/stream", &headers, Body::from_stream(chunks));
    let mut echoed = host.send(request).await.into_body().into_data_stream();
    let mut at = 0;
    while let Some(chunk) = echoed.next().await {
        for byte in chunk.unwrap() {
            assert_eq!(byte, (at / CHUNK) as u8, "at {at}");
            at += 1;
        }
    }
    assert_eq!(at, CHUNK * CHUNKS);
}

#[tokio::test]
async fn an_upgrade_is_raw_bytes_from_a_browser_and_from_the_cli() {
    let host = Host::start().await;
    let (cookie, origin) = (host.sign_in().await, host.origin());
    let headers = [
        ("cookie", cookie.as_str()),
        ("origin", origin.as_str()),
        ("connection", "keep-alive, Upgrade"),
        ("upgrade", "echo"),
    ];
    let response = host.send(host.build("GET", "/upgrade", &headers, Body::empty())).await;
    echo(response).await;

    let path = host.data.path().join(nacre_gateway::SOCKET_FILE);
    let stream = tokio::net::UnixStream::connect(path).await.unwrap();
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection.with_upgrades());
    let path = "/admin/sandboxes/live/door/upgrade";
    let response = sender.send_request(host.build("GET", path, &headers[2..], Body::empty())).await;
    echo(response.unwrap()).await;
}

async fn echo(response: http::Response<hyper::body::Incoming>) {
    assert_eq!(response.status(), StatusCode::SWITCHING_PROTOCOLS);
    assert_eq!(response.headers()["upgrade"], "echo");
    let mut stream = TokioIo::new(hyper::upgrade::on(response).await.unwrap());
    for message in [&b"hello\0\xff"[..], b"again"] {
        stream.write_all(message).await.unwrap();
        let mut back = vec![0; message.len()];
        stream.read_exact(&mut back).await.unwrap();
        assert_eq!(back, message);
    }
    stream.shutdown().await.unwrap();
    assert_eq!(stream.read(&mut [0; 8]).await.unwrap(), 0, "the end travels too");
}

#[tokio::test]
async fn dev_answers_below_its_prefix_once_it_exists() {
    let host = Host::start().await;
    let cookie = host.sign_in().await;
    let headers = [("cookie", cookie.as_str())];
    assert_eq!(host.get("/dev/app?x", &headers).await.status, StatusCode::NOT_FOUND);
    assert_eq!(host.create("dev").await.role.as_deref(), Some("dev"));
    let answer = host.get("/dev/app?x", &headers).await;
    assert!(answer.text().starts_with("GET /app?x\n"), "{}", answer.text());
    assert!(answer.text().contains("\nx-forwarded-prefix: /dev\n"), "{}", answer.text());
}

#[tokio::test]
async fn a_sandbox_that_is_down_says_so() {
    let host = Host::start().await;
    let cookie = host.sign_in().await;
    host.operate("live", "stop").await.unwrap();
    let page = host.get("/", &[("cookie", &cookie), ("accept", "text/html")]).await;
    assert_eq!(page.status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(page.headers.contains_key("retry-after"));
    assert!(page.text().contains("nacre sandbox start live"), "{}", page.text());

    let call = host.get("/supervisor/health", &[("cookie", &cookie)]).await;
    assert_eq!(call.status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(call.text().contains(r#""kind":"unavailable""#), "{}", call.text());
}

/// The page asks again until somebody else answers, with whatever status.
#[tokio::test]
async fn an_app_that_is_not_ready_is_told_from_a_computer_that_is_away() {
    let stage = Stage::set().await;
    let mut client = stage.asks("HEAD /", "").await;
    let (_, mut app) = stage.arrives().await;
    app.send("HTTP/1.1 503 Service Unavailable\r\ncontent-length: 9\r\n\r\n").await;
    let head = client.head().await;
    assert!(head.starts_with("HTTP/1.1 503 ") && !head.contains("x-nacre-away"), "{head}");

    stage.host.operate("live", "stop").await.unwrap();
    let mut client = stage.asks("HEAD /", "").await;
    let head = client.head().await;
    assert!(head.starts_with("HTTP/1.1 503 ") && head.contains("x-nacre-away"), "{head}");
    let mut client = stage.asks("GET /", "accept: text/html\r\nconnection: close\r\n").await;
    let (page, _) = client.rest().await;
    assert!(page.contains("headers.has(\"x-nacre-away\")"), "{page}");
}

#[tokio::test]
async fn connections_to_the_sandbox_are_used_again() {
    let host = Host::start().await;
    let door = host.admin().under("/admin/sandboxes/live/door");
    for _ in 0..50 {
        assert_eq!(door.version().await.unwrap().version, "9.9.9");
    }
    assert!(host.world.counts().dials <= 3, "{:?}", host.world.counts());
}

#[tokio::test]
async fn the_page_of_a_computer_that_is_away_offers_what_is_left() {
    let host = Host::start().await;
    let cookie = host.sign_in().await;
    host.operate("live", "stop").await.unwrap();
    let headers = [("cookie", cookie.as_str()), ("accept", "text/html")];
    let page = host.get("/some/page", &headers).await;
    assert_eq!(page.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(page.headers["x-nacre-role"], "live");
    assert!(page.text().contains("href=\"/admin/sandboxes\""), "{}", page.text());
    assert!(!page.text().contains("/supervisor/"), "its supervisor does not run");
    let policy = page.headers["content-security-policy"].to_str().unwrap();
    let nonce = policy.split("script-src 'nonce-").nth(1).unwrap().split('\'').next().unwrap();
    assert!(page.text().contains(&format!("<script nonce=\"{nonce}\">")), "{policy}");
    let again = host.get("/some/page", &headers).await;
    assert_ne!(again.headers["content-security-policy"], policy, "a nonce is used once");
}
