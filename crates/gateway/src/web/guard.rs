//! Checks on a browser's request before anything acts on it. Pure.

use http::header::{ORIGIN, UPGRADE};
use http::request::Parts;
use http::{HeaderMap, Method};
use nacre_wire::{ApiError, ErrorKind};

use super::visitor::Visitor;

const SEC_FETCH_SITE: &str = "sec-fetch-site";

/// A request that changes something, or opens a socket, shows that one of our own pages sent it.
/// A session cookie proves who, not whether they meant to.
pub(crate) fn check_same_origin(parts: &Parts, visitor: &Visitor) -> Result<(), ApiError> {
    let safe = matches!(parts.method, Method::GET | Method::HEAD | Method::OPTIONS);
    if safe && !parts.headers.contains_key(UPGRADE) {
        return Ok(());
    }
    if is_same_origin(&parts.headers, visitor) {
        return Ok(());
    }
    Err(ApiError::new(
        ErrorKind::Permission,
        "this request does not come from a page of this computer",
    )
    .hint("send an Origin header that names this address"))
}

fn is_same_origin(headers: &HeaderMap, visitor: &Visitor) -> bool {
    let site = text(headers, SEC_FETCH_SITE);
    if site.is_some_and(|site| !matches!(site, "same-origin" | "none")) {
        return false;
    }
    match text(headers, ORIGIN.as_str()) {
        Some(origin) => origin.eq_ignore_ascii_case(&visitor.origin()),
        None => site.is_some() && !headers.contains_key(ORIGIN),
    }
}

fn text<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name)?.to_str().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderValue, Request};

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| {
                (http::HeaderName::from_static(name), HeaderValue::from_str(value).unwrap())
            })
            .collect()
    }

    fn visitor() -> Visitor {
        Visitor {
            ip: [127, 0, 0, 1].into(),
            secure: false,
            host: HeaderValue::from_static("127.0.0.1:8080"),
        }
    }

    fn same_origin(origin: Option<&str>, site: Option<&str>) -> bool {
        let mut pairs = Vec::new();
        pairs.extend(origin.map(|value| ("origin", value)));
        pairs.extend(site.map(|value| ("sec-fetch-site", value)));
        is_same_origin(&headers(&pairs), &visitor())
    }

    #[test]
    fn a_change_comes_from_our_own_page() {
        assert!(same_origin(Some("http://127.0.0.1:8080"), None));
        assert!(same_origin(Some("http://127.0.0.1:8080"), Some("same-origin")));
        assert!(same_origin(None, Some("same-origin")));
        assert!(same_origin(None, Some("none")));

        assert!(!same_origin(Some("https://127.0.0.1:8080"), None));
        assert!(!same_origin(Some("http://127.0.0.1"), None));
        assert!(!same_origin(None, None));
        assert!(!same_origin(Some("null"), None));
        assert!(!same_origin(Some("null"), Some("same-origin")));
        assert!(!same_origin(Some("http://127.0.0.1:3000"), Some("same-site")));
        assert!(!same_origin(Some("http://127.0.0.1:3000"), None));
        assert!(!same_origin(Some("http://evil.example"), Some("cross-site")));
        assert!(!same_origin(None, Some("cross-site")));
    }

    #[test]
    fn reading_needs_no_proof_but_a_socket_does() {
        let request = |method: &str, upgrade: bool| {
            let mut builder = Request::builder().method(method);
            if upgrade {
                builder = builder.header(UPGRADE, "websocket");
            }
            builder.body(()).unwrap().into_parts().0
        };
        assert!(check_same_origin(&request("GET", false), &visitor()).is_ok());
        assert!(check_same_origin(&request("GET", true), &visitor()).is_err());
        assert!(check_same_origin(&request("POST", false), &visitor()).is_err());
        assert!(check_same_origin(&request("BREW", false), &visitor()).is_err());
    }
}
