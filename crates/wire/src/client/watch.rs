//! Changes over a WebSocket.

use std::path::Path;

use tokio_tungstenite::tungstenite::Message;

use super::exec::next_message;
use super::{Client, Error, Result, WebSocket};
use crate::path::to_query;
use crate::watch::WatchMessage;

/// Changes below a path, from the moment [`Client::watch`] returned.
#[derive(Debug)]
pub struct WatchStream {
    socket: WebSocket,
}

impl Client {
    /// Returns when the supervisor is watching: a change made afterwards is reported.
    pub async fn watch(&self, path: impl AsRef<Path>) -> Result<WatchStream> {
        let socket = self.websocket(&format!("/supervisor/watch?path={}", to_query(path))).await?;
        let mut stream = WatchStream { socket };
        match stream.next().await? {
            WatchMessage::Ready { .. } => Ok(stream),
            WatchMessage::Error(error) => Err(Error::Api(error)),
            other => Err(Error::Protocol(format!("expected a ready watch, got {other:?}"))),
        }
    }
}

impl WatchStream {
    pub async fn next(&mut self) -> Result<WatchMessage> {
        match next_message(&mut self.socket).await? {
            Message::Text(text) => serde_json::from_str(&text)
                .map_err(|error| Error::Protocol(format!("unexpected message: {error}"))),
            other => Err(Error::Protocol(format!("unexpected message of {} bytes", other.len()))),
        }
    }
}
