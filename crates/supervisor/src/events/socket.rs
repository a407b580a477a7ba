//! `/ws`: one client's way through the events.

use std::time::Duration;

use axum::Router;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{Message, Utf8Bytes, WebSocket, WebSocketUpgrade};
use axum::extract::{RawQuery, State};
use axum::response::Response;
use axum::routing::get;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use nacre_wire::events::{Event, EventMessage};
use nacre_wire::{ApiError, ErrorKind};
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout};

use super::Events;
use super::ring::Found;
use crate::failure::Failure;
use crate::files::Query;

/// Both a ping, which a client answers by itself, and a message, since a page does not see pings.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// A client that takes nothing for this long, or has not answered three heartbeats, is gone.
const PATIENCE: Duration = Duration::from_secs(50);
/// Clients have nothing to say.
const LARGEST_MESSAGE: usize = 16 * 1024;
const SMALL_BUFFER: usize = 4 * 1024;

pub fn router(events: Events) -> Router {
    Router::new().route("/ws", get(listen)).with_state(events)
}

async fn listen(
    State(events): State<Events>,
    RawQuery(query): RawQuery,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, Failure> {
    let query = Query::parse(query.as_deref().unwrap_or_default());
    let (after, run) = (query.number("after", 10)?, query.text("run")?);
    let upgrade = upgrade.map_err(|rejection| {
        let error = ApiError::new(ErrorKind::InvalidRequest, rejection.body_text().to_lowercase());
        Failure(error.hint("this address is a WebSocket"))
    })?;
    let resume = Resume { after, run };
    Ok(upgrade
        .read_buffer_size(SMALL_BUFFER)
        .write_buffer_size(0)
        .max_message_size(LARGEST_MESSAGE)
        .max_frame_size(LARGEST_MESSAGE)
        .on_upgrade(move |socket| async move {
            // A client that goes away needs no goodbye.
            let _ = serve(events, resume, socket).await;
        }))
}

struct Resume {
    after: Option<u64>,
    run: Option<String>,
}

/// Why a client is no longer served.
struct Gone;

struct Client {
    sink: SplitSink<WebSocket, Message>,
    events: Events,
    /// The last event it was told of.
    seen: u64,
}

async fn serve(events: Events, resume: Resume, socket: WebSocket) -> Result<(), Gone> {
    let _listener = events.join();
    let (sink, stream) = socket.split();
    let mut client = Client { sink, seen: events.last(), events };
    client.greet(resume).await?;
    tokio::select! {
        gone = client.tell() => gone,
        () = hear(stream) => Ok(()),
    }
}

impl Client {
    async fn greet(&mut self, resume: Resume) -> Result<(), Gone> {
        let now = self.seen;
        self.say(now, Event::Hello { run: self.events.run().to_owned() }).await?;
        let Some(after) = resume.after else { return Ok(()) };
        let other_life = resume.run.is_some_and(|run| run != self.events.run());
        if other_life || after > now {
            return self.say(now, Event::Gap).await;
        }
        self.seen = after;
        Ok(())
    }

    async fn tell(&mut self) -> Result<(), Gone> {
        let mut news = self.events.inner.last.subscribe();
        let mut watching = self.events.inner.watching.subscribe();
        watching.mark_changed();
        let mut heartbeat = interval_at(Instant::now() + HEARTBEAT, HEARTBEAT);
        heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            news.mark_unchanged();
            self.catch_up().await?;
            tokio::select! {
                changed = news.changed() => changed.map_err(|_| Gone)?,
                changed = watching.changed() => {
                    changed.map_err(|_| Gone)?;
                    let directories = *watching.borrow_and_update();
                    if let Some(directories) = directories {
                        self.say(self.seen, Event::Watching { directories }).await?;
                    }
                }
                _ = heartbeat.tick() => {
                    self.send(Message::Ping(Default::default())).await?;
                    self.say(self.seen, Event::Beat).await?;
                }
            }
        }
    }

    /// Sends all there is. One that is slower than the events is skipped ahead.
    async fn catch_up(&mut self) -> Result<(), Gone> {
        loop {
            let found = self.events.ring().after(self.seen);
            match found {
                Found::Event(seq, text) => {
                    self.seen = seq;
                    self.send(Message::Text(text)).await?;
                }
                Found::Gone(last) => {
                    self.seen = last;
                    self.say(last, Event::Gap).await?;
                }
                Found::Nothing => return Ok(()),
            }
        }
    }

    async fn say(&mut self, seq: u64, event: Event) -> Result<(), Gone> {
        let text = serde_json::to_string(&EventMessage { seq, event }).map_err(|_| Gone)?;
        self.send(Message::Text(Utf8Bytes::from(text))).await
    }

    async fn send(&mut self, message: Message) -> Result<(), Gone> {
        match timeout(PATIENCE, self.sink.send(message)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(Gone),
        }
    }
}

/// Returns when the client has closed or says nothing any more, not even to a heartbeat.
async fn hear(mut stream: SplitStream<WebSocket>) {
    while let Ok(Some(Ok(message))) = timeout(PATIENCE, stream.next()).await {
        if matches!(message, Message::Close(_)) {
            return;
        }
    }
}
