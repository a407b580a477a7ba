use crate::error::{Error, Result};

/// What the owner asked history to leave alone. Nothing by default.
///
/// A pattern is a path from the root; in it `*` stands for any part of a name, `?` for one byte, and
/// `**` for any number of names. With a name, everything below it is left alone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Exclusions(Vec<Vec<Part>>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Name(Vec<u8>),
    /// `**`
    Names,
}

impl Exclusions {
    pub(crate) fn new<'a>(patterns: impl IntoIterator<Item = &'a str>) -> Result<Self> {
        patterns.into_iter().map(parse).collect::<Result<_>>().map(Self)
    }

    /// Whether a [`TreePath::key`](crate::path::TreePath::key) is excluded or below what is.
    pub(crate) fn covers(&self, key: &[u8]) -> bool {
        !self.0.is_empty() && !key.is_empty() && {
            let names: Vec<&[u8]> = key.split(|byte| *byte == 0).collect();
            self.0.iter().any(|pattern| {
                wild(
                    pattern.len(),
                    names.len(),
                    |at| pattern[at] == Part::Names,
                    |part, name| match &pattern[part] {
                        Part::Name(glob) => name_matches(glob, names[name]),
                        Part::Names => false,
                    },
                )
            })
        }
    }
}

fn parse(pattern: &str) -> Result<Vec<Part>> {
    let path = pattern.strip_prefix('/').unwrap_or(pattern);
    let path = path.strip_suffix('/').unwrap_or(path);
    let mut parts = Vec::new();
    for name in path.split('/') {
        match name {
            "" | "." | ".." => {
                return Err(Error::Invalid(format!("not a pattern to exclude: {pattern:?}")));
            }
            "**" => parts.push(Part::Names),
            name => parts.push(Part::Name(name.into())),
        }
    }
    if parts.iter().all(|part| *part == Part::Names) {
        return Err(Error::Invalid(format!("excludes everything: {pattern:?}")));
    }
    // What is below a name that matches is covered too.
    parts.push(Part::Names);
    Ok(parts)
}

fn name_matches(glob: &[u8], name: &[u8]) -> bool {
    let one = |part: usize, at: usize| glob[part] == b'?' || glob[part] == name[at];
    wild(glob.len(), name.len(), |part| glob[part] == b'*', one)
}

/// Matches a pattern with stars in time of the product of the lengths: only the last star seen can
/// need to take more.
fn wild(
    parts: usize,
    length: usize,
    is_star: impl Fn(usize) -> bool,
    matches: impl Fn(usize, usize) -> bool,
) -> bool {
    let (mut part, mut at) = (0, 0);
    let mut last_star: Option<(usize, usize)> = None;
    while at < length {
        if part < parts && is_star(part) {
            last_star = Some((part, at));
            part += 1;
        } else if part < parts && matches(part, at) {
            part += 1;
            at += 1;
        } else if let Some((star, taken)) = last_star {
            last_star = Some((star, taken + 1));
            part = star + 1;
            at = taken + 1;
        } else {
            return false;
        }
    }
    (part..parts).all(is_star)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::TreePath;
    use std::path::Path;

    #[test]
    fn patterns_cover_names_and_what_is_below() {
        let check = |pattern: &str, path: &str, expected: bool| {
            let exclusions = Exclusions::new([pattern]).unwrap();
            let path = TreePath::parse(Path::new(path)).unwrap();
            assert_eq!(exclusions.covers(path.key()), expected, "{pattern} {path}");
        };
        check("target", "target", true);
        check("target", "target/debug/x", true);
        check("/target/", "target/debug", true);
        check("target", "a/target", false);
        check("target", "targets", false);
        check("**/target", "target", true);
        check("**/target", "a/b/target/c", true);
        check("a/**/z", "a/z", true);
        check("a/**/z", "a/b/c/z/d", true);
        check("a/**/z", "b/z", false);
        check("*.log", "x.log", true);
        check("*.log", "a/x.log", false);
        check("a/*/*.log", "a/b/x.log", true);
        check("a/*/*.log", "a/b/x.logs", false);
        check("a/b?", "a/bc/d", true);
        check("*", "", false);
        check("a*b*c", "aXbYbZc", true);
    }

    #[test]
    fn what_is_no_path_is_refused() {
        for refused in ["", "/", "a//b", "../a", "a/..", "**", "**/**"] {
            assert!(Exclusions::new([refused]).is_err(), "{refused:?}");
        }
        assert!(!Exclusions::default().covers(b"a"));
    }
}
