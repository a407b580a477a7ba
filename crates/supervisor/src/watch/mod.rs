//! Changes below a directory, as they happen.
//!
//! [`Watchers`] is the library: [`Watchers::subscribe`] gives a [`Subscription`] to a directory,
//! and all subscriptions to one directory share one thread, one tree and one set of inotify
//! watches. [`router`] puts it behind a WebSocket.
//!
//! The tree costs about 100 bytes per file while somebody watches: it is what lost events are
//! healed from.

mod hub;
mod inotify;
mod tracker;
mod tree;
mod worker;

#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::Arc;

use axum::Router;
use axum::extract::ws::{Message, WebSocket};
use axum::extract::{RawQuery, State, WebSocketUpgrade};
use axum::response::Response;
use axum::routing::get;
use nacre_wire::ApiError;
use nacre_wire::watch::{Change, WatchMessage};

pub use hub::{Calm, Event, Subscription, Target, Watchers};

use crate::failure::Failure;
use crate::files::Query;
use crate::files::hop;
use crate::files::identity::act_as;
use crate::files::root::Root;
use crate::users::{self, User};

/// Changes in one message, so that a long list does not make one huge frame.
const MESSAGE: usize = 1000;

/// What the calls need to know.
#[derive(Debug, Clone)]
pub struct Context {
    /// Where relative paths start.
    pub workspace: PathBuf,
    /// Who a call acts as when it names nobody.
    pub default_user: User,
    /// The directory no call leaves; `/` but in tests.
    pub root: PathBuf,
    /// Shared with whoever else wants to know of changes.
    pub watchers: Watchers,
}

impl Context {
    pub fn new(workspace: impl Into<PathBuf>, default_user: User) -> Self {
        Self {
            workspace: workspace.into(),
            default_user,
            root: PathBuf::from("/"),
            watchers: Watchers::default(),
        }
    }
}

#[derive(Debug)]
struct Watch {
    root: Result<Root, ApiError>,
    default_user: Arc<User>,
    watchers: Watchers,
}

pub fn router(context: Context) -> Router {
    let state = Watch {
        root: Root::open(&context.root, &context.workspace),
        default_user: Arc::new(context.default_user),
        watchers: context.watchers,
    };
    Router::new().route("/supervisor/watch", get(watch)).with_state(Arc::new(state))
}

async fn watch(
    State(state): State<Arc<Watch>>,
    RawQuery(query): RawQuery,
    upgrade: WebSocketUpgrade,
) -> Result<Response, Failure> {
    let query = Query::parse(query.as_deref().unwrap_or_default());
    let subscription = hop(move || subscribe(&state, &query)).await?;
    Ok(upgrade.on_upgrade(|socket| async move {
        // A client that goes away needs no goodbye.
        let _ = relay(socket, subscription).await;
    }))
}

fn subscribe(state: &Watch, query: &Query) -> Result<Subscription, ApiError> {
    let root = state.root.as_ref().map_err(Clone::clone)?;
    let user = match query.text("user")? {
        Some(name) => Arc::new(users::lookup(&name)?),
        None => state.default_user.clone(),
    };
    let path = root.absolute(&query.path("path").unwrap_or_else(|| PathBuf::from(".")))?;
    let _acting = act_as(&user)?;
    let directory = root.directory(&path)?;
    // Without `.` and doubled slashes, which would stay in every reported path.
    let path = path.components().collect();
    state.watchers.subscribe(Target { directory, path, user })
}

async fn relay(mut socket: WebSocket, mut subscription: Subscription) -> Result<(), axum::Error> {
    loop {
        tokio::select! {
            event = subscription.next() => match event {
                Some(event) => forward(&mut socket, event).await?,
                None => return socket.send(Message::Close(None)).await,
            },
            message = socket.recv() => match message {
                Some(Ok(Message::Close(_))) | None => return Ok(()),
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(error),
            },
        }
    }
}

async fn forward(socket: &mut WebSocket, event: Event) -> Result<(), axum::Error> {
    match event {
        Event::Ready { directories } => send(socket, &WatchMessage::Ready { directories }).await,
        Event::Changes(changes) => send_changes(socket, &changes).await,
        Event::Overflow { lost } => {
            send(socket, &WatchMessage::Overflow { lost, resync: false }).await
        }
        Event::Resync { lost, everything } => {
            send(socket, &WatchMessage::Overflow { lost, resync: true }).await?;
            send_changes(socket, &everything).await
        }
        // Nobody behind a socket asks for it.
        Event::Flushed => Ok(()),
        Event::Failed(error) => send(socket, &WatchMessage::Error(error)).await,
    }
}

async fn send_changes(socket: &mut WebSocket, changes: &[Change]) -> Result<(), axum::Error> {
    for changes in changes.chunks(MESSAGE) {
        send(socket, &WatchMessage::Changes { changes: changes.to_vec() }).await?;
    }
    Ok(())
}

async fn send(socket: &mut WebSocket, message: &WatchMessage) -> Result<(), axum::Error> {
    let text = serde_json::to_string(message).map_err(axum::Error::new)?;
    socket.send(Message::Text(text.into())).await
}
