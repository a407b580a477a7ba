//! One-shot runs.

use bytes::{Buf, Bytes, BytesMut};
use http::{HeaderValue, Method, header};
use http_body_util::BodyExt;
use hyper::body::Incoming;

use super::{Body, Client, Error, Result, empty, read_json};
use crate::path::text_to_query;
use crate::runs::{RunInfo, RunList, StartRun};

/// A line that is longer is no event.
const LONGEST: usize = 64 << 20;

impl Client {
    pub async fn start_run(&self, wanted: &StartRun) -> Result<RunInfo> {
        self.post_json("/admin/sandboxes/runs", wanted).await
    }

    /// The files that it begins with, as a tar stream.
    pub async fn put_run_input(&self, id: &str, tar: Body) -> Result<RunInfo> {
        let mut request = self.request(Method::PUT, &run(id, "/input"), tar)?;
        let kind = HeaderValue::from_static("application/x-tar");
        request.headers_mut().insert(header::CONTENT_TYPE, kind);
        read_json(self.send(request).await?).await
    }

    /// From the first on. A run that is not detached is cancelled when nobody follows it any more.
    pub async fn follow_run(&self, id: &str) -> Result<RunEvents> {
        let body = self.get_stream(&run(id, "/events")).await?;
        Ok(RunEvents { body, waiting: BytesMut::new(), searched: 0 })
    }

    pub async fn runs(&self) -> Result<RunList> {
        self.get_json("/admin/sandboxes/runs").await
    }

    pub async fn run_info(&self, id: &str) -> Result<RunInfo> {
        self.get_json(&run(id, "")).await
    }

    /// Returns when its sandbox is gone. One that has ended is forgotten.
    pub async fn cancel_run(&self, id: &str) -> Result<()> {
        self.delete(&run(id, "")).await
    }

    /// What it added and changed, as a tar stream.
    pub async fn run_files(&self, id: &str) -> Result<Incoming> {
        self.get_stream(&run(id, "/files")).await
    }

    pub async fn run_patch(&self, id: &str) -> Result<Incoming> {
        self.get_stream(&run(id, "/patch")).await
    }

    async fn get_stream(&self, path: &str) -> Result<Incoming> {
        Ok(self.send(self.request(Method::GET, path, empty())?).await?.into_body())
    }
}

fn run(id: &str, rest: &str) -> String {
    format!("/admin/sandboxes/runs/{}{rest}", text_to_query(id))
}

/// What happens in a run, line by line.
#[derive(Debug)]
pub struct RunEvents {
    body: Incoming,
    waiting: BytesMut,
    /// So much of it holds no line end.
    searched: usize,
}

impl RunEvents {
    /// The next line as it came, without its end: a [`RunEvent`](crate::runs::RunEvent) as JSON.
    /// `None` when the run has ended. A stream that breaks off is an error.
    pub async fn next(&mut self) -> Result<Option<Bytes>> {
        loop {
            let end = self.waiting[self.searched..].iter().position(|byte| *byte == b'\n');
            if let Some(end) = end {
                let line = self.waiting.split_to(self.searched + end).freeze();
                self.waiting.advance(1);
                self.searched = 0;
                return Ok(Some(line));
            }
            self.searched = self.waiting.len();
            if self.searched > LONGEST {
                return Err(Error::Protocol("an event is longer than any should be".to_owned()));
            }
            match self.body.frame().await {
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        self.waiting.extend_from_slice(&data);
                    }
                }
                Some(Err(error)) => return Err(Error::protocol(error)),
                None if self.waiting.is_empty() => return Ok(None),
                None => return Err(Error::Protocol("the events broke off".to_owned())),
            }
        }
    }
}
