//! Checks on a browser's request before anything acts on it. Pure.

use std::net::IpAddr;

use axum::body::Body;
use http::header::{COOKIE, HOST, ORIGIN, UPGRADE};
use http::{HeaderMap, Method, Request};
use nacre_wire::{ApiError, ErrorKind};

pub(crate) const SESSION_COOKIE: &str = "nacre_session";
const SEC_FETCH_SITE: &str = "sec-fetch-site";

/// A page on another name that resolves to this machine (DNS rebinding) is no page of ours.
pub(crate) fn check_host(headers: &HeaderMap, ours: Option<&str>) -> Result<(), ApiError> {
    let host = text(headers, HOST.as_str()).unwrap_or("");
    let name = host_name(host).to_ascii_lowercase();
    let loopback = name == "localhost" || name.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback());
    if headers.get_all(HOST).iter().count() == 1 && (loopback || ours == Some(name.as_str())) {
        return Ok(());
    }
    Err(ApiError::new(
        ErrorKind::Permission,
        format!("\"{}\" is not this computer", host.escape_debug()),
    )
    .hint("open it as http://127.0.0.1, or name the host in nacre.toml: [gateway] host = \"...\""))
}

/// `Host` without the port and the brackets of an IPv6 address.
fn host_name(host: &str) -> &str {
    match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or(""),
        None => host.split(':').next().unwrap_or(""),
    }
}

/// A request that changes something, or opens a socket, shows that one of our own pages sent it.
/// A session cookie proves who, not whether they meant to.
pub(crate) fn check_same_origin(request: &Request<Body>) -> Result<(), ApiError> {
    let safe = matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
    if safe && !request.headers().contains_key(UPGRADE) {
        return Ok(());
    }
    if is_same_origin(request.headers()) {
        return Ok(());
    }
    Err(ApiError::new(
        ErrorKind::Permission,
        "this request does not come from a page of this computer",
    )
    .hint("send an Origin header that names this address"))
}

fn is_same_origin(headers: &HeaderMap) -> bool {
    let site = text(headers, SEC_FETCH_SITE);
    if site.is_some_and(|site| !matches!(site, "same-origin" | "none")) {
        return false;
    }
    match (text(headers, ORIGIN.as_str()), text(headers, HOST.as_str())) {
        (Some(origin), Some(host)) => {
            let bare = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
            bare.is_some_and(|bare| bare.eq_ignore_ascii_case(host))
        }
        _ => site.is_some() && !headers.contains_key(ORIGIN),
    }
}

/// The session cookie's value. Of several, the first: the gateway sets only one path.
pub(crate) fn session_cookie(headers: &HeaderMap) -> Option<&str> {
    headers
        .get_all(COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .find(|(name, _)| *name == SESSION_COOKIE)
        .map(|(_, value)| value)
}

fn text<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name)?.to_str().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| {
                (http::HeaderName::from_static(name), HeaderValue::from_str(value).unwrap())
            })
            .collect()
    }

    #[test]
    fn only_loopback_names_and_our_own_are_this_computer() {
        let ours = Some("box.example");
        for good in [
            "localhost",
            "localhost:8080",
            "127.0.0.1:1",
            "127.1.2.3",
            "[::1]:8080",
            "BOX.example:443",
        ] {
            assert!(check_host(&headers(&[("host", good)]), ours).is_ok(), "{good}");
        }
        for bad in [
            "",
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "10.0.0.1",
            "[::2]",
            "evil@localhost",
        ] {
            assert!(check_host(&headers(&[("host", bad)]), ours).is_err(), "{bad}");
        }
        assert!(check_host(&HeaderMap::new(), ours).is_err());
    }

    fn same_origin(origin: Option<&str>, site: Option<&str>) -> bool {
        let mut pairs = vec![("host", "127.0.0.1:8080")];
        pairs.extend(origin.map(|value| ("origin", value)));
        pairs.extend(site.map(|value| ("sec-fetch-site", value)));
        is_same_origin(&headers(&pairs))
    }

    #[test]
    fn a_change_comes_from_our_own_page() {
        assert!(same_origin(Some("http://127.0.0.1:8080"), None));
        assert!(same_origin(Some("http://127.0.0.1:8080"), Some("same-origin")));
        assert!(same_origin(None, Some("same-origin")));
        assert!(same_origin(None, Some("none")));

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
            let mut builder = Request::builder().method(method).header(HOST, "localhost");
            if upgrade {
                builder = builder.header(UPGRADE, "websocket");
            }
            builder.body(Body::empty()).unwrap()
        };
        assert!(check_same_origin(&request("GET", false)).is_ok());
        assert!(check_same_origin(&request("GET", true)).is_err());
        assert!(check_same_origin(&request("POST", false)).is_err());
        assert!(check_same_origin(&request("BREW", false)).is_err());
    }

    #[test]
    fn the_session_is_found_among_other_cookies() {
        let cookie =
            |value: &str| session_cookie(&headers(&[("cookie", value)])).map(str::to_owned);
        assert_eq!(cookie("nacre_session=abc").as_deref(), Some("abc"));
        assert_eq!(cookie("a=b; nacre_session=abc; c=d").as_deref(), Some("abc"));
        assert_eq!(cookie("xnacre_session=abc"), None);
        assert_eq!(cookie("nacre_session"), None);
    }
}
