//! Paths of a sandbox that the gateway answers itself, after they have been down to it and up again.
//!
//! ```text
//!  browser ─▶ web ─ticket─▶ door ─▶ supervisor ─▶ way up ─▶ here ─▶ Relayed
//! ```
//! They are the sandbox's by the path contract, so that a role is enough to run everything that belongs
//! to it. But root of a sandbox can speak on the way up as well as its supervisor can. A [`Tickets`] gives
//! each request that goes down a proof of itself, which nobody but the supervisor sees and without which
//! nothing is answered that comes up.

use std::sync::{Arc, PoisonError, RwLock, RwLockWriteGuard};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Extension;
use axum::response::Response;
use http::uri::PathAndQuery;
use http::{HeaderValue, Method, Request, Uri};
use nacre_sandbox::SandboxId;
use nacre_wire::conductor::{TICKET, relayed};
use nacre_wire::{ApiError, ErrorKind};
use ring::hmac;
use tower::ServiceExt;

use crate::brain::Brain;
use crate::clock::now_ms;
use crate::host::Guest;
use crate::sandboxes::Sandbox;
use crate::secret::{hex, random};
use crate::web::reply;

/// From the moment a request goes down to the one its head is back.
const LIVES: Duration = Duration::from_secs(60);

/// What answers. It is made of parts that need the sandboxes, which are there first.
#[derive(Clone, Default)]
pub(crate) struct Relayed(Arc<RwLock<Option<Answering>>>);

#[derive(Clone)]
struct Answering {
    routers: Routers,
    brain: Brain,
}

/// What answers requests that came through this sandbox.
pub(crate) type Routers = Arc<dyn Fn(&SandboxId) -> Router + Send + Sync>;

impl Relayed {
    /// Once, when everything is there. Paths are those of the sandbox.
    pub(crate) fn answer_with(&self, routers: Routers, brain: Brain) {
        *self.write() = Some(Answering { routers, brain });
    }

    /// What answers holds the sandboxes, and they hold this.
    pub(crate) fn clear(&self) {
        *self.write() = None;
    }

    fn get(&self) -> Result<Answering, ApiError> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone().ok_or_else(|| {
            ApiError::new(ErrorKind::Unavailable, "the gateway is still starting")
                .hint("try again in a moment")
        })
    }

    fn write(&self) -> RwLockWriteGuard<'_, Option<Answering>> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// What happens in conversations, for a supervisor to tell. It says that something did, not what.
    pub(crate) fn news(&self) -> Response {
        match self.get() {
            Ok(answering) => answering.brain.news(),
            Err(error) => reply::error(&error),
        }
    }
}

async fn unknown(method: Method, uri: Uri) -> Response {
    let message = format!("no such call: {method} {}", uri.path());
    reply::error(&ApiError::new(ErrorKind::NotFound, message))
}

/// Made with a key that lives as long as the process.
#[derive(Clone)]
pub(crate) struct Tickets(Arc<hmac::Key>);

impl Tickets {
    pub(crate) fn new() -> std::io::Result<Self> {
        Ok(Self(Arc::new(hmac::Key::new(hmac::HMAC_SHA256, &random::<32>()?))))
    }

    /// For a request that goes down to this sandbox; `None` when it is answered there.
    pub(crate) async fn make(
        &self,
        sandbox: &Sandbox,
        method: &Method,
        path: &PathAndQuery,
    ) -> Result<Option<HeaderValue>, ApiError> {
        if !relayed(path.path()) {
            return Ok(None);
        }
        sandbox.require_running()?;
        // One that does not pass it up gives it to the app, ticket and all.
        if !sandbox.relays(path.path()).await {
            let message = format!(
                "the supervisor of sandbox \"{}\" does not know of {}",
                sandbox.name,
                path.path()
            );
            return Err(ApiError::new(ErrorKind::Unsupported, message).hint(format!(
                "nacre sandbox stop {0} && nacre sandbox start {0} gives it the current one",
                sandbox.name
            )));
        }
        let until = now_ms().saturating_add(u64::try_from(LIVES.as_millis()).unwrap_or(0));
        let tag = hmac::sign(&self.0, &said(&sandbox.id, method, path, until));
        let ticket = format!("{until}.{}", hex(tag.as_ref()));
        HeaderValue::try_from(ticket)
            .map(Some)
            .map_err(|error| ApiError::new(ErrorKind::Internal, error.to_string()))
    }

    fn is_good(&self, id: &SandboxId, method: &Method, path: &PathAndQuery, shown: &str) -> bool {
        let Some((until, tag)) = shown.split_once('.') else { return false };
        let Ok(until) = until.parse::<u64>() else { return false };
        let Some(tag) = crate::secret::SecretHash::from_hex(tag) else { return false };
        let signed = hmac::verify(&self.0, &said(id, method, path, until), &tag.0).is_ok();
        signed && now_ms() < until
    }
}

/// What a ticket is for. None of these can hold the sign between them.
fn said(id: &SandboxId, method: &Method, path: &PathAndQuery, until: u64) -> Vec<u8> {
    format!("{id}\n{method}\n{path}\n{until}").into_bytes()
}

/// What came up the way: `/host` and the path of the sandbox.
pub(crate) async fn answer(Extension(guest): Extension<Guest>, request: Request<Body>) -> Response {
    match admit(&guest, request) {
        Ok((router, request)) => match router.oneshot(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        },
        Err(error) => reply::error(&error),
    }
}

fn admit(guest: &Guest, mut request: Request<Body>) -> Result<(Router, Request<Body>), ApiError> {
    let refused = |why: &str| ApiError::new(ErrorKind::Permission, why.to_owned());
    let asked = request.uri().path_and_query().map_or("", PathAndQuery::as_str);
    let path = asked.strip_prefix("/host").and_then(|path| path.parse::<PathAndQuery>().ok());
    let path = path.ok_or_else(|| refused("the path is malformed"))?;
    let shown = request.headers_mut().remove(TICKET);
    let good = shown
        .as_ref()
        .and_then(|shown| shown.to_str().ok())
        .is_some_and(|shown| guest.tickets().is_good(guest.id(), request.method(), &path, shown));
    if !good {
        return Err(refused("this is only answered to who came through the door")
            .hint("use it by the gateway's own address"));
    }
    let Answering { routers, .. } = guest.relayed().get()?;
    let router = routers(guest.id()).fallback(unknown).method_not_allowed_fallback(unknown);
    *request.uri_mut() = Uri::from(path);
    // The router of the way up has left its own marks, such as parameters of the path.
    let (mut parts, body) = request.into_parts();
    let upgrade = parts.extensions.remove::<hyper::upgrade::OnUpgrade>();
    parts.extensions.clear();
    if let Some(upgrade) = upgrade {
        parts.extensions.insert(upgrade);
    }
    Ok((router, Request::from_parts(parts, body)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_is_for_one_request_of_one_sandbox_and_a_while() {
        let tickets = Tickets::new().unwrap();
        let id: SandboxId = "sb-1".parse().unwrap();
        let path = PathAndQuery::from_static("/conductor/conversations?x=1");
        let make = |until| {
            let tag = hmac::sign(&tickets.0, &said(&id, &Method::POST, &path, until));
            format!("{until}.{}", hex(tag.as_ref()))
        };
        let soon = now_ms() + 10_000;
        let ticket = make(soon);
        let check = |id: &str, method: Method, path: &'static str, shown: &str| {
            tickets.is_good(&id.parse().unwrap(), &method, &PathAndQuery::from_static(path), shown)
        };
        let asked = "/conductor/conversations?x=1";
        assert!(check("sb-1", Method::POST, asked, &ticket));
        assert!(!check("sb-2", Method::POST, asked, &ticket), "another sandbox");
        assert!(!check("sb-1", Method::GET, asked, &ticket), "another method");
        assert!(!check("sb-1", Method::POST, "/conductor/conversations", &ticket), "another path");
        assert!(!check("sb-1", Method::POST, asked, &make(now_ms() - 1)), "too late");
        let longer = ticket.replacen(&soon.to_string(), &(soon + 1).to_string(), 1);
        for wrong in ["", ".", "1.00", "x", &longer] {
            assert!(!check("sb-1", Method::POST, asked, wrong), "{wrong}");
        }
        let other = Tickets::new().unwrap();
        assert!(!other.is_good(&id, &Method::POST, &path, &ticket), "another gateway");
    }
}
