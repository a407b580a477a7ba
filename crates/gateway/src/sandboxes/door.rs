//! HTTP to one sandbox's supervisor, over connections that are kept for the next request.
//!
//! A connection is out of the pool while a request or its response is under way and comes back by
//! itself. Connections of a supervisor that ended fail when they are next looked at, and the
//! request, not yet sent, goes out on a fresh one.

use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Body;
use http::{Request, Response};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use nacre_sandbox::{Driver, SandboxId};
use nacre_wire::generation;
use nacre_wire::status::Version;

/// More are opened when needed and dropped when done.
const IDLE_CONNECTIONS: usize = 32;

#[derive(Debug, thiserror::Error)]
pub(crate) enum DoorError {
    #[error("cannot reach the supervisor: {0}")]
    Dial(#[from] nacre_sandbox::Error),
    #[error("the supervisor broke off: {0}")]
    Http(#[from] hyper::Error),
}

#[derive(Clone)]
pub(crate) struct Door {
    driver: Arc<dyn Driver>,
    id: SandboxId,
    idle: Arc<Mutex<Vec<SendRequest<Body>>>>,
}

impl Door {
    pub(crate) fn new(driver: Arc<dyn Driver>, id: SandboxId) -> Self {
        Self { driver, id, idle: Arc::default() }
    }

    /// Sends one request. The response may be an upgrade.
    pub(crate) async fn send(
        &self,
        mut request: Request<Body>,
    ) -> Result<Response<Incoming>, DoorError> {
        while let Some(mut sender) = self.take_idle() {
            match sender.try_send_request(request).await {
                Ok(response) => {
                    self.keep_when_done(sender);
                    return Ok(response);
                }
                Err(mut failed) => match failed.take_message() {
                    Some(unsent) => request = unsent,
                    None => return Err(failed.into_error().into()),
                },
            }
        }
        let mut sender = self.connect().await?;
        let response = sender.send_request(request).await?;
        self.keep_when_done(sender);
        Ok(response)
    }

    /// What the supervisor says it is; `None` when it does not say.
    pub(crate) async fn version(&self) -> Option<String> {
        let request = Request::get("/supervisor/version")
            .header(http::header::HOST, "door")
            .header(generation::HEADER, generation::Range::OURS.to_string())
            .body(Body::empty())
            .ok()?;
        let response = self.send(request).await.ok()?;
        let body = Limited::new(response.into_body(), 64 * 1024).collect().await.ok()?.to_bytes();
        serde_json::from_slice::<Version>(&body).ok().map(|version| version.version)
    }

    async fn connect(&self) -> Result<SendRequest<Body>, DoorError> {
        let stream = self.driver.dial(&self.id).await?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        let id = self.id.clone();
        tokio::spawn(async move {
            if let Err(error) = connection.with_upgrades().await {
                tracing::debug!(%id, %error, "a door connection ended");
            }
        });
        Ok(sender)
    }

    fn keep_when_done(&self, mut sender: SendRequest<Body>) {
        let idle = self.idle.clone();
        tokio::spawn(async move {
            if sender.ready().await.is_err() {
                return;
            }
            let mut idle = idle.lock().unwrap_or_else(PoisonError::into_inner);
            if idle.len() < IDLE_CONNECTIONS {
                idle.push(sender);
            }
        });
    }

    fn take_idle(&self) -> Option<SendRequest<Body>> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(sender) = idle.pop() {
            if sender.is_ready() {
                return Some(sender);
            }
        }
        None
    }

    /// Lets go of the connections of a supervisor that is gone.
    pub(crate) fn forget(&self) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}
