//! Files.

use std::fmt::Write as _;
use std::path::Path;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, header};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde::Serialize;

use super::{Body, Client, Error, Result, drain, empty, full, read_json};
use crate::WirePath;
use crate::files::{Chmod, Listing, Mkdir, Remove, Stat, Symlink, Transfer, Unpacked};
use crate::path::{text_to_query, to_query};

/// Bytes `start` to the end, or `length` of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadRange {
    pub start: u64,
    pub length: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WriteOptions {
    /// Only replace this version.
    pub if_match: Option<String>,
    /// Only create.
    pub create_new: bool,
    pub mode: Option<u32>,
    /// Create missing parent directories.
    pub parents: bool,
    /// Return only when it is on disk.
    pub sync: bool,
    pub user: Option<String>,
}

impl WriteOptions {
    fn apply(&self, request: &mut Request<Body>) -> Result<()> {
        if let Some(etag) = &self.if_match {
            let value = HeaderValue::from_str(etag).map_err(Error::protocol)?;
            request.headers_mut().insert(header::IF_MATCH, value);
        }
        if self.create_new {
            request.headers_mut().insert(header::IF_NONE_MATCH, HeaderValue::from_static("*"));
        }
        Ok(())
    }

    fn query(&self, path: &Path) -> String {
        let mut query = format!("path={}", to_query(path));
        if let Some(mode) = self.mode {
            let _ = write!(query, "&mode={mode:o}");
        }
        if self.parents {
            query.push_str("&parents=true");
        }
        if self.sync {
            query.push_str("&sync=true");
        }
        if let Some(user) = &self.user {
            let _ = write!(query, "&user={}", text_to_query(user));
        }
        query
    }
}

impl Client {
    pub async fn read(&self, path: impl AsRef<Path>) -> Result<Bytes> {
        let body = self.read_stream(path, None).await?;
        Ok(body.collect().await.map_err(Error::protocol)?.to_bytes())
    }

    pub async fn read_stream(
        &self,
        path: impl AsRef<Path>,
        range: Option<ReadRange>,
    ) -> Result<Incoming> {
        let path = format!("/supervisor/files/content?path={}", to_query(path));
        let mut request = self.request(Method::GET, &path, empty())?;
        if let Some(ReadRange { start, length }) = range {
            let last =
                length.map_or_else(String::new, |length| (start + length.max(1) - 1).to_string());
            let value =
                HeaderValue::from_str(&format!("bytes={start}-{last}")).map_err(Error::protocol)?;
            request.headers_mut().insert(header::RANGE, value);
        }
        Ok(self.send(request).await?.into_body())
    }

    pub async fn write(
        &self,
        path: impl AsRef<Path>,
        bytes: impl Into<Bytes>,
        options: &WriteOptions,
    ) -> Result<Stat> {
        self.write_stream(path, full(bytes), options).await
    }

    /// Replaces the file when the whole body has arrived, not before.
    pub async fn write_stream(
        &self,
        path: impl AsRef<Path>,
        body: Body,
        options: &WriteOptions,
    ) -> Result<Stat> {
        let path = format!("/supervisor/files/content?{}", options.query(path.as_ref()));
        let mut request = self.request(Method::PUT, &path, body)?;
        options.apply(&mut request)?;
        read_json(self.send(request).await?).await
    }

    pub async fn append(&self, path: impl AsRef<Path>, bytes: impl Into<Bytes>) -> Result<Stat> {
        let path = format!("/supervisor/files/append?path={}", to_query(path));
        read_json(self.send(self.request(Method::POST, &path, full(bytes))?).await?).await
    }

    /// One page; `after` is the last page's [`Listing::next`].
    pub async fn list(
        &self,
        path: impl AsRef<Path>,
        limit: Option<usize>,
        after: Option<&WirePath>,
    ) -> Result<Listing> {
        let mut query = format!("/supervisor/files/list?path={}", to_query(path));
        if let Some(limit) = limit {
            let _ = write!(query, "&limit={limit}");
        }
        if let Some(after) = after {
            let _ = write!(query, "&after={}", to_query(after.as_path()));
        }
        self.get_json(&query).await
    }

    /// Does not follow a symlink at the end of `path`.
    pub async fn stat(&self, path: impl AsRef<Path>) -> Result<Stat> {
        self.get_json(&format!("/supervisor/files/stat?path={}", to_query(path))).await
    }

    pub async fn mkdir(&self, request: &Mkdir) -> Result<()> {
        self.act("mkdir", request).await
    }

    pub async fn rename(&self, request: &Transfer) -> Result<()> {
        self.act("move", request).await
    }

    pub async fn copy(&self, request: &Transfer) -> Result<()> {
        self.act("copy", request).await
    }

    pub async fn remove(&self, request: &Remove) -> Result<()> {
        self.act("remove", request).await
    }

    pub async fn symlink(&self, request: &Symlink) -> Result<()> {
        self.act("symlink", request).await
    }

    pub async fn chmod(&self, request: &Chmod) -> Result<()> {
        self.act("chmod", request).await
    }

    async fn act(&self, action: &str, request: &impl Serialize) -> Result<()> {
        let request =
            self.json_request(Method::POST, &format!("/supervisor/files/{action}"), request)?;
        drain(self.send(request).await?).await
    }

    /// A file or folder as a tar stream.
    pub async fn pack(&self, path: impl AsRef<Path>) -> Result<Incoming> {
        let path = format!("/supervisor/files/archive?path={}", to_query(path));
        Ok(self.send(self.request(Method::GET, &path, empty())?).await?.into_body())
    }

    /// Unpacks a tar stream into a folder, which is created when it is missing.
    pub async fn unpack(&self, path: impl AsRef<Path>, tar: Body) -> Result<Unpacked> {
        let path = format!("/supervisor/files/archive?path={}", to_query(path));
        read_json(self.send(self.request(Method::PUT, &path, tar)?).await?).await
    }
}
