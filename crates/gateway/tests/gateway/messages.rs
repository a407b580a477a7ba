//! HTTP/1.1 through the gateway, byte by byte.

use crate::raw::Stage;

#[tokio::test]
async fn chunks_pass_both_ways() {
    let stage = Stage::set().await;
    let mut client = stage.asks("POST /a?b", "transfer-encoding: chunked\r\n").await;
    let (head, mut app) = stage.arrives().await;
    assert!(head.starts_with("POST /a?b HTTP/1.1\r\n"), "{head}");
    assert!(head.contains("\r\ntransfer-encoding: chunked\r\n"), "{head}");
    // Each piece arrives while the request is still being sent.
    client.send("3\r\none\r\n").await;
    app.expect("3\r\none\r\n").await;
    client.send("5;ext=1\r\nthree\r\n0\r\n\r\n").await;
    app.expect("5\r\nthree\r\n0\r\n\r\n").await;

    app.send("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nfour\r\n").await;
    assert!(client.head().await.contains("\r\ntransfer-encoding: chunked\r\n"));
    client.expect("4\r\nfour\r\n").await;
    app.send("2\r\nsi\r\n0\r\n\r\n").await;
    client.expect("2\r\nsi\r\n0\r\n\r\n").await;
}

#[tokio::test]
async fn trailers_pass_both_ways() {
    let stage = Stage::set().await;
    let headers = "transfer-encoding: chunked\r\ntrailer: x-sum\r\nte: trailers\r\n";
    let mut client = stage.asks("POST /", headers).await;
    client.send("1\r\na\r\n0\r\nx-sum: up\r\n\r\n").await;
    let (head, mut app) = stage.arrives().await;
    assert!(head.contains("\r\nte: trailers\r\n"), "{head}");
    assert!(head.contains("\r\ntrailer: x-sum\r\n"), "{head}");
    app.expect("1\r\na\r\n0\r\nx-sum: up\r\n\r\n").await;
    app.send("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ntrailer: x-sum\r\n\r\n").await;
    app.send("1\r\nb\r\n0\r\nx-sum: down\r\n\r\n").await;
    assert!(client.head().await.contains("\r\ntrailer: x-sum\r\n"));
    client.expect("1\r\nb\r\n0\r\nx-sum: down\r\n\r\n").await;
}

#[tokio::test]
async fn head_keeps_its_length_and_the_connection() {
    let stage = Stage::set().await;
    let mut client = stage.asks("HEAD /big", "").await;
    let (_, mut app) = stage.arrives().await;
    app.send("HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n").await;
    assert!(client.head().await.contains("\r\ncontent-length: 1000000\r\n"));
    // Both connections go on: nobody waits for a body that does not come.
    client.send(stage.head("HEAD /next", "")).await;
    assert!(app.head().await.starts_with("HEAD /next "));
    app.send("HTTP/1.1 304 Not Modified\r\netag: \"x\"\r\n\r\n").await;
    let head = client.head().await;
    assert!(head.starts_with("HTTP/1.1 304 ") && head.contains("\r\netag: \"x\"\r\n"), "{head}");
}

#[tokio::test]
async fn a_range_and_its_answer_are_the_apps_business() {
    let stage = Stage::set().await;
    let mut client = stage.asks("GET /film", "range: bytes=2-4,7-\r\nif-range: \"v1\"\r\n").await;
    let (head, mut app) = stage.arrives().await;
    assert!(head.contains("\r\nrange: bytes=2-4,7-\r\n"), "{head}");
    assert!(head.contains("\r\nif-range: \"v1\"\r\n"), "{head}");
    app.send("HTTP/1.1 206 Partial Content\r\ncontent-range: bytes 2-4/10\r\n").await;
    app.send("content-length: 3\r\n\r\ncde").await;
    let head = client.head().await;
    assert!(head.starts_with("HTTP/1.1 206 "), "{head}");
    assert!(head.contains("\r\ncontent-range: bytes 2-4/10\r\n"), "{head}");
    client.expect("cde").await;
}

#[tokio::test]
async fn events_arrive_one_by_one() {
    let stage = Stage::set().await;
    let mut client = stage.asks("GET /events", "accept: text/event-stream\r\n").await;
    let (_, mut app) = stage.arrives().await;
    app.send("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n").await;
    app.send("transfer-encoding: chunked\r\n\r\n").await;
    client.head().await;
    for n in 0..20 {
        let event = format!("data: {n:>2}\n\n");
        app.send(format!("a\r\n{event}\r\n")).await;
        client.expect(format!("A\r\n{event}\r\n")).await;
    }
    drop(client);
    app.ends().await;
}

#[tokio::test]
async fn a_response_without_length_ends_where_the_app_ends() {
    let stage = Stage::set().await;
    let mut client = stage.asks("GET /old", "").await;
    let (_, mut app) = stage.arrives().await;
    app.send("HTTP/1.0 200 OK\r\n\r\nall ").await;
    client.head().await;
    client.expect("4\r\nall \r\n").await;
    app.send("of it").await;
    app.shut().await;
    client.expect("5\r\nof it\r\n0\r\n\r\n").await;
}

#[tokio::test]
async fn a_response_cut_short_does_not_look_whole() {
    let cases = [
        ("transfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n", "4\r\nhalf\r\n"),
        ("content-length: 8\r\n\r\nhalf", "half"),
    ];
    for (sent, expected) in cases {
        let stage = Stage::set().await;
        let mut client = stage.asks("GET /", "").await;
        let (_, mut app) = stage.arrives().await;
        app.send(format!("HTTP/1.1 200 OK\r\n{sent}")).await;
        client.head().await;
        client.expect(expected).await;
        drop(app);
        assert_eq!(client.rest().await.0, "", "no end of the body is invented");
    }
}

#[tokio::test]
async fn a_sandbox_that_breaks_off_before_its_answer_is_unavailable() {
    let stage = Stage::set().await;
    let mut client = stage.asks("GET /", "").await;
    let (_, app) = stage.arrives().await;
    drop(app);
    let head = client.head().await;
    assert!(head.starts_with("HTTP/1.1 503 "), "{head}");
    assert!(head.contains("\r\nretry-after: "), "{head}");
}

#[tokio::test]
async fn nonsense_from_a_sandbox_is_not_passed_on() {
    let stage = Stage::set().await;
    for nonsense in [
        "hello\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nxx",
        "HTTP/1.1 101 Switching Protocols\r\nupgrade: surprise\r\nconnection: upgrade\r\n\r\n",
    ] {
        let mut client = stage.asks("GET /", "").await;
        let (_, mut app) = stage.arrives().await;
        app.send(nonsense).await;
        let head = client.head().await;
        assert!(head.starts_with("HTTP/1.1 50"), "{nonsense:?}: {head}");
    }
}

#[tokio::test]
async fn a_connection_is_used_again_after_any_whole_exchange() {
    let stage = Stage::set().await;
    let mut client = stage.asks("GET /1", "").await;
    let (_, mut app) = stage.arrives().await;
    app.send("HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\none").await;
    client.head().await;
    client.expect("one").await;

    client.send(stage.head("POST /2", "content-length: 4\r\n")).await;
    assert!(app.head().await.starts_with("POST /2 "));
    client.send("body").await;
    app.expect("body").await;
    app.send("HTTP/1.1 204 No Content\r\n\r\n").await;
    assert!(client.head().await.starts_with("HTTP/1.1 204 "));

    client.send(stage.head("GET /3", "")).await;
    assert!(app.head().await.starts_with("GET /3 "));
    app.send("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n").await;
    client.head().await;
    client.expect("0\r\n\r\n").await;

    client.send(stage.head("GET /4", "")).await;
    assert!(app.head().await.starts_with("GET /4 "));
    assert_eq!(stage.host.world.counts().dials, 2, "one to ask its version, one for all this");
}

#[tokio::test]
async fn a_stale_connection_is_replaced_for_any_request() {
    let stage = Stage::set().await;
    let mut client = stage.asks("GET /", "").await;
    let (_, mut app) = stage.arrives().await;
    app.send("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
    client.head().await;
    drop(app);
    client.send(stage.head("POST /once", "content-length: 2\r\n")).await;
    client.send("ok").await;
    let (head, mut app) = stage.arrives().await;
    assert!(head.starts_with("POST /once "), "{head}");
    app.expect("ok").await;
    app.send("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
    assert!(client.head().await.starts_with("HTTP/1.1 200 "));
}

#[tokio::test]
async fn a_request_that_was_sent_is_never_sent_again() {
    let stage = Stage::set().await;
    let mut client = stage.asks("GET /", "").await;
    let (_, mut app) = stage.arrives().await;
    app.send("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
    client.head().await;
    let dials = stage.host.world.counts().dials;
    client.send(stage.head("POST /pay", "content-length: 0\r\n")).await;
    assert!(app.head().await.starts_with("POST /pay "), "on the connection that is there");
    drop(app);
    assert!(client.head().await.starts_with("HTTP/1.1 503 "));
    assert_eq!(stage.host.world.counts().dials, dials);
}
