//! What answers HTTP: checks first, then the route, then who owns it.
//!
//! Two ways in, one set of handlers. Browsers come over TCP and need a name that is ours, a session
//! and, to change anything, proof that the request comes from our own pages. The CLI comes over
//! the unix socket, where the kernel says who it is. A request that can be read in two ways goes
//! no further than [`target`].

mod access;
mod away;
mod board;
mod control;
mod cookies;
mod decide;
mod egress;
pub(crate) mod enter;
mod follow;
mod form;
mod guard;
mod headers;
mod intent;
pub(crate) mod lanes;
mod lean;
mod models;
pub(crate) mod pages;
mod ports;
mod proxy;
pub(crate) mod reply;
mod roles;
mod runs;
pub(crate) mod serve;
mod socket;
mod target;
mod telemetry;
mod until;
pub(crate) mod visitor;
mod way_back;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::body::Body;
use axum::response::Response;
use http::Request;
use http::header::UPGRADE;
use hyper::body::{Body as _, Incoming};
use nacre_wire::control::Shutdown;
use nacre_wire::{ApiError, ErrorKind};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;
use tower::ServiceExt;

use crate::auth::Auth;
use crate::brain::Brain;
use crate::desktop::Desktop;
use crate::knowledge::Knowledge;
use crate::observe::{Observer, Upgrade, Via};
use crate::provider::{Caller, Models};
use crate::relayed::Tickets;
use crate::routes::{Owner, Part, Role};
use crate::runs::Runs;
use crate::sandboxes::Sandboxes;
use crate::sandboxes::roles::Tie;
use away::Asker;
pub(crate) use control::{Answer, Program};
use decide::{Passage, Step};
use intent::FormToken;
use lean::Begun;
use proxy::Way;
use target::Target;
use visitor::Front;
pub(crate) use way_back::WayBack;

/// How a request came in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Entrance {
    /// The visitor's address, as far as our proxies tell.
    Tcp(SocketAddr),
    /// The kernel vouches for the peer: it is the user who runs the gateway, or root.
    Unix,
}

/// Everything the handlers share.
pub(crate) struct App {
    pub(crate) sandboxes: Sandboxes,
    pub(crate) models: Arc<Models>,
    pub(crate) runs: Runs,
    pub(crate) knowledge: Arc<Knowledge>,
    pub(crate) brain: Brain,
    pub(crate) desktop: Desktop,
    pub(crate) tickets: Tickets,
    pub(crate) auth: Arc<Auth>,
    pub(crate) observer: Arc<Observer>,
    pub(crate) data_dir: PathBuf,
    pub(crate) address: SocketAddr,
    pub(crate) front: Front,
    pub(crate) started: Instant,
    /// Set when somebody asks the gateway to stop.
    pub(crate) shutdown: watch::Sender<Option<Shutdown>>,
}

impl App {
    /// What to open in a browser.
    pub(crate) fn url(&self) -> String {
        self.front.url(self.address)
    }
}

/// The application behind both listeners.
#[derive(Clone)]
pub(crate) struct Site {
    app: Arc<App>,
    control: Router,
    /// Where the control plane runs: its tasks must not stand in the way of a lane.
    home: Handle,
}

impl Site {
    /// Within the runtime that started the gateway.
    pub(crate) fn new(app: Arc<App>) -> Self {
        Self { control: control::router(app.clone()), app, home: Handle::current() }
    }

    pub(crate) async fn answer(&self, entrance: Entrance, request: Request<Incoming>) -> Response {
        let (mut parts, body) = request.into_parts();
        let body = if body.is_end_stream() { Body::empty() } else { Body::new(body) };
        match entrance {
            Entrance::Unix => match decide::read(&parts) {
                Ok(target) => self.answer_owner(&target, Request::from_parts(parts, body)).await,
                Err(refusal) => *refusal,
            },
            Entrance::Tcp(peer) => match decide::decide(&self.app, peer.ip(), &mut parts) {
                Ok(step) => self.take(step, peer, Request::from_parts(parts, body)).await,
                Err(refusal) => *refusal,
            },
        }
    }

    async fn answer_owner(&self, target: &Target, request: Request<Body>) -> Response {
        match target.row.owner {
            Owner::Gateway(Part::Control) => Box::pin(self.control(Entrance::Unix, request)).await,
            // Conversations ask models by the way that everybody takes.
            Owner::Gateway(Part::Provider) => {
                Box::pin(self.app.models.answer(Caller::Outside, request)).await
            }
            Owner::Gateway(_) | Owner::Role(_) => nothing_here(&request),
        }
    }

    async fn take(&self, step: Step, peer: SocketAddr, mut request: Request<Body>) -> Response {
        let (ended, response) = match step {
            Step::Enter(visitor) => {
                return Box::pin(enter::answer(&self.app, &visitor, request)).await;
            }
            Step::Models => {
                return Box::pin(self.app.models.answer(Caller::Outside, request)).await;
            }
            Step::Own(part, visitor, pass) => {
                let ended = pass.ended().clone();
                let response = match part {
                    Part::Control => {
                        let address = SocketAddr::new(visitor.ip, peer.port());
                        if let Some(session) = pass.session() {
                            request.extensions_mut().insert(FormToken::of(session.hash()));
                        }
                        request.extensions_mut().insert(Tie::by_name(ended.clone()));
                        request.extensions_mut().insert(pass);
                        Box::pin(self.control(Entrance::Tcp(address), request)).await
                    }
                    Part::Slash => reply::add_slash(&request),
                    Part::SignIn | Part::Provider => nothing_here(&request),
                };
                (ended, response)
            }
            Step::Port(visitor, place) => {
                return Box::pin(self.answer_port(&visitor, place, request)).await;
            }
            Step::On(passage) => {
                (passage.pass.ended().clone(), self.forward(passage, request).await)
            }
        };
        until::until(&ended, response)
    }

    async fn control(&self, entrance: Entrance, mut request: Request<Body>) -> Response {
        request.extensions_mut().insert(entrance);
        let answer = self.home.spawn(self.control.clone().oneshot(request));
        // Who goes away takes the call along, as far as that is not a task of its own.
        match AbortOnDropHandle::new(answer).await {
            Ok(Ok(response)) => response,
            Ok(Err(never)) => match never {},
            Err(error) => {
                tracing::error!(%error, "a call of the control plane broke off");
                reply::error(&ApiError::new(ErrorKind::Internal, "the call broke off"))
            }
        }
    }

    async fn forward(&self, passage: Passage, mut request: Request<Body>) -> Response {
        let role = passage.role;
        // What has begun ends where it began, also when the role has moved meanwhile.
        let begun = request.extensions().get::<Begun>().map(|begun| begun.sandbox.clone());
        let Some(sandbox) = begun.or_else(|| self.app.sandboxes.by_role(role)) else {
            self.nobody_there(role, &request);
            return match role {
                Role::Dev => nothing_here(&request),
                Role::Live => {
                    let error = ApiError::new(ErrorKind::Unavailable, "there is no live sandbox")
                        .hint("nacre sandbox create live --start");
                    let navigation = reply::is_navigation(request.method(), request.headers());
                    away::answer(Asker { navigation, rescue: None }, &error)
                }
            };
        };
        let mut forwarded = passage.forwarded(&self.app);
        let ticket = self.app.tickets.make(&sandbox, request.method(), &passage.path);
        let way = Way { observer: &self.app.observer, sandbox: &sandbox, via: Via::Role(role) };
        forwarded.ticket = match ticket.await {
            Ok(ticket) => ticket,
            Err(error) => {
                let mut response = reply::error(&error);
                way.sign(response.headers_mut());
                return response;
            }
        };
        let upgrade = request.headers().contains_key(UPGRADE);
        if upgrade {
            let tie = self.app.sandboxes.tie(role, &sandbox, passage.pass.ended().clone());
            request.extensions_mut().insert(tie);
        }
        let response = proxy::forward(way, passage.path, forwarded, request).await;
        self.app.sandboxes.count(role, &sandbox, upgrade, response.status().as_u16());
        response
    }

    /// No sandbox has the role.
    fn nobody_there(&self, role: Role, request: &Request<Body>) {
        let (path, headers) = (request.uri().path(), request.headers());
        self.app.observer.turned_away(Via::Role(role), path, headers, Upgrade::Unavailable);
    }
}

fn nothing_here(request: &Request<Body>) -> Response {
    let path = request.uri().path();
    reply::error(&ApiError::new(ErrorKind::NotFound, format!("nothing answers at {path}")))
}
