//! Which calls of a provider may be made. Pure.
//!
//! What follows `/provider/v1/{provider}/` is compared as it was sent, and the provider sees it as
//! it was compared. Whatever two servers could read in two ways is refused, so nothing is decoded
//! anywhere: a path of letters, digits and a few signs is all that the APIs of models need.

use http::Method;

/// `POST chat/completions`, `GET models/*`; `*` is one segment or a part of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PathRule {
    method: Method,
    path: String,
}

impl PathRule {
    /// Without a method it is `POST`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let (method, path) = text.trim().split_once(' ').unwrap_or(("POST", text.trim()));
        let method = match method {
            "GET" => Method::GET,
            "POST" => Method::POST,
            "DELETE" => Method::DELETE,
            _ => return Err(format!("\"{text}\": the method is GET, POST or DELETE")),
        };
        let path = path.trim().trim_start_matches('/');
        if !is_plain(&path.replace('*', "x")) {
            return Err(format!("\"{text}\" is no path: write something like chat/completions"));
        }
        Ok(Self { method, path: path.to_owned() })
    }

    pub(crate) fn allows(&self, method: &Method, path: &str) -> bool {
        let (mut wanted, mut given) = (self.path.split('/'), path.split('/'));
        *method == self.method
            && loop {
                match (wanted.next(), given.next()) {
                    (None, None) => break true,
                    (Some(wanted), Some(given)) if glob(wanted, given) => {}
                    _ => break false,
                }
            }
    }
}

impl std::fmt::Display for PathRule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.method, self.path)
    }
}

/// Segments that are not empty and point nowhere else, of characters that mean themselves.
pub(crate) fn is_plain(path: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~:@".contains(&byte);
    path.split('/').all(|segment| {
        !segment.is_empty()
            && segment.bytes().all(plain)
            && segment.bytes().any(|byte| byte != b'.')
    })
}

/// `*` stands for anything, also for nothing.
pub(crate) fn glob(pattern: &str, text: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut text) = text.strip_prefix(first) else { return false };
    let mut parts: Vec<_> = rest.split('*').collect();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        match text.find(part) {
            Some(at) => text = &text[at + part.len()..],
            None => return false,
        }
    }
    text.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_name_a_method_and_whole_segments() {
        let check = |rule: &str, method: &str, path: &str, expected: bool| {
            let rule = PathRule::parse(rule).unwrap();
            let method = method.parse().unwrap();
            assert_eq!(rule.allows(&method, path), expected, "{rule}: {method} {path}");
        };
        check("chat/completions", "POST", "chat/completions", true);
        check("chat/completions", "GET", "chat/completions", false);
        check("chat/completions", "POST", "chat/completions/x", false);
        check("chat/completions", "POST", "chat", false);
        check("GET models/*", "GET", "models/gpt-4o", true);
        check("GET models/*", "GET", "models", false);
        check("GET models/*", "GET", "models/a/b", false);
        check("v1beta/models/*:generateContent", "POST", "v1beta/models/g-1:generateContent", true);
        check("v1beta/models/*:generateContent", "POST", "v1beta/models/g-1:delete", false);
        for bad in ["", "PUT files", "a//b", "../files", "a/%2e%2e/b", "a?b", "http://x/y"] {
            assert!(PathRule::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_path_that_can_be_read_in_two_ways_is_not_plain() {
        for good in ["chat/completions", "v1/messages", "models/ft:gpt-4o:org::id", "a.b/c~d"] {
            assert!(is_plain(good), "{good}");
        }
        let bad = [
            "",
            "/",
            "/etc",
            "a//b",
            "a/",
            "..",
            "a/../b",
            "a/./b",
            "a/.../b",
            "%2e%2e/files",
            "a%2fb",
            "a\\b",
            "a b",
            "a;b",
            "a?b",
            "a#b",
            "a\u{e9}",
            "a\0",
        ];
        for path in bad {
            assert!(!is_plain(path), "{path:?}");
        }
    }

    #[test]
    fn a_star_stands_for_anything() {
        let cases = [
            ("gpt-4o", "gpt-4o", true),
            ("gpt-4o", "gpt-4o-mini", false),
            ("gpt-*", "gpt-4o", true),
            ("*", "", true),
            ("*-mini", "gpt-4o-mini", true),
            ("a*b*c", "a-b-c", true),
            ("a*b*c", "a-c-b", false),
            ("a*a", "a", false),
        ];
        for (pattern, text, expected) in cases {
            assert_eq!(glob(pattern, text), expected, "{pattern} {text}");
        }
    }
}
