//! What answers HTTP: checks first, then the route, then who owns it.
//!
//! Two ways in, one set of handlers. Browsers come over TCP and need a name that is ours, a session
//! and, to change anything, proof that the request comes from our own pages. The CLI comes over
//! the unix socket, where the kernel says who it is. A request that can be read in two ways goes
//! no further than [`target`].

mod away;
mod board;
mod control;
mod cookies;
mod follow;
mod guard;
mod headers;
mod intent;
pub(crate) mod lanes;
mod pages;
mod proxy;
pub(crate) mod reply;
mod roles;
pub(crate) mod serve;
mod sign_in;
mod socket;
mod target;
mod telemetry;
pub(crate) mod visitor;
mod way_back;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::body::Body;
use axum::response::Response;
use http::header::{CONNECTION, HOST, UPGRADE};
use http::uri::PathAndQuery;
use http::{HeaderValue, Request, Version};
use hyper::body::{Body as _, Incoming};
use nacre_wire::control::Shutdown;
use nacre_wire::{ApiError, ErrorKind};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;
use tower::ServiceExt;

use crate::observe::{Observer, Upgrade, Via};
use crate::routes::{Auth, Owner, Part, Role};
use crate::sandboxes::Sandboxes;
use away::Asker;
use cookies::Jar;
use headers::Forwarded;
use intent::FormToken;
use proxy::Way;
pub(crate) use sign_in::SignIn;
use target::{Refusal, Target};
use visitor::{Front, Visitor};

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
    pub(crate) sign_in: SignIn,
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
        match &self.front.public {
            Some(public) => public.origin(),
            None => format!("{}://{}", if self.front.tls { "https" } else { "http" }, self.address),
        }
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
        let mut request = request.map(|body| match body.is_end_stream() {
            true => Body::empty(),
            false => Body::new(body),
        });
        let target =
            target::read(request.method(), request.version(), request.uri(), request.headers());
        let target = match target {
            Ok(target) => target,
            Err(refusal) => return refused(refusal, request.version()),
        };
        match entrance {
            Entrance::Unix => self.answer_owner(target, request).await,
            Entrance::Tcp(peer) => {
                let (front, headers) = (&self.app.front, request.headers());
                match front.visitor(peer.ip(), target.host.as_ref(), headers) {
                    Ok(visitor) => {
                        request.headers_mut().insert(HOST, visitor.host.clone());
                        self.answer_browser(peer, visitor, target, request).await
                    }
                    Err(error) => reply::error(&error),
                }
            }
        }
    }

    async fn answer_owner(&self, target: Target, request: Request<Body>) -> Response {
        match target.row.owner {
            Owner::Gateway(Part::Control) => Box::pin(self.control(Entrance::Unix, request)).await,
            Owner::Gateway(_) | Owner::Role(_) => nothing_here(&request),
        }
    }

    async fn answer_browser(
        &self,
        peer: SocketAddr,
        visitor: Visitor,
        target: Target,
        mut request: Request<Body>,
    ) -> Response {
        match target.row.auth {
            Auth::Nothing => {}
            Auth::PolicyToken => return no_policy_token(),
            Auth::Session => {
                let session = self.app.sign_in.session(request.headers(), visitor.secure).await;
                let Some(session) = session else {
                    self.turned_away(target.row.owner, &request, Upgrade::Unauthenticated);
                    return reply::sign_in_first(&request);
                };
                if target.row.owner == Owner::Gateway(Part::Control) {
                    request.extensions_mut().insert(FormToken::of(session));
                }
                if let Err(error) = guard::check_same_origin(&request, &visitor) {
                    self.turned_away(target.row.owner, &request, Upgrade::Origin);
                    return reply::error(&error);
                }
            }
        }
        match target.row.owner {
            Owner::Gateway(Part::SignIn) => {
                Box::pin(sign_in::answer(&self.app.sign_in, request, visitor.secure)).await
            }
            Owner::Gateway(Part::Control) => {
                if let Err(error) = intent::check_not_a_script(&request) {
                    return reply::error(&error);
                }
                let address = SocketAddr::new(visitor.ip, peer.port());
                Box::pin(self.control(Entrance::Tcp(address), request)).await
            }
            Owner::Gateway(Part::Slash) => reply::add_slash(&request),
            Owner::Gateway(Part::Provider | Part::Reserved) => nothing_here(&request),
            Owner::Role(role) => match intent::check_service_worker(&request) {
                Ok(()) => self.forward(&visitor, role, target.path, request).await,
                Err(error) => reply::error(&error),
            },
        }
    }

    fn turned_away(&self, owner: Owner, request: &Request<Body>, why: Upgrade) {
        if let Owner::Role(role) = owner {
            self.app.observer.turned_away(Via::Role(role), request.headers(), why);
        }
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

    async fn forward(
        &self,
        visitor: &Visitor,
        role: Role,
        path: PathAndQuery,
        mut request: Request<Body>,
    ) -> Response {
        let Some(sandbox) = self.app.sandboxes.by_role(role) else {
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
        let forwarded = Forwarded {
            peer: headers::address(visitor.ip),
            prefix: role.prefix(),
            secure: visitor.secure,
            jar: Some(Jar { role, secure: visitor.secure }),
        };
        let sandboxes = &self.app.sandboxes;
        let upgrade = request.headers().contains_key(UPGRADE);
        if upgrade {
            request.extensions_mut().insert(sandboxes.tie(role, &sandbox));
        }
        let way = Way { observer: &self.app.observer, sandbox: &sandbox, via: Via::Role(role) };
        let response = proxy::forward(way, path, forwarded, request).await;
        sandboxes.health(role).count(upgrade, response.status().as_u16());
        response
    }
}

/// What follows on a connection whose client we do not understand is not understood either.
fn refused(refusal: Refusal, version: Version) -> Response {
    let mut response = reply::error(&refusal.into());
    if version != Version::HTTP_2 {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// Sandboxes will get tokens for models; a session is none.
fn no_policy_token() -> Response {
    reply::error(&ApiError::new(ErrorKind::Unauthorized, "a policy token is needed here"))
}

fn nothing_here(request: &Request<Body>) -> Response {
    let path = request.uri().path();
    reply::error(&ApiError::new(ErrorKind::NotFound, format!("nothing answers at {path}")))
}
