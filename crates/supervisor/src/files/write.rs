//! Writing and appending.

use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

use axum::Json;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, header};
use nacre_wire::ApiError;
use nacre_wire::files::Stat;
use rustix::fs::{Mode, OFlags, fstat};

use super::draft::{Condition, Draft, WriteOptions};
use super::fault::at;
use super::read::{Content, open};
use super::root::Parents;
use super::session::{Call, Session, hop};
use super::upload::{Upload, write_batch};
use super::version::describe;
use crate::failure::Failure;

pub(crate) async fn write(call: Call) -> Result<Response, Failure> {
    let path = call.path()?;
    let options = WriteOptions {
        condition: condition(&call),
        mode: call.query.mode()?,
        parents: parents(&call)?,
        sync: call.query.flag("sync")?,
    };
    let mut upload = Upload::new(call.body);
    let result = replace(&call.session, path, options, &mut upload).await;
    finish(result, upload).await
}

async fn replace(
    session: &Session,
    path: PathBuf,
    options: WriteOptions,
    upload: &mut Upload,
) -> Result<Stat, ApiError> {
    let first = upload.batch().await?;
    let (owner, shown) = (session.clone(), path.clone());
    let begin = move |root: &_| {
        let draft = Draft::begin(owner, root, &path, options)?;
        write_batch(&draft, &first).map_err(at(&path))?;
        Ok(draft)
    };
    if upload.ended() {
        // A small file takes one hop.
        return session.run(move |root| begin(root)?.publish()).await;
    }
    let draft = pour(upload, session.run(begin).await?, &shown).await?;
    session.run(move |_| draft.publish()).await
}

pub(crate) async fn append(call: Call) -> Result<Response, Failure> {
    let path = call.path()?;
    let parents = parents(&call)?;
    let mut upload = Upload::new(call.body);
    let result = extend(&call.session, path, parents, &mut upload).await;
    finish(result, upload).await
}

async fn extend(
    session: &Session,
    path: PathBuf,
    parents: Parents,
    upload: &mut Upload,
) -> Result<Stat, ApiError> {
    let opened = path.clone();
    let content = session
        .run(move |root| {
            if parents == Parents::Create {
                root.followed(&opened, parents)?;
            }
            let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE;
            open(root, &opened, flags, Mode::from_raw_mode(0o644))
        })
        .await?;
    let content = pour(upload, content, &path).await?;
    let stat = fstat(&content.fd).map_err(at(&path))?;
    Ok(describe(&path, &stat, None))
}

impl AsFd for Draft {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl AsFd for Content {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Writes the rest of a body, gathering the next batch while the last one is written.
async fn pour<T>(upload: &mut Upload, mut into: T, path: &Path) -> Result<T, ApiError>
where
    T: AsFd + Send + 'static,
{
    let mut batch = upload.batch().await?;
    while !batch.is_empty() {
        let path = path.to_owned();
        let write = hop(move || {
            write_batch(&into, &batch).map_err(at(&path))?;
            Ok(into)
        });
        let (written, next) = tokio::join!(write, upload.batch());
        into = written?;
        batch = next?;
    }
    Ok(into)
}

async fn finish(result: Result<Stat, ApiError>, upload: Upload) -> Result<Response, Failure> {
    match result {
        Ok(stat) => {
            let etag = HeaderValue::from_str(&stat.etag).ok();
            let mut response = Json(stat).into_response();
            response.headers_mut().extend(etag.map(|etag| (header::ETAG, etag)));
            Ok(response)
        }
        Err(error) => {
            upload.drain().await;
            Err(error.into())
        }
    }
}

fn condition(call: &Call) -> Condition {
    match (call.header(header::IF_MATCH), call.header(header::IF_NONE_MATCH)) {
        (Some("*"), _) => Condition::Present,
        (Some(etag), _) => Condition::Version(etag.parse().ok()),
        (None, Some("*")) => Condition::Absent,
        (None, _) => Condition::Always,
    }
}

fn parents(call: &Call) -> Result<Parents, ApiError> {
    Ok(if call.query.flag("parents")? { Parents::Create } else { Parents::Required })
}
