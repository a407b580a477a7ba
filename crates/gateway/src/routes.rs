//! The path contract: who answers which path. One table, no handlers.

/// Who answers a request that came in over the port for browsers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Route {
    /// The sign-in page; needs no session.
    Login,
    /// Belongs to the gateway and nothing answers there yet.
    Reserved,
    /// `/admin/sandboxes*`.
    Control,
    /// The sandbox that a role points to.
    Role(Target),
}

/// Where in which sandbox a request ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) role: Role,
    /// What was cut off the front of the path; empty for `live`.
    pub(crate) prefix: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Role {
    Live,
    Dev,
}

impl Role {
    pub(crate) const ALL: [Self; 2] = [Self::Live, Self::Dev];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Dev => "dev",
        }
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.as_str() == text)
    }
}

/// Prefixes as whole path segments, first match wins; what matches none is the live sandbox's.
/// Paths are compared as sent: an encoded or doubled slash never reaches a gateway route, and
/// inside the sandbox it opens nothing that the plain path would not.
pub(crate) fn decide(path: &str) -> Route {
    const TABLE: &[(&str, Route)] = &[
        ("/login", Route::Login),
        ("/register", Route::Reserved),
        ("/recovery", Route::Reserved),
        ("/auth", Route::Reserved),
        ("/admin/sandboxes", Route::Control),
        ("/provider/v1", Route::Reserved),
        ("/dev", Route::Role(Target { role: Role::Dev, prefix: "/dev" })),
    ];
    TABLE
        .iter()
        .find(|(prefix, _)| is_under(path, prefix))
        .map_or(Route::Role(Target { role: Role::Live, prefix: "" }), |(_, route)| route.clone())
}

fn is_under(path: &str, prefix: &str) -> bool {
    path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The path and query that the sandbox sees.
pub(crate) fn strip_prefix(path_and_query: &str, prefix: &str) -> String {
    let rest = path_and_query.strip_prefix(prefix).unwrap_or(path_and_query);
    if rest.starts_with('/') { rest.to_owned() } else { format!("/{rest}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIVE: Route = Route::Role(Target { role: Role::Live, prefix: "" });
    const DEV: Route = Route::Role(Target { role: Role::Dev, prefix: "/dev" });

    #[test]
    fn every_path_has_one_owner() {
        let cases = [
            ("/", LIVE),
            ("/login", Route::Login),
            ("/loginish", LIVE),
            ("/auth/callback", Route::Reserved),
            ("/authors", LIVE),
            ("/admin", LIVE),
            ("/admin/sandboxes", Route::Control),
            ("/admin/sandboxes/live/door/supervisor/exec", Route::Control),
            ("/admin/sandboxesx", LIVE),
            ("/provider/v1/openai/chat", Route::Reserved),
            ("/provider/v2", LIVE),
            ("/dev", DEV),
            ("/dev/", DEV),
            ("/dev/supervisor/health", DEV),
            ("/device", LIVE),
            ("//admin/sandboxes", LIVE),
            ("/%61dmin/sandboxes", LIVE),
            ("/supervisor/health", LIVE),
            ("/ws/x", LIVE),
        ];
        for (path, expected) in cases {
            assert_eq!(decide(path), expected, "{path}");
        }
    }

    #[test]
    fn a_stripped_path_stays_absolute() {
        let cases = [
            ("/dev", "/"),
            ("/dev/", "/"),
            ("/dev/a?b=c", "/a?b=c"),
            ("/dev?b=c", "/?b=c"),
            ("/dev//a", "//a"),
        ];
        for (path, expected) in cases {
            assert_eq!(strip_prefix(path, "/dev"), expected, "{path}");
        }
        assert_eq!(strip_prefix("/a?b", ""), "/a?b");
    }
}
