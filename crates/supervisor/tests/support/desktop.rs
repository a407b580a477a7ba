//! A sandbox with a desktop, as browsers come to it by the gateway.

use futures_util::StreamExt;
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::{Request, Response, StatusCode};
use tokio_tungstenite::tungstenite::client::ClientRequestBuilder;

use super::story::Story;
use super::{PATIENCE, Supervisor};

const APP: &str = include_str!("desktop.py");

/// Free when it was asked for; nobody else on this machine takes it in the meantime, as a rule.
pub fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A `[runtime]` with these keys besides; the app is there already.
pub fn config(port: u16, keys: &str) -> String {
    format!(
        "[runtime]\ncommand = [\"python3\", \"app.py\"]\nport = {port}\nready = \"/up\"\n{keys}\n"
    )
}

pub async fn desktop(keys: &str) -> Story {
    let mut story = Story::begin().await;
    std::fs::write(story.supervisor.workspace().join("app.py"), APP).unwrap();
    story.configure(&config(free_port(), keys));
    story.ready("runtime").await;
    story
}

/// What came of a visit.
pub struct Visit {
    pub status: StatusCode,
    pub headers: hyper::HeaderMap,
    pub body: String,
}

impl Visit {
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("{}", self.body))
    }
}

async fn visit(supervisor: &Supervisor, prefix: &str, path: &str, accept: &str) -> Visit {
    let request = Request::get(path).header("host", "door").header("accept", accept);
    let request = match prefix {
        "" => request,
        prefix => request.header("x-forwarded-prefix", prefix),
    };
    let sent = supervisor.send(request.body(Full::default()).unwrap());
    let response: Response<Incoming> = tokio::time::timeout(PATIENCE, sent).await.unwrap();
    let (parts, body) = response.into_parts();
    let body: Bytes = body.collect().await.unwrap().to_bytes();
    let body = String::from_utf8_lossy(&body).into_owned();
    Visit { status: parts.status, headers: parts.headers, body }
}

/// As a browser that is led to a page.
pub async fn look(supervisor: &Supervisor, prefix: &str, path: &str) -> Visit {
    visit(supervisor, prefix, path, "text/html").await
}

/// As a script.
pub async fn ask(supervisor: &Supervisor, prefix: &str, path: &str) -> Visit {
    visit(supervisor, prefix, path, "*/*").await
}

/// The first message of a socket below a prefix.
pub async fn socket(supervisor: &Supervisor, prefix: &str, path: &str) -> String {
    let uri = format!("ws://door{path}").parse().unwrap();
    let request = ClientRequestBuilder::new(uri).with_header("x-forwarded-prefix", prefix);
    let stream = supervisor.connect().await;
    let (mut socket, _) = tokio_tungstenite::client_async(request, stream).await.unwrap();
    socket.next().await.unwrap().unwrap().into_text().unwrap().to_string()
}
