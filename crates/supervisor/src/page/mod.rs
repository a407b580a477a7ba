//! A page for a browser that needs no desktop: status, files, what happened to them and a way
//! back, and a box to run commands in.
//!
//! One file with nothing to load, and only relative addresses, so that it works under any prefix.
//! It is at `/supervisor/`.

use axum::Router;
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, HeaderValue, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use nacre_wire::ErrorKind;

use crate::failure::Failure;

const PAGE: &str = include_str!("index.html");
/// The visual language of all pages of the supervisor.
pub(crate) const STYLE: &str = include_str!("style.css");
/// One script in the order of its parts; each uses only what stands before it when it is read.
const SCRIPT: &str = concat!(
    include_str!("base.js"),
    include_str!("status.js"),
    include_str!("files.js"),
    include_str!("changes.js"),
    include_str!("undo.js"),
    include_str!("history.js"),
    include_str!("events.js"),
    include_str!("output.js"),
    include_str!("commands.js"),
);

pub fn router() -> Router {
    Router::new().route("/supervisor/", get(page))
}

async fn page() -> Result<Response, Failure> {
    let nonce = nonce()?;
    let mut response = Html(render(&nonce)).into_response();
    let headers = response.headers_mut();
    let policy = HeaderValue::from_str(&policy(&nonce))
        .map_err(|_| Failure::new(ErrorKind::Internal, "cannot make a content policy"))?;
    headers.insert(CONTENT_SECURITY_POLICY, policy);
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

fn render(nonce: &str) -> String {
    PAGE.replace("{style}", STYLE).replace("{script}", SCRIPT).replace("{nonce}", nonce)
}

/// Only what this response carries may run or style, and it may only talk to where it came from.
fn policy(nonce: &str) -> String {
    format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; \
         connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; \
         frame-ancestors 'none'"
    )
}

/// Differs with every response and cannot be guessed.
pub(crate) fn nonce() -> Result<String, Failure> {
    let mut bytes = [0_u8; 16];
    // SAFETY: the buffer is valid for its length.
    let count = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    if usize::try_from(count) != Ok(bytes.len()) {
        return Err(Failure::new(ErrorKind::Internal, "no randomness from the kernel"));
    }
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn every_script_and_style_carries_the_nonce_of_its_own_response() {
        let first = page().await.unwrap();
        let second = page().await.unwrap();
        let policy = |response: &Response| {
            response.headers()[CONTENT_SECURITY_POLICY].to_str().unwrap().to_owned()
        };
        assert_ne!(policy(&first), policy(&second));
        let html = render("abc");
        assert_eq!(html.matches("<script nonce=\"abc\">").count(), html.matches("<script").count());
        assert_eq!(html.matches("<style nonce=\"abc\">").count(), html.matches("<style").count());
        assert!(
            !html.contains("{nonce}") && !html.contains("{style}") && !html.contains("{script}")
        );
    }

    #[test]
    fn the_page_has_only_relative_addresses_and_no_inline_handlers() {
        for absolute in
            ["src=\"/", "href=\"/", "fetch(\"/", "http://", "https://", " onclick", " style="]
        {
            assert!(!render("abc").contains(absolute), "{absolute}");
        }
    }
}
