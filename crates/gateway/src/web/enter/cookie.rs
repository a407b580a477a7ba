//! The cookies of signing in: the session, the one that a sign-in under way is bound to, and the same two
//! for hosts of ports.

use http::header::SET_COOKIE;
use http::{HeaderMap, HeaderValue};

use crate::secret::{Secret, SecretHash};
use crate::web::cookies::pairs;

/// Looked at in one request, of however many it brings. Over plain http a script on our origin can add
/// cookies of these names for longer paths, and browsers send those first. They keep fewer than this for
/// one host (Chromium 180, Firefox 150), so the owner's own is still among them.
const MOST: usize = 256;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::web) enum Cookie {
    Session,
    /// Of the browser that went away to sign in.
    Browser,
    /// What lets a browser in at the host of a port.
    Port,
    /// Of the browser that went away from there to be let in.
    Knock,
}

impl Cookie {
    /// Over https, browsers take a cookie of this name from this host alone, for all of it. Over http
    /// they take none.
    fn name(self, secure: bool) -> &'static str {
        match (self, secure) {
            (Self::Session, true) => "__Host-nacre_session",
            (Self::Session, false) => "nacre_session",
            (Self::Browser, true) => "__Host-nacre_browser",
            (Self::Browser, false) => "nacre_browser",
            (Self::Port, true) => "__Host-nacre_port",
            (Self::Port, false) => "nacre_port",
            (Self::Knock, true) => "__Host-nacre_knock",
            (Self::Knock, false) => "nacre_knock",
        }
    }

    /// What the request brings under this name, hashed.
    pub(in crate::web) fn found(
        self,
        headers: &HeaderMap,
        secure: bool,
    ) -> impl Iterator<Item = SecretHash> {
        let name = self.name(secure);
        let values = pairs(headers)
            .filter_map(move |pair| pair.split_once('=').filter(|(found, _)| *found == name));
        values.take(MOST).map(|(_, value)| SecretHash::of(value))
    }

    pub(in crate::web) fn set(
        self,
        headers: &mut HeaderMap,
        value: &Secret,
        secure: bool,
        max_age_s: u64,
    ) {
        self.write(headers, value.reveal(), secure, max_age_s);
    }

    pub(in crate::web) fn clear(self, headers: &mut HeaderMap, secure: bool) {
        self.write(headers, "", secure, 0);
    }

    fn write(self, headers: &mut HeaderMap, value: &str, secure: bool, max_age_s: u64) {
        let name = self.name(secure);
        let end = if secure { "; Secure" } else { "" };
        let line =
            format!("{name}={value}; Path=/; HttpOnly; SameSite=Lax; Max-Age={max_age_s}{end}");
        // Hexadecimal digits and our own words always make a header.
        if let Ok(mut line) = HeaderValue::try_from(line) {
            line.set_sensitive(true);
            headers.append(SET_COOKIE, line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_session_is_found_among_other_cookies() {
        let check = |value: &str, secure: bool, expected: &[&str]| {
            let mut headers = HeaderMap::new();
            headers.insert("cookie", HeaderValue::from_str(value).unwrap());
            let found: Vec<_> = Cookie::Session.found(&headers, secure).collect();
            let expected: Vec<_> = expected.iter().map(|text| SecretHash::of(text)).collect();
            assert_eq!(found, expected, "{value}");
        };
        check("nacre_session=abc", false, &["abc"]);
        check("a=b; nacre_session=abc; nacre_session=d=e", false, &["abc", "d=e"]);
        check("xnacre_session=abc; nacre_session", false, &[]);
        check("nacre_session=x; __Host-nacre_session=abc", true, &["abc"]);
        check("__Host-nacre_session=abc", false, &[]);
        check(&"nacre_session=a; ".repeat(MOST + 5), false, &["a"; MOST]);
    }

    #[test]
    fn a_cookie_is_for_this_host_and_out_of_reach_of_scripts() {
        let mut headers = HeaderMap::new();
        let secret = Secret::generate().unwrap();
        Cookie::Session.set(&mut headers, &secret, true, 60);
        Cookie::Browser.clear(&mut headers, false);
        let lines: Vec<_> = headers.get_all(SET_COOKIE).iter().collect();
        let session = format!(
            "__Host-nacre_session={}; Path=/; HttpOnly; SameSite=Lax; Max-Age=60; Secure",
            secret.reveal()
        );
        let browser = "nacre_browser=; Path=/; HttpOnly; SameSite=Lax; Max-Age=0";
        assert_eq!(lines, [session.as_str(), browser]);
    }
}
