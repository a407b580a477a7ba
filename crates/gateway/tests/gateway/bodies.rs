//! Bodies that are refused, cut off, slow or large.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::raw::{Stage, within};

const MIB: usize = 1 << 20;
const GIB: usize = 1 << 30;

#[tokio::test]
async fn an_app_that_says_continue_gets_the_body() {
    let stage = Stage::set().await;
    let mut client = stage.asks("PUT /", "expect: 100-continue\r\ncontent-length: 4\r\n").await;
    let (head, mut app) = stage.arrives().await;
    assert!(head.contains("\r\nexpect: 100-continue\r\n"), "{head}");
    app.send("HTTP/1.1 100 Continue\r\n\r\n").await;
    client.expect("HTTP/1.1 100 Continue\r\n\r\n").await;
    client.send("body").await;
    app.expect("body").await;
    app.send("HTTP/1.1 201 Created\r\ncontent-length: 0\r\n\r\n").await;
    assert!(client.head().await.starts_with("HTTP/1.1 201 "));
}

#[tokio::test]
async fn an_app_that_refuses_is_sent_no_body() {
    let stage = Stage::set().await;
    let mut client = stage.asks("PUT /", "expect: 100-continue\r\ncontent-length: 4\r\n").await;
    let (_, mut app) = stage.arrives().await;
    app.send("HTTP/1.1 413 Too Large\r\ncontent-length: 3\r\n\r\nno!").await;
    let head = client.head().await;
    assert!(head.starts_with("HTTP/1.1 413 "), "no 100 before it: {head}");
    client.expect("no!").await;
    app.ends().await;
}

#[tokio::test]
async fn an_app_that_ignores_expect_gets_the_body_after_a_while() {
    let stage = Stage::set().await;
    let mut client = stage.asks("PUT /", "expect: 100-continue\r\ncontent-length: 4\r\n").await;
    let (_, mut app) = stage.arrives().await;
    client.expect("HTTP/1.1 100 Continue\r\n\r\n").await;
    client.send("body").await;
    app.expect("body").await;
}

#[tokio::test]
async fn an_early_answer_reaches_a_client_that_still_sends() {
    let stage = Stage::set().await;
    let mut client = stage.asks("POST /", &format!("content-length: {}\r\n", 8 * MIB)).await;
    client.send(vec![b'x'; MIB]).await;
    let (_, mut app) = stage.arrives().await;
    app.send("HTTP/1.1 403 Forbidden\r\nconnection: close\r\ncontent-length: 2\r\n\r\nno").await;
    drop(app);
    let head = client.head().await;
    assert!(head.starts_with("HTTP/1.1 403 "), "{head}");
    // Clients that send the whole body before they read must be able to.
    client.send(vec![b'x'; 7 * MIB]).await;
    client.expect("no").await;
}

#[tokio::test]
async fn an_upload_goes_on_while_its_answer_is_not_read() {
    let stage = Stage::set().await;
    let mut client = stage.asks("POST /", &format!("content-length: {}\r\n", 32 * MIB)).await;
    let (_, mut app) = stage.arrives().await;
    app.send("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").await;
    let (mut from_gateway, mut to_gateway) = tokio::io::split(app.0);
    // More than every buffer on the way back holds.
    let talk = tokio::spawn(async move {
        let chunk = [&b"10000\r\n"[..], &[b'.'; 0x10000], b"\r\n"].concat();
        while to_gateway.write_all(&chunk).await.is_ok() {}
    });
    let sending = tokio::spawn(async move {
        client.send(vec![b'x'; 32 * MIB]).await;
        client
    });
    let mut body = vec![0; 32 * MIB];
    within("the whole upload arrives", from_gateway.read_exact(&mut body)).await.unwrap();
    drop(sending.await.unwrap());
    within("the end of the client reaches the app", talk).await.unwrap();
}

#[tokio::test]
async fn an_upload_cut_off_is_cut_off_for_the_app() {
    for framing in ["content-length: 100\r\n", "transfer-encoding: chunked\r\n"] {
        let stage = Stage::set().await;
        let mut client = stage.asks("POST /", framing).await;
        client.send("4\r\nhalf\r\n").await;
        let (_, mut app) = stage.arrives().await;
        app.expect("4\r\nhalf\r\n").await;
        drop(client);
        app.ends().await;
    }
}

#[tokio::test]
async fn a_client_that_goes_is_gone_for_the_app() {
    let stage = Stage::set().await;
    let client = stage.asks("GET /slow", "").await;
    let (_, mut app) = stage.arrives().await;
    drop(client);
    app.ends().await;

    let mut client = stage.asks("GET /endless", "").await;
    let (_, mut app) = stage.arrives().await;
    app.send("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nmore\r\n").await;
    client.head().await;
    client.expect("4\r\nmore\r\n").await;
    drop(client);
    app.ends().await;
}

#[tokio::test]
async fn a_slow_client_holds_the_app_back() {
    let stage = Stage::set().await;
    let mut client = stage.asks("GET /endless", "").await;
    let (_, mut app) = stage.arrives().await;
    app.send("HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n").await;
    client.head().await;
    // Until nothing has moved for a while: the buffers of the kernel and ours, and no more.
    let (piece, mut sent) = (vec![b'x'; MIB], 0);
    while let Ok(written) =
        tokio::time::timeout(Duration::from_millis(500), app.0.write(&piece)).await
    {
        sent += written.unwrap();
        assert!(sent < 64 * MIB, "somebody gathers what the client does not read");
    }
    let mut got = vec![0; sent];
    within("all of it comes when it is read", client.0.read_exact(&mut got)).await.unwrap();
    app.send("the rest").await;
    client.expect("the rest").await;
}

#[tokio::test]
async fn a_gibibyte_goes_up_in_constant_memory() {
    let stage = Stage::set().await;
    let mut client = stage.asks("PUT /", &format!("content-length: {GIB}\r\n")).await;
    let (_, mut app) = stage.arrives().await;
    let before = peak_memory();
    let (got, ()) = tokio::join!(swallow(&mut app.0, GIB), pour(&mut client.0, GIB));
    assert_eq!(got, GIB);
    app.send("HTTP/1.1 204 No Content\r\n\r\n").await;
    assert!(client.head().await.starts_with("HTTP/1.1 204 "));
    let grown = peak_memory() - before;
    assert!(grown < 32 * MIB, "grew by {grown} bytes");
}

#[tokio::test]
async fn a_gibibyte_comes_down_in_constant_memory() {
    let stage = Stage::set().await;
    let mut client = stage.asks("GET /", "").await;
    let (_, mut app) = stage.arrives().await;
    app.send(format!("HTTP/1.1 200 OK\r\ncontent-length: {GIB}\r\n\r\n")).await;
    client.head().await;
    let before = peak_memory();
    let (got, ()) = tokio::join!(swallow(&mut client.0, GIB), pour(&mut app.0, GIB));
    assert_eq!(got, GIB);
    let grown = peak_memory() - before;
    assert!(grown < 32 * MIB, "grew by {grown} bytes");
}

async fn pour(to: &mut (impl tokio::io::AsyncWrite + Unpin), bytes: usize) {
    let piece = vec![b'x'; 256 * 1024];
    for _ in 0..bytes / piece.len() {
        within("it takes more", to.write_all(&piece)).await.unwrap();
    }
}

async fn swallow(from: &mut (impl tokio::io::AsyncRead + Unpin), bytes: usize) -> usize {
    let (mut piece, mut got) = (vec![0; 256 * 1024], 0);
    while got < bytes {
        match within("more comes", from.read(&mut piece)).await.unwrap() {
            0 => break,
            read => got += read,
        }
    }
    got
}

/// The most this process has held in memory so far, in bytes.
fn peak_memory() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse::<usize>().unwrap() * 1024
}
