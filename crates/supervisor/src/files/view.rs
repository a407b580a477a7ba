//! `/files/PATH`: a file of the workspace as a browser shows or keeps it.
//!
//! It is on the origin of everything else, and what it holds may come from anywhere. So the browser is
//! told what it is and not to guess, and what could run script is shown in a sandbox of the browser's.

use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::get;
use http::header::{
    CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderValue,
    X_CONTENT_TYPE_OPTIONS,
};
use nacre_wire::path::{from_query, text_to_query};
use nacre_wire::{ApiError, ErrorKind};
use rustix::fs::{Mode, OFlags};

use super::fault::{at, invalid};
use super::kinds;
use super::read::{self, Content};
use super::root::Root;
use super::session::{Files, Query, Session};
use crate::failure::Failure;

const PREFIX: &str = "/files/";
const SANDBOXED: HeaderValue = HeaderValue::from_static(
    "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:",
);

pub fn viewer(context: super::Context) -> Router {
    Router::new().route("/files/{*path}", get(view)).with_state(Arc::new(Files::new(context)))
}

async fn view(State(files): State<Arc<Files>>, request: Request) -> Result<Response, Failure> {
    let path = relative(request.uri().path())?;
    let download = Query::parse(request.uri().query().unwrap_or_default()).flag("download")?;
    let session = Session::of_default_user(files);
    let wanted = path.clone();
    let content = session.run(move |root| open(root, &wanted)).await?;
    let mut response = read::respond(request.method(), request.headers(), content);
    let kind = kinds::of(&path);
    let success = response.status().is_success();
    let headers = response.headers_mut();
    if success {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind.media_type));
    }
    if kind.may_run {
        headers.insert(CONTENT_SECURITY_POLICY, SANDBOXED);
    }
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    // It may change at any time; the ETag makes asking cheap.
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    if download {
        headers.extend(attachment(&path).map(|value| (CONTENT_DISPOSITION, value)));
    }
    Ok(response)
}

/// Plain names only: nothing a browser or a proxy could have read in another way.
fn relative(path: &str) -> Result<PathBuf, ApiError> {
    let path = from_query(path.strip_prefix(PREFIX).unwrap_or_default());
    let plain = |name: &str| !matches!(name, "" | "." | "..");
    match path.to_string_lossy().into_owned() {
        folder if folder.ends_with('/') => {
            let message = format!("{folder:?} is a folder");
            let hint = "what is in it is at /supervisor/files/list?path=";
            Err(ApiError::new(ErrorKind::IsDirectory, message).hint(hint))
        }
        names if names.split('/').all(plain) => Ok(path),
        _ => Err(invalid(&path, "only plain names lead to a file")),
    }
}

/// A regular file that is in the workspace itself, wherever links on the way to it went.
fn open(root: &Root, path: &Path) -> Result<Content, ApiError> {
    let path = root.absolute(path)?;
    let content = read::open(root, &path, OFlags::RDONLY, Mode::empty())?;
    let workspace = root.absolute(Path::new("."))?;
    let flags = OFlags::PATH | OFlags::DIRECTORY;
    let workspace = root.descend(&workspace, flags, Mode::empty()).map_err(at(&path))?;
    if !place_of(&content.fd)?.starts_with(place_of(&workspace)?) {
        return Err(invalid(&path, "the path leads out of the workspace"));
    }
    Ok(content)
}

/// Where an open file is, as the kernel has it.
fn place_of(fd: &impl AsFd) -> Result<PathBuf, ApiError> {
    let link = PathBuf::from(format!("/proc/self/fd/{}", fd.as_fd().as_raw_fd()));
    std::fs::read_link(&link).map_err(|error| ApiError::io(link.display(), &error))
}

fn attachment(path: &Path) -> Option<HeaderValue> {
    let name = path.file_name()?.to_string_lossy();
    let encoded = text_to_query(&name).replace('/', "%2F");
    HeaderValue::from_str(&format!("attachment; filename*=UTF-8''{encoded}")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_names_lead_anywhere() {
        let check = |path: &str, expected: Result<&str, ErrorKind>| {
            let found = relative(path).map_err(|error| error.kind);
            assert_eq!(found, expected.map(PathBuf::from), "{path}");
        };
        check("/files/a/b.png", Ok("a/b.png"));
        check("/files/a%20b", Ok("a b"));
        check("/files/a%2Fb", Ok("a/b"));
        check("/files/a/", Err(ErrorKind::IsDirectory));
        for hostile in ["/files//etc/passwd", "/files/%2Fetc", "/files/a/%2e%2e/b", "/files/./a"] {
            check(hostile, Err(ErrorKind::InvalidPath));
        }
    }

    #[test]
    fn a_name_cannot_end_the_header_it_stands_in() {
        let header = attachment(Path::new("a/\"x\"; filename=\r\n ü.txt")).unwrap();
        assert_eq!(
            header,
            "attachment; filename*=UTF-8''%22x%22%3B%20filename%3D%0D%0A%20%C3%BC.txt"
        );
    }
}
