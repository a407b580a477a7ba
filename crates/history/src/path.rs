//! Names within a recorded tree.

use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Stands for `/`, so that the order of the bytes is the order of a walk: a directory, then what is
/// below it, then its next sibling. No file name holds it.
const SEPARATOR: u8 = 0;

/// A path relative to the root of the tree. Any bytes that the kernel takes as names; never `.`,
/// `..`, or an empty name. The root itself is the empty path.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct TreePath(Box<[u8]>);

impl TreePath {
    pub fn root() -> Self {
        Self::default()
    }

    /// `None` when a component is not a plain name or the path is absolute.
    pub fn parse(path: &Path) -> Option<Self> {
        let bytes = path.as_os_str().as_bytes();
        if bytes.is_empty() || bytes == b"." {
            return Some(Self::root());
        }
        let trimmed = bytes.strip_suffix(b"/").unwrap_or(bytes);
        let plain =
            |name: &[u8]| !name.is_empty() && name != b"." && name != b".." && !name.contains(&0);
        let key: Vec<u8> =
            trimmed.iter().map(|byte| if *byte == b'/' { SEPARATOR } else { *byte }).collect();
        trimmed.split(|byte| *byte == b'/').all(plain).then(|| Self(key.into()))
    }

    /// What [`TreePath::key`] gave; `None` for bytes that it cannot have given.
    pub fn from_key(key: &[u8]) -> Option<Self> {
        let plain = |name: &[u8]| {
            !name.is_empty() && name != b"." && name != b".." && !name.contains(&b'/')
        };
        (key.is_empty() || key.split(|byte| *byte == SEPARATOR).all(plain))
            .then(|| Self(key.into()))
    }

    /// Bytes that sort as a walk does. What is below a path lies between its key followed by 0 and
    /// its key followed by 1.
    pub fn key(&self) -> &[u8] {
        &self.0
    }

    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    pub fn names(&self) -> impl Iterator<Item = &OsStr> {
        self.0
            .split(|byte| *byte == SEPARATOR)
            .filter(|name| !name.is_empty())
            .map(OsStr::from_bytes)
    }

    /// Of the root as of nothing: `None`.
    pub fn name(&self) -> Option<&OsStr> {
        self.names().last()
    }

    pub fn parent(&self) -> Option<Self> {
        if self.is_root() {
            return None;
        }
        let end = self.0.iter().rposition(|byte| *byte == SEPARATOR).unwrap_or(0);
        Some(Self(self.0[..end].into()))
    }

    /// `name` must be a plain name, as a directory lists it.
    pub fn join(&self, name: &OsStr) -> Self {
        let mut key = Vec::with_capacity(self.0.len() + 1 + name.len());
        key.extend_from_slice(&self.0);
        if !key.is_empty() {
            key.push(SEPARATOR);
        }
        key.extend_from_slice(name.as_bytes());
        Self(key.into())
    }

    pub fn is_below(&self, other: &Self) -> bool {
        other.is_root() && !self.is_root()
            || self.0.strip_prefix(&*other.0).is_some_and(|rest| rest.first() == Some(&SEPARATOR))
    }

    /// The path itself or something below it.
    pub fn is_within(&self, other: &Self) -> bool {
        self == other || self.is_below(other)
    }

    /// Parents, nearest first, the root last.
    pub fn ancestors(&self) -> impl Iterator<Item = Self> {
        std::iter::successors(self.parent(), Self::parent)
    }

    /// A text from which [`TreePath::from_text`] gets the same path, whatever its bytes.
    pub fn to_text(&self) -> String {
        let path = self.to_path();
        let mut text = String::new();
        for chunk in path.as_os_str().as_bytes().utf8_chunks() {
            text.push_str(&chunk.valid().replace('%', "%25"));
            for byte in chunk.invalid() {
                text.push_str(&format!("%{byte:02X}"));
            }
        }
        text
    }

    pub fn from_text(text: &str) -> Option<Self> {
        let mut bytes = Vec::with_capacity(text.len());
        let mut rest = text.as_bytes();
        while let Some((first, after)) = rest.split_first() {
            rest = after;
            if *first != b'%' {
                bytes.push(*first);
                continue;
            }
            let (digits, after) = rest.split_at_checked(2)?;
            let digits = std::str::from_utf8(digits).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = after;
        }
        Self::parse(Path::new(OsStr::from_bytes(&bytes)))
    }

    /// With slashes, as the kernel takes it. The root is `.`.
    pub fn to_path(&self) -> PathBuf {
        if self.is_root() { PathBuf::from(".") } else { self.names().collect() }
    }
}

/// With slashes; bytes that are not text are shown as the replacement character.
impl fmt::Display for TreePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_path().to_string_lossy())
    }
}

impl fmt::Debug for TreePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.to_path())
    }
}

/// Text with slashes, where bytes that are not text, and `%`, are written as `%XX`.
impl Serialize for TreePath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.to_text())
    }
}

impl<'de> Deserialize<'de> for TreePath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::from_text(&text)
            .ok_or_else(|| serde::de::Error::custom(format!("not a path in the tree: {text:?}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn path(text: &str) -> TreePath {
        TreePath::parse(Path::new(text)).unwrap()
    }

    #[test]
    fn only_plain_relative_paths_are_taken() {
        for refused in ["/", "/a", "a//b", "../a", "a/..", "a/./b", "./a", "a\0b"] {
            assert_eq!(TreePath::parse(Path::new(refused)), None, "{refused:?}");
        }
        for (taken, shown) in [("", "."), (".", "."), ("a", "a"), ("a/b/", "a/b"), ("...", "...")] {
            assert_eq!(path(taken).to_string(), shown);
        }
        for refused in [&b"\0"[..], b"a\0", b"a\0\0b", b"..", b"a/b", b"a\0."] {
            assert_eq!(TreePath::from_key(refused), None, "{refused:?}");
        }
    }

    #[test]
    fn paths_sort_as_a_walk_goes() {
        let mut paths = ["a.txt", "a/b", "a", "", "a/b/c", "a-b", "a/b.c", "b"].map(path);
        paths.sort();
        assert_eq!(paths, ["", "a", "a/b", "a/b/c", "a/b.c", "a-b", "a.txt", "b"].map(path));
    }

    #[test]
    fn families() {
        let child = path("a/b/c");
        assert_eq!(child.parent(), Some(path("a/b")));
        assert_eq!(child.name(), Some(OsStr::new("c")));
        assert_eq!(child.ancestors().collect::<Vec<_>>(), ["a/b", "a", ""].map(path));
        assert!(child.is_below(&path("a")) && child.is_below(&path("")));
        assert!(!child.is_below(&child) && child.is_within(&child));
        assert!(!path("ab").is_below(&path("a")));
        assert_eq!(path("").parent(), None);
    }

    proptest! {
        #[test]
        fn keys_and_paths_agree(names in proptest::collection::vec("[^/\0]{1,8}", 0..5)) {
            prop_assume!(names.iter().all(|name| name != "." && name != ".."));
            let parsed = path(&names.join("/"));
            prop_assert_eq!(TreePath::from_key(parsed.key()), Some(parsed.clone()));
            let joined = names.iter().fold(TreePath::root(), |path, name| path.join(OsStr::new(name)));
            prop_assert_eq!(joined, parsed);
        }

        #[test]
        fn any_key_is_taken_or_refused(key in proptest::collection::vec(any::<u8>(), 0..20)) {
            if let Some(path) = TreePath::from_key(&key) {
                prop_assert_eq!(TreePath::parse(&path.to_path()), Some(path.clone()));
                prop_assert_eq!(TreePath::from_text(&path.to_text()), Some(path));
            }
        }
    }
}
