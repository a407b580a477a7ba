//! What an entry is, and which version of it: the `Stat` and ETag of a kernel stat.

use std::ffi::OsString;
use std::fmt;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use nacre_wire::WirePath;
use nacre_wire::files::{FileKind, Stat};
use rustix::fs::FileType;

/// Changes whenever content or metadata does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Version {
    inode: u64,
    size: u64,
    modified_ns: i64,
    changed_ns: i64,
}

impl Version {
    pub(crate) fn of(stat: &rustix::fs::Stat) -> Self {
        Self {
            inode: stat.st_ino,
            size: stat.st_size as u64,
            modified_ns: modified_ns(stat),
            changed_ns: nanoseconds(stat.st_ctime, stat.st_ctime_nsec as i64),
        }
    }

    /// Equal but for the change time, which a rename touches too.
    pub(crate) fn same_content(self, other: Self) -> bool {
        Self { changed_ns: 0, ..self } == Self { changed_ns: 0, ..other }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { inode, size, modified_ns, changed_ns } = self;
        write!(f, "\"{inode:x}-{size:x}-{modified_ns:x}-{changed_ns:x}\"")
    }
}

/// The text is not one of our ETags, so it names no version that ever was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct UnknownVersion;

impl FromStr for Version {
    type Err = UnknownVersion;

    fn from_str(text: &str) -> Result<Self, UnknownVersion> {
        let text = text.trim();
        let text = text.strip_prefix("W/").unwrap_or(text).trim_matches('"');
        let parts: Vec<u64> = text
            .split('-')
            .map(|part| u64::from_str_radix(part, 16).map_err(|_| UnknownVersion))
            .collect::<Result<_, _>>()?;
        let &[inode, size, modified, changed] = parts.as_slice() else {
            return Err(UnknownVersion);
        };
        // Times before 1970 print as two's complement; the cast is its inverse.
        Ok(Self { inode, size, modified_ns: modified as i64, changed_ns: changed as i64 })
    }
}

fn nanoseconds(seconds: i64, nanos: i64) -> i64 {
    seconds.saturating_mul(1_000_000_000).saturating_add(nanos)
}

pub(crate) fn modified_ns(stat: &rustix::fs::Stat) -> i64 {
    nanoseconds(stat.st_mtime, stat.st_mtime_nsec as i64)
}

pub(crate) fn kind(stat: &rustix::fs::Stat) -> FileKind {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => FileKind::File,
        FileType::Directory => FileKind::Directory,
        FileType::Symlink => FileKind::Symlink,
        FileType::Fifo => FileKind::Fifo,
        FileType::Socket => FileKind::Socket,
        FileType::BlockDevice => FileKind::BlockDevice,
        FileType::CharacterDevice => FileKind::CharDevice,
        FileType::Unknown => FileKind::Unknown,
    }
}

pub(crate) fn describe(path: &Path, stat: &rustix::fs::Stat, target: Option<PathBuf>) -> Stat {
    Stat {
        path: WirePath::from(path),
        kind: kind(stat),
        size: stat.st_size as u64,
        mode: stat.st_mode & 0o7777,
        uid: stat.st_uid,
        gid: stat.st_gid,
        links: stat.st_nlink,
        modified_ns: modified_ns(stat),
        etag: Version::of(stat).to_string(),
        target: target.map(WirePath::from),
    }
}

/// Where the symlink at `name` points; `name` is empty when `fd` is the symlink itself.
pub(crate) fn link_target(fd: impl AsFd, name: &std::ffi::CStr) -> Option<PathBuf> {
    let target = rustix::fs::readlinkat(fd, name, Vec::new()).ok()?;
    Some(PathBuf::from(OsString::from_vec(target.into_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_version_survives_its_text(inode: u64, size: u64, modified_ns: i64, changed_ns: i64) {
            let version = Version { inode, size, modified_ns, changed_ns };
            prop_assert_eq!(version.to_string().parse(), Ok(version));
            prop_assert_eq!(format!("W/{version}").parse(), Ok(version));
        }

        #[test]
        fn any_text_is_parsed_or_refused(text: String) {
            let _ = text.parse::<Version>();
        }
    }
}
