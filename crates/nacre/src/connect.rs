//! The way from a command to the gateway of its data directory.

use std::path::Path;

use nacre_gateway::SOCKET_FILE;
use nacre_wire::client::{Client, empty, full};
use nacre_wire::control::GatewayStatus;
use serde::Serialize;

use crate::failure::{Failure, Result};
use crate::remote::Remote;

/// A gateway that answered.
pub(crate) struct Gateway {
    pub(crate) client: Client,
}

impl Gateway {
    pub(crate) async fn connect(data_dir: &Path) -> Result<Self> {
        match Self::find(data_dir).await? {
            Some((gateway, _)) => Ok(gateway),
            None => Err(Failure::new(format!("no gateway runs for {}", data_dir.display()))
                .hint("start it with: nacre up --detach")),
        }
    }

    /// `None` when nobody listens.
    pub(crate) async fn find(data_dir: &Path) -> Result<Option<(Self, GatewayStatus)>> {
        let client = Client::unix(data_dir.join(SOCKET_FILE));
        match client.get_json("/admin/sandboxes/gateway").await {
            Ok(status) => Ok(Some((Self { client }, status))),
            Err(nacre_wire::client::Error::Connect(error)) => match error.kind() {
                std::io::ErrorKind::NotFound | std::io::ErrorKind::ConnectionRefused => Ok(None),
                _ => Err(Failure::io(data_dir.join(SOCKET_FILE).display(), &error)),
            },
            Err(error) => Err(error.into()),
        }
    }

    /// One on another machine.
    pub(crate) async fn remote(remote: &Remote) -> Result<(Self, GatewayStatus)> {
        let client = remote.client();
        match client.get_json("/admin/sandboxes/gateway").await {
            Ok(status) => Ok((Self { client }, status)),
            Err(nacre_wire::client::Error::Connect(error)) => Err(Failure::io(&remote.url, &error)),
            Err(error) => Err(error.into()),
        }
    }

    /// That sandbox's supervisor.
    pub(crate) fn door(&self, sandbox: &str) -> Client {
        let name = nacre_wire::path::text_to_query(sandbox);
        self.client.under(&format!("/admin/sandboxes/{name}/door"))
    }

    /// A call whose answer has nothing to say.
    pub(crate) async fn post(&self, path: &str, body: &impl Serialize) -> Result<()> {
        let body = serde_json::to_vec(body).map_err(|error| Failure::new(error.to_string()))?;
        let request = self.client.request(http::Method::POST, path, full(body))?;
        self.client.send(request).await?;
        Ok(())
    }
}

/// Streams an answer's body to standard output.
pub(crate) async fn copy_to_stdout(client: &Client, path: &str) -> Result<()> {
    let request = client.request(http::Method::GET, path, empty())?;
    pour_to_stdout(client.send(request).await?).await
}

pub(crate) async fn pour_to_stdout(answer: http::Response<hyper::body::Incoming>) -> Result<()> {
    use http_body_util::BodyExt;
    let mut body = answer.into_body();
    while let Some(frame) = body.frame().await {
        let frame =
            frame.map_err(|error| Failure::new(format!("the stream broke off: {error}")))?;
        if let Ok(data) = frame.into_data() {
            write_raw(&data)?;
        }
    }
    Ok(())
}

fn write_raw(data: &[u8]) -> Result<()> {
    use std::io::Write;
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(data).and_then(|()| stdout.flush()).map_err(|error| match error.kind() {
        std::io::ErrorKind::BrokenPipe => Failure::BrokenPipe,
        _ => Failure::io("standard output", &error),
    })
}
