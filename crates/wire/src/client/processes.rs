//! The processes of `nacre.toml`, their logs, and the events of a sandbox.

use std::marker::PhantomData;

use bytes::{Buf, BytesMut};
use http::{Method, Response};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde::de::DeserializeOwned;
use tokio_tungstenite::tungstenite::Message;

use super::exec::next_message;
use super::{Client, Error, Result, WebSocket, empty};
use crate::events::EventMessage;
use crate::path::text_to_query;
use crate::processes::{LogLine, ProcessInfo, ProcessList};

/// Longer than any line the supervisor keeps, written as JSON.
const LONGEST_LINE: usize = 1024 * 1024;

/// Where to go on with [`Client::events`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    pub run: String,
    pub seq: u64,
}

impl Client {
    pub async fn processes(&self) -> Result<ProcessList> {
        self.get_json("/supervisor/processes").await
    }

    pub async fn start_process(&self, name: &str) -> Result<ProcessInfo> {
        self.order(name, "start").await
    }

    /// Returns when it has ended.
    pub async fn stop_process(&self, name: &str) -> Result<ProcessInfo> {
        self.order(name, "stop").await
    }

    pub async fn restart_process(&self, name: &str) -> Result<ProcessInfo> {
        self.order(name, "restart").await
    }

    async fn order(&self, name: &str, order: &str) -> Result<ProcessInfo> {
        let path = format!("/supervisor/processes/{}/{order}", text_to_query(name));
        super::read_json(self.send(self.request(Method::POST, &path, empty())?).await?).await
    }

    /// The lines after `after`; with `follow` the stream does not end before the process is gone
    /// from `nacre.toml`.
    pub async fn process_log(&self, name: &str, after: u64, follow: bool) -> Result<LogReader> {
        let name = text_to_query(name);
        let path = format!("/supervisor/processes/{name}/log?after={after}&follow={follow}");
        let response = self.send(self.request(Method::GET, &path, empty())?).await?;
        Ok(LineReader::new(response))
    }

    /// What happens from now on, or since what was seen last.
    pub async fn events(&self, seen: Option<&Seen>) -> Result<EventStream> {
        let path = match seen {
            Some(Seen { run, seq }) => format!("/ws?after={seq}&run={}", text_to_query(run)),
            None => "/ws".to_owned(),
        };
        Ok(EventStream { socket: self.websocket(&path).await? })
    }
}

/// Lines of a log as they come.
pub type LogReader = LineReader<LogLine>;

/// One JSON object a line, as they come.
#[derive(Debug)]
pub struct LineReader<T> {
    body: Incoming,
    buffer: BytesMut,
    lines: PhantomData<fn() -> T>,
}

impl<T: DeserializeOwned> LineReader<T> {
    pub(super) fn new(response: Response<Incoming>) -> Self {
        Self { body: response.into_body(), buffer: BytesMut::new(), lines: PhantomData }
    }

    /// `None` at the end.
    pub async fn next(&mut self) -> Result<Option<T>> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line = self.buffer.split_to(end);
                self.buffer.advance(1);
                return serde_json::from_slice(&line).map(Some).map_err(Error::protocol);
            }
            if self.buffer.len() > LONGEST_LINE {
                return Err(Error::Protocol("a line has no end".to_owned()));
            }
            match self.body.frame().await {
                None => return Ok(None),
                Some(frame) => {
                    if let Ok(data) = frame.map_err(Error::protocol)?.into_data() {
                        self.buffer.extend_from_slice(&data);
                    }
                }
            }
        }
    }
}

/// Events as they come, the hello first.
#[derive(Debug)]
pub struct EventStream {
    socket: WebSocket,
}

impl EventStream {
    pub async fn next(&mut self) -> Result<EventMessage> {
        match next_message(&mut self.socket).await? {
            Message::Text(text) => serde_json::from_str(&text)
                .map_err(|error| Error::Protocol(format!("unexpected message: {error}"))),
            other => Err(Error::Protocol(format!("unexpected message of {} bytes", other.len()))),
        }
    }
}
