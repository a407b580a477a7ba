//! The WebSocket of a command: one that starts it, or any number that attach.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::response::Response;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use nacre_wire::exec::{ClientControl, ExecRequest, ServerControl};
use nacre_wire::{ApiError, ErrorKind};
use tokio::time::{sleep, timeout};

use super::command::Command;
use super::commands::Commands;
use super::output::{Event, Reader};

/// The largest message taken from a client; input comes in pieces.
const LARGEST_MESSAGE: usize = 1024 * 1024;
const SMALL_BUFFER: usize = 8 * 1024;
/// A client that connects says what to run at once.
const FIRST_MESSAGE: Duration = Duration::from_secs(30);
/// While a client's input waits for the command its socket is not read, so only a write can find
/// out that the client is gone.
const PING: Duration = Duration::from_secs(5);
/// After the last message, for the client to read it and close.
const FAREWELL: Duration = Duration::from_secs(2);

type Sink = SplitSink<WebSocket, Message>;
type Stream = SplitStream<WebSocket>;

/// Who is at the other end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    /// Without it the command ends, unless that is detached.
    Starter,
    Guest,
}

pub(super) fn exec(commands: Arc<Commands>, upgrade: WebSocketUpgrade) -> Response {
    sized(upgrade).on_upgrade(move |socket| start(commands, socket))
}

pub(super) fn attach(command: Arc<Command>, upgrade: WebSocketUpgrade) -> Response {
    sized(upgrade).on_upgrade(move |socket| async move {
        let reader = Reader::joining(&command.output);
        let (sink, stream) = socket.split();
        converse(&command, reader, sink, stream, Role::Guest).await;
    })
}

fn sized(upgrade: WebSocketUpgrade) -> WebSocketUpgrade {
    upgrade
        .read_buffer_size(SMALL_BUFFER)
        .write_buffer_size(0)
        .max_message_size(LARGEST_MESSAGE)
        .max_frame_size(LARGEST_MESSAGE)
}

async fn start(commands: Arc<Commands>, socket: WebSocket) {
    let (sink, mut stream) = socket.split();
    let started = match first_message(&mut stream).await {
        Ok(request) => commands.run(&request).await,
        Err(error) => Err(error),
    };
    match started {
        Ok((command, reader)) => converse(&command, reader, sink, stream, Role::Starter).await,
        Err(error) => farewell(sink, stream, Some(error)).await,
    }
}

async fn first_message(stream: &mut Stream) -> Result<ExecRequest, ApiError> {
    let bad = |message: &str| ApiError::new(ErrorKind::InvalidRequest, message);
    let first = timeout(FIRST_MESSAGE, async {
        loop {
            match stream.next().await {
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                other => return other,
            }
        }
    });
    match first.await {
        Ok(Some(Ok(Message::Text(text)))) => match control(&text)? {
            ClientControl::Start(request) => Ok(*request),
            ClientControl::StdinEof | ClientControl::Resize(_) | ClientControl::Signal { .. } => {
                Err(bad("the first message has to be start"))
            }
        },
        Ok(Some(Ok(_))) => Err(bad("the first message has to be start, as text")),
        Ok(Some(Err(error))) => Err(bad(&format!("unreadable message: {error}"))),
        Ok(None) => Err(bad("the connection ended before the start")),
        Err(_) => Err(bad("no start message came")),
    }
}

/// Carries output one way and input the other until one side is done.
async fn converse(
    command: &Command,
    mut reader: Reader,
    mut sink: Sink,
    mut stream: Stream,
    role: Role,
) {
    command.clients.fetch_add(1, Ordering::Relaxed);
    let started = ServerControl::Started { id: command.id().to_owned(), pid: command.pid() };
    let outcome = tokio::select! {
        sent = send_output(&mut sink, &mut reader, &started) => sent,
        error = take_input(&mut stream, command) => error,
    };
    command.clients.fetch_sub(1, Ordering::Relaxed);
    // The command must not wait for a client that reads no more.
    drop(reader);
    if role == Role::Starter && !command.detached() {
        // Does nothing when it has ended by itself.
        command.end.cancel();
    }
    farewell(sink, stream, outcome.err()).await;
}

/// Ends well after the exit was sent; also when the client is gone, which needs no words.
async fn send_output(
    sink: &mut Sink,
    reader: &mut Reader,
    started: &ServerControl,
) -> Result<(), ApiError> {
    if sink.send(text(started)).await.is_err() {
        return Ok(());
    }
    loop {
        let (message, last) = tokio::select! {
            biased;
            event = reader.next() => match event {
                Event::Output(bytes) => (Message::Binary(bytes), false),
                Event::Gap(bytes) => (text(&ServerControl::Gap { bytes }), false),
                Event::Exit(exit) => (text(&ServerControl::Exit(exit)), true),
            },
            () = sleep(PING) => (Message::Ping(Default::default()), false),
        };
        if sink.send(message).await.is_err() || last {
            return Ok(());
        }
    }
}

/// Ends when the client is gone, or says something that makes no sense.
async fn take_input(stream: &mut Stream, command: &Command) -> Result<(), ApiError> {
    loop {
        match stream.next().await {
            Some(Ok(Message::Binary(bytes))) => {
                // Input for a command that takes none is dropped, as a closed pipe would.
                command.input.write(&bytes).await;
            }
            Some(Ok(Message::Text(text))) => obey(control(&text)?, command).await?,
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
            Some(Ok(Message::Close(_)) | Err(_)) | None => return Ok(()),
        }
    }
}

async fn obey(control: ClientControl, command: &Command) -> Result<(), ApiError> {
    let done = match control {
        ClientControl::Start(_) => {
            return Err(ApiError::new(
                ErrorKind::InvalidRequest,
                "this command has started already",
            ));
        }
        ClientControl::StdinEof => {
            command.input.finish().await;
            Ok(())
        }
        ClientControl::Resize(size) => command.resize(size),
        ClientControl::Signal { signal } => command.signal(&signal),
    };
    match done {
        // It ended while the message was under way; the exit says so.
        Err(error) if error.kind == ErrorKind::Unavailable => Ok(()),
        done => done,
    }
}

/// Closes, and reads on for a moment: a client that still sends must get to read the last message.
async fn farewell(mut sink: Sink, mut stream: Stream, error: Option<ApiError>) {
    let _ = timeout(FAREWELL, async {
        if let Some(error) = error {
            let _ = sink.send(text(&ServerControl::Error(error))).await;
        }
        let _ = sink.close().await;
        while let Some(Ok(_)) = stream.next().await {}
    })
    .await;
}

fn control(text: &str) -> Result<ClientControl, ApiError> {
    serde_json::from_str(text).map_err(|error| {
        ApiError::new(ErrorKind::InvalidRequest, format!("not a control message: {error}"))
    })
}

fn text(control: &ServerControl) -> Message {
    // These types have no map keys or numbers that JSON cannot hold.
    Message::Text(serde_json::to_string(control).unwrap_or_default().into())
}
