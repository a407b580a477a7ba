//! Requests that no client library sends, byte by byte: what one program takes for the end of a
//! request and another for its middle.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::host::Host;

/// Everything that comes back until the gateway closes the connection.
async fn send(host: &Host, request: &str) -> String {
    let mut stream = TcpStream::connect(host.address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let read = tokio::time::timeout(Duration::from_secs(20), stream.read_to_end(&mut answer)).await;
    read.expect("the connection is closed").ok();
    String::from_utf8(answer).unwrap()
}

fn statuses(answer: &str) -> Vec<&str> {
    answer.split("HTTP/1.1 ").skip(1).map(|rest| &rest[..3]).collect()
}

/// A request line and headers with a session; more lines and a body may follow.
async fn signed_in(host: &Host, line: &str) -> String {
    let cookie = host.sign_in().await;
    let origin = host.origin();
    format!("{line} HTTP/1.1\r\nHost: {}\r\nCookie: {cookie}\r\nOrigin: {origin}\r\n", host.address)
}

#[tokio::test]
async fn targets_that_are_no_paths_are_refused_with_a_reason() {
    let host = Host::start().await;
    let address = host.address;
    for target in [
        format!("GET http://{address}/dev/"),
        "GET http://evil.example/".to_owned(),
        "OPTIONS *".to_owned(),
        format!("CONNECT {address}"),
        "GET /dev/../admin/sandboxes".to_owned(),
        "GET /dev/%2e%2E/admin".to_owned(),
        "GET //admin/sandboxes".to_owned(),
        "GET /dev%2fadmin".to_owned(),
        "GET /dev\\admin".to_owned(),
        "GET /dev/%5c".to_owned(),
        "GET /DEV/".to_owned(),
        "GET /a%00".to_owned(),
    ] {
        let answer = send(&host, &format!("{target} HTTP/1.1\r\nHost: {address}\r\n\r\n")).await;
        assert_eq!(statuses(&answer), ["400"], "{target}: {answer}");
        assert!(answer.contains(r#""kind":"invalid_request""#), "{target}: {answer}");
    }
}

#[tokio::test]
async fn targets_that_are_not_even_text_are_refused() {
    let host = Host::start().await;
    for target in ["/a\0b", "/a\x01", "/a\x7f", "/a b", ""] {
        let request = format!("GET {target} HTTP/1.1\r\nHost: {}\r\n\r\n", host.address);
        let answer = send(&host, &request).await;
        assert_eq!(statuses(&answer), ["400"], "{target:?}: {answer}");
    }
}

#[tokio::test]
async fn a_request_for_two_hosts_is_for_none() {
    let host = Host::start().await;
    let address = host.address;
    for second in ["evil.example".to_owned(), address.to_string()] {
        let request = format!("GET / HTTP/1.1\r\nHost: {address}\r\nHost: {second}\r\n\r\n");
        let answer = send(&host, &request).await;
        assert_eq!(statuses(&answer), ["400"], "{answer}");
    }
    let answer = send(&host, "GET / HTTP/1.1\r\nConnection: close\r\n\r\n").await;
    assert_eq!(statuses(&answer), ["403"], "{answer}");
    let answer = send(&host, &format!("GET / HTTP/1.1\r\nHost : {address}\r\n\r\n")).await;
    assert_eq!(statuses(&answer), ["400"], "{answer}");
    let answer =
        send(&host, &format!("GET / HTTP/1.1\r\nHost: {address}\r\n folded\r\n\r\n")).await;
    assert_eq!(statuses(&answer), ["400"], "{answer}");
}

/// In each, a second request hides where one reader still sees a body.
const HIDDEN: &str = "GET /hidden HTTP/1.1\r\nConnection: close\r\n\r\n";

#[tokio::test]
async fn a_body_of_two_lengths_hides_no_request() {
    let host = Host::start().await;
    let head = signed_in(&host, "POST /stream").await;
    let size = HIDDEN.len();
    for lengths in [
        format!("Content-Length: {size}\r\nContent-Length: 0\r\n"),
        format!("Content-Length: 0\r\nContent-Length: {size}\r\n"),
        format!("Content-Length: {size}, {size}\r\n"),
        format!("Content-Length: +{size}\r\n"),
        format!("Content-Length: 0x{size:x}\r\n"),
        "Content-Length: -1\r\n".to_owned(),
        "Content-Length: 99999999999999999999\r\n".to_owned(),
        "Transfer-Encoding: gzip, chunked\r\n".to_owned(),
        "Transfer-Encoding: chunked, identity\r\n".to_owned(),
        "Transfer-Encoding: xchunked\r\n".to_owned(),
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n".to_owned(),
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n".to_owned(),
        "Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n".to_owned(),
        "Transfer-Encoding:\x0bchunked\r\n".to_owned(),
        "Transfer-Encoding : chunked\r\n".to_owned(),
    ] {
        let answer = send(&host, &format!("{head}{lengths}\r\n0\r\n\r\n{HIDDEN}")).await;
        assert_eq!(statuses(&answer), ["400"], "{lengths:?}: {answer}");
    }
}

#[tokio::test]
async fn a_length_beside_chunks_counts_for_nothing_and_ends_the_connection() {
    let host = Host::start().await;
    let head = signed_in(&host, "POST /stream").await;
    for lengths in [
        "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n",
    ] {
        // Whoever believed the length would take the rest for the next request.
        let request = format!("{head}{lengths}\r\n2\r\nhi\r\n0\r\n\r\n{HIDDEN}");
        let answer = send(&host, &request).await;
        assert_eq!(statuses(&answer), ["200"], "{lengths:?}: {answer}");
        assert!(answer.contains("hi") && !answer.contains("GET /hidden"), "{lengths:?}: {answer}");
    }
}

#[tokio::test]
async fn the_same_length_twice_is_one() {
    let host = Host::start().await;
    let head = signed_in(&host, "POST /same").await;
    let request =
        format!("{head}Connection: close\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nhi");
    let answer = send(&host, &request).await;
    assert_eq!(statuses(&answer), ["200"], "{answer}");
    assert_eq!(answer.matches("content-length: 2\n").count(), 1, "{answer}");
}

#[tokio::test]
async fn headers_that_a_request_names_for_removal_keep_their_frame() {
    let host = Host::start().await;
    let head = signed_in(&host, "POST /named").await;
    let named = "Connection: close, content-length, transfer-encoding, host, x-nacre-user\r\n";
    let answer = send(&host, &format!("{head}{named}Content-Length: 2\r\n\r\nhi")).await;
    assert_eq!(statuses(&answer), ["200"], "{answer}");
    assert!(answer.contains("content-length: 2\n"), "{answer}");
    assert!(answer.ends_with("x-nacre-user: owner"), "{answer}");
}

#[tokio::test]
async fn an_upgrade_to_another_http_is_not_passed_on() {
    let host = Host::start().await;
    let head = signed_in(&host, "GET /upgrade-me").await;
    let more = "Connection: close, upgrade, http2-settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n";
    let answer = send(&host, &format!("{head}{more}\r\n")).await;
    assert_eq!(statuses(&answer), ["200"], "{answer}");
    assert!(!answer.contains("h2c") && !answer.contains("http2-settings"), "{answer}");
}
