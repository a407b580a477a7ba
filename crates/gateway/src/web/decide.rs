//! What a browser's request comes to, decided on its head alone: nothing here waits or answers, apart
//! from refusals. Whoever passes requests on, hyper's way ([`super::Site`]) or the short one
//! ([`super::lean`]), asks here and nowhere else.

use std::net::IpAddr;

use axum::response::Response;
use http::header::{AUTHORIZATION, CONNECTION, HOST, UPGRADE};
use http::request::Parts;
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderValue, Version};
use nacre_wire::{ApiError, ErrorKind};

use super::cookies::Jar;
use super::headers::{self, Forwarded};
use super::target::{self, Refusal, Target};
use super::visitor::{PortHost, Visitor};
use super::{App, enter, guard, intent, reply};
use crate::auth::{Event, Pass, TOKEN_PREFIX};
use crate::observe::{Upgrade, Via};
use crate::routes::{self, Owner, Part, Role};

/// What is to be done, and for whom.
pub(crate) enum Step {
    /// Signing in, and what else needs no session.
    Enter(Visitor),
    /// A model call, which brings a token of its own.
    Models,
    Own(Part, Visitor, Pass),
    /// At the host of a port, where other rules hold.
    Port(Visitor, PortHost),
    /// On to the sandbox that has the role.
    On(Passage),
}

/// A request that may go to a sandbox.
pub(crate) struct Passage {
    pub(crate) role: Role,
    /// Path and query as the sandbox sees them.
    pub(crate) path: PathAndQuery,
    pub(crate) visitor: Visitor,
    pub(crate) pass: Pass,
}

impl Passage {
    pub(crate) fn forwarded(&self, app: &App) -> Forwarded {
        let Self { role, visitor, .. } = self;
        Forwarded {
            user: app.auth.user(),
            peer: headers::address(visitor.ip),
            prefix: role.prefix(),
            secure: visitor.secure,
            jar: Some(Jar { role: *role, secure: visitor.secure, own_host: false }),
            ticket: None,
        }
    }
}

/// `Host` becomes what the browser has in its address bar.
pub(crate) fn decide(app: &App, peer: IpAddr, parts: &mut Parts) -> Result<Step, Box<Response>> {
    let Target { row, path, host } = read(parts)?;
    if let Some((visitor, place)) = app.front.port_visitor(peer, host.as_ref(), &parts.headers) {
        return Ok(Step::Port(visitor, place));
    }
    let visitor = app.front.visitor(peer, host.as_ref(), &parts.headers);
    let visitor = visitor.map_err(|error| Box::new(reply::error(&error)))?;
    parts.headers.insert(HOST, visitor.host.clone());
    match row.auth {
        routes::Auth::Nothing => return Ok(Step::Enter(visitor)),
        routes::Auth::PolicyToken => return Ok(Step::Models),
        routes::Auth::Session => {}
    }
    let pass = admit(app, &visitor, row.owner, parts)?;
    match row.owner {
        Owner::Gateway(part) => Ok(Step::Own(part, visitor, pass)),
        Owner::Role(role) => {
            let checked = intent::check_service_worker(parts);
            checked.map_err(|error| Box::new(reply::error(&error)))?;
            Ok(Step::On(Passage { role, path, visitor, pass }))
        }
    }
}

pub(crate) fn read(parts: &Parts) -> Result<Target, Box<Response>> {
    target::read(&parts.method, parts.version, &parts.uri, &parts.headers)
        .map_err(|refusal| Box::new(refused(refusal, parts.version)))
}

/// Whether a request may go where it wants to. Who comes with a cookie also has to show that they
/// meant to; a token is sent by nobody by accident.
fn admit(app: &App, visitor: &Visitor, owner: Owner, parts: &Parts) -> Result<Pass, Box<Response>> {
    if let Some(token) = bearer(&parts.headers) {
        return admit_token(app, visitor, owner, token, parts);
    }
    let session = enter::session(&app.auth, &parts.headers, visitor.secure);
    let Some(session) = session else {
        turned_away(app, owner, parts, Upgrade::Unauthenticated);
        return Err(Box::new(reply::sign_in_first(parts)));
    };
    let meant = guard::check_same_origin(parts, visitor).and_then(|()| match owner {
        Owner::Gateway(Part::Control) => intent::check_control(parts),
        Owner::Gateway(_) | Owner::Role(_) => Ok(()),
    });
    meant.map_err(|error| {
        turned_away(app, owner, parts, Upgrade::Origin);
        Box::new(reply::error(&error))
    })?;
    Ok(Pass::Session(session))
}

pub(super) fn admit_token(
    app: &App,
    visitor: &Visitor,
    owner: Owner,
    token: &str,
    parts: &Parts,
) -> Result<Pass, Box<Response>> {
    let refused = |kind, message: &str, hint: &str| {
        turned_away(app, owner, parts, Upgrade::Unauthenticated);
        Err(Box::new(reply::error(&ApiError::new(kind, message).hint(hint))))
    };
    let auth = &app.auth;
    let Some(token) = auth.tokens.check(token) else {
        // One that is good is let in all the same: others may share its address.
        if auth.limits.check(visitor.ip).is_err() {
            return refused(ErrorKind::Unauthorized, "too many attempts failed", "wait a while");
        }
        auth.limits.failed(visitor.ip);
        let event = Event::of("token_refused").by("-").from(visitor.ip);
        let auth = auth.clone();
        tokio::spawn(async move { auth.note(event).await });
        let hint = "it may have been revoked or have expired; see nacre token list";
        return refused(ErrorKind::Unauthorized, "this token is not known", hint);
    };
    let upgrade = parts.headers.contains_key(UPGRADE);
    if !token.allows(owner, &parts.method, upgrade) {
        let hint = "nacre token create makes one with other scopes";
        return refused(ErrorKind::Permission, "this token is not for that", hint);
    }
    Ok(Pass::Token(token))
}

pub(super) fn turned_away(app: &App, owner: Owner, parts: &Parts, why: Upgrade) {
    if let Owner::Role(role) = owner {
        app.observer.turned_away(Via::Role(role), parts.uri.path(), &parts.headers, why);
    }
}

/// A token of ours. Other schemes and other people's tokens are an app's own business, and stay here.
pub(super) fn bearer(headers: &HeaderMap) -> Option<&str> {
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
