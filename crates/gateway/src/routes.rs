//! The path contract: who answers which path. One table, no handlers.
//!
//! The router, the table in ARCHITECTURE.md and the tests of ownership all read [`TABLE`]. Paths
//! are compared as sent, segment by segment; what could be read in two ways never gets here (see
//! `web::target`).

use std::fmt::Write;

/// One line of the contract.
#[derive(Debug, PartialEq, Eq)]
pub struct Row {
    /// `/a` is that path alone, `/a/*` and `/a*` are that path and everything below it, `{name}`
    /// is one segment and `{*rest}` what is left.
    pub pattern: &'static str,
    pub auth: Auth,
    pub owner: Owner,
    /// Paths that belong to this row and no other.
    pub examples: &'static [&'static str],
}

/// What a request has to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Auth {
    Nothing,
    Session,
    PolicyToken,
}

/// Who answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    Gateway(Part),
    /// The sandbox that a role points to.
    Role(Role),
}

/// A part of the gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    SignIn,
    Control,
    /// The model gateway.
    Provider,
    /// A prefix without its slash: relative links of the page behind it would lead elsewhere.
    Slash,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    Live,
    Dev,
}

impl Role {
    pub(crate) const ALL: [Self; 2] = [Self::Live, Self::Dev];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Dev => "dev",
        }
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.as_str() == text)
    }

    /// What is cut off the front of a path before the sandbox sees it.
    pub fn prefix(self) -> &'static str {
        match self {
            Self::Live => "",
            Self::Dev => "/dev",
        }
    }
}

/// The first row that matches decides.
pub static TABLE: &[Row] = &[
    gateway("/login", Auth::Nothing, Part::SignIn, &["/login"]),
    gateway("/register", Auth::Nothing, Part::SignIn, &["/register"]),
    gateway("/recovery", Auth::Nothing, Part::SignIn, &["/recovery"]),
    gateway("/auth/*", Auth::Nothing, Part::SignIn, &["/auth", "/auth/", "/auth/callback"]),
    gateway(
        "/admin/sandboxes*",
        Auth::Session,
        Part::Control,
        &["/admin/sandboxes", "/admin/sandboxes/gateway", "/admin/sandboxes/live"],
    ),
    gateway(
        "/provider/v1/{provider}/{*rest}",
        Auth::PolicyToken,
        Part::Provider,
        &["/provider/v1/openai/chat/completions", "/provider/v1/x/"],
    ),
    gateway("/dev", Auth::Session, Part::Slash, &["/dev"]),
    sandbox("/dev/*", Role::Dev, &["/dev/", "/dev/app", "/dev/ws/room", "/dev/admin/sandboxes"]),
    sandbox("/", Role::Live, &["/"]),
    sandbox("/wasm/*", Role::Live, &["/wasm/app.wasm"]),
    sandbox("/assets/*", Role::Live, &["/assets/app.js"]),
    sandbox("/ws", Role::Live, &["/ws"]),
    sandbox("/ws/*", Role::Live, &["/ws/room"]),
    sandbox("/desktop/*", Role::Live, &["/desktop/windows"]),
    sandbox("/files/*", Role::Live, &["/files/a%2Fb"]),
    sandbox("/logs/*", Role::Live, &["/logs/today"]),
    sandbox("/writer/*", Role::Live, &["/writer/1"]),
    sandbox("/conductor/*", Role::Live, &["/conductor/run"]),
    sandbox("/supervisor/*", Role::Live, &["/supervisor/health"]),
    sandbox("/ports/*", Role::Live, &["/ports/3000", "/ports/3000/", "/ports/3000/app.js"]),
    sandbox("/*", Role::Live, &["/loginish", "/admin", "/provider/v2", "/device", "/_dioxus"]),
];

const fn gateway(
    pattern: &'static str,
    auth: Auth,
    part: Part,
    examples: &'static [&'static str],
) -> Row {
    Row { pattern, auth, owner: Owner::Gateway(part), examples }
}

const fn sandbox(pattern: &'static str, role: Role, examples: &'static [&'static str]) -> Row {
    Row { pattern, auth: Auth::Session, owner: Owner::Role(role), examples }
}

/// A path that is not absolute matches nothing, and is the live sandbox's to refuse.
pub fn decide(path: &str) -> &'static Row {
    TABLE.iter().find(|row| matches(row.pattern, path)).unwrap_or(&TABLE[TABLE.len() - 1])
}

/// Whether the gateway answers something below the folder that `path` is in.
pub(crate) fn shares_folder(path: &str) -> bool {
    let folder = &path[..path.rfind('/').map_or(0, |slash| slash + 1)];
    let own = |row: &&Row| matches!(row.owner, Owner::Gateway(_));
    TABLE.iter().filter(own).any(|row| row.pattern.starts_with(folder))
}

fn matches(pattern: &str, path: &str) -> bool {
    // Most rows are told apart by the letter behind the slash.
    let (wanted, given) = (pattern.as_bytes().get(1), path.as_bytes().get(1));
    if wanted != given && !matches!(wanted, Some(b'*' | b'{')) {
        return false;
    }
    let (mut pattern, mut path) = (pattern.split('/'), path.split('/'));
    loop {
        match (pattern.next(), path.next()) {
            (None, None) | (Some("*"), _) => return true,
            (Some(wanted), Some(_)) if wanted.starts_with("{*") => return true,
            (Some(wanted), Some(given)) if wanted.starts_with('{') && !given.is_empty() => {}
            (Some(wanted), Some(given)) if wanted.strip_suffix('*') == Some(given) => return true,
            (Some(wanted), Some(given)) if wanted == given => {}
            _ => return false,
        }
    }
}

/// The table as ARCHITECTURE.md shows it; `cargo xtask docs` puts it there.
pub fn markdown() -> String {
    let mut page = "| Path | Needs | Who answers |\n|---|---|---|\n".to_owned();
    for row in TABLE {
        let auth = match row.auth {
            Auth::Nothing => "nothing",
            Auth::Session => "session",
            Auth::PolicyToken => "policy token",
        };
        let owner = match row.owner {
            Owner::Gateway(Part::SignIn) => "gateway: sign-in",
            Owner::Gateway(Part::Control) => "gateway: control plane",
            Owner::Gateway(Part::Provider) => "gateway: models",
            Owner::Gateway(Part::Slash) => "gateway: redirect to `/dev/`",
            Owner::Role(Role::Live) => "sandbox `live`",
            Owner::Role(Role::Dev) => "sandbox `dev`, which sees the path without `/dev`",
        };
        // Writing to a string cannot fail.
        let _ = writeln!(page, "| `{}` | {auth} | {owner} |", row.pattern);
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_example_belongs_to_its_row_and_no_other() {
        for row in TABLE {
            assert!(!row.examples.is_empty(), "{}", row.pattern);
            for path in row.examples {
                assert_eq!(decide(path).pattern, row.pattern, "{path}");
            }
        }
    }

    #[test]
    fn whole_segments_decide() {
        let cases = [
            ("/login/x", "/*"),
            ("/authors", "/*"),
            ("/admin/sandboxesx", "/*"),
            ("/admin/sandboxes/", "/admin/sandboxes*"),
            ("/provider/v1", "/*"),
            ("/provider/v1/x", "/*"),
            ("/provider/v1//x", "/*"),
            ("/dev/dev/", "/dev/*"),
            ("/ws", "/ws"),
            ("/wsx", "/*"),
            ("*", "/*"),
            ("", "/*"),
        ];
        for (path, pattern) in cases {
            assert_eq!(decide(path).pattern, pattern, "{path}");
        }
    }

    #[test]
    fn folders_that_hold_something_of_the_gateway_are_known() {
        for path in ["/sw.js", "/", "/admin/sw.js", "/provider/sw.js", "/provider/v1/sw.js"] {
            assert!(shares_folder(path), "{path}");
        }
        for path in ["/app/sw.js", "/dev/sw.js", "/dev/admin/sw.js", "/adminx/sw.js"] {
            assert!(!shares_folder(path), "{path}");
        }
    }

    #[test]
    fn the_page_shows_this_table() {
        let page = include_str!("../../../ARCHITECTURE.md");
        assert!(page.contains(&markdown()), "ARCHITECTURE.md is stale; run `cargo xtask docs`");
    }
}
