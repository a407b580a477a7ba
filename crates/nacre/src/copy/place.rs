//! `PATH`, `:PATH` and `NAME:PATH`.

use std::path::PathBuf;

/// A path in a sandbox; a relative one starts at `/workspace`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) sandbox: String,
    pub(crate) path: PathBuf,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum End {
    Local(PathBuf),
    Remote(Place),
}

impl End {
    /// A colon after a plain name marks a sandbox; `./a:b` is a local file.
    pub(crate) fn parse(text: &str) -> Self {
        match text.split_once(':') {
            Some((name, path)) if is_plain(name) => Self::Remote(Place::new(name, path)),
            _ => Self::Local(PathBuf::from(text)),
        }
    }
}

impl Place {
    /// For commands that only know sandboxes: no colon means the live one.
    pub(crate) fn parse_remote(text: &str) -> Self {
        match End::parse(text) {
            End::Remote(place) => place,
            End::Local(_) => Self::new("", text),
        }
    }

    fn new(name: &str, path: &str) -> Self {
        let sandbox = if name.is_empty() { "live" } else { name };
        let path = if path.is_empty() { "." } else { path };
        Self { sandbox: sandbox.to_owned(), path: PathBuf::from(path) }
    }
}

fn is_plain(name: &str) -> bool {
    name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_colon_after_a_plain_name_marks_a_sandbox() {
        let remote = |name: &str, path: &str| {
            End::Remote(Place { sandbox: name.to_owned(), path: path.into() })
        };
        let cases = [
            (":a/b", remote("live", "a/b")),
            (":", remote("live", ".")),
            (":/etc/hosts", remote("live", "/etc/hosts")),
            ("dev:x:y", remote("dev", "x:y")),
            ("./a:b", End::Local("./a:b".into())),
            ("/a:b", End::Local("/a:b".into())),
            ("C:x", End::Local("C:x".into())),
            ("plain", End::Local("plain".into())),
        ];
        for (text, expected) in cases {
            assert_eq!(End::parse(text), expected, "{text}");
        }
        assert_eq!(Place::parse_remote("a"), Place { sandbox: "live".into(), path: "a".into() });
    }
}
