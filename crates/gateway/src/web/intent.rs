//! Whether a person meant it, as far as a browser tells: changes of sandboxes, and what may come
//! between a person and our pages. Pure.
//!
//! The pages that a sandbox serves have the gateway's origin, so an origin says nothing about them.
//! What they cannot forge are the `Sec-Fetch-*` headers: a script's own requests are never
//! navigations. But a script can send a form, which is one. So the control plane takes changes from a
//! browser at one path alone, where a form must carry a token that is on the gateway's page and bound
//! to the session.

use http::request::Parts;
use http::{HeaderMap, HeaderName, Method};
use nacre_wire::{ApiError, ErrorKind};

use crate::routes;
use crate::secret::{SecretHash, hex};

/// Where the forms of the control plane's pages go; what answers there looks at the token.
pub(crate) const FORMS: &str = "/admin/sandboxes/page";

const SEC_FETCH_MODE: &str = "sec-fetch-mode";
const SEC_FETCH_DEST: &str = "sec-fetch-dest";
/// Browsers send it with the script of a service worker, and scripts cannot leave it out.
static SERVICE_WORKER: HeaderName = HeaderName::from_static("service-worker");

/// Refuses a change of sandboxes that a session asks for in any other way than with a form of ours. The
/// other calls are for programs, which have a token or come over the unix socket.
pub(crate) fn check_control(parts: &Parts) -> Result<(), ApiError> {
    check_not_a_script(parts)?;
    let is_form = parts.method == Method::POST && parts.uri.path() == FORMS;
    if is_form || only_reads(parts) {
        return Ok(());
    }
    let message = "a browser changes sandboxes with the forms of /admin/sandboxes alone";
    Err(ApiError::new(ErrorKind::Permission, message)
        .hint("use those or the nacre command; a program shows a token, see nacre token create"))
}

/// Refuses a change that a script of some page asks for.
pub(crate) fn check_not_a_script(parts: &Parts) -> Result<(), ApiError> {
    if only_reads(parts) {
        return Ok(());
    }
    if is_from_script(&parts.headers) {
        return Err(ApiError::new(
            ErrorKind::Permission,
            "scripts of a page may not change sandboxes",
        )
        .hint("use the page at /admin/sandboxes, or the nacre command"));
    }
    Ok(())
}

fn only_reads(parts: &Parts) -> bool {
    let safe = matches!(parts.method, Method::GET | Method::HEAD | Method::OPTIONS);
    safe && !parts.headers.contains_key(http::header::UPGRADE)
}

/// A service worker answers for everything below the folder of its script. One that could stand in for
/// a page of ours would see what is shown there, and sign-in links on their way.
pub(crate) fn check_service_worker(parts: &Parts) -> Result<(), ApiError> {
    let path = parts.uri.path();
    if !parts.headers.contains_key(&SERVICE_WORKER) || !routes::shares_folder(path) {
        return Ok(());
    }
    let message = "a service worker here would stand between you and the gateway's own pages";
    Err(ApiError::new(ErrorKind::Permission, message)
        .hint("serve its script from a folder of the app, such as /app/sw.js"))
}

/// Browsers say so on https and on loopback; programs that are not browsers say nothing.
pub(crate) fn is_from_script(headers: &HeaderMap) -> bool {
    let is_not = |name: &str, expected: &str| {
        headers.get(name).is_some_and(|value| value.as_bytes() != expected.as_bytes())
    };
    is_not(SEC_FETCH_MODE, "navigate") || is_not(SEC_FETCH_DEST, "document")
}

/// Whether a browser says that somebody goes to a page, or sends a form, in a window of their own. What
/// says nothing may be a program, or a script of a page over plain http.
pub(crate) fn is_certain(headers: &HeaderMap) -> bool {
    let says = |name: &str, expected: &str| {
        headers.get(name).is_some_and(|value| value.as_bytes() == expected.as_bytes())
    };
    says(SEC_FETCH_MODE, "navigate") && says(SEC_FETCH_DEST, "document")
}

/// What the forms of a session carry. It cannot be turned back into the session, and it is that of the
/// session that was let in: a script may have added a cookie of the same name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FormToken(String);

impl FormToken {
    pub(crate) fn of(session: SecretHash) -> Self {
        Self(hex(&SecretHash::of(&format!("form {}", hex(&session.0))).0))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Request;

    fn parts(method: &str, path: &str, headers: &[(&str, &str)]) -> Parts {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    fn check(method: &str, headers: &[(&str, &str)], expected: bool) {
        let form = parts(method, FORMS, headers);
        assert_eq!(check_not_a_script(&form).is_ok(), expected, "{method} {headers:?}");
        assert_eq!(check_control(&form).is_ok(), expected, "{method} {headers:?}");
    }

    #[test]
    fn a_change_goes_to_where_tokens_are_looked_at() {
        let sent = [("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "document")];
        for headers in [&sent[..], &[]] {
            for (method, path, expected) in [
                ("POST", "/admin/sandboxes/page", true),
                ("POST", "/admin/sandboxes/page?x", true),
                ("PUT", "/admin/sandboxes/page", false),
                ("POST", "/admin/sandboxes/page/", false),
                ("POST", "/admin/sandboxes/%70age", false),
                ("POST", "/admin/sandboxes/swap", false),
                ("POST", "/admin/sandboxes", false),
                ("DELETE", "/admin/sandboxes/dev", false),
                ("GET", "/admin/sandboxes/roles", true),
            ] {
                let asked = parts(method, path, headers);
                assert_eq!(check_control(&asked).is_ok(), expected, "{method} {path} {headers:?}");
            }
        }
        let socket = parts("GET", "/admin/sandboxes/live/door/ws", &[("upgrade", "websocket")]);
        assert!(check_control(&socket).is_err());
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
    fn only_a_browser_that_says_so_is_certain() {
        let check = |pairs: &[(&'static str, &'static str)]| {
            let header = |(name, value): &(&'static str, &'static str)| {
                (HeaderName::from_static(name), http::HeaderValue::from_static(value))
            };
            is_certain(&pairs.iter().map(header).collect())
        };
        assert!(check(&[("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "document")]));
        assert!(!check(&[]));
        assert!(!check(&[("sec-fetch-mode", "navigate")]));
        assert!(!check(&[("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "iframe")]));
    }

    #[test]
    fn a_service_worker_stays_in_a_folder_of_its_app() {
        let check = |path: &str, headers: &[(&str, &str)]| {
            let request = Request::builder().uri(path);
            let request =
                headers.iter().fold(request, |all, (name, value)| all.header(*name, *value));
            check_service_worker(&request.body(()).unwrap().into_parts().0).is_ok()
        };
        let script = [("service-worker", "script")];
        assert!(!check("/sw.js", &script));
        assert!(!check("/admin/sw.js", &script));
        assert!(check("/sw.js", &[]));
        assert!(check("/app/sw.js?v=1", &script));
        assert!(check("/dev/sw.js", &script));
    }

    #[test]
    fn a_token_belongs_to_one_session() {
        let token = |session: &str| FormToken::of(SecretHash::of(session));
        assert_eq!(token("a"), token("a"));
        assert_ne!(token("a"), token("b"));
        assert_ne!(token("a").as_str(), hex(&SecretHash::of("a").0));
    }
}
