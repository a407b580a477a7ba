//! What stands in the place of a server that is not there: a page that comes back for a person, an error
//! for a program.

use axum::response::{Html, IntoResponse, Response};
use http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderValue, StatusCode};

use super::http::nothing_there;
use crate::page::nonce;

const PAGE: &str = include_str!("nothing.html");

pub(super) fn answer(port: u16, to_person: bool) -> Response {
    let nonce = match nonce() {
        Ok(nonce) if to_person => nonce,
        Ok(_) | Err(_) => return nothing_there(port).into_response(),
    };
    let html = PAGE.replace("{nonce}", &nonce).replace("{port}", &port.to_string());
    let mut response = (StatusCode::NOT_FOUND, Html(html)).into_response();
    let headers = response.headers_mut();
    let policy = format!(
        "default-src 'none'; style-src 'nonce-{nonce}'; base-uri 'none'; form-action 'none'"
    );
    if let Ok(policy) = HeaderValue::try_from(policy) {
        headers.insert(CONTENT_SECURITY_POLICY, policy);
    }
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
