//! Cookies of the apps in sandboxes, kept apart from the session and from each other. Pure.
//!
//! All roles share an origin, and so a jar. A cookie `sid` that the app of role `dev` sets is
//! `nacre_app_dev_sid` in the browser; on the way in, only what carries the role's own name is
//! passed on, without it. Cookies belong to the role and not to the sandbox: after a swap the app
//! that became `live` finds what the owner's browser holds for `live`, as after any deployment.
//!
//! A port that has a host to itself has a jar to itself. There an app's cookies keep their names, but for
//! ours, and stay on that host.

use std::fmt::Write;

use http::header::{COOKIE, SET_COOKIE};
use http::{HeaderMap, HeaderValue};

use crate::routes::Role;

/// Of name and value together, as browsers have it.
const LONGEST: usize = 4096;
const LONGEST_PATH: usize = 1024;
/// More in one answer are dropped. Browsers keep some 180 for a site, and throw out the oldest,
/// which would be the session.
const MOST: usize = 24;

/// Whose cookies cross, and how the browser came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Jar {
    pub(crate) role: Role,
    /// The browser speaks https with us.
    pub(crate) secure: bool,
    /// The app has a host to itself.
    pub(crate) own_host: bool,
}

/// What the gateway's own cookies begin with, on every host.
const OURS: [&str; 2] = ["nacre_", "__Host-nacre_"];

impl Jar {
    /// Leaves the role's own cookies, by the names the app knows.
    pub(crate) fn inward(self, headers: &mut HeaderMap) {
        let prefix = self.prefix();
        let mut inner = String::new();
        for pair in pairs(headers) {
            let own = match self.own_host {
                true => Some(pair).filter(|pair| !is_ours(pair)),
                false => pair.strip_prefix(prefix),
            };
            if let Some(own) = own {
                let separator = if inner.is_empty() { "" } else { "; " };
                inner.push_str(separator);
                inner.push_str(own);
            }
        }
        headers.remove(COOKIE);
        if let Ok(mut value) = HeaderValue::try_from(inner)
            && !value.is_empty()
        {
            value.set_sensitive(true);
            headers.insert(COOKIE, value);
        }
    }

    /// Renames what the app sets, and takes out what it may not decide.
    pub(crate) fn outward(self, headers: &mut HeaderMap) {
        if !headers.contains_key(SET_COOKIE) {
            return;
        }
        let set: Vec<HeaderValue> = headers.get_all(SET_COOKIE).iter().cloned().collect();
        headers.remove(SET_COOKIE);
        for (index, value) in set.iter().enumerate() {
            let renamed = value.to_str().ok().and_then(|value| match self.own_host {
                true => keep_to_host(value),
                false => self.rename(value),
            });
            match renamed.and_then(|renamed| HeaderValue::try_from(renamed).ok()) {
                Some(renamed) if index < MOST => {
                    headers.append(SET_COOKIE, renamed);
                }
                // Its value may be a secret.
                _ => tracing::debug!(role = self.role.as_str(), "a cookie of an app was dropped"),
            }
        }
    }

    fn prefix(self) -> &'static str {
        match self.role {
            Role::Live => "nacre_app_live_",
            Role::Dev => "nacre_app_dev_",
        }
    }

    /// The line as the browser gets it; `None` when a browser would not take it from the app.
    fn rename(self, line: &str) -> Option<String> {
        let mut parts = line.split(';').map(str::trim);
        let (name, value) = parts.next()?.split_once('=')?;
        let (name, value) = (name.trim_end(), value.trim_start());
        if !is_name(name) || !is_text(value) || name.len() + value.len() > LONGEST {
            return None;
        }
        let attributes = Attributes::parse(parts)?;
        if !attributes.keeps_promise_of(name) {
            return None;
        }
        let mut renamed = format!("{}{name}={value}", self.prefix());
        // Writing to a string cannot fail.
        if let Some(path) = attributes.path {
            let _ = write!(renamed, "; Path={}", self.outer_path(path));
        }
        if let Some(expires) = attributes.expires {
            let _ = write!(renamed, "; Expires={expires}");
        }
        if let Some(seconds) = attributes.max_age {
            let _ = write!(renamed, "; Max-Age={seconds}");
        }
        let site = if attributes.strict { "Strict" } else { "Lax" };
        let _ = write!(renamed, "; HttpOnly; SameSite={site}");
        if self.secure {
            renamed.push_str("; Secure");
        }
        Some(renamed)
    }

    /// An app that knows its prefix has put it there already.
    fn outer_path(self, path: &str) -> String {
        let prefix = self.role.prefix();
        match path.strip_prefix(prefix) {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => path.to_owned(),
            _ => format!("{prefix}{path}"),
        }
    }
}

/// What an app said that is passed on. `Domain`, `HttpOnly` and `Secure` are not its to decide;
/// attributes that are not known are dropped.
#[derive(Default)]
struct Attributes<'l> {
    path: Option<&'l str>,
    expires: Option<&'l str>,
    max_age: Option<i64>,
    strict: bool,
    secure: bool,
    domain: bool,
}

impl<'l> Attributes<'l> {
    /// `None` when one that is known has a value that it cannot have. Of two, the last counts.
    fn parse(parts: impl Iterator<Item = &'l str>) -> Option<Self> {
        let mut found = Self::default();
        for part in parts {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let value = value.trim();
            match name.trim_end().to_ascii_lowercase().as_str() {
                // As browsers do: what is no path stands for that of the request.
                "path" => found.path = Some(value).filter(|path| path.starts_with('/')),
                "expires" => found.expires = Some(value).filter(|date| is_text(date)),
                "max-age" => found.max_age = Some(value.parse().ok()?),
                "samesite" => found.strict = value.eq_ignore_ascii_case("strict"),
                "secure" => found.secure = true,
                "domain" => found.domain = !value.is_empty(),
                _ => {}
            }
        }
        let good = found.path.is_none_or(|path| is_text(path) && path.len() <= LONGEST_PATH);
        good.then_some(found)
    }

    /// Browsers hold cookies with these names to their promise. Under ours they would not.
    fn keeps_promise_of(&self, name: &str) -> bool {
        let name = name.to_ascii_lowercase();
        if name.starts_with("__host-") {
            return self.secure && !self.domain && self.path == Some("/");
        }
        self.secure || !name.starts_with("__secure-")
    }
}

fn is_ours(pair: &str) -> bool {
    OURS.iter().any(|start| pair.starts_with(start))
}

/// As the app has it, less the domain: a cookie for the domain above would reach our own host.
fn keep_to_host(line: &str) -> Option<String> {
    let mut parts = line.split(';').map(str::trim);
    let pair = parts.next()?;
    let (name, value) = pair.split_once('=')?;
    if !is_name(name.trim_end()) || !is_text(value) || is_ours(pair) || pair.len() > LONGEST {
        return None;
    }
    let is_domain = |part: &str| {
        part.split('=').next().is_some_and(|name| name.trim().eq_ignore_ascii_case("domain"))
    };
    let rest = parts.filter(|part| !part.is_empty() && !is_domain(part) && is_text(part));
    Some(rest.fold(pair.to_owned(), |line, part| format!("{line}; {part}")))
}

/// Each `name=value` of a request.
pub(crate) fn pairs(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    headers
        .get_all(COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(';'))
        .map(str::trim)
}

/// A token, as RFC 6265 wants it.
fn is_name(name: &str) -> bool {
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.bytes().all(token)
}

fn is_text(value: &str) -> bool {
    value.bytes().all(|byte| matches!(byte, b' '..=b'~'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LIVE: Jar = Jar { role: Role::Live, secure: false, own_host: false };
    const DEV: Jar = Jar { role: Role::Dev, secure: false, own_host: false };
    const SAFE: Jar = Jar { role: Role::Dev, secure: true, own_host: false };
    const APART: Jar = Jar { role: Role::Dev, secure: true, own_host: true };

    fn inward(jar: Jar, cookies: &[&str]) -> Option<String> {
        let mut headers = HeaderMap::new();
        for cookie in cookies {
            headers.append(COOKIE, HeaderValue::from_str(cookie).unwrap());
        }
        jar.inward(&mut headers);
        assert!(headers.len() <= 1);
        headers.get(COOKIE).map(|value| value.to_str().unwrap().to_owned())
    }

    #[test]
    fn an_app_gets_the_cookies_of_its_role_and_no_other() {
        let cookies = [
            "nacre_session=secret; nacre_app_live_a=1; nacre_app_dev_a=2",
            "nacre_app_dev___Host-b=x=y; plain=3; __Host-nacre_session=secret",
        ];
        assert_eq!(inward(LIVE, &cookies).as_deref(), Some("a=1"));
        assert_eq!(inward(DEV, &cookies).as_deref(), Some("a=2; __Host-b=x=y"));
        assert_eq!(inward(DEV, &cookies[..0]), None);
        assert_eq!(inward(DEV, &["nacre_session=secret"]), None);
    }

    #[test]
    fn what_an_app_sets_is_renamed_and_held_to_its_role() {
        let cases = [
            (LIVE, "a=1", "nacre_app_live_a=1; HttpOnly; SameSite=Lax"),
            (LIVE, "a=", "nacre_app_live_a=; HttpOnly; SameSite=Lax"),
            (DEV, "a=1; Path=/", "nacre_app_dev_a=1; Path=/dev/; HttpOnly; SameSite=Lax"),
            (DEV, "a=1; path=/x", "nacre_app_dev_a=1; Path=/dev/x; HttpOnly; SameSite=Lax"),
            (DEV, "a=1; Path=/dev/x", "nacre_app_dev_a=1; Path=/dev/x; HttpOnly; SameSite=Lax"),
            (
                DEV,
                "a=1; Path=/device",
                "nacre_app_dev_a=1; Path=/dev/device; HttpOnly; SameSite=Lax",
            ),
            (DEV, "a=1; Path=x", "nacre_app_dev_a=1; HttpOnly; SameSite=Lax"),
            (
                DEV,
                "a=1; Domain=example.org; Priority=High",
                "nacre_app_dev_a=1; HttpOnly; SameSite=Lax",
            ),
            (LIVE, "a=1; Secure; SameSite=None", "nacre_app_live_a=1; HttpOnly; SameSite=Lax"),
            (
                SAFE,
                "a=\"b,c\"; SameSite=strict; Max-Age=-1; Expires=Thu, 01 Jan 1970 00:00:00 GMT",
                "nacre_app_dev_a=\"b,c\"; Expires=Thu, 01 Jan 1970 00:00:00 GMT; Max-Age=-1; \
                 HttpOnly; SameSite=Strict; Secure",
            ),
            (
                SAFE,
                "__Host-a=1; Secure; Path=/",
                "nacre_app_dev___Host-a=1; Path=/dev/; HttpOnly; SameSite=Lax; Secure",
            ),
            (LIVE, "nacre_session=1", "nacre_app_live_nacre_session=1; HttpOnly; SameSite=Lax"),
        ];
        for (jar, line, expected) in cases {
            assert_eq!(jar.rename(line).as_deref(), Some(expected), "{line}");
        }
    }

    #[test]
    fn on_a_host_of_its_own_an_app_keeps_its_cookies_and_gets_none_of_ours() {
        let cookies = ["sid=1; __Host-nacre_port=secret; nacre_session=x", "__Host-a=2; Nacre=3"];
        assert_eq!(inward(APART, &cookies).as_deref(), Some("sid=1; __Host-a=2; Nacre=3"));
        let check = |line: &str, expected: Option<&str>| {
            assert_eq!(keep_to_host(line).as_deref(), expected, "{line}");
        };
        check("a=1; Path=/x; SameSite=None; Secure", Some("a=1; Path=/x; SameSite=None; Secure"));
        check("a=1; Domain=pc.example; HttpOnly", Some("a=1; HttpOnly"));
        check("a=1; DOMAIN =pc.example;;domain", Some("a=1"));
        for dropped in ["__Host-nacre_port=1; Secure; Path=/", "nacre_port=1", "a", "a b=1", "=1"] {
            check(dropped, None);
        }
    }

    #[test]
    fn what_a_browser_would_not_take_is_dropped() {
        let long = format!("a={}", "x".repeat(LONGEST));
        for line in [
            "",
            "a",
            "=1",
            " =1",
            "a b=1",
            "a,b=1",
            "a=1\t2",
            "a=1; Max-Age=soon",
            "__Host-a=1; Path=/",
            "__Host-a=1; Secure",
            "__HOST-a=1; Secure; Path=/; Domain=x",
            "__Secure-a=1",
            &long,
        ] {
            assert_eq!(LIVE.rename(line), None, "{line}");
        }
    }

    #[test]
    fn an_answer_sets_so_many_and_no_more() {
        let mut headers = HeaderMap::new();
        for index in 0..MOST + 5 {
            headers.append(SET_COOKIE, HeaderValue::from_str(&format!("c{index}=1")).unwrap());
        }
        LIVE.outward(&mut headers);
        assert_eq!(headers.get_all(SET_COOKIE).iter().count(), MOST);
    }

    proptest! {
        /// Whatever an app sends, the browser stores it under the role's name and path, and gives
        /// it back to no other role.
        #[test]
        fn no_line_reaches_another_cookie(line in "[ -~]{0,60}") {
            let Some(renamed) = DEV.rename(&line) else { return Ok(()) };
            let mut parts = renamed.split("; ");
            let pair = parts.next().unwrap();
            prop_assert!(pair.starts_with("nacre_app_dev_"), "{}", renamed);
            for part in parts {
                let name = part.split('=').next().unwrap();
                prop_assert!(
                    ["Path", "Expires", "Max-Age", "HttpOnly", "SameSite"].contains(&name),
                    "{}", renamed
                );
                prop_assert!(name != "Path" || part.starts_with("Path=/dev"), "{}", renamed);
            }
            prop_assert_eq!(inward(LIVE, &[pair]), None);
            let inner = line.split(';').next().unwrap();
            let (name, value) = inner.split_once('=').unwrap();
            let expected = format!("{}={}", name.trim(), value.trim());
            prop_assert_eq!(inward(DEV, &[pair]), Some(expected));
        }
    }
}
