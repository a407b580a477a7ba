//! The HTTP proxy: `CONNECT` for whatever a client encrypts itself, and plain requests, streamed.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::header::{self, HeaderName, HeaderValue};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{Method, Request, Response, StatusCode, Uri};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use nacre_wire::client::{BoxError, Client};
use nacre_wire::relay::{Answer, Link, Pool, Upload, join};
use nacre_wire::{ApiError, ErrorKind};
use tokio::net::TcpStream;

use super::PATIENCE;
use super::reply::{reach, words};
use crate::runtime::keep_end_to_end;

const BUFFER: usize = 128 * 1024;
const HTTP: u16 = 80;

type Body = UnsyncBoxBody<Bytes, BoxError>;

/// A client's connection, and the one that its last plain request went out by.
struct Visit {
    host: Client,
    last: Mutex<Option<(Authority, Arc<Pool<Incoming>>)>>,
}

pub(super) async fn serve(stream: TcpStream, host: Client) {
    let visit = Arc::new(Visit { host, last: Mutex::default() });
    let service = service_fn(move |request| {
        let visit = Arc::clone(&visit);
        async move {
            let answered = visit.answer(request).await;
            Ok::<_, Infallible>(answered.unwrap_or_else(|error| refuse(&error)))
        }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(PATIENCE)
        .max_buf_size(BUFFER)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades()
        .await;
    if let Err(error) = served {
        tracing::debug!(%error, "a client of the proxy went away");
    }
}

impl Visit {
    async fn answer(&self, request: Request<Incoming>) -> Result<Response<Body>, ApiError> {
        match (request.method(), request.uri().scheme()) {
            (&Method::CONNECT, _) => self.tunnel(request).await,
            (_, Some(scheme)) if *scheme == Scheme::HTTP => self.forward(request).await,
            (_, Some(_)) => Err(invalid("a proxy is asked for this with CONNECT")),
            (_, None) => Err(invalid(
                "this is the way out of the sandbox, an HTTP and SOCKS5 proxy",
            )
            .hint("programs use it when HTTP_PROXY and HTTPS_PROXY name it, as they do here")),
        }
    }

    async fn tunnel(&self, mut request: Request<Incoming>) -> Result<Response<Body>, ApiError> {
        let (name, port) = match request.uri().authority() {
            Some(authority) => (bare(authority), port_of(authority)?),
            None => return Err(invalid("CONNECT wants a host and a port")),
        };
        let port = port.ok_or_else(|| invalid("CONNECT wants a port"))?;
        let raw = reach(&self.host, &name, port).await?;
        let client = hyper::upgrade::on(&mut request);
        tokio::task::spawn_local(async move {
            if let Ok(client) = client.await {
                // Past the parser, which has no more to do with it.
                match client.downcast::<TokioIo<TcpStream>>() {
                    Ok(parts) => {
                        let near = parts.io.into_inner();
                        pass(near, parts.read_buf, raw).await;
                    }
                    Err(client) => pass(TokioIo::new(client), Bytes::new(), raw).await,
                }
            }
        });
        Ok(Response::new(text(String::new())))
    }

    async fn forward(&self, mut request: Request<Incoming>) -> Result<Response<Body>, ApiError> {
        let authority = request.uri().authority().cloned();
        let authority = authority.ok_or_else(|| invalid("there is no host in the address"))?;
        let client = request
            .headers()
            .contains_key(header::UPGRADE)
            .then(|| hyper::upgrade::on(&mut request));
        outward(&mut request, &authority)?;
        let pool = self.pool(&authority);
        let mut request = Upload::of(request);
        if let Some(link) = pool.take() {
            match link.exchange(request).await {
                Ok(answer) => return give(answer, client),
                Err(failed) => match failed.unsent {
                    Some(unsent) => request = *unsent,
                    None => return Err(broke_off(&authority, failed.error)),
                },
            }
        }
        let port = port_of(&authority)?.unwrap_or(HTTP);
        let raw = reach(&self.host, &bare(&authority), port).await?;
        let failed = |error| broke_off(&authority, error);
        let link = Link::open(raw.stream, Some(pool)).await.map_err(failed)?;
        let answer = link.exchange(request).await.map_err(|broken| failed(broken.error))?;
        give(answer, client)
    }

    /// Connections to the host that was asked last; those to another are let go.
    fn pool(&self, authority: &Authority) -> Arc<Pool<Incoming>> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        match &*last {
            Some((known, pool)) if known == authority => Arc::clone(pool),
            _ => {
                let pool = Arc::new(Pool::default());
                *last = Some((authority.clone(), Arc::clone(&pool)));
                pool
            }
        }
    }
}

/// `early` is what the client sent right behind its request.
async fn pass<S>(client: S, early: Bytes, raw: nacre_wire::relay::Raw)
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
{
    use nacre_wire::relay::{Side, Tunnel};
    let tunnel = Tunnel::new(client, raw.stream).early(Side::Near, early);
    let mut tunnel = tunnel.early(Side::Far, raw.early);
    std::future::poll_fn(|cx| tunnel.poll(cx, &mut |_, _| {})).await;
}

fn give(
    answer: Answer<Incoming>,
    client: Option<hyper::upgrade::OnUpgrade>,
) -> Result<Response<Body>, ApiError> {
    match answer {
        Answer::Response(mut response) => {
            keep_end_to_end(response.headers_mut(), false);
            Ok(response.map(|body| body.map_err(BoxError::from).boxed_unsync()))
        }
        Answer::Switched(mut response, raw) => {
            let Some(client) = client else {
                return Err(ApiError::new(ErrorKind::Unreachable, "it switched protocols unasked"));
            };
            keep_end_to_end(response.headers_mut(), true);
            tokio::task::spawn_local(async move {
                if let Ok(client) = client.await {
                    join(TokioIo::new(client), raw.stream, raw.early).await;
                }
            });
            Ok(response.map(|()| text(String::new())))
        }
    }
}

/// From what a proxy is asked to what a server is asked.
fn outward(request: &mut Request<Incoming>, authority: &Authority) -> Result<(), ApiError> {
    let path = request.uri().path_and_query().cloned();
    *request.uri_mut() = Uri::from(path.unwrap_or(PathAndQuery::from_static("/")));
    *request.version_mut() = http::Version::HTTP_11;
    let headers = request.headers_mut();
    let upgrading = headers.contains_key(header::UPGRADE);
    keep_end_to_end(headers, upgrading);
    headers.remove(HeaderName::from_static("proxy-authorization"));
    // The address decides, not what the client says besides (RFC 9112, 3.2.2).
    let named = authority.as_str().rsplit('@').next().unwrap_or_default();
    let named = HeaderValue::from_str(named).map_err(|_| invalid("the host is no host"))?;
    headers.insert(header::HOST, named);
    Ok(())
}

/// Without the brackets of an IPv6 address.
fn bare(authority: &Authority) -> String {
    authority.host().trim_start_matches('[').trim_end_matches(']').to_owned()
}

/// What is no port is not passed over: it would lead to another than was asked for.
fn port_of(authority: &Authority) -> Result<Option<u16>, ApiError> {
    let named = authority.as_str().rsplit('@').next().unwrap_or_default();
    match named.strip_prefix(authority.host()) {
        Some("" | ":") => Ok(None),
        _ => authority.port_u16().map(Some).ok_or_else(|| invalid("the port is no port")),
    }
}

fn invalid(message: &str) -> ApiError {
    ApiError::new(ErrorKind::InvalidRequest, message)
}

fn broke_off(authority: &Authority, error: std::io::Error) -> ApiError {
    ApiError::new(ErrorKind::Unreachable, format!("{authority} broke off: {error}"))
}

fn refuse(error: &ApiError) -> Response<Body> {
    let mut response = Response::new(text(words(error)));
    *response.status_mut() = match error.kind {
        ErrorKind::Internal => StatusCode::BAD_GATEWAY,
        kind => kind.status(),
    };
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

fn text(text: String) -> Body {
    Full::new(Bytes::from(text)).map_err(|never: Infallible| match never {}).boxed_unsync()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_a_port_or_absent() {
        let port = |text: &str| port_of(&text.parse().unwrap()).ok();
        for (text, expected) in [
            ("a.example", Some(None)),
            ("a.example:", Some(None)),
            ("me:80@a.example", Some(None)),
            ("a.example:8080", Some(Some(8080))),
            ("me:1@[::1]:443", Some(Some(443))),
            ("a.example:99999", None),
            ("a.example:8o", None),
        ] {
            assert_eq!(port(text), expected, "{text}");
        }
    }
}
