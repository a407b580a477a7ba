//! Where the owner wanted to go before being asked to sign in. Pure.
//!
//! The sign-in link comes from a terminal and knows nothing of that, so the sign-in page leaves it
//! in a cookie of its own.

use http::HeaderMap;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use super::cookies::pairs;
use super::target::check_path;
use crate::routes::{Owner, Part};

const COOKIE: &str = "nacre_return";
const LONGEST: usize = 2048;
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'_').remove(b'.');

/// A path on this origin that does not lead back to signing in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WayBack(String);

impl WayBack {
    /// `None` for anything that a browser could take for another place than a path of ours.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let path = text.split(['?', '#']).next().unwrap_or("");
        let plain = text.len() <= LONGEST && text.bytes().all(|byte| matches!(byte, b'!'..=b'~'));
        let owner = check_path(path).ok()?.owner;
        // Of signing in, only the owner's own page is somewhere to go, and the way to a port.
        let leads_away = !matches!(path, "/auth/me" | "/auth/ports")
            && matches!(owner, Owner::Gateway(Part::SignIn | Part::Provider));
        (plain && !text.contains('\\') && !leads_away).then(|| Self(text.to_owned()))
    }

    /// `next` in the query of the sign-in page.
    pub(crate) fn from_query(query: &str) -> Option<Self> {
        let next = query.split('&').find_map(|pair| pair.strip_prefix("next="))?;
        Self::decode(next)
    }

    pub(crate) fn from_cookie(headers: &HeaderMap) -> Option<Self> {
        let value = pairs(headers).find_map(|pair| pair.strip_prefix(COOKIE)?.strip_prefix('='))?;
        Self::decode(value)
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// The sign-in page that leads back here.
    pub(crate) fn sign_in_page(&self) -> String {
        match self.0.as_str() {
            "/" => "/login".to_owned(),
            path => format!("/login?next={}", utf8_percent_encode(path, ENCODED)),
        }
    }

    /// For the sign-in page alone, and no longer than a link lasts.
    pub(crate) fn cookie(&self, lifetime_s: u64) -> String {
        let path = utf8_percent_encode(&self.0, ENCODED);
        format!("{COOKIE}={path}; Path=/login; HttpOnly; SameSite=Lax; Max-Age={lifetime_s}")
    }

    fn decode(text: &str) -> Option<Self> {
        Self::parse(&percent_decode_str(text).decode_utf8().ok()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn only_paths_of_ours_are_ways_back() {
        for good in [
            "/",
            "/desktop?a=b&c=//d#e",
            "/dev/",
            "/dev",
            "/admin/sandboxes",
            "/a%20b",
            "/auth/me",
            "/auth/ports?to=1--dev",
        ] {
            assert_eq!(WayBack::parse(good).unwrap().as_str(), good);
        }
        for bad in [
            "",
            "desktop",
            "//evil.example",
            "/\\evil.example",
            "\\/evil.example",
            "/a\\b",
            "/?a=\\",
            "/%5cevil.example",
            "/a/..//evil.example",
            "https://evil.example",
            "/a\nSet-Cookie: x",
            "/a b",
            "/\t/evil.example",
            "/é",
            "/login",
            "/login?next=/",
            "/auth/callback",
            "/DEV/",
        ] {
            assert_eq!(WayBack::parse(bad), None, "{bad:?}");
        }
        assert_eq!(WayBack::parse(&format!("/{}", "a".repeat(LONGEST))), None);
    }

    #[test]
    fn a_way_back_survives_the_sign_in_page() {
        let way = WayBack::parse("/dev/a%20b?c=d;e&f=%26").unwrap();
        let page = way.sign_in_page();
        assert_eq!(page, "/login?next=/dev/a%2520b%3Fc%3Dd%3Be%26f%3D%2526");
        assert_eq!(WayBack::from_query(page.split_once('?').unwrap().1), Some(way.clone()));

        let cookie = way.cookie(600);
        let mut headers = HeaderMap::new();
        let sent = format!("other=1; {}", cookie.split(';').next().unwrap());
        headers.insert("cookie", HeaderValue::from_str(&sent).unwrap());
        assert_eq!(WayBack::from_cookie(&headers), Some(way));
        assert_eq!(WayBack::from_query("token=x&next=%2F%2Fevil.example"), None);
        assert_eq!(WayBack::from_query("token=x"), None);
    }
}
