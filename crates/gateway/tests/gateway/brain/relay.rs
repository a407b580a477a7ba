//! The way of `/conductor` down to a sandbox and up again: only who came down comes up.

use std::io;
use std::sync::Arc;

use async_trait::async_trait;
use axum::body::Body;
use http::{Method, Request, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use nacre_sandbox::BoxStream;
use nacre_sandbox::fake::{FakeDriver, Guest};
use nacre_wire::client::{Client, Dial, full};
use nacre_wire::conductor::{ConversationList, TICKET};
use nacre_wire::knowledge::{AddFact, FactInfo, FactList};
use nacre_wire::{ErrorKind, conductor};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::host::{Answer, Host};
use crate::raw::within;

struct ToHost(Guest);

#[async_trait]
impl Dial for ToHost {
    async fn dial(&self) -> io::Result<BoxStream> {
        Ok(Box::new(self.0.dial_host()))
    }
}

/// What a supervisor got, and the guest it is in.
type Seen = (Guest, Request<()>);

/// A supervisor that passes up what it should, as the real one does, and shows the test its head.
async fn serve(guest: Guest, stream: tokio::io::DuplexStream, seen: UnboundedSender<Seen>) {
    let service = hyper::service::service_fn(move |request: Request<hyper::body::Incoming>| {
        let (guest, seen) = (guest.clone(), seen.clone());
        async move { Ok::<_, std::convert::Infallible>(answer(guest, seen, request).await) }
    });
    let connection =
        hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    let _ = connection.await;
}

async fn answer(
    guest: Guest,
    seen: UnboundedSender<Seen>,
    request: Request<hyper::body::Incoming>,
) -> http::Response<Body> {
    let path = request.uri().path().to_owned();
    if path == "/supervisor/version" {
        let version =
            r#"{"version":"9","protocol":{"oldest":1,"newest":1},"relays":["/conductor"]}"#;
        return http::Response::new(Body::from(version));
    }
    if !conductor::relayed(&path) {
        return http::Response::new(Body::from("here"));
    }
    let (parts, body) = request.into_parts();
    let head = Request::from_parts(parts.clone(), ());
    let _ = seen.send((guest.clone(), head));
    let asked = parts.uri.path_and_query().unwrap().as_str();
    let mut request = Request::from_parts(parts.clone(), body);
    *request.uri_mut() = format!("/host{asked}").parse::<Uri>().unwrap();
    let stream = guest.dial_host();
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    sender.send_request(request).await.unwrap().map(Body::new)
}

async fn host() -> (Host, UnboundedReceiver<Seen>) {
    let (sender, seen) = unbounded_channel();
    let world = FakeDriver::new(Arc::new(move |guest, stream| {
        Box::pin(serve(guest, stream, sender.clone()))
    }));
    (Host::start_in(world).await, seen)
}

#[tokio::test]
async fn a_browser_speaks_with_the_brain_by_way_of_the_sandbox() {
    let (host, mut seen) = host().await;
    let cookie = host.sign_in().await;
    let origin = host.origin();
    let headers = [("cookie", cookie.as_str()), ("origin", origin.as_str())];
    let request = host.build("POST", "/conductor/conversations", &headers, "{}".into());
    let made = Answer::read(host.send(request).await).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text());
    let listed = host.get("/conductor/conversations", &headers).await;
    let listed: ConversationList = serde_json::from_slice(&listed.body).unwrap();
    assert_eq!(listed.conversations.len(), 1);
    let (_, head) = seen.recv().await.unwrap();
    assert!(head.headers().contains_key(TICKET) && head.headers().contains_key("x-nacre-user"));

    // Nobody without a session gets so far, and what a client calls a ticket is not passed on.
    let stranger = host.get("/conductor/conversations", &[]).await;
    assert_eq!(stranger.status, StatusCode::UNAUTHORIZED);
    let forged = [headers[0], headers[1], (TICKET, "mine")];
    let fine = host.get("/conductor/conversations", &forged).await;
    assert_eq!(fine.status, StatusCode::OK, "{}", fine.text());
}

#[tokio::test]
async fn a_sandbox_cannot_drive_the_brain_by_itself() {
    let (host, mut seen) = host().await;
    let cookie = host.sign_in().await;
    let headers = [("cookie", cookie.as_str())];
    let path = "/conductor/conversations";
    assert_eq!(host.get(path, &headers).await.status, StatusCode::OK);
    let (guest, head) = within("it came down", seen.recv()).await.unwrap();
    let ticket = head.headers()[TICKET].clone();
    let inside = Client::new(Arc::new(ToHost(guest)), "");
    let ask = async |method: Method, path: &str, ticket: Option<&http::HeaderValue>| {
        let mut request = inside.request(method, path, full("{}")).unwrap();
        request.headers_mut().insert("x-nacre-user", "owner".parse().unwrap());
        if let Some(ticket) = ticket {
            request.headers_mut().insert(TICKET, ticket.clone());
        }
        inside.send(request).await.map(|_| ()).map_err(|error| error.kind())
    };
    let forbidden = Err(ErrorKind::Permission);
    assert_eq!(ask(Method::POST, "/host/conductor/conversations", None).await, forbidden);
    let forged = "99999999999999.00".parse().unwrap();
    assert_eq!(ask(Method::POST, "/host/conductor/conversations", Some(&forged)).await, forbidden);
    // Even one that is real is good for what it was given for, and nothing else.
    let real = Some(&ticket);
    assert_eq!(ask(Method::POST, "/host/conductor/conversations", real).await, forbidden);
    assert_eq!(ask(Method::GET, "/host/conductor/conversations/c-1", real).await, forbidden);
    assert_eq!(ask(Method::GET, "/host/writer/x", None).await, forbidden);
    let listed = host.admin().under("/admin/sandboxes").conversations().await.unwrap();
    assert!(listed.conversations.is_empty());
}

#[tokio::test]
async fn a_page_keeps_memory_by_way_of_the_sandbox_and_the_sandbox_alone_does_not() {
    let (host, mut seen) = host().await;
    let cookie = host.sign_in().await;
    let origin = host.origin();
    // As a script of a page sends it.
    let headers = [
        ("cookie", cookie.as_str()),
        ("origin", origin.as_str()),
        ("sec-fetch-mode", "cors"),
        ("sec-fetch-dest", "empty"),
    ];
    let ask = async |method: &str, path: &str, body: &str| {
        let request = host.build(method, path, &headers, body.to_owned().into());
        Answer::read(host.send(request).await).await
    };
    let told = AddFact { text: "The cat is called Kiwi.".into(), tags: vec!["pets".into()] };
    let of_owner: FactInfo =
        host.admin().post_json("/admin/sandboxes/memory", &told).await.unwrap();
    let made = ask("POST", "/conductor/memory", r#"{"text":"Tea at four."}"#).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text());
    let made: FactInfo = serde_json::from_slice(&made.body).unwrap();
    assert_eq!((made.source.as_str(), of_owner.source.as_str()), ("page", "owner"));
    let one = format!("/conductor/memory/{}", of_owner.id);
    let changed = ask("PUT", &one, r#"{"tags":["cats"]}"#).await;
    assert!(changed.text().contains("\"source\":\"owner\""), "{}", changed.text());
    let changed = ask("PUT", &one, r#"{"text":"The cat is called Mango."}"#).await;
    assert!(changed.text().contains("\"source\":\"page\""), "{}", changed.text());
    let found = ask("GET", "/conductor/memory/search?q=cat", "").await;
    assert!(found.text().contains("Mango"), "{}", found.text());
    assert_eq!(ask("DELETE", &one, "").await.status, StatusCode::NO_CONTENT);
    let left: FactList =
        serde_json::from_slice(&ask("GET", "/conductor/memory", "").await.body).unwrap();
    assert_eq!(left.facts, [made]);
    // Nothing but what is for pages came along.
    assert_eq!(ask("GET", "/conductor/publications", "").await.status, StatusCode::NOT_FOUND);

    let (guest, head) = within("it came down", seen.recv()).await.unwrap();
    let inside = Client::new(Arc::new(ToHost(guest)), "");
    let body = serde_json::to_vec(&told).unwrap();
    for ticket in [None, Some(&head.headers()[TICKET])] {
        let path = "/host/conductor/memory/1";
        let mut request = inside.request(Method::PUT, path, full(body.clone())).unwrap();
        if let Some(ticket) = ticket {
            request.headers_mut().insert(TICKET, ticket.clone());
        }
        let refused = inside.send(request).await.map(|_| ()).map_err(|error| error.kind());
        assert_eq!(refused, Err(ErrorKind::Permission));
    }
    let stranger = host.get("/conductor/memory", &[]).await;
    assert_eq!(stranger.status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_supervisor_that_is_too_old_is_said_to_be() {
    let host = Host::start().await;
    let cookie = host.sign_in().await;
    let answer = host.get("/conductor/conversations", &[("cookie", &cookie)]).await;
    assert_eq!(answer.status, StatusCode::NOT_IMPLEMENTED, "{}", answer.text());
    assert!(answer.text().contains("nacre sandbox start live"), "{}", answer.text());
    // It was not given to the app, and the command line needs no sandbox.
    host.operate("live", "stop").await.unwrap();
    let listed = host.admin().under("/admin/sandboxes").conversations().await.unwrap();
    assert!(listed.conversations.is_empty());
}
