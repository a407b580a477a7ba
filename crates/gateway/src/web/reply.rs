//! Answers that are not somebody else's: errors, redirects, pages.

use axum::body::Body;
use axum::response::{Html, IntoResponse, Response};
use http::header::{ACCEPT, CACHE_CONTROL, LOCATION, UPGRADE};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode};
use nacre_wire::error::ErrorBody;
use nacre_wire::{ApiError, ErrorKind};

use super::way_back::WayBack;

/// The error in the one shape that every API of Nacre uses.
pub(crate) fn error(error: &ApiError) -> Response {
    let body = axum::Json(ErrorBody { error: error.clone() });
    (error.kind.status(), [(CACHE_CONTROL, "no-store")], body).into_response()
}

/// A browser that navigates is sent to the sign-in page; everything else learns why not.
pub(crate) fn sign_in_first(parts: &Parts) -> Response {
    if is_navigation(&parts.method, &parts.headers) {
        let path = parts.uri.path_and_query().and_then(|path| WayBack::parse(path.as_str()));
        return redirect(&path.map_or("/login".to_owned(), |path| path.sign_in_page()));
    }
    error(
        &ApiError::new(ErrorKind::Unauthorized, "not signed in").hint("run nacre login for a link"),
    )
}

pub(crate) fn redirect(to: &str) -> Response {
    (StatusCode::SEE_OTHER, [(LOCATION, to), (CACHE_CONTROL, "no-store")]).into_response()
}

/// To the same path with a slash, method and body included.
pub(crate) fn add_slash(request: &Request<Body>) -> Response {
    let query = request.uri().query().map_or(String::new(), |query| format!("?{query}"));
    let mut response = redirect(&format!("{}/{query}", request.uri().path()));
    let plain = matches!(*request.method(), Method::GET | Method::HEAD);
    if !plain || request.headers().contains_key(UPGRADE) {
        *response.status_mut() = StatusCode::PERMANENT_REDIRECT;
    }
    response
}

/// What a page of the gateway's own may load and run: nothing.
pub(crate) const CONTENT_POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'";

/// A proxy before us is not to gather what is sent piece by piece.
pub(crate) const UNBUFFERED: (&str, &str) = ("x-accel-buffering", "no");

/// A page of the gateway's own: no scripts, no frames, nothing kept, no hold for the page that opened
/// it, and no address handed on (the sign-in link is one).
pub(crate) fn page(status: StatusCode, html: impl IntoResponse) -> Response {
    const HEADERS: [(&str, &str); 6] = [
        ("cache-control", "no-store"),
        ("cross-origin-opener-policy", "same-origin"),
        ("x-frame-options", "DENY"),
        ("content-security-policy", CONTENT_POLICY),
        ("referrer-policy", "no-referrer"),
        ("x-content-type-options", "nosniff"),
    ];
    (status, HEADERS, Html(html)).into_response()
}

/// A page with a form: without a referrer a browser would not name the origin of a form either.
pub(crate) fn form_page(status: StatusCode, html: impl IntoResponse) -> Response {
    let mut response = page(status, html);
    let policy = HeaderValue::from_static("same-origin");
    response.headers_mut().insert("referrer-policy", policy);
    response
}

pub(crate) fn is_navigation(method: &Method, headers: &HeaderMap) -> bool {
    let wants_html = headers
        .get(ACCEPT)
        .and_then(|accept| accept.to_str().ok())
        .is_some_and(|accept| accept.contains("text/html"));
    matches!(*method, Method::GET | Method::HEAD) && wants_html && !headers.contains_key(UPGRADE)
}
