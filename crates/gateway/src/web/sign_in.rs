//! The owner's session: a one-time link, then a cookie.
//!
//! Known sessions are remembered in memory, so a request costs no database read. Only the database
//! decides whether a link is good.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use axum::body::Body;
use axum::response::Response;
use http::header::{ALLOW, SET_COOKIE};
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode};
use nacre_wire::control::SignInLink;
use nacre_wire::{ApiError, ErrorKind};

use super::cookies::pairs;
use super::way_back::WayBack;
use super::{pages, reply};
use crate::clock::now_ms;
use crate::sandboxes::errors;
use crate::secret::{Secret, SecretHash};
use crate::store::{SESSION_LIFETIME, SIGN_IN_LIFETIME, Store};

/// Looked at in one request, of however many it brings.
const MOST_SESSIONS: usize = 4;

pub(crate) struct SignIn {
    store: Store,
    /// When each session we have seen ends, in Unix milliseconds.
    known: Mutex<HashMap<SecretHash, u64>>,
}

impl SignIn {
    pub(crate) fn new(store: Store) -> Self {
        Self { store, known: Mutex::default() }
    }

    /// A fresh link; the one before it stops working.
    pub(crate) async fn link(&self, base_url: &str) -> Result<SignInLink, ApiError> {
        let token = fresh_secret()?;
        self.store.replace_sign_in(token.hash(), now_ms()).await.map_err(errors::from_store)?;
        Ok(SignInLink {
            url: format!("{base_url}/login?token={}", token.reveal()),
            expires_in_s: SIGN_IN_LIFETIME.as_secs(),
        })
    }

    /// The session cookie's value when the link is good.
    async fn redeem(&self, token: &str) -> Result<Option<Secret>, ApiError> {
        let session = fresh_secret()?;
        let token = SecretHash::of(token);
        let good = self.store.redeem(token, session.hash(), now_ms()).await;
        Ok(good.map_err(errors::from_store)?.then_some(session))
    }

    /// A script on our origin can add a cookie of this name, for a longer path; the owner's own is
    /// still among them.
    pub(crate) async fn session(&self, headers: &HeaderMap, secure: bool) -> Option<SecretHash> {
        for session in sessions(headers, secure).take(MOST_SESSIONS) {
            let session = SecretHash::of(session);
            if self.is_good(session).await {
                return Some(session);
            }
        }
        None
    }

    async fn is_good(&self, session: SecretHash) -> bool {
        if let Some(expires) = self.remembered(&session) {
            return expires > now_ms();
        }
        match self.store.session_expiry(session).await {
            Ok(Some(expires)) => {
                self.known.lock().unwrap_or_else(PoisonError::into_inner).insert(session, expires);
                expires > now_ms()
            }
            Ok(None) => false,
            Err(error) => {
                tracing::error!(%error, "sessions cannot be read");
                false
            }
        }
    }

    fn remembered(&self, hash: &SecretHash) -> Option<u64> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).get(hash).copied()
    }
}

/// `GET /login`, with or without a token.
pub(crate) async fn answer(sign_in: &SignIn, request: Request<Body>, secure: bool) -> Response {
    match *request.method() {
        Method::GET => {}
        // A link checker that only looks must not use the link up.
        Method::HEAD => return reply::page(StatusCode::OK, pages::sign_in()),
        _ => return wrong_method(request.method()),
    }
    let query = request.uri().query().unwrap_or("");
    let asked = WayBack::from_query(query);
    let way_back = asked.clone().or_else(|| WayBack::from_cookie(request.headers()));
    let to = way_back.as_ref().map_or("/", WayBack::as_str);
    let token = query.split('&').find_map(|pair| pair.strip_prefix("token="));
    let redeemed = match token {
        Some(token) => sign_in.redeem(token).await,
        None => Ok(None),
    };
    match (redeemed, token) {
        (Ok(Some(session)), _) => welcome(&session, to, secure),
        // The back button after signing in must not look like a failure.
        (Ok(None), _) if sign_in.session(request.headers(), secure).await.is_some() => {
            reply::redirect(to)
        }
        (Ok(None), Some(_)) => reply::page(StatusCode::UNAUTHORIZED, pages::link_spent()),
        (Ok(None), None) => sign_in_page(asked.as_ref()),
        (Err(error), _) => reply::error(&error),
    }
}

fn wrong_method(method: &Method) -> Response {
    let message = format!("{method} /login: only GET is answered");
    let mut response = reply::error(&ApiError::new(ErrorKind::InvalidRequest, message));
    *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
    response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
    response
}

fn sign_in_page(way_back: Option<&WayBack>) -> Response {
    let mut response = reply::page(StatusCode::OK, pages::sign_in());
    let cookie = way_back.map(|way_back| way_back.cookie(SIGN_IN_LIFETIME.as_secs()));
    if let Some(cookie) = cookie.and_then(|cookie| HeaderValue::try_from(cookie).ok()) {
        response.headers_mut().insert(SET_COOKIE, cookie);
    }
    response
}

/// Over https, browsers take a cookie of this name from this host alone, for all of it.
fn cookie_name(secure: bool) -> &'static str {
    if secure { "__Host-nacre_session" } else { "nacre_session" }
}

fn sessions(headers: &HeaderMap, secure: bool) -> impl Iterator<Item = &str> {
    let named = move |pair: &'_ str| {
        pair.split_once('=').is_some_and(|(name, _)| name == cookie_name(secure))
    };
    pairs(headers).filter(move |pair| named(pair)).filter_map(|pair| Some(pair.split_once('=')?.1))
}

fn welcome(session: &Secret, to: &str, secure: bool) -> Response {
    let cookie = format!(
        "{}={}; Path=/; HttpOnly; SameSite=Lax; Max-Age={}{}",
        cookie_name(secure),
        session.reveal(),
        SESSION_LIFETIME.as_secs(),
        if secure { "; Secure" } else { "" }
    );
    let mut response = reply::redirect(to);
    match HeaderValue::try_from(cookie) {
        Ok(mut cookie) => {
            cookie.set_sensitive(true);
            response.headers_mut().insert(SET_COOKIE, cookie);
            response
                .headers_mut()
                .insert("referrer-policy", HeaderValue::from_static("no-referrer"));
            response
        }
        Err(_) => {
            reply::error(&ApiError::new(ErrorKind::Internal, "the session cookie is malformed"))
        }
    }
}

fn fresh_secret() -> Result<Secret, ApiError> {
    Secret::generate().map_err(|error| ApiError::io("random numbers", &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_session_is_found_among_other_cookies() {
        let found = |value: &str, secure: bool| {
            let mut headers = HeaderMap::new();
            headers.insert("cookie", HeaderValue::from_str(value).unwrap());
            sessions(&headers, secure).map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(found("nacre_session=abc", false), ["abc"]);
        assert_eq!(found("a=b; nacre_session=abc; nacre_session=d=e", false), ["abc", "d=e"]);
        assert_eq!(found("xnacre_session=abc; nacre_session", false), [""; 0]);
        assert_eq!(found("nacre_session=x; __Host-nacre_session=abc", true), ["abc"]);
        assert_eq!(found("__Host-nacre_session=abc", false), [""; 0]);
    }
}
