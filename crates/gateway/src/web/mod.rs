//! What answers HTTP: checks first, then the route, then who owns it.
//!
//! Two ways in, one set of handlers. Browsers come over TCP and need a loopback `Host`, a session
//! and, to change anything, proof that the request comes from our own pages. The CLI comes over
//! the unix socket, where the kernel says who it is.

mod control;
mod follow;
mod guard;
mod headers;
mod pages;
mod proxy;
pub(crate) mod reply;
pub(crate) mod serve;
mod sign_in;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::body::Body;
use axum::response::Response;
use http::Request;
use hyper::body::Incoming;
use nacre_wire::control::Shutdown;
use nacre_wire::{ApiError, ErrorKind};
use tokio::sync::watch;
use tower::ServiceExt;

use crate::routes::{self, Role, Route, Target};
use crate::sandboxes::Sandboxes;
use headers::Forwarded;
pub(crate) use sign_in::SignIn;

/// How a request came in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Entrance {
    Tcp(SocketAddr),
    /// The kernel vouches for the peer: it is the user who runs the gateway, or root.
    Unix,
}

/// Everything the handlers share.
pub(crate) struct App {
    pub(crate) sandboxes: Sandboxes,
    pub(crate) sign_in: SignIn,
    pub(crate) data_dir: PathBuf,
    pub(crate) address: SocketAddr,
    /// A host name that browsers may use besides loopback names.
    pub(crate) host: Option<String>,
    pub(crate) started: Instant,
    /// Set when somebody asks the gateway to stop.
    pub(crate) shutdown: watch::Sender<Option<Shutdown>>,
}

impl App {
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

/// The application behind both listeners.
#[derive(Clone)]
pub(crate) struct Site {
    app: Arc<App>,
    control: Router,
}

impl Site {
    pub(crate) fn new(app: Arc<App>) -> Self {
        Self { control: control::router(app.clone()), app }
    }

    pub(crate) async fn answer(&self, entrance: Entrance, request: Request<Incoming>) -> Response {
        let request = request.map(Body::new);
        match entrance {
            Entrance::Unix => self.answer_owner(request).await,
            Entrance::Tcp(peer) => self.answer_browser(peer, request).await,
        }
    }

    async fn answer_owner(&self, request: Request<Body>) -> Response {
        match routes::decide(request.uri().path()) {
            Route::Control => self.control(Entrance::Unix, request).await,
            Route::Login | Route::Reserved | Route::Role(_) => nothing_here(&request),
        }
    }

    async fn answer_browser(&self, peer: SocketAddr, request: Request<Body>) -> Response {
        if let Err(error) = guard::check_host(request.headers(), self.app.host.as_deref()) {
            return reply::error(&error);
        }
        let route = routes::decide(request.uri().path());
        if route == Route::Login {
            return sign_in::answer(&self.app.sign_in, request).await;
        }
        if !self.app.sign_in.is_signed_in(request.headers()).await {
            return reply::sign_in_first(&request);
        }
        if let Err(error) = guard::check_same_origin(&request) {
            return reply::error(&error);
        }
        match route {
            Route::Login | Route::Reserved => nothing_here(&request),
            Route::Control => self.control(Entrance::Tcp(peer), request).await,
            Route::Role(target) => self.forward(peer, target, request).await,
        }
    }

    async fn control(&self, entrance: Entrance, mut request: Request<Body>) -> Response {
        request.extensions_mut().insert(entrance);
        match self.control.clone().oneshot(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        }
    }

    async fn forward(&self, peer: SocketAddr, target: Target, request: Request<Body>) -> Response {
        let Some(sandbox) = self.app.sandboxes.by_role(target.role) else {
            return match target.role {
                Role::Dev => nothing_here(&request),
                Role::Live => {
                    let error = ApiError::new(ErrorKind::Unavailable, "there is no live sandbox")
                        .hint("nacre sandbox create live --start");
                    reply::unavailable(&request, &error)
                }
            };
        };
        let uri = request.uri().path_and_query().map_or("/", |path| path.as_str());
        let path = routes::strip_prefix(uri, target.prefix);
        let forwarded = Forwarded { peer: Some(peer.ip()), prefix: target.prefix };
        proxy::forward(&sandbox, path, forwarded, request).await
    }
}

fn nothing_here(request: &Request<Body>) -> Response {
    let path = request.uri().path();
    reply::error(&ApiError::new(ErrorKind::NotFound, format!("nothing answers at {path}")))
}
