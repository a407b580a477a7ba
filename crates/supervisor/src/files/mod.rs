//! Files, as the acting user sees them.
//!
//! Three things hold for every call. Paths are resolved by the kernel from one descriptor
//! ([`root`]). The thread that does the work has the acting user's credentials ([`identity`]).
//! Content moves in large chunks through short hops to threads that may wait, so a slow client
//! costs a buffer, not a thread, and a large file no more than a small one ([`upload`], [`read`]).

mod archive;
pub(crate) mod directory;
mod draft;
mod entries;
pub(crate) mod fault;
pub mod identity;
mod kinds;
mod pack;
mod range;
mod read;
pub mod root;
mod session;
mod tar_reader;
mod transfer;
mod tree;
mod unpack;
mod upload;
mod version;
mod view;
mod write;

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use axum::routing::{get, post};
use http::Method;
use nacre_wire::ApiError;
use nacre_wire::history::{Author, BY};
use rustix::fs::{Mode, OFlags};
use tokio::sync::mpsc;

pub(crate) use draft::{is_temporary, temporary_name};
pub(crate) use session::{Query, hop};
pub use view::viewer;

use crate::history::{Manner, Recorder};
use crate::users::User;

/// What the calls need to know.
#[derive(Debug, Clone)]
pub struct Context {
    /// Where relative paths start.
    pub workspace: PathBuf,
    /// Who a call acts as when it names nobody.
    pub default_user: User,
    /// The directory no call leaves; `/` but in tests.
    pub root: PathBuf,
    /// Told of every call that changes something.
    pub recorder: Recorder,
}

impl Context {
    pub fn new(workspace: impl Into<PathBuf>, default_user: User) -> Self {
        let (root, recorder) = (PathBuf::from("/"), Recorder::off());
        Self { workspace: workspace.into(), default_user, root, recorder }
    }

    pub fn recording(self, recorder: Recorder) -> Self {
        Self { recorder, ..self }
    }
}

/// A regular file to read, for another part of the supervisor, as whoever the thread acts as.
pub(crate) fn open_to_read(root: &root::Root, path: &Path) -> Result<OwnedFd, ApiError> {
    read::open(root, path, OFlags::RDONLY, Mode::empty()).map(|content| content.fd)
}

/// Unpacks a whole archive into a folder, which is made, as whoever the thread acts as.
pub(crate) fn unpack(root: &root::Root, path: &Path, archive: Bytes) -> Result<(), ApiError> {
    let (batches, queue) = mpsc::channel(1);
    // There is room for one, and nothing else follows.
    let _ = batches.try_send(vec![archive]);
    drop(batches);
    let target = root.make_directories(path)?;
    let reader = tar_reader::TarReader::new(upload::BatchReader::new(queue));
    unpack::Unpacker::new(target, path.to_owned()).unpack(reader)?;
    Ok(())
}

/// Removes an entry with all that is in it, as whoever the thread acts as.
pub(crate) fn remove_tree(place: &root::Place) -> Result<(), ApiError> {
    tree::remove(place.fd(), &place.name, &place.path)
}

pub fn router(context: Context) -> Router {
    Router::new()
        .route("/supervisor/files/content", get(read::read).put(write::write))
        .route("/supervisor/files/append", post(write::append))
        .route("/supervisor/files/list", get(entries::list))
        .route("/supervisor/files/stat", get(entries::stat))
        .route("/supervisor/files/mkdir", post(entries::mkdir))
        .route("/supervisor/files/move", post(transfer::rename))
        .route("/supervisor/files/copy", post(transfer::copy))
        .route("/supervisor/files/remove", post(transfer::remove))
        .route("/supervisor/files/symlink", post(entries::symlink))
        .route("/supervisor/files/chmod", post(entries::chmod))
        .route("/supervisor/files/archive", get(archive::download).put(archive::upload))
        .layer(from_fn_with_state(context.recorder.clone(), record))
        .with_state(Arc::new(session::Files::new(context)))
}

/// What changed before a call that changes files is recorded first, and what the call changes is put
/// down to it and to whom it names (`nacre-by`, an author as JSON).
async fn record(State(recorder): State<Recorder>, request: Request, next: Next) -> Response {
    if !matches!(*request.method(), Method::PUT | Method::POST) {
        return next.run(request).await;
    }
    let name = request.uri().path().rsplit('/').next().unwrap_or_default();
    let query = Query::parse(request.uri().query().unwrap_or_default());
    let verb = if name == "content" { "write" } else { name };
    let call = match query.path("path") {
        Some(path) => format!("{verb} {}", path.display()),
        None => verb.to_owned(),
    };
    let by = request.headers().get(BY).and_then(|by| serde_json::from_slice(by.as_bytes()).ok());
    let authors = std::iter::once(Author::Api { call }).chain(by).collect();
    let activity = recorder.begin(Manner::Foreground, authors).await;
    let response = next.run(request).await;
    drop(activity);
    response
}
