//! Signing in: `/login`, `/register`, `/recovery` and `/auth/*`.
//!
//! All of it is plain pages and forms; one page runs a script, because passkeys need one. Whatever
//! lets somebody in ends in [`Caller::welcome`], and whatever does not is counted against the address
//! it came from.

mod account;
pub(super) mod cookie;
mod login;
mod me;
mod passkey;
mod ports;
pub(crate) mod probe;
mod recovery;
mod register;
mod view;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use http::header::{ALLOW, RETRY_AFTER, USER_AGENT};
use http::request::Parts;
use http::{HeaderValue, Method, Request, StatusCode};
use nacre_wire::access::SignInMethod;
use nacre_wire::{ApiError, ErrorKind};

use super::reply::form_page;
use super::visitor::Visitor;
use super::way_back::WayBack;
use super::{App, guard, intent, reply};
use crate::auth::{Arrival, Auth, Event, Session};
use crate::secret::{Secret, SecretHash};
use cookie::Cookie;

/// Who asks.
pub(super) struct Caller<'a> {
    app: &'a App,
    visitor: &'a Visitor,
    parts: Parts,
}

pub(super) async fn answer(app: &App, visitor: &Visitor, request: Request<Body>) -> Response {
    let path = request.uri().path().to_owned();
    let (parts, body) = request.into_parts();
    if let Err(error) = check(&path, &parts, visitor) {
        return reply::error(&error);
    }
    let method = parts.method.clone();
    let caller = Caller { app, visitor, parts };
    let answered = match (path.as_str(), &method) {
        ("/login", &Method::GET) => login::show(&caller).await,
        // A link checker that only looks must not use the link up.
        ("/login", &Method::HEAD) => login::look(&caller).await,
        ("/auth/start", &Method::POST) => account::start(&caller, body).await,
        ("/auth/callback", &Method::GET) => account::callback(&caller).await,
        ("/auth/client-metadata.json", &Method::GET | &Method::HEAD) => account::metadata(&caller),
        ("/auth/jwks.json", &Method::GET | &Method::HEAD) => account::jwks(&caller),
        ("/register", &Method::GET | &Method::HEAD) => register::show(&caller),
        ("/register", &Method::POST) => register::begin(&caller, body).await,
        ("/recovery", &Method::GET | &Method::HEAD) => recovery::show(&caller).await,
        ("/recovery", &Method::POST) => recovery::redeem(&caller, body).await,
        ("/auth/passkey", &Method::GET) => passkey::show(&caller).await,
        ("/auth/passkey", &Method::POST) => passkey::sign_in(&caller, body).await,
        ("/auth/ports", &Method::GET) => ports::lead(&caller),
        ("/auth/me", &Method::GET) => me::show(&caller).await,
        ("/auth/me", &Method::POST) => me::act(&caller, body).await,
        _ => return not_answered(&path, &method),
    };
    answered.unwrap_or_else(|error| reply::error(&error))
}

/// What changes something comes from a form of ours that somebody sent. Going to the account's server
/// changes nothing here, and may be asked for under another name of this computer.
fn check(path: &str, parts: &Parts, visitor: &Visitor) -> Result<(), ApiError> {
    if path == "/auth/start" {
        return Ok(());
    }
    guard::check_same_origin(parts, visitor)?;
    intent::check_not_a_script(parts)
}

fn not_answered(path: &str, method: &Method) -> Response {
    let allowed = match path {
        "/login" | "/auth/client-metadata.json" | "/auth/jwks.json" => "GET, HEAD",
        "/register" | "/recovery" => "GET, HEAD, POST",
        "/auth/start" => "POST",
        "/auth/callback" | "/auth/ports" => "GET",
        "/auth/passkey" | "/auth/me" => "GET, POST",
        _ => {
            let message = format!("nothing answers at {path}");
            return reply::error(&ApiError::new(ErrorKind::NotFound, message));
        }
    };
    let message = format!("{method} {path}: only {allowed} is answered");
    let mut response = reply::error(&ApiError::new(ErrorKind::InvalidRequest, message));
    *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
    response.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    response
}

/// What a handler comes to; an error is shown as such.
type Answered = Result<Response, ApiError>;

impl Caller<'_> {
    fn auth(&self) -> &Arc<Auth> {
        &self.app.auth
    }

    fn address(&self) -> IpAddr {
        self.visitor.ip
    }

    fn query(&self) -> &str {
        self.parts.uri.query().unwrap_or("")
    }

    /// The session it has already.
    fn session(&self) -> Option<Arc<Session>> {
        session(self.auth(), &self.parts.headers, self.visitor.secure)
    }

    /// Of the cookie that a sign-in under way is bound to, and of those that a script may have added.
    fn browsers(&self) -> Vec<SecretHash> {
        Cookie::Browser.found(&self.parts.headers, self.visitor.secure).collect()
    }

    /// Whether somebody looks at a page, and not a script at what is on it.
    fn is_person(&self) -> bool {
        !intent::is_from_script(&self.parts.headers)
    }

    /// A page that says how long to wait, for an address that failed too often.
    fn check_limits(&self) -> Result<(), Box<Response>> {
        self.auth().limits.check(self.address()).map_err(|wait| Box::new(too_often(wait)))
    }

    /// Counts and records that somebody did not get in.
    async fn refused(&self, how: &'static str, why: &str) {
        self.auth().limits.failed(self.address());
        let event = Event::of(how).from(self.address()).saying(why);
        // Who it was is not known, and it was not the owner.
        self.auth().note(event.by("-")).await;
    }

    /// Opens a session under a new secret, in a response that takes the browser on.
    async fn welcome(&self, method: SignInMethod, response: Response) -> Answered {
        let agent = self.parts.headers.get(USER_AGENT).and_then(|agent| agent.to_str().ok());
        let arrival = Arrival {
            method,
            address: Some(self.address().to_canonical().to_string()),
            agent: agent.map(str::to_owned),
        };
        let before = self.session();
        let secret = self.auth().open(arrival, before.as_deref(), self.address()).await?;
        let (mut response, secure) = (response, self.visitor.secure);
        let lifetime = self.auth().sessions.limits().absolute.as_secs();
        Cookie::Session.set(response.headers_mut(), &secret, secure, lifetime);
        if !self.browsers().is_empty() {
            Cookie::Browser.clear(response.headers_mut(), secure);
        }
        let policy = HeaderValue::from_static("no-referrer");
        response.headers_mut().insert("referrer-policy", policy);
        Ok(response)
    }

    /// A fresh word for the browser to be known by until it comes back.
    fn new_browser(&self, response: &mut Response) -> Result<SecretHash, ApiError> {
        let secret = fresh_secret()?;
        let secure = self.visitor.secure;
        Cookie::Browser.set(response.headers_mut(), &secret, secure, BROWSER_LIFETIME_S);
        Ok(secret.hash())
    }
}

/// As long as what waits for it.
const BROWSER_LIFETIME_S: u64 = 10 * 60;

/// The session that a request brings.
pub(super) fn session(
    auth: &Auth,
    headers: &http::HeaderMap,
    secure: bool,
) -> Option<Arc<Session>> {
    #[cfg(feature = "unguarded")]
    if let Some(everyone) = auth.everyone() {
        return Some(everyone);
    }
    Cookie::Session.found(headers, secure).find_map(|hash| auth.sessions.check(hash))
}

fn too_often(wait: Duration) -> Response {
    let seconds = wait.as_secs() + 1;
    let mut response = reply::page(StatusCode::TOO_MANY_REQUESTS, view::too_often(seconds));
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    response
}

fn fresh_secret() -> Result<Secret, ApiError> {
    Secret::generate().map_err(|error| ApiError::io("random numbers", &error))
}

/// Where to go afterwards, as a form carries it.
fn way_back(text: &str) -> Option<WayBack> {
    WayBack::parse(text)
}
