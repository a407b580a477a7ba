//! Commands over a WebSocket.

use bytes::Bytes;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use serde::Serialize;
use tokio_tungstenite::tungstenite::Message;

use super::{Client, Error, Result, WebSocket};
use crate::exec::{
    ClientControl, CommandInfo, CommandList, ExecRequest, Exit, ServerControl, SignalRequest,
    Stream, TtySize,
};
use crate::path::text_to_query;

/// A command this client started or is attached to.
#[derive(Debug)]
pub struct ExecSession {
    pub id: String,
    pub pid: i32,
    socket: WebSocket,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExecEvent {
    Stdout(Bytes),
    Stderr(Bytes),
    /// Output this follower was too slow for.
    Gap(u64),
    /// Always the last.
    Exit(Exit),
}

/// A command that ran to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    pub exit: Exit,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
}

impl Client {
    /// Starts a command; dropping the session ends it unless the request says `detach`.
    pub async fn exec(&self, request: ExecRequest) -> Result<ExecSession> {
        let mut socket = self.websocket("/supervisor/exec").await?;
        send(&mut socket, &ClientControl::Start(Box::new(request))).await?;
        ExecSession::open(socket).await
    }

    /// Runs a command without input and gathers what it writes.
    pub async fn run(&self, request: ExecRequest) -> Result<Finished> {
        let (_input, mut output) = self.exec(request).await?.split();
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        loop {
            match output.next().await? {
                ExecEvent::Stdout(bytes) => stdout.extend_from_slice(&bytes),
                ExecEvent::Stderr(bytes) => stderr.extend_from_slice(&bytes),
                ExecEvent::Gap(_) => {}
                ExecEvent::Exit(exit) => return Ok(Finished { exit, stdout, stderr }),
            }
        }
    }

    /// Follows a command that runs, or ran lately: first its recent output, then what comes.
    pub async fn attach(&self, id: &str) -> Result<ExecSession> {
        let path = format!("/supervisor/commands/{}/attach", text_to_query(id));
        ExecSession::open(self.websocket(&path).await?).await
    }

    pub async fn start_detached(&self, request: &ExecRequest) -> Result<CommandInfo> {
        self.post_json("/supervisor/commands", request).await
    }

    pub async fn commands(&self) -> Result<Vec<CommandInfo>> {
        Ok(self.get_json::<CommandList>("/supervisor/commands").await?.commands)
    }

    pub async fn command(&self, id: &str) -> Result<CommandInfo> {
        self.get_json(&format!("/supervisor/commands/{}", text_to_query(id))).await
    }

    pub async fn signal(&self, id: &str, signal: &str) -> Result<()> {
        let path = format!("/supervisor/commands/{}/signal", text_to_query(id));
        let request = self.json_request(
            http::Method::POST,
            &path,
            &SignalRequest { signal: signal.to_owned() },
        )?;
        super::drain(self.send(request).await?).await
    }

    /// Ends it if it runs, and forgets its output.
    pub async fn remove_command(&self, id: &str) -> Result<()> {
        self.delete(&format!("/supervisor/commands/{}", text_to_query(id))).await
    }
}

impl ExecSession {
    async fn open(mut socket: WebSocket) -> Result<Self> {
        match next_message(&mut socket).await? {
            Message::Text(text) => match control(&text)? {
                ServerControl::Started { id, pid } => Ok(Self { id, pid, socket }),
                ServerControl::Error(error) => Err(Error::Api(error)),
                other => Err(Error::Protocol(format!("expected a started command, got {other:?}"))),
            },
            other => Err(Error::Protocol(format!(
                "expected a started command, got {} bytes",
                other.len()
            ))),
        }
    }

    pub fn split(self) -> (ExecInput, ExecOutput) {
        let (sink, stream) = self.socket.split();
        (ExecInput { sink }, ExecOutput { stream })
    }
}

/// What goes to a command.
#[derive(Debug)]
pub struct ExecInput {
    sink: SplitSink<WebSocket, Message>,
}

impl ExecInput {
    /// Waits while the command does not read.
    pub async fn write(&mut self, bytes: impl Into<Bytes>) -> Result<()> {
        self.sink.send(Message::Binary(bytes.into())).await.map_err(Error::protocol)
    }

    pub async fn eof(&mut self) -> Result<()> {
        send(&mut self.sink, &ClientControl::StdinEof).await
    }

    pub async fn signal(&mut self, signal: &str) -> Result<()> {
        send(&mut self.sink, &ClientControl::Signal { signal: signal.to_owned() }).await
    }

    pub async fn resize(&mut self, size: TtySize) -> Result<()> {
        send(&mut self.sink, &ClientControl::Resize(size)).await
    }
}

/// What comes from a command.
#[derive(Debug)]
pub struct ExecOutput {
    stream: SplitStream<WebSocket>,
}

impl ExecOutput {
    /// The next event. A connection that ends before [`ExecEvent::Exit`] is an error.
    pub async fn next(&mut self) -> Result<ExecEvent> {
        match next_message(&mut self.stream).await? {
            Message::Text(text) => match control(&text)? {
                ServerControl::Exit(exit) => Ok(ExecEvent::Exit(exit)),
                ServerControl::Gap { bytes } => Ok(ExecEvent::Gap(bytes)),
                ServerControl::Error(error) => Err(Error::Api(error)),
                ServerControl::Started { .. } => Err(Error::Protocol("started twice".to_owned())),
            },
            Message::Binary(mut bytes) => {
                let stream = bytes.first().copied().and_then(Stream::from_byte);
                let data = bytes.split_off(bytes.len().min(1));
                match stream {
                    Some(Stream::Stdout) => Ok(ExecEvent::Stdout(data)),
                    Some(Stream::Stderr) => Ok(ExecEvent::Stderr(data)),
                    None => Err(Error::Protocol("output without a stream".to_owned())),
                }
            }
            other => Err(Error::Protocol(format!("unexpected message: {other:?}"))),
        }
    }
}

fn control(text: &str) -> Result<ServerControl> {
    serde_json::from_str(text)
        .map_err(|error| Error::Protocol(format!("unexpected message: {error}")))
}

async fn send<S>(sink: &mut S, message: &impl Serialize) -> Result<()>
where
    S: SinkExt<Message> + Unpin,
    S::Error: std::fmt::Display,
{
    let text = serde_json::to_string(message).map_err(Error::protocol)?;
    sink.send(Message::text(text)).await.map_err(Error::protocol)
}

/// The next text or binary message.
pub(super) async fn next_message<S>(stream: &mut S) -> Result<Message>
where
    S: StreamExt<Item = Result<Message, tokio_tungstenite::tungstenite::Error>> + Unpin,
{
    loop {
        match stream.next().await {
            Some(Ok(message @ (Message::Text(_) | Message::Binary(_)))) => return Ok(message),
            Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => {}
            Some(Ok(Message::Close(frame))) => {
                let reason = frame.map_or_else(String::new, |frame| format!(": {}", frame.reason));
                return Err(Error::Protocol(format!(
                    "the supervisor closed the connection{reason}"
                )));
            }
            Some(Err(error)) => return Err(Error::protocol(error)),
            None => {
                return Err(Error::Protocol("the connection to the supervisor ended".to_owned()));
            }
        }
    }
}
