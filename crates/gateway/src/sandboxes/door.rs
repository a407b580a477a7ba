//! HTTP to one sandbox's supervisor, over connections that are kept for the next request.
//!
//! A connection is out of the pool while a request or its response is under way and comes back by
//! itself. One that has ended meanwhile is noticed before it is used. A request goes out again on a
//! fresh one only when surely no byte of it was sent.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use http::Request;
use http_body_util::{BodyExt, Limited};
use nacre_sandbox::{BoxStream, Driver, SandboxId};
use nacre_wire::generation;
use nacre_wire::relay::{Answer, Link, Pool, Upload};
use nacre_wire::status::Version;

use super::plain::Plain;
use crate::web::lanes::{self, PLACES};

#[derive(Debug, thiserror::Error)]
pub(crate) enum DoorError {
    #[error("cannot reach the supervisor: {0}")]
    Dial(#[from] nacre_sandbox::Error),
    #[error("the supervisor broke off: {0}")]
    Http(#[from] io::Error),
}

#[derive(Clone)]
pub(crate) struct Door {
    driver: Arc<dyn Driver>,
    id: SandboxId,
    /// For each lane, those that it opened: with hyper, and without. Each can be made of the other.
    idle: Arc<[Arc<Pool<Body>>; PLACES]>,
    plain: Arc<[Plain; PLACES]>,
}

impl Door {
    pub(crate) fn new(driver: Arc<dyn Driver>, id: SandboxId) -> Self {
        Self { driver, id, idle: Arc::default(), plain: Arc::default() }
    }

    /// Sends one request. The response may be an upgrade.
    pub(crate) async fn send(
        &self,
        mut request: Request<Upload<Body>>,
    ) -> Result<Answer<Body>, DoorError> {
        let idle = &self.idle[lanes::here()];
        while let Some(link) = self.kept().await? {
            match link.exchange(request).await {
                Ok(answer) => return Ok(answer),
                Err(failed) => match failed.unsent {
                    Some(unsent) => request = *unsent,
                    None => return Err(failed.error.into()),
                },
            }
        }
        let stream = self.driver.dial(&self.id).await?;
        let link = Link::open(stream, Some(idle.clone())).await?;
        link.exchange(request).await.map_err(|failed| failed.error.into())
    }

    /// The answer to a request that was sent over `stream` already; the stream takes it for sent.
    pub(crate) async fn go_on(
        stream: BoxStream,
        request: Request<Upload<Body>>,
    ) -> Result<Answer<Body>, DoorError> {
        let link = Link::open(stream, None).await?;
        link.exchange(request).await.map_err(|failed| failed.error.into())
    }

    async fn kept(&self) -> Result<Option<Link<Body>>, DoorError> {
        let idle = &self.idle[lanes::here()];
        if let Some(link) = idle.take() {
            return Ok(Some(link));
        }
        match self.plain[lanes::here()].take(Instant::now()) {
            Some(stream) => Ok(Some(Link::open(stream, Some(idle.clone())).await?)),
            None => Ok(None),
        }
    }

    /// A connection of this lane to use without hyper.
    pub(crate) fn kept_plain(&self, now: Instant) -> Option<BoxStream> {
        let link = || self.idle[lanes::here()].take();
        self.plain[lanes::here()].take(now).or_else(|| link().and_then(Link::into_stream))
    }

    /// For the next request. It was last used then, or later.
    pub(crate) fn keep_plain(&self, stream: BoxStream, used: Instant) {
        self.plain[lanes::here()].put(stream, used);
    }

    /// What the supervisor says it is; `None` when it does not say.
    pub(crate) async fn version(&self) -> Option<Version> {
        let request = Request::get("/supervisor/version")
            .header(http::header::HOST, "door")
            .header(generation::HEADER, generation::Range::OURS.to_string())
            .body(Body::empty())
            .ok()?;
        let Answer::Response(response) = self.send(Upload::of(request)).await.ok()? else {
            return None;
        };
        let body = Limited::new(response.into_body(), 64 * 1024).collect().await.ok()?.to_bytes();
        serde_json::from_slice(&body).ok()
    }

    /// For calls of the gateway's own.
    pub(crate) async fn dial(&self) -> Result<BoxStream, nacre_sandbox::Error> {
        self.driver.dial(&self.id).await
    }

    /// Lets go of the connections of a supervisor that is gone.
    pub(crate) fn forget(&self) {
        self.idle.iter().for_each(|idle| idle.clear());
        self.plain.iter().for_each(Plain::clear);
    }
}
