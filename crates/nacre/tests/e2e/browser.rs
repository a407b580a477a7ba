//! What a browser does, without one: requests and sockets over TCP, with a session or without.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use http::{HeaderMap, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::{Error, client::IntoClientRequest};

use crate::computer::TestComputer;

const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct Browser {
    address: SocketAddr,
    /// What it calls the computer.
    host: String,
    session: Option<String>,
    /// Of one that is a program.
    token: Option<String>,
}

pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).expect("JSON")
    }
}

pub(crate) type Socket = WebSocketStream<TcpStream>;

impl Browser {
    pub(crate) fn stranger(computer: &TestComputer) -> Self {
        let url = computer.json(&["status", "--json"])["url"].as_str().unwrap().to_owned();
        let host = url.strip_prefix("http://").unwrap().to_owned();
        Self { address: host.parse().unwrap(), host, session: None, token: None }
    }

    /// The same browser at another name of the computer.
    pub(crate) fn as_localhost(&self) -> Self {
        let host = format!("localhost:{}", self.address.port());
        let (session, token) = (self.session.clone(), self.token.clone());
        Self { address: self.address, host, session, token }
    }

    /// No browser at all: it shows a token.
    pub(crate) fn program(computer: &TestComputer) -> Self {
        let made = ["token", "create", "--name", "program", "--scope", "admin", "--json"];
        let made = computer.json(&made)["token"].as_str().unwrap().to_owned();
        Self { token: Some(format!("Bearer {made}")), ..Self::stranger(computer) }
    }

    pub(crate) async fn of_the_owner(computer: &TestComputer) -> Self {
        let mut browser = Self::stranger(computer);
        let link = computer.json(&["login", "--json"])["url"].as_str().unwrap().to_owned();
        let path = link.strip_prefix(&browser.origin()).unwrap();
        let welcome = browser.get(path, &[]).await;
        assert_eq!(welcome.status, StatusCode::SEE_OTHER);
        let cookie = welcome.headers["set-cookie"].to_str().unwrap();
        browser.session = Some(cookie.split(';').next().unwrap().to_owned());
        browser
    }

    /// Keeps what an answer sets as the cookie for what follows; its value.
    pub(crate) fn take_cookie<'a>(&mut self, answer: &'a Answer, name: &str) -> &'a str {
        let lines = answer.headers.get_all("set-cookie").iter().map(|line| line.to_str().unwrap());
        let pair = lines.map(|line| line.split(';').next().unwrap());
        let pair = pair.into_iter().find(|pair| pair.starts_with(name)).expect("the cookie is set");
        self.session = Some(pair.to_owned());
        pair.split_once('=').unwrap().1
    }

    /// A form.
    pub(crate) async fn post(&self, path: &str, form: &str) -> Answer {
        let request = Request::post(path).header("host", &self.host);
        let mut request = request.header("origin", self.origin());
        if let Some(session) = &self.session {
            request = request.header("cookie", session);
        }
        self.send(request.body(Full::from(form.to_owned())).unwrap()).await
    }

    pub(crate) fn origin(&self) -> String {
        format!("http://{}", self.host)
    }

    pub(crate) async fn get(&self, path: &str, headers: &[(&str, &str)]) -> Answer {
        let mut request = Request::get(path).header("host", &self.host);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if let Some(session) = &self.session {
            request = request.header("cookie", session);
        }
        self.send(request.body(Full::default()).unwrap()).await
    }

    async fn send(&self, request: Request<Full<Bytes>>) -> Answer {
        let stream = TcpStream::connect(self.address).await.unwrap();
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        let response = tokio::time::timeout(PATIENCE, sender.send_request(request)).await;
        let (parts, body) = response.expect("an answer in time").unwrap().into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        Answer { status: parts.status, headers: parts.headers, body }
    }

    /// The socket, or the status that there was instead.
    pub(crate) async fn socket(&self, path: &str) -> Result<Socket, StatusCode> {
        let url = format!("ws://{}{path}", self.address);
        let mut request = url.into_client_request().unwrap();
        let headers = request.headers_mut();
        headers.insert("origin", self.origin().parse().unwrap());
        if let Some(session) = &self.session {
            headers.insert("cookie", session.parse().unwrap());
        }
        if let Some(token) = &self.token {
            headers.insert("authorization", token.parse().unwrap());
        }
        let stream = TcpStream::connect(self.address).await.unwrap();
        match tokio_tungstenite::client_async(request, stream).await {
            Ok((socket, _)) => Ok(socket),
            Err(Error::Http(response)) => Err(response.status()),
            Err(error) => panic!("{path}: {error}"),
        }
    }
}

/// The next message, which is JSON.
pub(crate) async fn next(socket: &mut Socket) -> serde_json::Value {
    loop {
        let message = tokio::time::timeout(PATIENCE, socket.next()).await;
        let message = message.expect("a message in time").expect("an open socket").unwrap();
        if message.is_text() {
            return serde_json::from_str(message.to_text().unwrap()).unwrap();
        }
    }
}
