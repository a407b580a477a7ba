//! Promotion: the checks before it, the move itself, and the way back.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use futures_util::{SinkExt, StreamExt};
use nacre_wire::access::Scope;
use nacre_wire::roles::{ROLE_MOVED, SwapRequest, Swapped};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;

use crate::host::Host;
use crate::tokens;
use crate::world::{HELD, until_waiting};

const SWAP: &str = "/admin/sandboxes/swap";
pub(crate) const FORWARD: SwapRequest = SwapRequest { rollback: false, force: false };
pub(crate) const BACK: SwapRequest = SwapRequest { rollback: true, force: false };

/// A computer whose live and dev each say who they are.
pub(crate) async fn twins() -> (Host, String) {
    let host = Host::start().await;
    host.put_app("live", "one").await;
    host.make_dev().await;
    host.put_app("dev", "two").await;
    let cookie = host.sign_in().await;
    (host, cookie)
}

async fn who(host: &Host, cookie: &str) -> (String, String) {
    let get = async |path| host.get(path, &[("cookie", cookie)]).await.text().to_owned();
    (get("/who").await, get("/dev/who").await)
}

fn pair(live: &str, dev: &str) -> (String, String) {
    (live.to_owned(), dev.to_owned())
}

pub(crate) async fn open(
    host: &Host,
    cookie: &str,
    path: &str,
) -> WebSocketStream<tokio::net::TcpStream> {
    open_with(host, ("cookie", cookie), path).await
}

/// With a cookie or a token.
pub(crate) async fn open_with(
    host: &Host,
    shown: (&str, &str),
    path: &str,
) -> WebSocketStream<tokio::net::TcpStream> {
    let stream = tokio::net::TcpStream::connect(host.address).await.unwrap();
    let request = http::Request::get(format!("ws://{}{path}", host.address))
        .header("host", host.address.to_string())
        .header("origin", host.origin())
        .header(shown.0, shown.1)
        .header("connection", "upgrade")
        .header("upgrade", "websocket")
        .header("sec-websocket-version", "13")
        .header("sec-websocket-key", generate_key())
        .body(())
        .unwrap();
    tokio_tungstenite::client_async(request, stream).await.unwrap().0
}

#[tokio::test]
async fn a_failed_check_refuses_the_swap_and_shows_what_it_saw() {
    let (host, cookie) = twins().await;
    let cases = [("/missing.js", "not 200", Some(404)), ("/who", "not JavaScript", Some(200))];
    for (source, problem, status) in cases {
        let page = format!("<!doctype html><script src={source}></script>");
        host.put("dev", "/", &page).await;
        let refused = host.swap(FORWARD).await.unwrap_err();
        let failed = refused.checks.iter().find(|check| !check.ok).unwrap();
        assert_eq!(failed.name, "assets");
        let evidence = &failed.evidence[0];
        assert_eq!((evidence.url.as_str(), evidence.problem.as_str()), (source, problem));
        assert_eq!(evidence.status, status);
        assert!(refused.error.message.starts_with("dev is not fit to be live"), "{refused:?}");
        assert!(host.roles().await.checks.contains(failed));
    }
    host.put("dev", "/", "broken").await;
    let refused = host.swap(FORWARD).await.unwrap_err();
    let failed = refused.checks.last().unwrap();
    assert_eq!((failed.name.as_str(), failed.evidence[0].status), ("page", Some(502)));
    let broken = r#"{"processes":[{"name":"runtime","state":"crash-looping","reason":"it keeps ending",
        "since":1,"restarts":9,"run":9,"command":"x","directory":"/workspace","log_seq":0}]}"#;
    host.put("dev", "/supervisor/processes", broken).await;
    let refused = host.swap(FORWARD).await.unwrap_err();
    let failed = refused.checks.iter().find(|check| !check.ok).unwrap();
    assert_eq!(failed.detail, "its app is crash-looping: it keeps ending");
    host.operate("dev", "stop").await.unwrap();
    let refused = host.swap(FORWARD).await.unwrap_err();
    assert_eq!(refused.checks.len(), 1, "a dead one is asked nothing more");
    assert_eq!(refused.checks[0].detail, "sandbox \"dev\" is stopped");
    assert_eq!(host.get("/who", &[("cookie", &cookie)]).await.text(), "one", "nothing moved");
}

#[tokio::test]
async fn sockets_of_both_roles_are_closed_with_the_documented_code_and_reconnect_once() {
    let (host, cookie) = twins().await;
    let mut live = open(&host, &cookie, "/ws").await;
    let mut dev = open(&host, &cookie, "/dev/ws").await;
    for socket in [&mut live, &mut dev] {
        socket.send(Message::text("hello")).await.unwrap();
        assert_eq!(socket.next().await.unwrap().unwrap(), Message::text("hello"));
    }
    host.swap(FORWARD).await.unwrap();
    for socket in [&mut live, &mut dev] {
        let Message::Close(Some(close)) = socket.next().await.unwrap().unwrap() else {
            panic!("not closed")
        };
        assert_eq!((u16::from(close.code), close.reason.as_str()), (ROLE_MOVED, "role moved"));
    }
    let mut again = open(&host, &cookie, "/ws").await;
    again.send(Message::text("again")).await.unwrap();
    assert_eq!(again.next().await.unwrap().unwrap(), Message::text("again"));
}

/// Who asked for a sandbox and not for a role stays with it.
#[tokio::test]
async fn a_connection_through_the_door_of_a_sandbox_is_not_moved() {
    let (host, _) = twins().await;
    let id = host.info("live").await.id;
    let token = tokens::make(&host, "admin", &[Scope::Admin]).await;
    let path = format!("/admin/sandboxes/{id}/door/ws");
    let mut door = open_with(&host, ("authorization", &token), &path).await;
    host.swap(FORWARD).await.unwrap();
    door.send(Message::text("still")).await.unwrap();
    assert_eq!(door.next().await.unwrap().unwrap(), Message::text("still"));
}

#[tokio::test]
async fn a_request_in_flight_finishes_where_it_began() {
    use http_body_util::BodyExt;
    let (host, cookie) = twins().await;
    let (sender, receiver) = tokio::sync::mpsc::channel::<Result<Vec<u8>, std::io::Error>>(1);
    let body =
        axum::body::Body::from_stream(futures_util::stream::unfold(receiver, |mut r| async {
            r.recv().await.map(|chunk| (chunk, r))
        }));
    let headers = [("cookie", cookie.as_str()), ("origin", &host.origin())];
    let request = host.build("POST", "/stream", &headers, body);
    sender.send(Ok(b"before ".to_vec())).await.unwrap();
    let mut answer = host.send(request).await.into_body();
    let first = answer.frame().await.unwrap().unwrap().into_data().unwrap();
    host.swap(FORWARD).await.unwrap();
    sender.send(Ok(b"after".to_vec())).await.unwrap();
    drop(sender);
    let rest = answer.collect().await.unwrap().to_bytes();
    assert_eq!([first, rest].concat(), b"before after");
}

#[tokio::test]
async fn no_request_fails_while_roles_are_swapped_all_the_time() {
    let (host, cookie) = twins().await;
    let host = Arc::new(host);
    let (done, asked) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let clients: Vec<_> = (0..4)
        .map(|_| {
            let (host, cookie) = (host.clone(), cookie.clone());
            let (done, asked) = (done.clone(), asked.clone());
            tokio::spawn(async move {
                while !done.load(Ordering::Relaxed) {
                    let answer = host.get("/who", &[("cookie", &cookie)]).await;
                    assert_eq!(answer.status, http::StatusCode::OK);
                    assert!(["one", "two"].contains(&answer.text()), "{}", answer.text());
                    asked.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    for _ in 0..20 {
        host.swap(FORWARD).await.unwrap();
    }
    done.store(true, Ordering::Relaxed);
    for client in clients {
        client.await.unwrap();
    }
    assert!(asked.load(Ordering::Relaxed) > 20);
    assert_eq!(who(&host, &cookie).await, pair("one", "two"), "an even number of swaps");
}

#[tokio::test]
async fn a_rollback_goes_back_though_the_page_is_broken_but_not_to_nothing() {
    let (host, cookie) = twins().await;
    let nothing = host.admin().post_json::<serde_json::Value>("/admin/sandboxes/swap", &BACK).await;
    assert_eq!(nothing.unwrap_err().to_string(), "there is no swap to take back");
    host.swap(FORWARD).await.unwrap();
    // What was live before is broken and stopped by now.
    host.put("dev", "/", "broken").await;
    host.operate("dev", "stop").await.unwrap();
    let back = host.swap(BACK).await.unwrap();
    assert_eq!(who(&host, &cookie).await, pair("one", "two"));
    assert!(back.checks.iter().any(|check| check.name == "page" && !check.ok), "{back:?}");
    assert_eq!(back.watched_until, None);

    host.put_app("live", "one").await;
    host.swap(FORWARD).await.unwrap();
    host.operate("dev", "stop").await.unwrap();
    host.world.let_starts_fail(true);
    let refused = host.swap(BACK).await.unwrap_err();
    assert!(refused.error.message.starts_with("there is nothing to go back to"), "{refused:?}");
    let forced = host.swap(SwapRequest { rollback: true, force: true }).await.unwrap();
    assert_eq!(forced.live.state, nacre_wire::control::SandboxState::Failed);
    host.world.let_starts_fail(false);
}

#[tokio::test]
async fn what_a_watched_swap_would_go_back_to_is_not_removed_by_accident() {
    let (host, _) = twins().await;
    host.swap(FORWARD).await.unwrap();
    for refused in [
        host.admin().delete("/admin/sandboxes/dev").await.unwrap_err(),
        host.admin()
            .post_json::<nacre_wire::roles::DevMade>("/admin/sandboxes/dev/reset", &())
            .await
            .unwrap_err(),
    ] {
        assert!(refused.to_string().starts_with("dev is what was live before"), "{refused}");
    }
    host.admin().delete("/admin/sandboxes/dev?force=true").await.unwrap();
}

#[tokio::test]
async fn of_two_swaps_at_once_one_is_made() {
    let (host, cookie) = twins().await;
    let dev = host.info("dev").await.id;
    host.put("dev", "/", HELD).await;
    let admin = host.admin();
    let first = tokio::spawn(async move { admin.post_json::<Swapped>(SWAP, &FORWARD).await });
    until_waiting(&dev, "/", 1).await;
    let second = host.admin().post_json::<Swapped>(SWAP, &FORWARD).await.unwrap_err();
    assert_eq!(second.to_string(), "another change of live and dev is under way");
    host.put("dev", "/", "<!doctype html>").await;
    assert_eq!(first.await.unwrap().unwrap().live.id, dev);
    assert_eq!(who(&host, &cookie).await, pair("two", "one"));
}

#[tokio::test]
async fn a_swap_that_cannot_be_written_down_moves_nothing() {
    let (host, cookie) = twins().await;
    let mut socket = open(&host, &cookie, "/ws").await;
    let database = rusqlite::Connection::open(host.data.path().join("control.db")).unwrap();
    let refuse =
        "CREATE TRIGGER refuse BEFORE INSERT ON swaps BEGIN SELECT RAISE(ABORT, 'no'); END";
    database.execute_batch(refuse).unwrap();
    let refused = host.admin().post_json::<Swapped>(SWAP, &FORWARD).await.unwrap_err();
    assert_eq!(refused.to_string(), "control.db: no");
    assert_eq!(who(&host, &cookie).await, pair("one", "two"));
    socket.send(Message::text("still")).await.unwrap();
    assert_eq!(socket.next().await.unwrap().unwrap(), Message::text("still"));
    assert_eq!(host.roles().await.last_swap, None);

    database.execute_batch("DROP TRIGGER refuse").unwrap();
    assert!(host.swap(FORWARD).await.unwrap().durable_in_us.is_some());
    assert_eq!(who(&host, &cookie).await, pair("two", "one"));
}

#[tokio::test]
async fn a_swap_that_the_disk_does_not_confirm_says_so() {
    let (host, cookie) = twins().await;
    std::fs::remove_file(host.data.path().join("control.db-wal")).unwrap();
    assert_eq!(host.swap(FORWARD).await.unwrap().durable_in_us, None);
    assert_eq!(who(&host, &cookie).await, pair("two", "one"));
}

/// The gateway dies around the move again and again: each time one of the two is true, and both
/// roles have an owner.
#[tokio::test]
async fn after_a_kill_at_any_instant_the_pointers_are_one_of_the_two_states() {
    let (mut host, _) = twins().await;
    let begun = Instant::now();
    for _ in 0..2 {
        host.swap(FORWARD).await.unwrap();
    }
    let takes = begun.elapsed() / 2;
    let mut now = (host.info("live").await.id, host.info("dev").await.id);
    let mut moved = 0;
    for round in 0..12 {
        let admin = host.admin();
        let swapping = tokio::spawn(async move {
            let _ = admin.post_json::<serde_json::Value>(SWAP, &FORWARD).await;
        });
        // From the first instant until well after it is done.
        tokio::time::sleep(takes * round / 6).await;
        host.kill().await;
        swapping.abort();
        host.start_again().await;
        let before = now;
        now = (host.info("live").await.id, host.info("dev").await.id);
        let is_swapped = now == (before.1.clone(), before.0.clone());
        assert!(now == before || is_swapped, "{now:?} after {before:?}");
        moved += u32::from(is_swapped);
    }
    assert!(moved > 0, "nobody was ever killed at or after the move");
}
