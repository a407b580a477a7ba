use std::io;
use std::os::fd::BorrowedFd;

use rustix::fs::{fgetxattr, fgetxattr_query, flistxattr, flistxattr_query};
use rustix::io::Errno;

use crate::entry::Xattr;

/// What programs and people put on files: their own attributes, access lists, and what a program may
/// do. Others (`security.selinux`, `security.ima`, `trusted.`) are the machine's labels; to set them
/// is its business, and mostly not ours to do.
fn is_recorded(name: &[u8]) -> bool {
    name.starts_with(b"user.")
        || name == b"security.capability"
        || name == b"system.posix_acl_access"
        || name == b"system.posix_acl_default"
}

/// Sorted by name. A filesystem without attributes has none.
pub(super) fn xattrs(file: BorrowedFd<'_>) -> io::Result<Vec<Xattr>> {
    let list = match whole(|| flistxattr_query(file), |buffer| flistxattr(file, buffer)) {
        Ok(list) => list,
        Err(Errno::NOTSUP) => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    };
    let mut found = Vec::new();
    for name in list.split(|byte| *byte == 0).filter(|name| is_recorded(name)) {
        match whole(|| fgetxattr_query(file, name), |buffer| fgetxattr(file, name, buffer)) {
            Ok(value) => found.push(Xattr { name: name.to_vec(), value }),
            // Removed since it was listed.
            Err(Errno::NODATA) => {}
            Err(error) => return Err(error.into()),
        }
    }
    found.sort_unstable_by(|one, other| one.name.cmp(&other.name));
    Ok(found)
}

/// Asks for the size and then for the bytes, until they fit.
fn whole(
    size: impl Fn() -> rustix::io::Result<usize>,
    fill: impl Fn(&mut [u8]) -> rustix::io::Result<usize>,
) -> rustix::io::Result<Vec<u8>> {
    loop {
        let mut buffer = vec![0; size()?];
        if buffer.is_empty() {
            return Ok(buffer);
        }
        match fill(&mut buffer) {
            Ok(length) => {
                buffer.truncate(length);
                return Ok(buffer);
            }
            Err(Errno::RANGE) => {}
            Err(error) => return Err(error),
        }
    }
}
