//! One request on its way, from its head to the last byte of its answer.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use axum::body::Bytes;
use http::uri::PathAndQuery;
use http::{HeaderValue, Method};
use hyper::body::{Body, Frame, SizeHint};
use nacre_wire::relay::{Joined, Progress};

use super::metrics::add;
use super::{ACCESS, Observer, Upgrade, Via};
use crate::sandboxes::Sandbox;

/// What nginx writes for a client that did not wait for its answer.
const CLIENT_WENT: u16 = 499;

/// It is written down when this is dropped: whoever holds it decides when the request is over.
pub(crate) struct Exchange {
    observer: Arc<Observer>,
    sandbox: Arc<Sandbox>,
    via: Via,
    method: Method,
    path: PathAndQuery,
    user: HeaderValue,
    began: Instant,
    upgrade: Option<Upgrade>,
    progress: Option<Arc<Progress>>,
    status: u16,
    bytes_in: u64,
    bytes_out: u64,
    /// The answer, or the socket, did not come to its end.
    cut: bool,
    forgotten: bool,
}

impl Exchange {
    pub(crate) fn begin(
        observer: &Arc<Observer>,
        sandbox: &Arc<Sandbox>,
        via: Via,
        method: &Method,
        path: PathAndQuery,
    ) -> Self {
        observer.metrics.of(via).under_way.fetch_add(1, Ordering::Relaxed);
        Self {
            observer: observer.clone(),
            sandbox: sandbox.clone(),
            via,
            method: method.clone(),
            path,
            user: HeaderValue::from_static("-"),
            began: Instant::now(),
            upgrade: None,
            progress: None,
            status: CLIENT_WENT,
            bytes_in: 0,
            bytes_out: 0,
            cut: false,
            forgotten: false,
        }
    }

    pub(crate) fn user(&mut self, user: Option<&HeaderValue>) {
        if let Some(user) = user {
            self.user = user.clone();
        }
    }

    /// It began before it came to this part of the program.
    pub(crate) fn began_at(&mut self, began: Instant) {
        self.began = began;
    }

    pub(crate) fn began(&self) -> Instant {
        self.began
    }

    /// It is written down by another one, which begins again.
    pub(crate) fn forget(mut self) {
        self.forgotten = true;
    }

    /// It asks for another protocol. Nothing more said, the client went before an answer came.
    pub(crate) fn upgrading(&mut self) {
        self.upgrade = Some(Upgrade::ClientWent);
        if self.is_of_a_page() {
            self.observer.upgrade_began(self.user.to_str().unwrap_or("-"), &self.sandbox);
        }
    }

    pub(crate) fn uploading(&mut self, progress: Option<Arc<Progress>>) {
        self.progress = progress;
    }

    /// The head of the answer. `upgrade` is how the upgrade ended, if it was asked for.
    pub(crate) fn answered(&mut self, status: u16, upgrade: Upgrade) {
        self.status = status;
        if self.upgrade.is_some() {
            self.upgrade = Some(upgrade);
        }
    }

    /// The client speaks with the app from here on.
    pub(crate) fn switched(&mut self) {
        self.answered(101, Upgrade::Accepted);
        self.observer.metrics.upgrade(self.via, Upgrade::Accepted);
        self.observer.metrics.of(self.via).sockets.fetch_add(1, Ordering::Relaxed);
        self.log_upgrade();
    }

    pub(crate) fn parted(&mut self, joined: Joined) {
        (self.bytes_in, self.bytes_out) = (joined.to_far, joined.to_near);
        self.cut = joined.broken.is_some();
    }

    /// The head of an answer that takes the short way.
    pub(crate) fn answered_lean(&mut self, status: u16) {
        self.status = status;
        add(&self.observer.metrics.of(self.via).lean, 1);
    }

    /// So much of the answer's body passed. Until the end is told of, it is not there.
    pub(crate) fn passes(&mut self, bytes: usize) {
        self.bytes_out += bytes as u64;
        self.cut = true;
    }

    pub(crate) fn passed(&mut self) {
        self.cut = false;
    }

    /// Counts what passes and ends with the body.
    pub(crate) fn watch<B: Body<Data = Bytes>>(self, body: B) -> Watched<B> {
        Watched { body, exchange: self }
    }

    /// And not of the command line, which has a socket for each command.
    fn is_of_a_page(&self) -> bool {
        matches!(self.via, Via::Role(_))
    }

    fn log_upgrade(&self) {
        let Some(outcome) = self.upgrade else { return };
        tracing::info!(
            target: ACCESS,
            path = self.path.path(),
            role = self.via.as_str(),
            proxy_target = self.sandbox.id.as_str(),
            outcome = outcome.as_str(),
            status = self.status,
            "upgrade"
        );
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        let took = self.began.elapsed();
        let via = self.observer.metrics.of(self.via);
        via.under_way.fetch_sub(1, Ordering::Relaxed);
        if self.forgotten {
            return;
        }
        self.bytes_in += self.progress.as_ref().map_or(0, |progress| progress.bytes());
        add(&via.bytes_in, self.bytes_in);
        add(&via.bytes_out, self.bytes_out);
        via.request(&self.method, self.status, took);
        if self.status == 404 {
            let path = self.path.path();
            let path = match self.via {
                Via::Role(role) => path.strip_prefix(super::prefix(role)).unwrap_or(path),
                Via::Door => path,
            };
            self.observer.not_found(&self.sandbox, path);
        }
        if let Some(outcome) = self.upgrade {
            if outcome == Upgrade::Accepted {
                via.sockets.fetch_sub(1, Ordering::Relaxed);
            } else {
                self.observer.metrics.upgrade(self.via, outcome);
                self.log_upgrade();
            }
            // Who was told that the role moved is asked to come again.
            if self.is_of_a_page() && !self.sandbox.has_moved() {
                self.observer.upgrade_ended(self.user.to_str().unwrap_or("-"), &self.sandbox);
            }
        }
        tracing::info!(
            target: ACCESS,
            path = self.path.path(),
            method = self.method.as_str(),
            role = self.via.as_str(),
            proxy_target = self.sandbox.id.as_str(),
            status = self.status,
            duration_us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX),
            bytes_in = self.bytes_in,
            bytes_out = self.bytes_out,
            user = self.user.to_str().unwrap_or("-"),
            cut = self.cut,
            "request"
        );
    }
}

/// The body of an answer.
pub(crate) struct Watched<B: Body<Data = Bytes>> {
    body: B,
    exchange: Exchange,
}

impl<B: Body<Data = Bytes> + Unpin> Body for Watched<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        // Until the end has been seen.
        self.exchange.cut = true;
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        match &frame {
            Some(Ok(frame)) => {
                let size = frame.data_ref().map_or(0, Bytes::len);
                self.exchange.bytes_out += size as u64;
                self.exchange.cut = !self.body.is_end_stream();
            }
            Some(Err(_)) => {}
            None => self.exchange.cut = false,
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
