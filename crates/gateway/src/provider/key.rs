//! The key of a provider: read here, put into one header, and shown nowhere.

use std::fmt;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use http::HeaderValue;
use nacre_wire::ApiError;

const LONGEST: u64 = 16 * 1024;

/// It has no `Debug` that shows it and no `Display`.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Key(String);

/// Where a key comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum KeyFrom {
    Nowhere,
    Environment(String),
    File(PathBuf),
}

impl Key {
    /// What surrounds it is no part of it: files end with a line break.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text.is_empty() {
            return Err("the key is empty".to_owned());
        }
        match text.bytes().all(|byte| byte.is_ascii_graphic()) {
            true => Ok(Self(text.to_owned())),
            false => Err("the key has characters that no key has".to_owned()),
        }
    }

    /// Only from a file that nobody else can read.
    pub(crate) fn read(path: &Path) -> Result<Self, String> {
        let failed = |error: std::io::Error| ApiError::io(path.display(), &error).message;
        let nonblocking = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or(0);
        let mut file = std::fs::OpenOptions::new()
            .read(true)
            .custom_flags(nonblocking)
            .open(path)
            .map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        if !metadata.is_file() || metadata.len() > LONGEST {
            return Err(format!("{} is no file with a key in it", path.display()));
        }
        if metadata.mode() & 0o077 != 0 {
            let mode = metadata.mode() & 0o777;
            return Err(format!(
                "{} can be read by others (mode {mode:03o}); run: chmod 600 {}",
                path.display(),
                path.display()
            ));
        }
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(failed)?;
        Self::parse(&text).map_err(|why| format!("{}: {why}", path.display()))
    }

    /// For looking whether somebody tells it.
    pub(super) fn bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    /// Marked so that nothing that prints headers prints it.
    pub(super) fn header(&self, scheme: &str) -> Option<HeaderValue> {
        let mut value = HeaderValue::try_from(format!("{scheme}{}", self.0)).ok()?;
        value.set_sensitive(true);
        Some(value)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

impl fmt::Display for KeyFrom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nowhere => f.write_str("none"),
            Self::Environment(name) => write!(f, "environment variable {name}"),
            Self::File(path) => write!(f, "file {}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_key_is_read_only_from_a_file_of_ones_own_and_never_shown() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        std::fs::write(&path, "sk-secret\n").unwrap();
        let chmod = |mode| {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        for mode in [0o644, 0o640, 0o604, 0o660] {
            chmod(mode);
            let why = Key::read(&path).unwrap_err();
            assert!(why.contains("chmod 600") && !why.contains("sk-secret"), "{why}");
        }
        chmod(0o600);
        let key = Key::read(&path).unwrap();
        assert_eq!(format!("{key:?}"), "Key(..)");
        let header = key.header("Bearer ").unwrap();
        assert_eq!(header.as_bytes(), b"Bearer sk-secret");
        assert!(!format!("{header:?}").contains("sk-secret"));
    }

    #[test]
    fn what_is_no_key_is_refused() {
        for bad in ["", " \n", "a b", "a\r\nx-evil: 1", "schl\u{fc}ssel"] {
            assert!(Key::parse(bad).is_err(), "{bad:?}");
        }
        assert!(Key::read(Path::new("/dev/null")).is_err());
    }
}
