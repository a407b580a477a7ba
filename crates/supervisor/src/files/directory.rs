//! Reading directories by descriptor.

use std::ffi::{CStr, CString};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{FileType, Mode, OFlags, RawDir, openat};
use rustix::io::Errno;

/// Holds about 500 entries; the largest entry is below 300 bytes.
const BUFFER: usize = 16 * 1024;

/// Opens the directory `name` in `parent` for reading; a symlink is not followed.
pub(crate) fn open_directory(parent: impl AsFd, name: &CStr) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(parent, name, flags, Mode::empty())
}

/// Calls `each` for every entry but `.` and `..`, in the kernel's order.
pub(crate) fn for_each_name(
    directory: impl AsFd,
    mut each: impl FnMut(&CStr, FileType),
) -> Result<(), Errno> {
    let mut buffer = [MaybeUninit::uninit(); BUFFER];
    let mut entries = RawDir::new(directory, &mut buffer);
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let name = entry.file_name();
        if name != c"." && name != c".." {
            each(name, entry.file_type());
        }
    }
    Ok(())
}

pub(crate) fn names(directory: impl AsFd) -> Result<Vec<CString>, Errno> {
    let mut names = Vec::new();
    for_each_name(directory, |name, _| names.push(name.to_owned()))?;
    Ok(names)
}
