//! The way from the door to an app, with real apps behind it.

#![allow(clippy::unwrap_used, reason = "the helpers here are tests too")]

mod support;

use futures_util::{SinkExt, StreamExt};
use http_body_util::{BodyExt, Empty, Full, StreamBody};
use hyper::body::{Bytes, Frame, Incoming};
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use nacre_wire::processes::ProcessState;
use support::Supervisor;
use support::story::Story;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_tungstenite::tungstenite::Message;

const APP: &str = include_str!("support/app.py");

/// Free when it was asked for; nobody else on this machine takes it in the meantime, as a rule.
fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

async fn app() -> Story {
    let mut story = Story::begin().await;
    std::fs::write(story.supervisor.workspace().join("app.py"), APP).unwrap();
    let port = free_port();
    story.configure(&format!(
        "[runtime]\ncommand = [\"python3\", \"app.py\"]\nport = {port}\nready = \"/up\"\n"
    ));
    story.ready("runtime").await;
    story
}

async fn text(response: Response<Incoming>) -> String {
    let body = response.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(body.to_vec()).unwrap()
}

async fn navigate(supervisor: &Supervisor, path: &str) -> Response<Incoming> {
    let request = Request::get(path).header("host", "door").header("accept", "text/html");
    supervisor.send(request.body(Full::default()).unwrap()).await
}

#[tokio::test]
async fn every_path_that_is_not_the_supervisors_is_the_apps() {
    let story = app().await;
    let supervisor = &story.supervisor;
    for (method, path) in
        [("GET", "/"), ("POST", "/"), ("GET", "/ws/room?a=b"), ("DELETE", "/x%20y")]
    {
        let response = supervisor.request(method, path, Bytes::new()).await;
        assert_eq!(response.headers()["x-app"], "yes", "{method} {path}");
        let said = text(response).await;
        assert!(said.starts_with(&format!("{method} {path}\n")), "{said}");
        assert!(
            said.contains("host: localhost:") && said.contains("x-forwarded-host: door"),
            "{said}"
        );
    }
    let (status, body) = supervisor.call("GET", "/supervisor/", "").await;
    assert!(status.is_success() && body.starts_with(b"<!doctype html>"));
    let (status, _) = supervisor.call("GET", "/supervisor/nothing", "").await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    let (status, _) = supervisor.call("GET", "/ws", "").await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn an_answer_comes_as_it_is_made_and_a_body_goes_as_it_comes() {
    let story = app().await;
    let mut chunks = story.supervisor.request("GET", "/chunks", Bytes::new()).await.into_body();
    let first = chunks.frame().await.unwrap().unwrap().into_data().unwrap();
    assert_eq!(first, "first");
    story.supervisor.call("GET", "/go", "").await;
    assert_eq!(chunks.collect().await.unwrap().to_bytes(), "second");

    let (sender, receiver) = tokio::sync::mpsc::channel(1);
    let io = TokioIo::new(story.supervisor.connect().await);
    let (mut http, connection) = hyper::client::conn::http1::handshake(io).await.unwrap();
    tokio::spawn(connection);
    let pieces = futures_util::stream::unfold(receiver, |mut receiver| async move {
        receiver.recv().await.map(|piece| (piece, receiver))
    });
    let body = StreamBody::new(Box::pin(pieces));
    let request = Request::post("/echo").header("host", "door").body(body).unwrap();
    let mut echo = http.send_request(request).await.unwrap().into_body();
    for piece in ["one", "two", "three"] {
        sender.send(Ok::<_, std::io::Error>(Frame::data(Bytes::from(piece)))).await.unwrap();
        let said = echo.frame().await.unwrap().unwrap().into_data().unwrap();
        assert_eq!(said, piece, "before the next one is sent");
    }
    drop(sender);
    assert_eq!(echo.collect().await.unwrap().to_bytes(), "");
}

#[tokio::test]
async fn sockets_and_other_upgrades_are_the_apps_own() {
    let story = app().await;
    for path in ["/", "/ws/room"] {
        let stream = story.supervisor.connect().await;
        let (mut socket, _) =
            tokio_tungstenite::client_async(format!("ws://door{path}"), stream).await.unwrap();
        assert_eq!(socket.next().await.unwrap().unwrap(), Message::text(path));
        socket.send(Message::text("there and back")).await.unwrap();
        assert_eq!(socket.next().await.unwrap().unwrap(), Message::text("there and back"));
    }

    let io = TokioIo::new(story.supervisor.connect().await);
    let (mut http, connection) = hyper::client::conn::http1::handshake(io).await.unwrap();
    tokio::spawn(connection.with_upgrades());
    let request = Request::get("/any").header("host", "door");
    let request = request.header("connection", "upgrade").header("upgrade", "shout");
    let response = http.send_request(request.body(Empty::<Bytes>::new()).unwrap()).await.unwrap();
    assert_eq!(response.status(), StatusCode::SWITCHING_PROTOCOLS);
    let mut raw = TokioIo::new(hyper::upgrade::on(response).await.unwrap());
    raw.write_all(b"quietly").await.unwrap();
    let mut loud = [0; 7];
    raw.read_exact(&mut loud).await.unwrap();
    assert_eq!(&loud, b"QUIETLY");
}

#[tokio::test]
async fn an_app_that_breaks_off_breaks_only_its_own_answer() {
    let story = app().await;
    let half = story.supervisor.request("GET", "/broken", Bytes::new()).await;
    assert_eq!(half.status(), StatusCode::OK);
    assert!(half.into_body().collect().await.is_err());
    let (status, _) = story.supervisor.call("GET", "/rude", "").await;
    assert_eq!(status, StatusCode::BAD_GATEWAY);
    let page = navigate(&story.supervisor, "/rude").await;
    assert_eq!(page.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert!(text(page).await.contains("comes back by itself"));
    let (status, _) = story.supervisor.call("GET", "/fine", "").await;
    assert_eq!(status, StatusCode::OK);
}

#[tokio::test]
async fn while_an_app_is_down_people_get_a_page_and_programs_an_error() {
    let port = free_port();
    let mut story = Story::with(&format!(
        "[runtime]\ncommand = \"echo '<b>bold</b> words'; exit 1\"\nport = {port}\n"
    ))
    .await;
    story.until_state("runtime", ProcessState::BackingOff).await;
    let page = navigate(&story.supervisor, "/some/where").await;
    assert_eq!(page.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert!(page.headers().contains_key("retry-after"));
    let policy = page.headers()["content-security-policy"].to_str().unwrap().to_owned();
    assert!(policy.starts_with("default-src 'none'; script-src 'nonce-"), "{policy}");
    let html = text(page).await;
    assert!(html.contains("&lt;b&gt;bold&lt;/b&gt; words"), "{html}");
    assert!(html.contains("href=\"/supervisor/\""), "{html}");
    let (status, body) = story.supervisor.call("GET", "/api", "").await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    let error = serde_json::from_slice::<nacre_wire::error::ErrorBody>(&body).unwrap().error;
    assert!(error.message.starts_with("the app is not ready: it "), "{error:?}");
    let (status, _) = story.supervisor.call("GET", "/supervisor/health", "").await;
    assert_eq!(status, StatusCode::OK);
}

#[tokio::test]
async fn without_pages_of_an_apps_own_the_desktop_is_at_the_root_and_ours_beside_the_calls() {
    let mut story = Story::with("[runtime]\ncommand = \"exec sleep 1000\"\n").await;
    story.ready("runtime").await;
    for (path, part) in [("/", "data-nacre=\"built\""), ("/supervisor/", "id=\"state\"")] {
        let page = navigate(&story.supervisor, path).await;
        assert_eq!(page.status(), StatusCode::OK);
        assert!(text(page).await.contains(part), "{path}");
    }
    let (status, _) = story.supervisor.call("GET", "/elsewhere", "").await;
    assert_eq!(status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_plain_file_server_is_an_app_too() {
    let mut story = Story::begin().await;
    let site = story.supervisor.workspace().join("site");
    std::fs::create_dir(&site).unwrap();
    std::fs::write(site.join("a.txt"), vec![b'x'; 3_000_000]).unwrap();
    let port = free_port();
    story.configure(&format!(
        "[runtime]\ncommand = \"exec python3 -m http.server --bind ::1 {port}\"\n\
         port = {port}\nready = \"/\"\ndirectory = \"site\"\n"
    ));
    story.ready("runtime").await;
    let (status, body) = story.supervisor.call("GET", "/a.txt", "").await;
    assert_eq!((status, body.len()), (StatusCode::OK, 3_000_000));
}
