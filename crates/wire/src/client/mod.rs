//! A typed client for a supervisor (or the gateway's control plane) over any byte stream.
//!
//! [`Client`] owns a small stack of idle connections and nothing else; it is cheap to clone and
//! safe to share. Commands and watches each take a connection of their own.

mod conductor;
mod desktop;
mod egress;
mod exec;
mod files;
mod history;
mod ports;
mod processes;
mod runs;
mod watch;

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Empty, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite;
use tokio_tungstenite::tungstenite::client::ClientRequestBuilder;

use crate::error::ErrorBody;
use crate::generation::{self, Range};
use crate::relay::{Answer, Link, Raw, Upload};
use crate::status::{Health, SupervisorStats, Version};
use crate::{ApiError, ErrorKind};

pub use conductor::ConversationStream;
pub use exec::{ExecEvent, ExecInput, ExecOutput, ExecSession, Finished};
pub use files::{ReadRange, WriteOptions};
pub use history::{Attended, ListHistory};
pub use processes::{EventStream, LineReader, LogReader, Seen};
pub use runs::RunEvents;
pub use watch::WatchStream;

/// A connection to the other side of a door.
pub trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin + std::fmt::Debug {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin + std::fmt::Debug> ByteStream for T {}
pub type BoxStream = Box<dyn ByteStream>;

pub type BoxError = Box<dyn std::error::Error + Send + Sync>;
pub type Body = UnsyncBoxBody<Bytes, BoxError>;
pub type WebSocket = WebSocketStream<BoxStream>;

/// Opens connections. Called whenever no idle one is left.
#[async_trait]
pub trait Dial: Send + Sync {
    async fn dial(&self) -> io::Result<BoxStream>;
}

/// Dials a unix socket by its path.
#[derive(Debug, Clone)]
pub struct UnixDial(pub PathBuf);

#[async_trait]
impl Dial for UnixDial {
    async fn dial(&self) -> io::Result<BoxStream> {
        Ok(Box::new(tokio::net::UnixStream::connect(&self.0).await?))
    }
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The other side understood and refused.
    #[error("{0}")]
    Api(#[from] ApiError),
    #[error("cannot connect: {0}")]
    Connect(#[source] io::Error),
    /// The connection broke, or what came over it makes no sense.
    #[error("{0}")]
    Protocol(String),
}

impl Error {
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Api(error) => error.kind,
            Self::Connect(_) => ErrorKind::Unavailable,
            Self::Protocol(_) => ErrorKind::Internal,
        }
    }

    fn protocol(error: impl std::fmt::Display) -> Self {
        Self::Protocol(error.to_string())
    }
}

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Idle connections beyond this are closed.
const MAX_IDLE: usize = 8;
/// Large enough that a stream moves in few system calls.
const BUFFER: usize = 1 << 20;

/// See the [module](self).
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

struct Inner {
    dial: Arc<dyn Dial>,
    prefix: String,
    speaks: Range,
    /// What the other side is called, and what lets us in there.
    host: HeaderValue,
    authorization: Option<HeaderValue>,
    idle: Mutex<Vec<SendRequest<Body>>>,
}

impl Client {
    /// `prefix` stands before every path: empty for a supervisor's own door.
    pub fn new(dial: Arc<dyn Dial>, prefix: &str) -> Self {
        Self::speaking(dial, prefix, Range::OURS)
    }

    /// As [`Client::new`], offering other generations than our own.
    pub fn speaking(dial: Arc<dyn Dial>, prefix: &str, speaks: Range) -> Self {
        let inner = Inner {
            dial,
            prefix: prefix.to_owned(),
            speaks,
            host: HeaderValue::from_static("nacre"),
            authorization: None,
            idle: Mutex::default(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// The same for a gateway on another machine, which wants its own name and a token.
    pub fn authorized(&self, host: &str, token: &str) -> Result<Self> {
        let mut authorization =
            HeaderValue::try_from(format!("Bearer {token}")).map_err(Error::protocol)?;
        authorization.set_sensitive(true);
        let host = HeaderValue::try_from(host).map_err(Error::protocol)?;
        Ok(self.with(&self.inner.prefix, host, Some(authorization)))
    }

    fn with(&self, prefix: &str, host: HeaderValue, authorization: Option<HeaderValue>) -> Self {
        let inner = Inner {
            dial: self.inner.dial.clone(),
            prefix: prefix.to_owned(),
            speaks: self.inner.speaks,
            host,
            authorization,
            idle: Mutex::default(),
        };
        Self { inner: Arc::new(inner) }
    }

    pub fn unix(path: impl Into<PathBuf>) -> Self {
        Self::new(Arc::new(UnixDial(path.into())), "")
    }

    /// The same connections with another prefix.
    pub fn under(&self, prefix: &str) -> Self {
        self.with(prefix, self.inner.host.clone(), self.inner.authorization.clone())
    }

    pub async fn health(&self) -> Result<Health> {
        self.get_json("/supervisor/health").await
    }

    pub async fn version(&self) -> Result<Version> {
        self.get_json("/supervisor/version").await
    }

    pub async fn stats(&self) -> Result<SupervisorStats> {
        self.get_json("/supervisor/stats").await
    }

    pub async fn get_json<T: DeserializeOwned>(&self, path: &str) -> Result<T> {
        read_json(self.send(self.request(Method::GET, path, empty())?).await?).await
    }

    pub async fn post_json<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T> {
        read_json(self.send(self.json_request(Method::POST, path, body)?).await?).await
    }

    pub async fn delete(&self, path: &str) -> Result<()> {
        drain(self.send(self.request(Method::DELETE, path, empty())?).await?).await
    }

    /// A request with this client's prefix and protocol header.
    pub fn request(&self, method: Method, path: &str, body: Body) -> Result<Request<Body>> {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.inner.prefix))
            .header(header::HOST, self.inner.host.clone())
            .header(generation::HEADER, self.inner.speaks.to_string())
            .body(body)
            .map_err(Error::protocol)?;
        if let Some(authorization) = &self.inner.authorization {
            request.headers_mut().insert(header::AUTHORIZATION, authorization.clone());
        }
        Ok(request)
    }

    fn json_request(
        &self,
        method: Method,
        path: &str,
        body: &impl Serialize,
    ) -> Result<Request<Body>> {
        let json = serde_json::to_vec(body).map_err(Error::protocol)?;
        let mut request = self.request(method, path, full(json))?;
        request
            .headers_mut()
            .insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        Ok(request)
    }

    /// Sends it and returns the answer, with an error status turned into [`Error::Api`].
    pub async fn send(&self, request: Request<Body>) -> Result<Response<Incoming>> {
        let response = self.send_raw(request).await?;
        if let Some(chosen) = response.headers().get(generation::HEADER) {
            self.check_generation(chosen)?;
        }
        let status = response.status();
        if status.is_success() || status == StatusCode::NOT_MODIFIED {
            return Ok(response);
        }
        let body = response.into_body().collect().await.map_err(Error::protocol)?.to_bytes();
        Err(error_from(status, &body))
    }

    fn check_generation(&self, chosen: &HeaderValue) -> Result<()> {
        let ours = self.inner.speaks;
        let chosen = chosen.to_str().ok().and_then(|text| text.parse::<Range>().ok());
        match chosen.and_then(|theirs| ours.agree(theirs)) {
            Some(_) => Ok(()),
            None => Err(Error::Api(
                ApiError::new(
                    ErrorKind::Incompatible,
                    format!("the supervisor speaks no protocol generation of ours ({ours})"),
                )
                .hint("restart the sandbox so that it gets the current supervisor"),
            )),
        }
    }

    /// Sends it and returns the answer, whatever its status is.
    pub async fn send_raw(&self, mut request: Request<Body>) -> Result<Response<Incoming>> {
        // An idle connection may have been closed by the other side since; a request that was not
        // sent at all comes back and goes out on the next one.
        while let Some(mut sender) = self.take_idle() {
            match sender.try_send_request(request).await {
                Ok(response) => {
                    self.keep(sender);
                    return Ok(response);
                }
                Err(mut error) => match error.take_message() {
                    Some(unsent) => request = unsent,
                    None => return Err(Error::protocol(error.into_error())),
                },
            }
        }
        let mut sender = self.connect().await?;
        let response = sender.send_request(request).await.map_err(Error::protocol)?;
        self.keep(sender);
        Ok(response)
    }

    async fn connect(&self) -> Result<SendRequest<Body>> {
        let stream = self.inner.dial.dial().await.map_err(Error::Connect)?;
        let (sender, connection) = http1::Builder::new()
            .max_buf_size(BUFFER)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(Error::protocol)?;
        tokio::spawn(async move {
            // Whoever waits for the response learns of a broken connection there.
            let _ = connection.await;
        });
        Ok(sender)
    }

    /// An idle connection whose last response has been read to its end.
    fn take_idle(&self) -> Option<SendRequest<Body>> {
        let mut idle = self.idle();
        idle.retain(|sender| !sender.is_closed());
        let ready = idle.iter().rposition(SendRequest::is_ready)?;
        Some(idle.swap_remove(ready))
    }

    fn keep(&self, sender: SendRequest<Body>) {
        let mut idle = self.idle();
        if idle.len() < MAX_IDLE {
            idle.push(sender);
        }
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<SendRequest<Body>>> {
        self.inner.idle.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Turns a connection of its own into one that carries `protocol` as raw bytes from here on.
    pub async fn switch(&self, path: &str, protocol: &'static str) -> Result<Raw> {
        let request = self.request(Method::GET, path, empty())?;
        // Not the boxed kind: the compiler cannot see that what drives it may change threads.
        let mut request = request.map(|_| Empty::<Bytes>::new());
        let headers = request.headers_mut();
        headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(header::UPGRADE, HeaderValue::from_static(protocol));
        let stream = self.inner.dial.dial().await.map_err(Error::Connect)?;
        let link = Link::open(stream, None).await.map_err(Error::protocol)?;
        let answer = link.exchange(Upload::of(request)).await;
        match answer.map_err(|failed| Error::protocol(failed.error))? {
            Answer::Switched(response, raw) => {
                if let Some(chosen) = response.headers().get(generation::HEADER) {
                    self.check_generation(chosen)?;
                }
                Ok(raw)
            }
            Answer::Response(response) => {
                let status = response.status();
                let body = response.into_body().collect().await.map_err(Error::protocol)?;
                Err(error_from(status, &body.to_bytes()))
            }
        }
    }

    /// Opens a WebSocket on a connection of its own.
    pub async fn websocket(&self, path: &str) -> Result<WebSocket> {
        let stream = self.inner.dial.dial().await.map_err(Error::Connect)?;
        let host = self.inner.host.to_str().map_err(Error::protocol)?;
        let uri = format!("ws://{host}{}{path}", self.inner.prefix);
        let mut request = ClientRequestBuilder::new(uri.parse().map_err(Error::protocol)?)
            .with_header(generation::HEADER, self.inner.speaks.to_string());
        if let Some(authorization) = &self.inner.authorization {
            let authorization = authorization.to_str().map_err(Error::protocol)?;
            request = request.with_header("authorization", authorization);
        }
        match tokio_tungstenite::client_async(request, stream).await {
            Ok((socket, response)) => {
                if let Some(chosen) = response.headers().get(generation::HEADER) {
                    self.check_generation(chosen)?;
                }
                Ok(socket)
            }
            Err(tungstenite::Error::Http(response)) => {
                Err(error_from(response.status(), response.body().as_deref().unwrap_or_default()))
            }
            Err(error) => Err(Error::protocol(error)),
        }
    }
}

pub fn empty() -> Body {
    Empty::new().map_err(|never| match never {}).boxed_unsync()
}

pub fn full(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).map_err(|never| match never {}).boxed_unsync()
}

async fn read_json<T: DeserializeOwned>(response: Response<Incoming>) -> Result<T> {
    let body = response.into_body().collect().await.map_err(Error::protocol)?.to_bytes();
    serde_json::from_slice(&body)
        .map_err(|error| Error::Protocol(format!("unexpected answer from the supervisor: {error}")))
}

async fn drain(response: Response<Incoming>) -> Result<()> {
    response.into_body().collect().await.map_err(Error::protocol)?;
    Ok(())
}

fn error_from(status: StatusCode, body: &[u8]) -> Error {
    match serde_json::from_slice::<ErrorBody>(body) {
        Ok(body) => Error::Api(body.error),
        Err(_) => Error::Protocol(format!("unexpected status {status}")),
    }
}
