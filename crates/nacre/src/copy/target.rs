//! Where a copy ends up, by the rules of `cp -r`. Pure.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::failure::{Failure, Result};

/// What is copied: its own name, where it has one, and whether it is a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Source {
    name: Option<OsString>,
    is_folder: bool,
}

/// What is at the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Existing {
    Nothing,
    File,
    Folder,
}

impl Source {
    /// `.` and `..` have no name of their own, so what they mean is asked of the system.
    pub(crate) fn local(path: &Path, is_folder: bool) -> std::io::Result<Self> {
        let name = match path.file_name() {
            Some(name) if !ends_in_dot(path) => Some(name.to_owned()),
            _ if ends_in_dot(path) => None,
            _ => path.canonicalize()?.file_name().map(ToOwned::to_owned),
        };
        Ok(Self { name, is_folder })
    }

    pub(crate) fn remote(path: &Path, is_folder: bool) -> Self {
        let name = path.file_name().filter(|_| !ends_in_dot(path)).map(ToOwned::to_owned);
        Self { name, is_folder }
    }
}

/// `folder/.` means what is in the folder, as for `cp -r`.
fn ends_in_dot(path: &Path) -> bool {
    let bytes = path.as_os_str().as_encoded_bytes();
    bytes == b"." || bytes.ends_with(b"/.")
}

/// Into a folder that is there, or under the new name; a nameless source is poured into the target.
pub(crate) fn resolve(target: &Path, existing: Existing, source: &Source) -> Result<PathBuf> {
    match (existing, &source.name, source.is_folder) {
        (Existing::Folder, Some(name), _) => Ok(target.join(name)),
        (Existing::Folder, None, true) | (Existing::Nothing, _, true) => Ok(target.to_owned()),
        (Existing::File, _, true) => {
            Err(Failure::new(format!("{}: is a file, not a folder", target.display())))
        }
        (Existing::Folder, None, false) => {
            Err(Failure::new(format!("{}: the file needs a name", target.display())))
        }
        (Existing::Nothing, _, false) if ends_in_slash(target) => {
            Err(Failure::new(format!("{}: no such folder", target.display())))
        }
        (Existing::Nothing | Existing::File, _, false) => Ok(target.to_owned()),
    }
}

fn ends_in_slash(path: &Path) -> bool {
    path.as_os_str().as_encoded_bytes().ends_with(b"/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(from: &str, is_folder: bool, to: &str, existing: Existing, expected: Option<&str>) {
        let source = Source::remote(Path::new(from), is_folder);
        let resolved = resolve(Path::new(to), existing, &source).ok();
        assert_eq!(resolved, expected.map(PathBuf::from), "{from} -> {to}");
    }

    #[test]
    fn a_copy_ends_where_cp_would_put_it() {
        use Existing::{File, Folder, Nothing};
        check("a/f", false, "to", Nothing, Some("to"));
        check("a/f", false, "to", File, Some("to"));
        check("a/f", false, "to", Folder, Some("to/f"));
        check("a/f", false, "to/", Nothing, None);
        check("a/d", true, "to", Nothing, Some("to"));
        check("a/d", true, "to", Folder, Some("to/d"));
        check("a/d/", true, "to", Folder, Some("to/d"));
        check("a/d", true, "to", File, None);
        check("a/d/.", true, "to", Folder, Some("to"));
        check(".", true, "to", Folder, Some("to"));
        check("/", true, "to", Folder, Some("to"));
    }
}
