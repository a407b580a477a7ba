//! What answers in the place of a sandbox that cannot: a page for people, which asks again less
//! and less often, and an error for programs. Both say 503 and when to try again, and by a header that
//! it is the gateway who says so: an app that is back may say 503 too, and has a page of its own.

use axum::response::{Html, IntoResponse, Response};
use http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, RETRY_AFTER};
use http::{HeaderName, HeaderValue, StatusCode};
use nacre_wire::ApiError;

use super::{pages, reply};
use crate::secret::Secret;

/// The page looks for it.
static AWAY: HeaderName = HeaderName::from_static("x-nacre-away");
const PAGE: &str = include_str!("away.html");

/// Who asked, and what is left to offer them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asker {
    pub(crate) navigation: bool,
    /// Where the role is mounted, when its supervisor still runs: it has a page of its own.
    pub(crate) rescue: Option<&'static str>,
}

pub(crate) fn answer(asker: Asker, problem: &ApiError) -> Response {
    let mut response =
        if asker.navigation { page(asker.rescue, problem) } else { reply::error(problem) };
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("2"));
    response.headers_mut().insert(AWAY.clone(), HeaderValue::from_static("1"));
    response
}

fn page(rescue: Option<&str>, problem: &ApiError) -> Response {
    // Without randomness the script does not run, and the page is read and reloaded by hand.
    let nonce = Secret::generate().map_or_else(|_| "none".to_owned(), |it| it.reveal().to_owned());
    let html = render(&nonce, rescue, problem);
    let mut response = (StatusCode::SERVICE_UNAVAILABLE, Html(html)).into_response();
    let policy = format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; \
         connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
    );
    let headers = response.headers_mut();
    if let Ok(policy) = HeaderValue::from_str(&policy) {
        headers.insert(CONTENT_SECURITY_POLICY, policy);
    }
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert("referrer-policy", HeaderValue::from_static("no-referrer"));
    headers.insert("x-content-type-options", HeaderValue::from_static("nosniff"));
    response
}

fn render(nonce: &str, rescue: Option<&str>, problem: &ApiError) -> String {
    let hint = problem.hint.as_ref().map(|hint| format!("<pre>{}</pre>", pages::escape(hint)));
    let rescue = rescue.map(|prefix| {
        format!(", and get at your files on <a href=\"{prefix}/supervisor/\">its own page</a>")
    });
    // What failed last: what it holds must not be taken for a place to fill.
    PAGE.replace("{nonce}", nonce)
        .replace("{rescue}", &rescue.unwrap_or_default())
        .replace("{hint}", &hint.unwrap_or_default())
        .replace("{message}", &pages::escape(&problem.message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nacre_wire::ErrorKind;

    #[test]
    fn what_failed_is_shown_as_text() {
        let problem = ApiError::new(ErrorKind::Unavailable, "<script>alert('{nonce}')</script>")
            .hint("<b>{message}</b>");
        let html = render("abc", Some("/dev"), &problem);
        assert!(html.contains("&lt;script&gt;alert(&#39;{nonce}&#39;)&lt;/script&gt;"), "{html}");
        assert_eq!(html.matches("<script").count(), html.matches("<script nonce=\"abc\">").count());
        assert!(html.contains("href=\"/dev/supervisor/\""), "{html}");
        assert!(!render("abc", None, &problem).contains("/supervisor/"));
    }
}
