//! System errors as typed errors that name their path.

use std::io;
use std::path::Path;

use nacre_wire::{ApiError, ErrorKind};
use rustix::io::Errno;

/// `map_err(at(path))`
pub(crate) fn at(path: &Path) -> impl Fn(Errno) -> ApiError + '_ {
    move |errno| match errno {
        Errno::LOOP => invalid(path, "too many symlinks, or one that may not be followed"),
        Errno::NAMETOOLONG => invalid(path, "the path is too long"),
        Errno::XDEV => invalid(path, "the path leads outside"),
        Errno::NXIO | Errno::NODEV => {
            ApiError::new(ErrorKind::InvalidRequest, format!("{}: not a file", path.display()))
        }
        _ => ApiError::io(path.display(), &io::Error::from(errno)),
    }
}

pub(crate) fn at_io(path: &Path) -> impl Fn(io::Error) -> ApiError + '_ {
    move |error| match Errno::from_io_error(&error) {
        Some(errno) => at(path)(errno),
        None => ApiError::io(path.display(), &error),
    }
}

pub(crate) fn invalid(path: &Path, why: &str) -> ApiError {
    let shown = path.display().to_string();
    // A path can be as long as the request; the message need not be.
    let shown = if shown.chars().count() > 256 {
        shown.chars().take(256).chain("...".chars()).collect()
    } else {
        shown
    };
    ApiError::new(ErrorKind::InvalidPath, format!("{shown}: {why}"))
}

pub(crate) fn bad_request(message: impl Into<String>) -> ApiError {
    ApiError::new(ErrorKind::InvalidRequest, message)
}
