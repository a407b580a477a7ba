//! Where the sandbox is mounted: the part of the path that the gateway takes off and names in
//! `X-Forwarded-Prefix`. Pure.

use http::HeaderMap;
use http::uri::PathAndQuery;
use nacre_wire::processes::RUNTIME;

const MOST_NAMES: usize = 2;
const LONGEST: usize = 64;

pub(crate) const FORWARDED_PREFIX: &str = "x-forwarded-prefix";

/// `/dev`, or nothing for the root. An app may have an instance for each, and goes by it in names,
/// so it is simpler than what may be a prefix: one or two names of small letters, digits and dashes.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Mount(String);

impl Mount {
    /// Of a request. What is not simple has no instance of its own.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        Self::parse(prefix(headers)).unwrap_or_default()
    }

    fn parse(prefix: &str) -> Option<Self> {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let names: Vec<&str> = prefix.strip_prefix('/')?.split('/').collect();
        let simple = names.iter().all(|name| !name.is_empty() && name.chars().all(plain));
        (simple && names.len() <= MOST_NAMES && prefix.len() <= LONGEST)
            .then(|| Self(prefix.to_owned()))
    }

    pub(crate) fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// `/dev`, without a slash at its end.
    pub(crate) fn prefix(&self) -> &str {
        &self.0
    }

    /// What an instance is told of where it is: `/dev/`.
    pub(crate) fn base(&self) -> String {
        format!("{}/", self.0)
    }

    /// The name of the instance: `runtime@dev`. A dot stands for the slash, which would be another
    /// path in an address, and which no name has.
    pub(crate) fn process(&self) -> String {
        match self.0.strip_prefix('/') {
            None => RUNTIME.to_owned(),
            Some(names) => format!("{RUNTIME}@{}", names.replace('/', ".")),
        }
    }

    /// The path as the browser sent it.
    pub(crate) fn put_back(&self, path: &str) -> Option<PathAndQuery> {
        format!("{}{path}", self.0).parse().ok()
    }
}

/// Where the sandbox is mounted, when that is a plain path; for addresses in pages.
pub(crate) fn prefix(headers: &HeaderMap) -> &str {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/-_.".contains(c);
    headers
        .get(FORWARDED_PREFIX)
        .and_then(|prefix| prefix.to_str().ok())
        .filter(|prefix| prefix.starts_with('/') && !prefix.starts_with("//"))
        .filter(|prefix| prefix.chars().all(plain))
        .map_or("", |prefix| prefix.trim_end_matches('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(prefix: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(FORWARDED_PREFIX.parse().unwrap(), prefix.parse().unwrap())])
    }

    #[test]
    fn a_prefix_that_is_no_plain_path_is_none() {
        let check = |value: &'static str, expected: &str| {
            assert_eq!(prefix(&headers(value)), expected, "{value}");
        };
        check("/dev", "/dev");
        check("/", "");
        check("//evil.example", "");
        check("/\"><script>", "");
        assert_eq!(prefix(&HeaderMap::new()), "");
    }

    #[test]
    fn a_mount_has_a_name_of_its_own() {
        let check = |value: &'static str, expected: &str| {
            assert_eq!(Mount::of(&headers(value)).process(), expected, "{value}");
        };
        check("/dev", "runtime@dev");
        check("/dev/", "runtime@dev");
        check("/a-1/b", "runtime@a-1.b");
        for not_simple in ["/", "/Dev", "/a/b/c", "/a.b", "/a//b", "/a_b", "dev"] {
            check(not_simple, "runtime");
        }
        assert!(Mount::of(&HeaderMap::new()).is_root());
    }

    #[test]
    fn a_path_is_put_back_as_it_was_sent() {
        let check = |mount: &'static str, path: &str, expected: Option<&str>| {
            let found = Mount::of(&headers(mount)).put_back(path);
            assert_eq!(found.as_ref().map(PathAndQuery::as_str), expected, "{mount} {path}");
        };
        check("/dev", "/", Some("/dev/"));
        check("/dev", "/?token=a", Some("/dev/?token=a"));
        check("/a/b", "/x%20y?q", Some("/a/b/x%20y?q"));
        check("/", "/x", Some("/x"));
        check("/dev", "/a b", None);
    }
}
