//! HTTP to whatever listens on a port, for browsers: below `/ports/{port}/` of the sandbox, or at the
//! root of a host name that the port has to itself.
//!
//! The server behind it knows nothing of a prefix, as a rule. What it says about its own root (redirects,
//! paths of cookies) is therefore moved below the prefix; one that listens to `X-Forwarded-Prefix` has
//! done so already.

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::header::{LOCATION, SET_COOKIE};
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue, Request, StatusCode, Uri};
use nacre_wire::{ErrorKind, ports};

use super::nothing;
use crate::failure::Failure;
use crate::runtime::{Broken, exchange, is_navigation};

static FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
static FORWARDED_PREFIX: HeaderName = HeaderName::from_static("x-forwarded-prefix");

/// A request for a port.
pub(crate) struct Mounted {
    port: u16,
    /// What the server sees of the path; nothing when the slash is missing.
    path: String,
    /// Where the browser finds it, from the root of its host. Empty when that is the root.
    prefix: String,
}

impl Mounted {
    /// `None` when the request is for something else.
    pub(crate) fn read(request: &Request<Body>) -> Option<Self> {
        let (port, path) = ports::split(request.uri().path())?;
        let text = |name| request.headers().get(name).and_then(|value| value.to_str().ok());
        // The gateway calls such a host so, and no other.
        let own = text(&FORWARDED_HOST).is_some_and(|host| host.starts_with(&format!("{port}--")));
        let above = text(&FORWARDED_PREFIX).unwrap_or_default();
        let prefix = if own { String::new() } else { format!("{above}/ports/{port}") };
        Some(Self { port, path: path.to_owned(), prefix })
    }
}

pub(crate) async fn answer(mounted: Mounted, mut request: Request<Body>) -> Response {
    let Mounted { port, path, prefix } = mounted;
    let query = request.uri().query().map_or_else(String::new, |query| format!("?{query}"));
    if path.is_empty() {
        // Relative links of the page behind it would lead elsewhere.
        let to = format!("{prefix}/{query}");
        return (StatusCode::TEMPORARY_REDIRECT, [(LOCATION, to)]).into_response();
    }
    let Ok(path) = PathAndQuery::try_from(format!("{path}{query}")) else {
        return Failure::new(ErrorKind::InvalidPath, "the path cannot be read").into_response();
    };
    *request.uri_mut() = Uri::from(path);
    match HeaderValue::try_from(&prefix) {
        Ok(value) if !prefix.is_empty() => request.headers_mut().insert(&FORWARDED_PREFIX, value),
        Ok(_) | Err(_) => request.headers_mut().remove(&FORWARDED_PREFIX),
    };
    let to_person = is_navigation(request.method(), request.headers());
    match exchange(port, request).await {
        Ok(mut response) => {
            if !prefix.is_empty() {
                move_below(&prefix, port, response.headers_mut());
            }
            response
        }
        Err(Broken::Unreachable) => nothing::answer(port, to_person),
        Err(Broken::Off(error)) => {
            let message = format!("what listens on port {port} broke off its answer: {error}");
            let mut response = Failure::new(ErrorKind::Unavailable, message).into_response();
            *response.status_mut() = StatusCode::BAD_GATEWAY;
            response
        }
    }
}

fn move_below(prefix: &str, port: u16, headers: &mut HeaderMap) {
    let moved = headers.get(LOCATION).and_then(|to| location(prefix, port, to.to_str().ok()?));
    if let Some(moved) = moved.and_then(|moved| HeaderValue::try_from(moved).ok()) {
        headers.insert(LOCATION, moved);
    }
    if !headers.contains_key(SET_COOKIE) {
        return;
    }
    let set: Vec<HeaderValue> = headers.get_all(SET_COOKIE).iter().cloned().collect();
    headers.remove(SET_COOKIE);
    // The gateway puts the path of a cookie below the role's own prefix.
    let below = format!("/ports/{port}");
    for line in set {
        let moved = line.to_str().ok().and_then(|line| cookie(&below, line));
        headers.append(SET_COOKIE, moved.and_then(|line| line.try_into().ok()).unwrap_or(line));
    }
}

/// `None` when it leads elsewhere, or below the prefix already. We asked the server by the name
/// `localhost`, which the browser would take for its own machine.
fn location(prefix: &str, port: u16, to: &str) -> Option<String> {
    let own = [format!("http://localhost:{port}"), format!("//localhost:{port}")];
    let path = own.iter().find_map(|own| to.strip_prefix(own.as_str()));
    let path = path.filter(|path| path.is_empty() || path.starts_with(['/', '?', '#']));
    let path =
        path.or_else(|| Some(to).filter(|to| to.starts_with('/') && !to.starts_with("//")))?;
    let below =
        path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    let slash = if path.starts_with('/') { "" } else { "/" };
    Some(if below { path.to_owned() } else { format!("{prefix}{slash}{path}") })
}

/// Puts the cookie's path below; `None` when it has none, or is bound to the root by its name.
fn cookie(below: &str, line: &str) -> Option<String> {
    if line.get(..7).is_some_and(|start| start.eq_ignore_ascii_case("__host-")) {
        return None;
    }
    let mut parts: Vec<String> = line.split(';').map(str::to_owned).collect();
    let (index, path) = parts.iter().enumerate().skip(1).find_map(|(index, part)| {
        let (name, path) = part.split_once('=')?;
        let path = path.trim();
        let moves = name.trim().eq_ignore_ascii_case("path") && path.starts_with('/');
        (moves && !path.contains(below)).then(|| (index, path.to_owned()))
    })?;
    parts[index] = format!(" Path={below}{path}");
    Some(parts.join(";"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(path: &str, headers: &[(&str, &str)]) -> Option<(u16, String, String)> {
        let mut request = Request::get(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let mounted = Mounted::read(&request.body(Body::empty()).unwrap())?;
        Some((mounted.port, mounted.path, mounted.prefix))
    }

    #[test]
    fn where_a_port_is_found_is_known() {
        let check = |path: &str, headers: &[(&str, &str)], expected: Option<(u16, &str, &str)>| {
            let expected = expected.map(|(port, path, at)| (port, path.to_owned(), at.to_owned()));
            assert_eq!(read(path, headers), expected, "{path} {headers:?}");
        };
        let (dev, main) = (("x-forwarded-prefix", "/dev"), ("x-forwarded-host", "pc.example"));
        check("/ports/3000/a?b", &[main], Some((3000, "/a", "/ports/3000")));
        check("/ports/3000/", &[main, dev], Some((3000, "/", "/dev/ports/3000")));
        check("/ports/3000", &[dev], Some((3000, "", "/dev/ports/3000")));
        let own = ("x-forwarded-host", "3000--dev.pc.example");
        check("/ports/3000/a", &[own], Some((3000, "/a", "")));
        check("/ports/3001/a", &[own], Some((3001, "/a", "/ports/3001")));
        check("/ports/x/a", &[], None);
        check("/a", &[own], None);
    }

    #[test]
    fn a_redirect_stays_below_the_prefix() {
        let check = |to: &str, expected: Option<&str>| {
            assert_eq!(location("/dev/ports/3000", 3000, to).as_deref(), expected, "{to}");
        };
        check("/login?a=/b", Some("/dev/ports/3000/login?a=/b"));
        check("/dev/ports/3000/login", Some("/dev/ports/3000/login"));
        check("/dev/ports/30001", Some("/dev/ports/3000/dev/ports/30001"));
        check("http://localhost:3000/x", Some("/dev/ports/3000/x"));
        check("http://localhost:3000", Some("/dev/ports/3000/"));
        check("http://localhost:3000?q", Some("/dev/ports/3000/?q"));
        for elsewhere in
            ["next", "?a", "//evil.example", "https://a.example/", "http://localhost:30001/", ""]
        {
            check(elsewhere, None);
        }
    }

    #[test]
    fn a_cookie_is_the_ports_own() {
        let check = |line: &str, expected: Option<&str>| {
            assert_eq!(cookie("/ports/3000", line).as_deref(), expected, "{line}");
        };
        check("a=1; Path=/; Secure", Some("a=1; Path=/ports/3000/; Secure"));
        check("a=/; path=/x", Some("a=/; Path=/ports/3000/x"));
        check("a=1; Path=/dev/ports/3000/", None);
        check("a=1", None);
        check("a=1; Path=x", None);
        check("Path=/", None);
        check("__Host-a=1; Path=/; Secure", None);
    }
}
