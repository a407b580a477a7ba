//! `/supervisor/ports`.

use axum::body::Body;
use axum::extract::Path;
use axum::response::Response;
use axum::routing::get;
use axum::{Json, Router};
use bytes::Bytes;
use http::header::{CONNECTION, UPGRADE};
use http::{HeaderMap, HeaderValue, Request, StatusCode};
use hyper_util::rt::TokioIo;
use nacre_wire::ports::{self, PROTOCOL, PortInfo, PortList};
use nacre_wire::relay::join;
use nacre_wire::{ApiError, ErrorKind};

use super::{owners, table};
use crate::failure::Failure;
use crate::runtime::connect;

pub fn router() -> Router {
    Router::new().route("/supervisor/ports", get(list)).route("/supervisor/ports/{port}", get(open))
}

async fn list() -> Result<Json<PortList>, Failure> {
    // There may be many processes, and each is asked for all it has open.
    let listed = tokio::task::spawn_blocking(|| {
        let sockets = table::read();
        let mut owners = owners::find(&sockets);
        let ports = sockets.into_iter().map(|socket| PortInfo {
            port: socket.port,
            address: socket.address.to_string(),
            process: owners.remove(&socket.inode),
        });
        PortList { ports: ports.collect() }
    });
    let failed = |_| Failure::new(ErrorKind::Internal, "the ports could not be listed");
    listed.await.map(Json).map_err(failed)
}

/// Says 101 only when the port took the connection: until then it is an answer like any other.
async fn open(Path(port): Path<String>, mut request: Request<Body>) -> Result<Response, Failure> {
    let port = ports::parse(&port).ok_or_else(|| no_port(&port))?;
    if !asks_for_bytes(request.headers()) {
        let message = format!("a connection to port {port} begins with an upgrade to {PROTOCOL}");
        let hint = "use nacre forward, or open /ports/ in a browser";
        return Err(ApiError::new(ErrorKind::InvalidRequest, message).hint(hint).into());
    }
    let stream = connect(port).await.map_err(|_| nothing_there(port))?;
    // Small messages should not wait for each other.
    let _ = stream.set_nodelay(true);
    let client = hyper::upgrade::on(&mut request);
    tokio::spawn(async move {
        if let Ok(client) = client.await {
            join(TokioIo::new(client), stream, Bytes::new()).await;
        }
    });
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static(PROTOCOL));
    Ok(response)
}

fn asks_for_bytes(headers: &HeaderMap) -> bool {
    headers.get(UPGRADE).is_some_and(|wanted| wanted.as_bytes().eq_ignore_ascii_case(b"tcp"))
}

fn no_port(text: &str) -> Failure {
    let message = format!("\"{}\" is not a port", text.escape_debug());
    ApiError::new(ErrorKind::InvalidRequest, message).hint("it is a number from 1 to 65535").into()
}

pub(super) fn nothing_there(port: u16) -> Failure {
    let message = format!("nothing listens on port {port} in this sandbox");
    ApiError::new(ErrorKind::NotFound, message).hint("nacre ports shows what listens").into()
}
