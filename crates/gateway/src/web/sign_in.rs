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

use super::guard::{SESSION_COOKIE, session_cookie};
use super::{pages, reply};
use crate::clock::now_ms;
use crate::sandboxes::errors;
use crate::secret::{Secret, SecretHash};
use crate::store::{SESSION_LIFETIME, SIGN_IN_LIFETIME, Store};

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
        let token = Secret::presented(token).hash();
        let good = self.store.redeem(token, session.hash(), now_ms()).await;
        Ok(good.map_err(errors::from_store)?.then_some(session))
    }

    pub(crate) async fn is_signed_in(&self, headers: &HeaderMap) -> bool {
        let Some(cookie) = session_cookie(headers) else { return false };
        let hash = Secret::presented(cookie).hash();
        if let Some(expires) = self.remembered(&hash) {
            return expires > now_ms();
        }
        match self.store.session_expiry(hash).await {
            Ok(Some(expires)) => {
                self.known.lock().unwrap_or_else(PoisonError::into_inner).insert(hash, expires);
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
pub(crate) async fn answer(sign_in: &SignIn, request: Request<Body>) -> Response {
    match *request.method() {
        Method::GET => {}
        // A link checker that only looks must not use the link up.
        Method::HEAD => return reply::page(StatusCode::OK, pages::sign_in()),
        _ => {
            let mut response = reply::error(&ApiError::new(
                ErrorKind::InvalidRequest,
                format!("{} /login: only GET is answered", request.method()),
            ));
            *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            return response;
        }
    }
    let token = request
        .uri()
        .query()
        .and_then(|query| query.split('&').find_map(|pair| pair.strip_prefix("token=")));
    match token {
        None => reply::page(StatusCode::OK, pages::sign_in()),
        Some(token) => match sign_in.redeem(token).await {
            Ok(Some(session)) => welcome(&session),
            // The back button after signing in must not look like a failure.
            Ok(None) if sign_in.is_signed_in(request.headers()).await => reply::redirect("/"),
            Ok(None) => reply::page(StatusCode::UNAUTHORIZED, pages::link_spent()),
            Err(error) => reply::error(&error),
        },
    }
}

fn welcome(session: &Secret) -> Response {
    let cookie = format!(
        "{SESSION_COOKIE}={}; Path=/; HttpOnly; SameSite=Lax; Max-Age={}",
        session.reveal(),
        SESSION_LIFETIME.as_secs()
    );
    let mut response = reply::redirect("/");
    match HeaderValue::from_str(&cookie) {
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
