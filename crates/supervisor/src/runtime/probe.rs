//! The port of a process inside the sandbox: reaching it, and asking whether it is up.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, header};
use http_body_util::Empty;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};

const OFTEN: Duration = Duration::from_millis(50);
const SELDOM: Duration = Duration::from_millis(500);
/// How long it is asked often.
const EAGER: Duration = Duration::from_secs(10);
/// What ends right after its start was never up.
const STAYS: Duration = Duration::from_secs(1);
/// A dev server may compile before it answers its first request.
const PATIENCE: Duration = Duration::from_secs(30);

/// What shows that a process is up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Probe {
    /// That it does not end at once.
    Staying,
    /// That its port takes connections.
    Port(u16),
    /// That this path answers with less than 500.
    Path(u16, String),
}

impl Probe {
    /// Returns when the process is up.
    pub(crate) async fn until_up(&self) {
        let begun = Instant::now();
        loop {
            match self {
                Self::Staying => return sleep(STAYS).await,
                Self::Port(port) if connect(*port).await.is_ok() => return,
                Self::Path(port, path) if answers(*port, path).await => return,
                Self::Port(_) | Self::Path(..) => {}
            }
            sleep(if begun.elapsed() < EAGER { OFTEN } else { SELDOM }).await;
        }
    }
}

/// Connects to a port of this sandbox. A server that listens on "localhost" may mean either.
pub(crate) async fn connect(port: u16) -> io::Result<TcpStream> {
    let four = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port);
    let six = SocketAddr::new(IpAddr::V6(Ipv6Addr::LOCALHOST), port);
    let refused = match TcpStream::connect(four).await {
        Ok(stream) => return Ok(stream),
        Err(error) => error,
    };
    TcpStream::connect(six).await.map_err(|_| refused)
}

async fn answers(port: u16, path: &str) -> bool {
    let status = timeout(PATIENCE, status(port, path)).await;
    matches!(status, Ok(Some(status)) if status.as_u16() < 500)
}

async fn status(port: u16, path: &str) -> Option<http::StatusCode> {
    let stream = connect(port).await.ok()?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.ok()?;
    let request = Request::get(path)
        .header(header::HOST, format!("localhost:{port}"))
        .header(header::ACCEPT, "text/html,*/*")
        .body(Empty::<Bytes>::new())
        .ok()?;
    tokio::select! {
        // Ends only when the server closes without an answer.
        _ = connection => None,
        response = sender.send_request(request) => Some(response.ok()?.status()),
    }
}
