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
use tokio_util::task::AbortOnDropHandle;

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
    pub(crate) fn port(&self) -> Option<u16> {
        match self {
            Self::Staying => None,
            Self::Port(port) | Self::Path(port, _) => Some(*port),
        }
    }

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

/// One that nothing listens on now.
pub(crate) fn free_port() -> Option<u16> {
    let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).ok()?;
    Some(listener.local_addr().ok()?.port())
}

/// Whether anything at all comes back in time. A server that starts itself anew refuses connections
/// for a moment.
pub(crate) async fn responds(port: u16, path: &str, patience: Duration) -> bool {
    let answered = async {
        while status(port, path).await.is_none() {
            sleep(OFTEN).await;
        }
    };
    timeout(patience, answered).await.is_ok()
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
    // Not raced with the answer: one that is short comes with the end of its connection.
    let _connection = AbortOnDropHandle::new(tokio::spawn(connection));
    Some(sender.send_request(request).await.ok()?.status())
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    /// What a server that says this, and closes, is taken for.
    async fn check(answer: &'static str, expected: Option<u16>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let _ = stream.read(&mut [0; 1024]).await;
            stream.write_all(answer.as_bytes()).await.unwrap();
        });
        assert_eq!(status(port, "/").await.map(|status| status.as_u16()), expected, "{answer:?}");
        server.await.unwrap();
    }

    #[tokio::test]
    async fn an_answer_that_ends_its_connection_is_heard() {
        check("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi", Some(200))
            .await;
        check("HTTP/1.0 404 Not Found\r\n\r\n", Some(404)).await;
        check("", None).await;
        check("HTTP/1.1 2", None).await;
    }
}
