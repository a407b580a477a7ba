//! Folders as tar streams, both ways.

use std::io;

use axum::Json;
use axum::body::{Body, Bytes};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use http::{Method, header};
use nacre_wire::files::Unpacked;
use nacre_wire::{ApiError, ErrorKind};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::pack::{CHUNK, Packer};
use super::session::{Call, Session};
use super::tar_reader::TarReader;
use super::unpack::Unpacker;
use super::upload::{Batch, BatchReader, Upload};
use crate::failure::Failure;

/// Batches that wait for the unpacking thread.
const QUEUE: usize = 2;

pub(crate) async fn download(call: Call) -> Result<Response, Failure> {
    let path = call.path()?;
    let packer = call.session.run(move |root| Packer::start(root, &path)).await?;
    let body = match call.method {
        Method::HEAD => Body::empty(),
        _ => stream_archive(call.session, packer),
    };
    Ok(([(header::CONTENT_TYPE, "application/x-tar")], body).into_response())
}

struct Filled {
    chunk: Bytes,
    /// Absent after the last chunk.
    packer: Option<Packer>,
}

/// Packs one chunk ahead. A file that cannot be read breaks the stream off, so that half an
/// archive is never taken for a whole one.
fn stream_archive(session: Session, packer: Packer) -> Body {
    let next = Some(fill(session.clone(), packer));
    Body::from_stream(stream::try_unfold(next, move |next| {
        let session = session.clone();
        async move {
            let Some(next) = next else { return Ok(None) };
            let filled = next.await.map_err(io::Error::other)?.map_err(|error| {
                tracing::warn!(%error, "an archive was broken off");
                io::Error::other(error)
            })?;
            let next = filled.packer.map(|packer| fill(session, packer));
            Ok::<_, io::Error>(Some((filled.chunk, next)))
        }
    }))
}

fn fill(session: Session, mut packer: Packer) -> JoinHandle<Result<Filled, ApiError>> {
    tokio::spawn(async move {
        session
            .run(move |_| {
                let mut chunk = Vec::with_capacity(CHUNK + 64 * 1024);
                let more = packer.fill(&mut chunk)?;
                Ok(Filled { chunk: Bytes::from(chunk), packer: more.then_some(packer) })
            })
            .await
    })
}

pub(crate) async fn upload(call: Call) -> Result<Json<Unpacked>, Failure> {
    let path = call.path()?;
    let session = call.session;
    let Ok(_permit) = session.files.unpacking.clone().acquire_owned().await else {
        return Err(Failure::new(ErrorKind::Unavailable, "the supervisor is stopping"));
    };
    let (batches, queue) = mpsc::channel(QUEUE);
    let unpacking = session.run(move |root| {
        let target = root.make_directories(&path)?;
        Unpacker::new(target, path).unpack(TarReader::new(BatchReader::new(queue)))
    });
    let mut upload = Upload::new(call.body);
    let (unpacked, sent) = tokio::join!(unpacking, feed(&mut upload, batches));
    upload.drain().await;
    // A body that broke off explains an archive that ended too early.
    sent?;
    Ok(Json(unpacked?))
}

/// Ends when the body does, or when nobody reads any more.
async fn feed(upload: &mut Upload, batches: mpsc::Sender<Batch>) -> Result<(), ApiError> {
    loop {
        let batch = upload.batch().await?;
        if batch.is_empty() || batches.send(batch).await.is_err() {
            return Ok(());
        }
    }
}
