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
pub(crate) mod enter;
mod follow;
mod form;
mod guard;
mod headers;
mod intent;
pub(crate) mod lanes;
mod pages;
mod proxy;
pub(crate) mod reply;
mod roles;
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
use http::header::{AUTHORIZATION, CONNECTION, HOST, UPGRADE};
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderValue, Request, Version};
use hyper::body::{Body as _, Incoming};
use nacre_wire::control::Shutdown;
use nacre_wire::{ApiError, ErrorKind};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;
use tower::ServiceExt;

use crate::auth::{Auth, Event, Pass, TOKEN_PREFIX};
use crate::observe::{Observer, Upgrade, Via};
use crate::routes::{self, Owner, Part, Role};
use crate::sandboxes::roles::Tie;
use crate::sandboxes::{Sandbox, Sandboxes};
use away::Asker;
use cookies::Jar;
use headers::Forwarded;
use intent::FormToken;
use proxy::Way;
use target::{Refusal, Target};
use visitor::{Front, Visitor};
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
        let pass = match target.row.auth {
            routes::Auth::Nothing => None,
            routes::Auth::PolicyToken => return no_policy_token(),
            routes::Auth::Session => match self.admit(&visitor, target.row.owner, &request) {
                Ok(pass) => Some(pass),
                Err(refusal) => return *refusal,
            },
        };
        let Some(pass) = pass else {
            return Box::pin(enter::answer(&self.app, &visitor, request)).await;
        };
        let ended = pass.ended().clone();
        let response = match target.row.owner {
            Owner::Gateway(Part::Control) => {
                let address = SocketAddr::new(visitor.ip, peer.port());
                if let Some(session) = pass.session() {
                    request.extensions_mut().insert(FormToken::of(session.hash()));
                }
                request.extensions_mut().insert(Tie::by_name(ended.clone()));
                request.extensions_mut().insert(pass);
                Box::pin(self.control(Entrance::Tcp(address), request)).await
            }
            Owner::Gateway(Part::Slash) => reply::add_slash(&request),
            Owner::Gateway(Part::SignIn | Part::Provider) => nothing_here(&request),
            Owner::Role(role) => match intent::check_service_worker(&request) {
                Ok(()) => {
                    let tie = |sandbox: &_| self.app.sandboxes.tie(role, sandbox, ended.clone());
                    self.forward(&visitor, role, target.path, tie, request).await
                }
                Err(error) => reply::error(&error),
            },
        };
        until::until(&ended, response)
    }

    /// Whether a request may go where it wants to. Who comes with a cookie also has to show that they
    /// meant to; a token is sent by nobody by accident.
    fn admit(
        &self,
        visitor: &Visitor,
        owner: Owner,
        request: &Request<Body>,
    ) -> Result<Pass, Box<Response>> {
        if let Some(token) = bearer(request.headers()) {
            return self.admit_token(visitor, owner, token, request);
        }
        let session = enter::session(&self.app.auth, request.headers(), visitor.secure);
        let Some(session) = session else {
            self.turned_away(owner, request, Upgrade::Unauthenticated);
            return Err(Box::new(reply::sign_in_first(request)));
        };
        let meant = guard::check_same_origin(request, visitor).and_then(|()| match owner {
            Owner::Gateway(Part::Control) => intent::check_not_a_script(request),
            Owner::Gateway(_) | Owner::Role(_) => Ok(()),
        });
        meant.map_err(|error| {
            self.turned_away(owner, request, Upgrade::Origin);
            Box::new(reply::error(&error))
        })?;
        Ok(Pass::Session(session))
    }

    fn admit_token(
        &self,
        visitor: &Visitor,
        owner: Owner,
        token: &str,
        request: &Request<Body>,
    ) -> Result<Pass, Box<Response>> {
        let refused = |kind, message: &str, hint: &str| {
            self.turned_away(owner, request, Upgrade::Unauthenticated);
            Err(Box::new(reply::error(&ApiError::new(kind, message).hint(hint))))
        };
        let auth = &self.app.auth;
        let Some(token) = auth.tokens.check(token) else {
            // One that is good is let in all the same: others may share its address.
            if auth.limits.check(visitor.ip).is_err() {
                return refused(
                    ErrorKind::Unauthorized,
                    "too many attempts failed",
                    "wait a while",
                );
            }
            auth.limits.failed(visitor.ip);
            let event = Event::of("token_refused").by("-").from(visitor.ip);
            let auth = auth.clone();
            tokio::spawn(async move { auth.note(event).await });
            let hint = "it may have been revoked or have expired; see nacre token list";
            return refused(ErrorKind::Unauthorized, "this token is not known", hint);
        };
        let upgrade = request.headers().contains_key(UPGRADE);
        if !token.allows(owner, request.method(), upgrade) {
            let hint = "nacre token create makes one with other scopes";
            return refused(ErrorKind::Permission, "this token is not for that", hint);
        }
        Ok(Pass::Token(token))
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
        tie: impl FnOnce(&Sandbox) -> Tie,
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
            user: self.app.auth.user(),
            peer: headers::address(visitor.ip),
            prefix: role.prefix(),
            secure: visitor.secure,
            jar: Some(Jar { role, secure: visitor.secure }),
        };
        let upgrade = request.headers().contains_key(UPGRADE);
        if upgrade {
            request.extensions_mut().insert(tie(&sandbox));
        }
        let way = Way { observer: &self.app.observer, sandbox: &sandbox, via: Via::Role(role) };
        let response = proxy::forward(way, path, forwarded, request).await;
        self.app.sandboxes.health(role).count(upgrade, response.status().as_u16());
        response
    }
}

/// A token of ours. Other schemes and other people's tokens are an app's own business, and stay here.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    let token = token.trim_start();
    (scheme.eq_ignore_ascii_case("bearer") && token.starts_with(TOKEN_PREFIX)).then_some(token)
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
