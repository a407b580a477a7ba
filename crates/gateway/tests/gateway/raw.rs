//! Both ends of the proxy by hand, byte by byte: a client on the gateway's port and a supervisor
//! behind the door.

use std::sync::Arc;
use std::time::Duration;

use nacre_sandbox::fake::FakeDriver;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream};
use tokio::net::TcpStream;
use tokio::sync::Mutex;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::host::Host;

/// Long enough for a busy machine, and never waited for by a test that passes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// What comes through the doors of sandboxes that are played by the test.
pub(crate) struct Doors(Mutex<UnboundedReceiver<(String, Wire<DuplexStream>)>>);

impl Doors {
    /// And the world that these sandboxes are in.
    pub(crate) fn build() -> (FakeDriver, Self) {
        let (sender, doors) = unbounded_channel();
        let world = FakeDriver::new(Arc::new(move |_, stream| {
            let sender = sender.clone();
            Box::pin(async move {
                let mut wire = Wire(stream);
                let Some(head) = wire.try_head().await else { return };
                if head.starts_with("GET /supervisor/version ") {
                    // The gateway asks when it likes; it is none of the test's business.
                    wire.send(
                        "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}",
                    )
                    .await;
                    return;
                }
                let _ = sender.send((head, wire));
                // Only the end of the sandbox ends this.
                std::future::pending::<()>().await;
            })
        }));
        (world, Self(Mutex::new(doors)))
    }

    /// The head of the first request on the next new connection through a door.
    pub(crate) async fn arrives(&self) -> (String, Wire<DuplexStream>) {
        let mut doors = self.0.lock().await;
        within("a request arrives", doors.recv()).await.unwrap()
    }

    pub(crate) async fn nothing_arrived(&self) -> bool {
        self.0.lock().await.is_empty()
    }
}

/// A signed-in client's view of a gateway whose live sandbox is played by the test.
pub(crate) struct Stage {
    pub(crate) host: Host,
    cookie: String,
    doors: Doors,
}

impl Stage {
    pub(crate) async fn set() -> Self {
        let (world, doors) = Doors::build();
        let host = Host::start_in(world).await;
        let cookie = host.sign_in().await;
        Self { host, cookie, doors }
    }

    /// A connection to the gateway.
    pub(crate) async fn client(&self) -> Wire<TcpStream> {
        Wire(TcpStream::connect(self.host.address).await.unwrap())
    }

    /// A connection that has sent the head of a request of the owner's own page.
    pub(crate) async fn asks(&self, line: &str, headers: &str) -> Wire<TcpStream> {
        let mut client = self.client().await;
        client.send(&self.head(line, headers)).await;
        client
    }

    /// `headers` ends each line with `\r\n`.
    pub(crate) fn head(&self, line: &str, headers: &str) -> String {
        let (address, cookie) = (self.host.address, &self.cookie);
        format!(
            "{line} HTTP/1.1\r\nhost: {address}\r\norigin: http://{address}\r\n\
             cookie: {cookie}\r\n{headers}\r\n"
        )
    }

    pub(crate) async fn arrives(&self) -> (String, Wire<DuplexStream>) {
        self.doors.arrives().await
    }
}

/// One end of a connection.
pub(crate) struct Wire<S>(pub(crate) S);

impl<S: AsyncRead + AsyncWrite + Unpin> Wire<S> {
    pub(crate) async fn send(&mut self, text: impl AsRef<[u8]>) {
        within("it is sent", self.0.write_all(text.as_ref())).await.unwrap();
        within("it is sent", self.0.flush()).await.unwrap();
    }

    /// What comes next, up to and with the empty line; lower case.
    pub(crate) async fn head(&mut self) -> String {
        self.try_head().await.expect("a head, not the end")
    }

    pub(crate) async fn try_head(&mut self) -> Option<String> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            match within("a head comes", self.0.read_u8()).await {
                Ok(byte) => head.push(byte),
                Err(_) => return None,
            }
        }
        let head = String::from_utf8(head).unwrap();
        let (first, rest) = head.split_once("\r\n").unwrap();
        Some(format!("{first}\r\n{}", rest.to_lowercase()))
    }

    pub(crate) async fn expect(&mut self, text: impl AsRef<[u8]>) {
        let mut got = vec![0; text.as_ref().len()];
        within("the expected bytes come", self.0.read_exact(&mut got)).await.unwrap();
        assert_eq!(String::from_utf8_lossy(&got), String::from_utf8_lossy(text.as_ref()));
    }

    /// Everything until the other side ends, and whether it ended properly.
    pub(crate) async fn rest(&mut self) -> (String, bool) {
        let mut got = Vec::new();
        let ended = within("the end comes", self.0.read_to_end(&mut got)).await;
        (String::from_utf8(got).unwrap(), ended.is_ok())
    }

    /// The other side ends or breaks off, without another byte.
    pub(crate) async fn ends(&mut self) {
        assert_eq!(self.rest().await.0, "");
    }

    pub(crate) async fn shut(&mut self) {
        within("it is shut", self.0.shutdown()).await.unwrap();
    }
}

pub(crate) async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, future).await {
        Ok(output) => output,
        Err(_) => panic!("never: {what}"),
    }
}
