//! Whether a person meant a change of sandboxes, as far as a browser tells. Pure.
//!
//! The pages that a sandbox serves have the gateway's origin, so an origin says nothing about them.
//! What they cannot forge are the `Sec-Fetch-*` headers: a script's own requests are never
//! navigations. So the control plane takes changes from a browser only as a form that somebody sent,
//! with a token that is on the gateway's page and bound to the session.

use axum::body::Body;
use http::{HeaderMap, Method, Request};
use nacre_wire::{ApiError, ErrorKind};

use crate::secret::{Secret, SecretHash, hex};

const SEC_FETCH_MODE: &str = "sec-fetch-mode";
const SEC_FETCH_DEST: &str = "sec-fetch-dest";

/// Refuses a change that a script of some page asks for.
pub(crate) fn check_not_a_script(request: &Request<Body>) -> Result<(), ApiError> {
    let safe = matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
    if safe && !request.headers().contains_key(http::header::UPGRADE) {
        return Ok(());
    }
    if is_from_script(request.headers()) {
        return Err(ApiError::new(
            ErrorKind::Permission,
            "scripts of a page may not change sandboxes",
        )
        .hint("use the page at /admin/sandboxes, or the nacre command"));
    }
    Ok(())
}

/// Browsers say so on https and on loopback; programs that are not browsers say nothing.
pub(crate) fn is_from_script(headers: &HeaderMap) -> bool {
    let is_not = |name: &str, expected: &str| {
        headers.get(name).is_some_and(|value| value.as_bytes() != expected.as_bytes())
    };
    is_not(SEC_FETCH_MODE, "navigate") || is_not(SEC_FETCH_DEST, "document")
}

/// What the forms of a session carry. It cannot be turned back into the session, and it is that of the
/// session that was let in: a script may have added a cookie of the same name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FormToken(String);

impl FormToken {
    pub(crate) fn of(session: SecretHash) -> Self {
        Self(hex(&Secret::presented(&format!("form {}", hex(&session.0))).hash().0))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(method: &str, headers: &[(&str, &str)], expected: bool) {
        let mut request = Request::builder().method(method).uri("/admin/sandboxes/swap");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::empty()).unwrap();
        assert_eq!(check_not_a_script(&request).is_ok(), expected, "{method} {headers:?}");
    }

    #[test]
    fn a_change_is_a_form_that_somebody_sent() {
        check("POST", &[], true);
        check("POST", &[("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "document")], true);
        check("POST", &[("sec-fetch-mode", "cors"), ("sec-fetch-dest", "empty")], false);
        check("POST", &[("sec-fetch-mode", "same-origin")], false);
        check("POST", &[("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "iframe")], false);
        check("DELETE", &[("sec-fetch-mode", "cors")], false);
        check("GET", &[("sec-fetch-mode", "cors")], true);
        check("GET", &[("sec-fetch-mode", "websocket"), ("upgrade", "websocket")], false);
    }

    #[test]
    fn a_token_belongs_to_one_session() {
        let token = |session: &str| FormToken::of(Secret::presented(session).hash());
        assert_eq!(token("a"), token("a"));
        assert_ne!(token("a"), token("b"));
        assert_ne!(token("a").as_str(), hex(&Secret::presented("a").hash().0));
    }
}
