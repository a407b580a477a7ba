//! A sandbox with files that can be listed, read and watched.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::extract::{Query, State};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use http::StatusCode;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use nacre_sandbox::fake::FakeDriver;
use nacre_wire::error::ErrorBody;
use nacre_wire::files::{FileKind, Listing, Stat};
use nacre_wire::watch::{Change, ChangeKind, WatchMessage};
use nacre_wire::{ApiError, ErrorKind};
use serde::Deserialize;
use tokio::sync::broadcast;

/// Files of all sandboxes of a world: the tests have one.
#[derive(Clone)]
pub(crate) struct Workspace(Arc<Inner>);

struct Inner {
    files: Mutex<BTreeMap<String, Vec<u8>>>,
    changes: broadcast::Sender<WatchMessage>,
    reads: AtomicUsize,
}

#[derive(Deserialize)]
struct At {
    path: String,
}

impl Workspace {
    pub(crate) fn new() -> Self {
        let (changes, _) = broadcast::channel(64);
        Self(Arc::new(Inner { files: Mutex::default(), changes, reads: AtomicUsize::new(0) }))
    }

    pub(crate) fn world(&self) -> FakeDriver {
        let this = self.clone();
        FakeDriver::new(Arc::new(move |_, stream| {
            let service = TowerToHyperService::new(this.router());
            let connection = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .with_upgrades();
            Box::pin(async move {
                let _ = connection.await;
            })
        }))
    }

    pub(crate) fn reads(&self) -> usize {
        self.0.reads.load(Ordering::SeqCst)
    }

    /// Without telling those who watch.
    pub(crate) fn place(&self, path: &str, content: impl Into<Vec<u8>>) {
        self.0.files.lock().unwrap().insert(path.to_owned(), content.into());
    }

    pub(crate) fn write(&self, path: &str, content: impl Into<Vec<u8>>) {
        self.place(path, content);
        self.tell(path, ChangeKind::Modify);
    }

    /// A file, or a folder with all that is in it.
    pub(crate) fn remove(&self, path: &str) {
        let below = format!("{path}/");
        self.0.files.lock().unwrap().retain(|at, _| at != path && !at.starts_with(&below));
        self.tell(path, ChangeKind::Delete);
    }

    pub(crate) fn lose_events(&self) {
        let _ = self.0.changes.send(WatchMessage::Overflow { lost: 1, resync: false });
    }

    fn tell(&self, path: &str, kind: ChangeKind) {
        let path = format!("/workspace/{path}").into();
        let change = Change { kind, path, from: None, directory: false };
        // Nobody may be watching yet.
        let _ = self.0.changes.send(WatchMessage::Changes { changes: vec![change] });
    }

    fn router(&self) -> Router {
        Router::new()
            .route(
                "/supervisor/version",
                get(|| async { r#"{"version":"9.9.9","protocol":{"oldest":1,"newest":1}}"# }),
            )
            .route("/supervisor/files/list", get(list))
            .route("/supervisor/files/stat", get(stat))
            .route("/supervisor/files/content", get(content))
            .route("/supervisor/watch", get(watch))
            .with_state(self.clone())
    }

    fn find(&self, path: &str) -> Option<Stat> {
        let path = name(path);
        let files = self.0.files.lock().unwrap();
        if let Some(bytes) = files.get(path) {
            return Some(entry(path, FileKind::File, bytes));
        }
        let below = format!("{path}/");
        let folder = path.is_empty() || files.keys().any(|at| at.starts_with(&below));
        folder.then(|| entry(path, FileKind::Directory, b""))
    }
}

/// A relative path is meant from the workspace.
fn name(path: &str) -> &str {
    path.strip_prefix("/workspace").unwrap_or(path).trim_matches('/')
}

fn entry(path: &str, kind: FileKind, bytes: &[u8]) -> Stat {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    Stat {
        path: path.into(),
        kind,
        size: bytes.len() as u64,
        mode: 0o644,
        uid: 1,
        gid: 1,
        links: 1,
        modified_ns: 0,
        etag: format!("\"{}\"", hasher.finish()),
        target: None,
    }
}

async fn list(State(workspace): State<Workspace>, Query(At { path }): Query<At>) -> Response {
    let folder = name(&path);
    let prefix = if folder.is_empty() { String::new() } else { format!("{folder}/") };
    let files = workspace.0.files.lock().unwrap();
    let mut entries: Vec<Stat> = Vec::new();
    for (at, bytes) in files.iter() {
        let Some(rest) = at.strip_prefix(&prefix) else { continue };
        let found = match rest.split_once('/') {
            Some((name, _)) => entry(name, FileKind::Directory, b""),
            None => entry(rest, FileKind::File, bytes),
        };
        if entries.iter().all(|entry| entry.path != found.path) {
            entries.push(found);
        }
    }
    Json(Listing { entries, next: None }).into_response()
}

async fn stat(State(workspace): State<Workspace>, Query(At { path }): Query<At>) -> Response {
    match workspace.find(&path) {
        Some(stat) => Json(stat).into_response(),
        None => missing(&path),
    }
}

async fn content(State(workspace): State<Workspace>, Query(At { path }): Query<At>) -> Response {
    workspace.0.reads.fetch_add(1, Ordering::SeqCst);
    let bytes = workspace.0.files.lock().unwrap().get(name(&path)).cloned();
    bytes.map_or_else(|| missing(&path), IntoResponse::into_response)
}

fn missing(path: &str) -> Response {
    let error = ApiError::new(ErrorKind::NotFound, format!("{path}: no such file or directory"));
    (StatusCode::NOT_FOUND, Json(ErrorBody { error })).into_response()
}

async fn watch(State(workspace): State<Workspace>, upgrade: WebSocketUpgrade) -> Response {
    let changes = workspace.0.changes.subscribe();
    upgrade.on_upgrade(|socket| pass_on(socket, changes))
}

async fn pass_on(mut socket: WebSocket, mut changes: broadcast::Receiver<WatchMessage>) {
    let mut next = Ok(WatchMessage::Ready { directories: 1 });
    while let Ok(message) = next {
        let text = serde_json::to_string(&message).unwrap();
        if socket.send(Message::Text(text.into())).await.is_err() {
            return;
        }
        next = changes.recv().await;
    }
}
