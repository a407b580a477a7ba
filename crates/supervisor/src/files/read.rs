//! Reading: ranges, validators, and a body that is one chunk ahead of the network.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

use axum::Json;
use axum::body::{Body, Bytes};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use nacre_wire::ApiError;
use nacre_wire::error::ErrorBody;
use nacre_wire::files::FileKind;
use rustix::fs::{Advice, Mode, OFlags, fadvise, fstat, fstatfs};
use rustix::io::Errno;
use tokio::task::{JoinHandle, spawn_blocking};

use super::fault::{at, bad_request};
use super::range::{Selection, select};
use super::root::Root;
use super::session::Call;
use super::version::{Version, kind};
use crate::failure::Failure;

/// Big enough that the hop between threads is lost in the copying.
const CHUNK: usize = 512 * 1024;

/// A regular file, open as the acting user.
#[derive(Debug)]
pub(crate) struct Content {
    pub fd: OwnedFd,
    pub stat: rustix::fs::Stat,
}

/// Opens a regular file. A FIFO must not hang the thread and a device must not be woken, so it
/// never waits for one.
pub(crate) fn open(
    root: &Root,
    path: &Path,
    flags: OFlags,
    mode: Mode,
) -> Result<Content, ApiError> {
    let flags = flags | OFlags::NONBLOCK | OFlags::NOCTTY;
    let fd = root.descend(path, flags, mode).map_err(at(path))?;
    regular(path, fd)
}

pub(crate) fn regular(path: &Path, fd: OwnedFd) -> Result<Content, ApiError> {
    let stat = fstat(&fd).map_err(at(path))?;
    match kind(&stat) {
        FileKind::File => {}
        FileKind::Directory => return Err(at(path)(Errno::ISDIR)),
        _ => return Err(bad_request(format!("{}: not a regular file", path.display()))),
    }
    // Such files have no size and answer the supervisor about itself, not the user.
    if fstatfs(&fd).map_err(at(path))?.f_type == rustix::fs::PROC_SUPER_MAGIC {
        return Err(bad_request(format!("{}: not a file on disk", path.display()))
            .hint("run a command to read or write it"));
    }
    Ok(Content { fd, stat })
}

pub(crate) async fn read(call: Call) -> Result<Response, Failure> {
    let path = call.path()?;
    let content =
        call.session.run(move |root| open(root, &path, OFlags::RDONLY, Mode::empty())).await?;
    let mut response = respond(&call.method, &call.headers, content);
    if response.status().is_success() {
        let octets = HeaderValue::from_static("application/octet-stream");
        response.headers_mut().insert(header::CONTENT_TYPE, octets);
    }
    Ok(response)
}

/// As much of it as was asked for, with a success that does not say yet what it is.
pub(crate) fn respond(method: &Method, headers: &HeaderMap, content: Content) -> Response {
    let asked = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let size = content.stat.st_size as u64;
    let etag = Version::of(&content.stat).to_string();
    if let Some(known) = asked(header::IF_NONE_MATCH)
        && lists(known, &etag)
    {
        return answer(StatusCode::NOT_MODIFIED, &etag, Body::empty());
    }
    let range = asked(header::RANGE)
        .filter(|_| asked(header::IF_RANGE).is_none_or(|validator| validator.trim() == etag));
    let (status, start, end) = match select(range, size) {
        Selection::Whole => (StatusCode::OK, 0, size),
        Selection::Part { start, end } => (StatusCode::PARTIAL_CONTENT, start, end),
        Selection::Unsatisfiable => return unsatisfiable(range.unwrap_or_default(), size),
    };
    let body = match *method {
        Method::HEAD => Body::empty(),
        _ => stream_file(content.fd, start, end),
    };
    let mut response = answer(status, &etag, body);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(end - start));
    if status == StatusCode::PARTIAL_CONTENT {
        let range = format!("bytes {start}-{}/{size}", end - 1);
        headers.extend(HeaderValue::from_str(&range).ok().map(|v| (header::CONTENT_RANGE, v)));
    }
    response
}

fn lists(header: &str, etag: &str) -> bool {
    header
        .split(',')
        .map(str::trim)
        .any(|known| known == "*" || known.strip_prefix("W/").unwrap_or(known) == etag)
}

fn answer(status: StatusCode, etag: &str, body: Body) -> Response {
    let mut response = (status, body).into_response();
    let headers = response.headers_mut();
    headers.extend(HeaderValue::from_str(etag).ok().map(|value| (header::ETAG, value)));
    headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    response
}

fn unsatisfiable(range: &str, size: u64) -> Response {
    let error = bad_request(format!("range \"{range}\" lies outside of {size} bytes"));
    let body = Json(ErrorBody { error });
    let range = [(header::CONTENT_RANGE, format!("bytes */{size}"))];
    (StatusCode::RANGE_NOT_SATISFIABLE, range, body).into_response()
}

/// Reads ahead by one chunk, and holds no thread while the client is slow.
fn stream_file(fd: OwnedFd, start: u64, end: u64) -> Body {
    let _ = fadvise(&fd, start, std::num::NonZeroU64::new(end - start), Advice::Sequential);
    let fd = Arc::new(fd);
    let next = (start < end).then(|| fetch(&fd, start, end));
    Body::from_stream(stream::try_unfold((next, start), move |(next, offset)| {
        let fd = fd.clone();
        async move {
            let Some(next) = next else { return Ok(None) };
            let chunk = next.await.map_err(io::Error::other)??;
            let offset = offset + chunk.len() as u64;
            let next = (offset < end).then(|| fetch(&fd, offset, end));
            Ok::<_, io::Error>(Some((chunk, (next, offset))))
        }
    }))
}

fn fetch(fd: &Arc<OwnedFd>, offset: u64, end: u64) -> JoinHandle<io::Result<Bytes>> {
    crate::memory::moving();
    let fd = fd.clone();
    spawn_blocking(move || {
        let length = CHUNK.min((end - offset) as usize);
        let mut buffer = Vec::with_capacity(length);
        let spare = &mut buffer.spare_capacity_mut()[..length];
        let (read, _) = rustix::io::pread(&*fd, spare, offset)?;
        let read = read.len();
        if read == 0 {
            // The length is promised already; a short body tells the client the truth.
            return Err(io::Error::other("the file became shorter while it was read"));
        }
        // SAFETY: the kernel initialised the first `read` bytes of the spare capacity.
        unsafe { buffer.set_len(read) };
        Ok(Bytes::from(buffer))
    })
}
