//! Hosts that ports have to themselves: `3000--dev.pc.example`.
//!
//! ```text
//!  port's host                     the computer's own              port's host
//!  no cookie: a knock is set  ──▶  /auth/ports: the session,  ──▶  /.nacre/enter: code and knock
//!                                  a code for that knock           become a cookie for this host
//! ```
//! Everything else there is the app's: no path is the gateway's or the supervisor's. The session never
//! goes there, so an app at such a host holds nothing that opens another. See decision 17.

use axum::body::Body;
use axum::response::Response;
use http::header::{HOST, REFERRER_POLICY, UPGRADE};
use http::request::Parts;
use http::uri::PathAndQuery;
use http::{HeaderValue, Method, Request};
use nacre_wire::{ApiError, ErrorKind};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::away::{self, Asker};
use super::cookies::Jar;
use super::decide::{admit_token, bearer, turned_away};
use super::enter::cookie::Cookie;
use super::form::Form;
use super::headers::{self, Forwarded};
use super::proxy::{self, Way};
use super::visitor::{PortHost, Visitor};
use super::{Site, guard, reply, until};
use crate::auth::Pass;
use crate::observe::{Upgrade, Via};
use crate::routes::Owner;
use crate::secret::{Secret, SecretHash, hex};

/// The one path at a port's host that is not the app's.
pub(super) const ENTER: &str = "/.nacre/enter";
const KNOCK_LIFETIME_S: u64 = 10 * 60;
const LONGEST: usize = 2048;
const KEPT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'_').remove(b'.');

/// A path with its query, which no browser takes for another place.
pub(super) fn is_path(text: &str) -> bool {
    let plain = text.len() <= LONGEST && text.bytes().all(|byte| matches!(byte, b'!'..=b'~'));
    plain && text.starts_with('/') && !text.starts_with("//") && !text.contains('\\')
}

pub(super) fn encode(text: &str) -> String {
    utf8_percent_encode(text, KEPT).to_string()
}

impl Site {
    pub(super) async fn answer_port(
        &self,
        visitor: &Visitor,
        place: PortHost,
        request: Request<Body>,
    ) -> Response {
        let (mut parts, body) = request.into_parts();
        parts.headers.insert(HOST, visitor.host.clone());
        if parts.uri.path() == ENTER {
            return self.enter_port(visitor, place, &parts).unwrap_or_else(|e| reply::error(&e));
        }
        let pass = match self.admit_to_port(visitor, place, &parts) {
            Ok(pass) => pass,
            Err(refusal) => return *refusal,
        };
        let ended = pass.ended().clone();
        let request = Request::from_parts(parts, body);
        let response = self.forward_to_port(visitor, place, &pass, request).await;
        until::until(&ended, response)
    }

    fn admit_to_port(
        &self,
        visitor: &Visitor,
        place: PortHost,
        parts: &Parts,
    ) -> Result<Pass, Box<Response>> {
        if let Some(token) = bearer(&parts.headers) {
            return admit_token(&self.app, visitor, Owner::Role(place.role), token, parts);
        }
        let auth = &self.app.auth;
        let session = Cookie::Port
            .found(&parts.headers, visitor.secure)
            .find_map(|hash| auth.ports.check(hash, place, &auth.sessions));
        let owner = Owner::Role(place.role);
        let Some(session) = session else {
            turned_away(&self.app, owner, parts, Upgrade::Unauthenticated);
            return Err(Box::new(self.send_to_door(visitor, place, parts)));
        };
        guard::check_same_origin(parts, visitor).map_err(|error| {
            turned_away(&self.app, owner, parts, Upgrade::Origin);
            Box::new(reply::error(&error))
        })?;
        Ok(Pass::Session(session))
    }

    /// To where the session is, and back.
    fn send_to_door(&self, visitor: &Visitor, place: PortHost, parts: &Parts) -> Response {
        if parts.method != Method::GET || !reply::is_navigation(&parts.method, &parts.headers) {
            let error = ApiError::new(ErrorKind::Unauthorized, "not signed in at this host");
            return reply::error(&error.hint("open it in a browser that is signed in"));
        }
        let knock = match Secret::generate() {
            Ok(knock) => knock,
            Err(error) => return reply::error(&ApiError::io("random numbers", &error)),
        };
        let next = parts.uri.path_and_query().map_or("/", PathAndQuery::as_str);
        let next = encode(if is_path(next) { next } else { "/" });
        let (url, SecretHash(hash)) = (self.app.url(), knock.hash());
        let to = format!("{url}/auth/ports?to={place}&knock={}&next={next}", hex(&hash));
        let mut response = reply::redirect(&to);
        Cookie::Knock.set(response.headers_mut(), &knock, visitor.secure, KNOCK_LIFETIME_S);
        response
    }

    /// The way back, with a code.
    fn enter_port(
        &self,
        visitor: &Visitor,
        place: PortHost,
        parts: &Parts,
    ) -> Result<Response, ApiError> {
        let query = Form::parse(parts.uri.query().unwrap_or_default().as_bytes());
        let knocks: Vec<_> = Cookie::Knock.found(&parts.headers, visitor.secure).collect();
        let ports = &self.app.auth.ports;
        let Some(session) = ports.redeem(query.text("code"), &knocks, place) else {
            let message = "this way in is over: it took too long, or began in another browser";
            let error = ApiError::new(ErrorKind::Permission, message);
            return Err(error.hint("open the address of the port again; it needs cookies"));
        };
        let secret = Secret::generate().map_err(|error| ApiError::io("random numbers", &error))?;
        ports.begin(&secret, place, session);
        let next = Some(query.text("next")).filter(|next| is_path(next)).unwrap_or("/");
        let mut response = reply::redirect(next);
        let lifetime = self.app.auth.sessions.limits().absolute.as_secs();
        let headers = response.headers_mut();
        Cookie::Port.set(headers, &secret, visitor.secure, lifetime);
        Cookie::Knock.clear(headers, visitor.secure);
        headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
        Ok(response)
    }

    async fn forward_to_port(
        &self,
        visitor: &Visitor,
        place: PortHost,
        pass: &Pass,
        mut request: Request<Body>,
    ) -> Response {
        let PortHost { port, role } = place;
        let sandboxes = &self.app.sandboxes;
        let Some(sandbox) = sandboxes.by_role(role) else {
            self.nobody_there(role, &request);
            let message = format!("there is no {} sandbox", role.as_str());
            let navigation = reply::is_navigation(request.method(), request.headers());
            let error = ApiError::new(ErrorKind::Unavailable, message);
            return away::answer(Asker { navigation, rescue: None }, &error);
        };
        let path = request.uri().path_and_query().map_or("/", PathAndQuery::as_str);
        let Ok(path) = PathAndQuery::try_from(format!("/ports/{port}{path}")) else {
            let error = ApiError::new(ErrorKind::InvalidPath, "the path cannot be read");
            return reply::error(&error);
        };
        let upgrade = request.headers().contains_key(UPGRADE);
        if upgrade {
            let tie = sandboxes.tie(role, &sandbox, pass.ended().clone());
            request.extensions_mut().insert(tie);
        }
        let forwarded = Forwarded {
            user: self.app.auth.user(),
            peer: headers::address(visitor.ip),
            prefix: "",
            secure: visitor.secure,
            jar: Some(Jar { role, secure: visitor.secure, own_host: true }),
            ticket: None,
        };
        let way = Way { observer: &self.app.observer, sandbox: &sandbox, via: Via::Role(role) };
        let response = proxy::forward(way, path, forwarded, request).await;
        sandboxes.count(role, &sandbox, upgrade, response.status().as_u16());
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_path_is_a_way_on() {
        for good in ["/", "/a?b=c&d=//e", "/login", "/.well-known/x"] {
            assert!(is_path(good), "{good}");
        }
        for bad in
            ["", "a", "//evil.example", "/\\evil.example", "/a\\b", "/a b", "/a\n", "https://a"]
        {
            assert!(!is_path(bad), "{bad}");
        }
    }
}
