//! The one server that both proxies stand in front of.

use std::convert::Infallible;
use std::path::Path;
use std::time::Duration;

use anyhow::{Result, bail};
use bytes::Bytes;
use futures_util::stream;
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::io::AsyncReadExt;
use tokio::net::{UnixListener, UnixStream};
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

const PIECE: usize = 256 * 1024;

type Body = UnsyncBoxBody<Bytes, Infallible>;

pub(super) async fn serve(socket: &Path) -> Result<()> {
    let listener = UnixListener::bind(socket)?;
    loop {
        let (stream, _) = listener.accept().await?;
        let io = TokioIo::new(stream);
        let service = service_fn(|request| async { Ok::<_, Infallible>(answer(request).await) });
        tokio::spawn(http1::Builder::new().serve_connection(io, service).with_upgrades());
    }
}

pub(super) async fn until_there(socket: &Path) -> Result<()> {
    for _ in 0..500 {
        if UnixStream::connect(socket).await.is_ok() {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    bail!("the upstream does not answer")
}

async fn answer(mut request: Request<Incoming>) -> Response<Body> {
    match request.uri().path() {
        "/large" => download(),
        "/sink" => {
            while let Some(Ok(_)) = request.frame().await {}
            Response::new(Full::from("taken").boxed_unsync())
        }
        "/ws" => {
            let key = request.headers().get("sec-websocket-key").map(|key| key.as_bytes());
            let accept = derive_accept_key(key.unwrap_or_default());
            tokio::spawn(async move {
                let Ok(socket) = hyper::upgrade::on(&mut request).await else { return };
                let _ = TokioIo::new(socket).read(&mut [0]).await;
            });
            let mut response = Response::new(Full::default().boxed_unsync());
            *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
            let headers = response.headers_mut();
            headers.insert("connection", http_value("upgrade"));
            headers.insert("upgrade", http_value("websocket"));
            if let Ok(accept) = accept.parse() {
                headers.insert("sec-websocket-accept", accept);
            }
            response
        }
        // What a swap asks for first.
        "/supervisor/health" => text("application/json", "{\"status\":\"ok\"}"),
        "/supervisor/processes" => text("application/json", "{\"processes\":[]}"),
        "/" => text("text/html", "<!doctype html><script src=\"/app.js\"></script>"),
        "/app.js" => text("text/javascript", "document.title = 'app'"),
        _ => text("text/plain", "Hello, World!\n"),
    }
}

fn text(kind: &'static str, body: &'static str) -> Response<Body> {
    let mut response = Response::new(Full::from(body).boxed_unsync());
    response.headers_mut().insert("content-type", http_value(kind));
    response
}

fn http_value(text: &'static str) -> hyper::header::HeaderValue {
    hyper::header::HeaderValue::from_static(text)
}

fn download() -> Response<Body> {
    let piece = Bytes::from(vec![b'x'; PIECE]);
    let pieces = super::bulk::SIZE / PIECE;
    let frames = stream::iter((0..pieces).map(move |_| Ok(Frame::data(piece.clone()))));
    let mut response = Response::new(StreamBody::new(frames).boxed_unsync());
    response.headers_mut().insert("content-length", super::bulk::SIZE.into());
    response
}
