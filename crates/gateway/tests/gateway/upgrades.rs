//! Protocols other than HTTP through the gateway: bytes, and the end of each direction.

use crate::raw::{Stage, within};

const ASK: &str = "connection: keep-alive, Upgrade\r\nupgrade: chat\r\n";
const SWITCH: &str =
    "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: chat\r\n\r\n";

#[tokio::test]
async fn what_follows_a_switch_at_once_is_not_lost() {
    let stage = Stage::set().await;
    let mut client = stage.client().await;
    client.send(stage.head("GET /chat", ASK) + "said too early").await;
    let (head, mut app) = stage.arrives().await;
    assert!(head.contains("\r\nupgrade: chat\r\n"), "{head}");
    app.send(format!("{SWITCH}welcome")).await;
    let head = client.head().await;
    assert!(head.starts_with("HTTP/1.1 101 ") && head.contains("\r\nupgrade: chat\r\n"), "{head}");
    client.expect("welcome").await;
    app.expect("said too early").await;
}

#[tokio::test]
async fn each_direction_ends_by_itself() {
    let stage = Stage::set().await;
    let mut client = stage.asks("GET /chat", ASK).await;
    let (_, mut app) = stage.arrives().await;
    app.send(SWITCH).await;
    client.head().await;
    client.send("last words").await;
    client.shut().await;
    assert_eq!(app.rest().await, ("last words".to_owned(), true));
    app.send("an answer to them").await;
    client.expect("an answer to them").await;
    app.shut().await;
    assert_eq!(client.rest().await, (String::new(), true));

    let mut client = stage.asks("GET /chat", ASK).await;
    let (_, mut app) = stage.arrives().await;
    app.send(SWITCH).await;
    client.head().await;
    app.send("bye").await;
    app.shut().await;
    assert_eq!(client.rest().await, ("bye".to_owned(), true));
    client.send("still here").await;
    app.expect("still here").await;
}

#[tokio::test]
async fn either_side_that_breaks_off_ends_both() {
    let stage = Stage::set().await;
    let mut client = stage.asks("GET /chat", ASK).await;
    let (_, mut app) = stage.arrives().await;
    app.send(SWITCH).await;
    client.head().await;
    drop(client);
    app.ends().await;

    let mut client = stage.asks("GET /chat", ASK).await;
    let (_, mut app) = stage.arrives().await;
    app.send(SWITCH).await;
    client.head().await;
    drop(app);
    client.ends().await;
}

#[tokio::test]
async fn a_refused_upgrade_is_an_ordinary_answer() {
    let stage = Stage::set().await;
    let mut client = stage.asks("GET /chat", ASK).await;
    let (_, mut app) = stage.arrives().await;
    app.send("HTTP/1.1 426 Upgrade Required\r\nupgrade: h2c\r\ncontent-length: 2\r\n\r\nno").await;
    let head = client.head().await;
    assert!(head.starts_with("HTTP/1.1 426 "), "{head}");
    client.expect("no").await;
    client.send(stage.head("GET /next", "")).await;
    assert!(app.head().await.starts_with("GET /next "), "both connections go on");
}

#[tokio::test]
async fn much_passes_both_ways_at_once() {
    const SIZE: usize = 8 << 20;
    let stage = Stage::set().await;
    let mut client = stage.asks("GET /chat", ASK).await;
    let (_, mut app) = stage.arrives().await;
    app.send(SWITCH).await;
    client.head().await;
    let (mut from_app, mut to_app) = tokio::io::split(client.0);
    let (mut from_client, mut to_client) = tokio::io::split(app.0);
    let (a, b) = (vec![b'a'; SIZE], vec![b'b'; SIZE]);
    let (mut got_a, mut got_b) = (vec![0; SIZE], vec![0; SIZE]);
    let moved = futures_util::future::try_join4(
        tokio::io::AsyncWriteExt::write_all(&mut to_app, &a),
        tokio::io::AsyncWriteExt::write_all(&mut to_client, &b),
        tokio::io::AsyncReadExt::read_exact(&mut from_client, &mut got_a),
        tokio::io::AsyncReadExt::read_exact(&mut from_app, &mut got_b),
    );
    crate::raw::within("all of it arrives", moved).await.unwrap();
    assert!(got_a == a && got_b == b);
}

/// What the kernel waits for on the gateway's side of that connection, as `/proc/net/tcp` has it.
fn timer(gateway: std::net::SocketAddr, client: std::net::SocketAddr) -> Option<String> {
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let port = |text: &str| u16::from_str_radix(text.split_once(':').unwrap().1, 16).unwrap();
    table.lines().skip(1).find_map(|line| {
        let fields: Vec<_> = line.split_whitespace().collect();
        let ours = (port(fields[1]), port(fields[2])) == (gateway.port(), client.port());
        ours.then(|| fields[5].split(':').next().unwrap().to_owned())
    })
}

#[tokio::test]
async fn a_client_that_says_nothing_is_looked_for() {
    const KEEPALIVE: &str = "02";
    let stage = Stage::set().await;
    let mut client = stage.asks("GET /chat", ASK).await;
    let (_, mut app) = stage.arrives().await;
    app.send(SWITCH).await;
    client.head().await;
    let (gateway, address) = (stage.host.address, client.0.local_addr().unwrap());
    // Until what was sent is confirmed there is another timer.
    within("the connection is looked after", async {
        while timer(gateway, address).as_deref() != Some(KEEPALIVE) {
            tokio::task::yield_now().await;
        }
    })
    .await;
}
