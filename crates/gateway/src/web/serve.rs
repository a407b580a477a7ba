//! Accept loops: hyper over TCP and over the unix socket.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;

use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::{Entrance, Site};

/// A client that opens a connection and says nothing is let go.
const HEADER_TIMEOUT: Duration = Duration::from_secs(30);
/// After a failed accept (such as no file descriptors left), so that the loop does not spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

#[derive(Clone)]
pub(crate) struct Server {
    pub(crate) site: Site,
    pub(crate) connections: TaskTracker,
    pub(crate) stop: CancellationToken,
}

impl Server {
    pub(crate) async fn accept_tcp(self, listener: TcpListener) {
        loop {
            let accepted = tokio::select! {
                () = self.stop.cancelled() => return,
                accepted = listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, peer)) => {
                    // Small frames (keystrokes) must not wait for full packets.
                    let _ = stream.set_nodelay(true);
                    self.serve(stream, Entrance::Tcp(peer));
                }
                Err(error) => self.accept_failed(&error).await,
            }
        }
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
                        self.serve(stream, Entrance::Unix);
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

    fn serve<S>(&self, stream: S, entrance: Entrance)
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let (site, stop) = (self.site.clone(), self.stop.clone());
        self.connections.spawn(async move {
            let service = service_fn(move |request: Request<Incoming>| {
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
        });
    }
}

/// Binding, with an error that names the address.
pub(crate) async fn bind_tcp(address: SocketAddr) -> std::io::Result<TcpListener> {
    TcpListener::bind(address).await
}
