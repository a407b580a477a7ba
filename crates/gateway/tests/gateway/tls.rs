//! Browsers over TLS, and behind somebody who speaks it for us.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use futures_util::{SinkExt, StreamExt};
use http::{HeaderMap, Request, StatusCode, Version};
use http_body_util::BodyExt;
use hyper_util::rt::{TokioExecutor, TokioIo};
use nacre_gateway::{RawGatewayConfig, TlsFiles};
use nacre_sandbox::fake::FakeDriver;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

use crate::host::{Answer, Host};
use crate::raw::Wire;
use crate::world::world;

const OWNER: &str = "did:web:alice.example.net";
pub(crate) const NAME: &str = "pc.example";

/// A certificate for [`NAME`] in that directory.
fn renew(directory: &Path) -> CertificateDer<'static> {
    let made = rcgen::generate_simple_self_signed([NAME.to_owned()]).unwrap();
    std::fs::write(directory.join("cert.pem"), made.cert.pem()).unwrap();
    std::fs::write(directory.join("key.pem"), made.signing_key.serialize_pem()).unwrap();
    made.cert.der().clone()
}

pub(crate) struct Secure {
    host: Host,
    files: tempfile::TempDir,
    certificate: CertificateDer<'static>,
}

impl Secure {
    async fn start() -> Self {
        Self::start_in(world()).await
    }

    pub(crate) async fn start_in(world: FakeDriver) -> Self {
        let files = tempfile::tempdir().unwrap();
        let certificate = renew(files.path());
        let raw = RawGatewayConfig {
            owner_did: Some(OWNER.to_owned()),
            public_url: Some(format!("https://{NAME}")),
            tls_cert: Some(files.path().join("cert.pem")),
            tls_key: Some(files.path().join("key.pem")),
            ..Default::default()
        };
        let host = Host::make(world, raw, |config| {
            if let Some(TlsFiles { look_every, .. }) = &mut config.tls {
                *look_every = Duration::from_millis(10);
            }
        });
        Self { host: host.await, files, certificate }
    }

    /// As a browser that trusts this certificate and speaks these.
    async fn connect(
        &self,
        trusted: &CertificateDer<'static>,
        protocols: &[&[u8]],
    ) -> std::io::Result<TlsStream<TcpStream>> {
        let mut roots = RootCertStore::empty();
        roots.add(trusted.clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
        let stream = TcpStream::connect(self.host.address).await?;
        let name = ServerName::try_from(NAME).unwrap();
        TlsConnector::from(Arc::new(config)).connect(name, stream).await
    }

    /// For HTTP/2 by hand.
    pub(crate) async fn connect_h2(&self) -> TlsStream<TcpStream> {
        self.connect(&self.certificate, &[b"h2"]).await.unwrap()
    }

    /// Over HTTP/2.
    async fn ask(&self, request: Request<Body>) -> Answer {
        let stream = self.connect(&self.certificate, &[b"h2", b"http/1.1"]).await.unwrap();
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
        let (mut sender, connection) =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
                .await
                .unwrap();
        let connection = tokio::spawn(connection);
        let answer = Answer::read(sender.send_request(request).await.unwrap()).await;
        drop(sender);
        connection.await.unwrap().unwrap();
        answer
    }

    async fn get(&self, path: &str, headers: &[(&str, &str)]) -> Answer {
        let mut request = Request::get(format!("https://{NAME}{path}")).version(Version::HTTP_2);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.ask(request.body(Body::empty()).unwrap()).await
    }

    pub(crate) async fn sign_in(&self) -> String {
        let welcome = self.get(&self.host.link_below(&format!("https://{NAME}")).await, &[]).await;
        cookie(&welcome.headers)
    }
}

fn cookie(headers: &HeaderMap) -> String {
    let set = headers["set-cookie"].to_str().unwrap();
    set.split(';').next().unwrap().to_owned()
}

#[tokio::test]
async fn over_tls_browsers_speak_http_2_and_the_session_is_secure() {
    let secure = Secure::start().await;
    let link = secure.host.link_below(&format!("https://{NAME}")).await;
    let welcome = secure.get(&link, &[]).await;
    assert_eq!(welcome.status, StatusCode::SEE_OTHER);
    let set = welcome.headers["set-cookie"].to_str().unwrap();
    assert!(set.starts_with("__Host-nacre_session=") && set.ends_with("; Secure"), "{set}");

    let session = cookie(&welcome.headers);
    let headers = [("cookie", session.as_str()), ("cookie", "nacre_app_live_a=1")];
    let answer = secure.get("/app?x", &headers).await;
    let text = answer.text();
    assert!(text.starts_with("GET /app?x\n"), "{text}");
    for line in ["host: pc.example", "x-forwarded-proto: https", "cookie: a=1"] {
        assert!(text.lines().any(|found| found == line), "{line}: {text}");
    }
    let set = answer.headers["set-cookie"].to_str().unwrap();
    assert!(set.starts_with("nacre_app_live_") && set.ends_with("; Secure"), "{set}");

    let plain = session.replace("__Host-", "");
    assert_eq!(secure.get("/app", &[("cookie", &plain)]).await.status, StatusCode::UNAUTHORIZED);
    let other = secure.get("/app", &[("cookie", &session), ("host", "localhost")]).await;
    assert_eq!(other.status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn a_body_passes_through_http_2_both_ways() {
    let secure = Secure::start().await;
    let session = secure.sign_in().await;
    let body: Vec<u8> = (0..3_000_000u32).map(|n| n as u8).collect();
    let request = Request::post(format!("https://{NAME}/stream"))
        .version(Version::HTTP_2)
        .header("cookie", session)
        .header("origin", format!("https://{NAME}"));
    let answer = secure.ask(request.body(Body::from(body.clone())).unwrap()).await;
    assert_eq!(answer.status, StatusCode::OK);
    assert!(answer.body == body);
}

#[tokio::test]
async fn http_2_offers_no_sockets_and_http_1_has_them() {
    let secure = Secure::start().await;
    let stream = secure.connect_h2().await;
    let (sender, mut connection) = h2::client::handshake(stream).await.unwrap();
    // The settings of the other side come first; a ping is answered after them.
    let mut ping = connection.ping_pong().unwrap();
    let connection = tokio::spawn(connection);
    ping.ping(h2::Ping::opaque()).await.unwrap();
    assert!(!sender.is_extended_connect_protocol_enabled());
    drop(sender);
    connection.abort();

    // So this is what a browser does.
    let session = secure.sign_in().await;
    let stream = secure.connect(&secure.certificate, &[b"http/1.1"]).await.unwrap();
    let mut request = format!("wss://{NAME}/socket").into_client_request().unwrap();
    let headers = request.headers_mut();
    headers.insert("cookie", session.parse().unwrap());
    headers.insert("origin", format!("https://{NAME}").parse().unwrap());
    let (mut socket, _) = tokio_tungstenite::client_async(request, stream).await.unwrap();
    socket.send(Message::text("there and back")).await.unwrap();
    assert_eq!(socket.next().await.unwrap().unwrap(), Message::text("there and back"));
}

#[tokio::test]
async fn plain_requests_take_the_short_way_over_tls_too() {
    let secure = Secure::start().await;
    let cookie = secure.sign_in().await;
    let mut stream = Wire(secure.connect(&secure.certificate, &[b"http/1.1"]).await.unwrap());
    for path in ["/a", "/b"] {
        stream
            .send(format!("GET {path} HTTP/1.1\r\nhost: {NAME}\r\ncookie: {cookie}\r\n\r\n"))
            .await;
        let head = stream.head().await;
        assert!(head.starts_with("HTTP/1.1 200 ") && head.contains("; secure"), "{head}");
        let length = head.split("content-length: ").nth(1).unwrap().split("\r\n").next().unwrap();
        let mut body = vec![0; length.parse().unwrap()];
        stream.0.read_exact(&mut body).await.unwrap();
        let body = String::from_utf8(body).unwrap();
        assert!(body.starts_with(&format!("GET {path}\n")), "{body}");
        assert!(body.contains("x-forwarded-proto: https"), "{body}");
    }
    assert_eq!(secure.host.lean().await, 2);
}

#[tokio::test]
async fn a_renewed_certificate_is_used_without_a_restart() {
    let secure = Secure::start().await;
    let stream = secure.connect(&secure.certificate, &[b"http/1.1"]).await.unwrap();
    let (mut open, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);

    let renewed = renew(secure.files.path());
    let deadline = tokio::time::Instant::now() + Duration::from_secs(20);
    while secure.connect(&renewed, &[b"h2"]).await.is_err() {
        assert!(tokio::time::Instant::now() < deadline, "the new certificate is never used");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(secure.connect(&secure.certificate, &[b"h2"]).await.is_err());
    let request = Request::get("/login").header("host", NAME).body(Body::empty()).unwrap();
    let answer = open.send_request(request).await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK, "what was open stays open");
    answer.into_body().collect().await.unwrap();
}

#[tokio::test]
async fn whoever_does_not_speak_tls_is_let_go() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let secure = Secure::start().await;
    let mut stream = TcpStream::connect(secure.host.address).await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nHost: pc.example\r\n\r\n").await.unwrap();
    let mut answer = Vec::new();
    let read = tokio::time::timeout(Duration::from_secs(20), stream.read_to_end(&mut answer)).await;
    read.expect("the connection is closed").ok();
    assert!(!answer.starts_with(b"HTTP"), "{answer:?}");
}

#[tokio::test]
async fn behind_a_proxy_the_public_address_counts() {
    let raw = RawGatewayConfig {
        owner_did: Some(OWNER.to_owned()),
        public_url: Some("https://pc.example".to_owned()),
        ..Default::default()
    };
    let host = Host::start_as(raw, |_| ()).await;
    let link = host.link_below("https://pc.example").await;
    let asked = ("host", "PC.example:443");
    let welcome = host.get(&link, &[asked]).await;
    let session = cookie(&welcome.headers);
    assert!(session.starts_with("__Host-nacre_session="), "{session}");
    let session = ("cookie", session.as_str());

    let answer = host.get("/x", &[asked, session, ("x-forwarded-for", "6.6.6.6")]).await;
    for line in ["host: pc.example", "x-forwarded-for: 127.0.0.1", "x-forwarded-proto: https"] {
        assert!(answer.text().lines().any(|found| found == line), "{line}: {}", answer.text());
    }
    for (origin, status) in [
        ("https://pc.example", StatusCode::OK),
        ("https://pc.example:8443", StatusCode::FORBIDDEN),
        ("http://pc.example", StatusCode::FORBIDDEN),
        ("http://127.0.0.1", StatusCode::FORBIDDEN),
    ] {
        let answer = host.request("POST", "/x", &[asked, session, ("origin", origin)]).await;
        assert_eq!(answer.status, status, "{origin}");
    }
}

#[tokio::test]
async fn a_trusted_proxy_says_who_asks_and_how() {
    let claims = [
        ("x-forwarded-for", "6.6.6.6, 203.0.113.7"),
        ("x-forwarded-proto", "https"),
        ("x-forwarded-host", "localhost"),
    ];
    for (trusted, scheme, client) in
        [(vec!["127.0.0.0/8"], "https", "203.0.113.7"), (vec![], "http", "127.0.0.1")]
    {
        let trusted = trusted.into_iter().map(str::to_owned).collect();
        let raw = RawGatewayConfig { trusted_proxies: Some(trusted), ..Default::default() };
        let host = Host::start_as(raw, |_| ()).await;
        let welcome = host.get(&host.link().await, &claims).await;
        let session = cookie(&welcome.headers);
        assert_eq!(session.starts_with("__Host-"), scheme == "https", "{session}");
        let answer = host.get("/x", &[claims[0], claims[1], claims[2], ("cookie", &session)]).await;
        let text = answer.text();
        assert!(text.contains(&format!("\nx-forwarded-for: {client}\n")), "{text}");
        assert!(text.contains(&format!("\nx-forwarded-proto: {scheme}\n")), "{text}");
    }
}
