//! Accept loops: hyper over TCP, in TLS or not, and over the unix socket.
//!
//! Browsers are served by the lanes, the command line by the runtime that started the gateway.
//! HTTP/2 is spoken where TLS agreed on it. It is not told to carry WebSockets, so browsers open
//! those over HTTP/1.1, where they are raw bytes like any other upgrade.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustix::net::sockopt;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::lanes::Lanes;
use super::lean::{self, Begun, Rest};
use super::{Entrance, Site};
use crate::tls;

/// A client that opens a connection and says nothing is let go.
pub(super) const HEADER_TIMEOUT: Duration = Duration::from_secs(30);
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// What one HTTP/2 connection may have under way, and how much of a body may be on its way.
const STREAMS: u32 = 128;
const STREAM_WINDOW: u32 = 1024 * 1024;
const CONNECTION_WINDOW: u32 = 4 * 1024 * 1024;
/// A peer that vanished without a word is noticed by this.
const PING_EVERY: Duration = Duration::from_secs(30);
/// And by this where nothing is said for long, such as on a socket of an app that has nothing to say: two
/// minutes later it is let go. What was sent and not confirmed the system gives up by itself, after a
/// quarter of an hour. Sooner (`TCP_USER_TIMEOUT`) would end a client as well that does not read for a
/// while, such as a film that is paused.
const IDLE: Duration = Duration::from_secs(60);
const PROBE_EVERY: Duration = Duration::from_secs(15);
const PROBES: u32 = 4;
/// After a failed accept (such as no file descriptors left), so that the loop does not spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

#[derive(Clone)]
pub(crate) struct Server {
    pub(crate) site: Site,
    pub(crate) connections: TaskTracker,
    pub(crate) stop: CancellationToken,
    /// Whether plain requests take the short way.
    pub(crate) lean: bool,
}

impl Server {
    pub(crate) async fn accept_tcp(
        self,
        listener: TcpListener,
        tls: Option<TlsAcceptor>,
        lanes: Arc<Lanes>,
    ) {
        loop {
            let accepted = tokio::select! {
                () = self.stop.cancelled() => return,
                accepted = listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, peer)) => {
                    // Small frames (keystrokes) must not wait for full packets.
                    let _ = stream.set_nodelay(true);
                    if let Err(error) = keep_looking(&stream) {
                        tracing::debug!(%error, "a connection is not looked after");
                    }
                    match stream.into_std() {
                        Ok(stream) => self.serve_on(&lanes, stream, peer, tls.clone()),
                        Err(error) => self.accept_failed(&error).await,
                    }
                }
                Err(error) => self.accept_failed(&error).await,
            }
        }
    }

    /// A stream belongs to the runtime that it was made in, so it is made again over there.
    fn serve_on(
        &self,
        lanes: &Lanes,
        stream: std::net::TcpStream,
        peer: SocketAddr,
        tls: Option<TlsAcceptor>,
    ) {
        let (this, token) = (self.clone(), self.connections.token());
        lanes.spawn(move || async move {
            let _token = token;
            match (TcpStream::from_std(stream), tls) {
                (Ok(stream), Some(tls)) => this.serve_tls(tls, stream, peer).await,
                (Ok(stream), None) => this.serve_browser(stream, peer).await,
                (Err(error), _) => tracing::warn!(%error, "a connection was not taken over"),
            }
        });
    }

    pub(crate) async fn accept_unix(self, listener: UnixListener) {
        let us = rustix::process::getuid().as_raw();
        loop {
            let accepted = tokio::select! {
                () = self.stop.cancelled() => return,
                accepted = listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, _)) => match stream.peer_cred() {
                    Ok(peer) if peer.uid() == us || peer.uid() == 0 => {
                        self.connections.spawn(self.clone().serve(stream, Entrance::Unix, None));
                    }
                    Ok(peer) => tracing::warn!(uid = peer.uid(), "refused on the unix socket"),
                    Err(error) => tracing::warn!(%error, "a peer without credentials"),
                },
                Err(error) => self.accept_failed(&error).await,
            }
        }
    }

    async fn accept_failed(&self, error: &std::io::Error) {
        tracing::warn!(%error, "a connection was not accepted");
        tokio::time::sleep(ACCEPT_PAUSE).await;
    }

    async fn serve_tls(self, tls: TlsAcceptor, stream: TcpStream, peer: SocketAddr) {
        let handshake = tokio::time::timeout(HANDSHAKE_TIMEOUT, tls.accept(stream)).await;
        match handshake {
            Ok(Ok(stream)) if tls::is_http2(&stream) => self.serve_http2(stream, peer).await,
            Ok(Ok(stream)) => self.serve_browser(stream, peer).await,
            Ok(Err(error)) => tracing::debug!(%peer, %error, "a TLS handshake failed"),
            Err(_) => tracing::debug!(%peer, "a TLS handshake took too long"),
        }
    }

    /// The short way, as long as it lasts.
    async fn serve_browser<S>(self, stream: S, peer: SocketAddr)
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let rest = match self.lean {
            true => lean::serve(&self.site, &self.stop, stream, peer).await,
            false => Some(Rest::whole(stream)),
        };
        if let Some(Rest { stream, begun }) = rest {
            self.serve(stream, Entrance::Tcp(peer), begun).await;
        }
    }

    /// `begun` is about the first request.
    async fn serve<S>(self, stream: S, entrance: Entrance, begun: Option<Begun>)
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let Self { site, stop, .. } = self;
        let begun = Mutex::new(begun);
        let service = service_fn(move |mut request: Request<Incoming>| {
            if let Some(begun) = begun.lock().unwrap_or_else(PoisonError::into_inner).take() {
                request.extensions_mut().insert(begun);
            }
            let site = site.clone();
            async move { Ok::<_, Infallible>(site.answer(entrance, request).await) }
        });
        let mut connection = std::pin::pin!(
            http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEADER_TIMEOUT)
                .serve_connection(TokioIo::new(stream), service)
                .with_upgrades()
        );
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            () = stop.cancelled() => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "a connection ended early");
        }
    }

    async fn serve_http2(self, stream: TlsStream<TcpStream>, peer: SocketAddr) {
        let Self { site, stop, .. } = self;
        let service = service_fn(move |request: Request<Incoming>| {
            let site = site.clone();
            async move { Ok::<_, Infallible>(site.answer(Entrance::Tcp(peer), request).await) }
        });
        let mut connection = std::pin::pin!(
            http2::Builder::new(TokioExecutor::new())
                .timer(TokioTimer::new())
                .max_concurrent_streams(STREAMS)
                .initial_stream_window_size(STREAM_WINDOW)
                .initial_connection_window_size(CONNECTION_WINDOW)
                .keep_alive_interval(PING_EVERY)
                .serve_connection(TokioIo::new(stream), service)
        );
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            () = stop.cancelled() => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "a connection ended early");
        }
    }
}

fn keep_looking(stream: &TcpStream) -> rustix::io::Result<()> {
    sockopt::set_tcp_keepidle(stream, IDLE)?;
    sockopt::set_tcp_keepintvl(stream, PROBE_EVERY)?;
    sockopt::set_tcp_keepcnt(stream, PROBES)?;
    sockopt::set_socket_keepalive(stream, true)
}

/// Binding, with an error that names the address.
pub(crate) async fn bind_tcp(address: SocketAddr) -> std::io::Result<TcpListener> {
    TcpListener::bind(address).await
}
