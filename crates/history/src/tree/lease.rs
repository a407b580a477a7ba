use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use rustix::fs::OFlags;

use super::Root;
use crate::path::TreePath;

/// Not in the libc crate for this target.
const F_SETSIG: libc::c_int = 10;

/// While it is held nobody opens the file for writing or truncates it: who tries waits. So what is
/// read meanwhile is exactly what the file held at one moment, whatever the clock's ticks hide.
#[derive(Debug)]
pub(super) struct Lease<'a>(BorrowedFd<'a>);

#[derive(Debug)]
pub(super) enum Asked<'a> {
    Granted(Lease<'a>),
    /// Somebody has it open for writing, or mapped so.
    Writers,
    /// The filesystem has no leases, or the file is another user's: nothing is known.
    Unknown,
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        // Closing the file would do, unless a child that was just forked has it open too.
        let _ = fcntl(self.0, libc::F_SETLEASE, libc::F_UNLCK);
    }
}

/// Asks for a lease on a file that is open for reading only. `owner` is the file's.
pub(super) fn ask(file: BorrowedFd<'_>, owner: u32) -> Asked<'_> {
    // Who wants to write makes the kernel send a signal, and SIGIO would end the process. SIGURG is
    // ignored by default.
    if fcntl(file, F_SETSIG, libc::SIGURG).is_err() {
        return Asked::Unknown;
    }
    let mut asked = fcntl(file, libc::F_SETLEASE, libc::F_RDLCK);
    if refused(&asked) && rustix::process::geteuid().is_root() {
        asked = as_user(owner, || fcntl(file, libc::F_SETLEASE, libc::F_RDLCK));
    }
    match asked {
        Ok(()) => Asked::Granted(Lease(file)),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Asked::Writers,
        Err(_) => Asked::Unknown,
    }
}

/// Whether somebody has a file open for writing, as far as can be told.
pub(crate) fn has_writers(root: &Root, path: &TreePath) -> bool {
    let opened = root.open_at(path, OFlags::RDONLY | OFlags::NONBLOCK);
    let Ok(Some(file)) = opened else { return false };
    let Ok(stat) = rustix::fs::fstat(&file) else { return false };
    matches!(ask(file.as_fd(), stat.st_uid), Asked::Writers)
}

fn refused(asked: &io::Result<()>) -> bool {
    asked.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
}

/// Does something on the files of `owner` as if we were them, where capabilities do not count.
fn as_user<T>(owner: u32, act: impl FnOnce() -> T) -> T {
    // SAFETY: changes only how the kernel judges this thread's access to files.
    let before = unsafe { libc::setfsuid(owner) };
    let done = act();
    // SAFETY: as above.
    unsafe { libc::setfsuid(before.cast_unsigned()) };
    done
}

fn fcntl(file: impl AsFd, command: libc::c_int, argument: libc::c_int) -> io::Result<()> {
    let file = file.as_fd().as_raw_fd();
    // SAFETY: these commands take a number, and the file is open.
    match unsafe { libc::fcntl(file, command, argument) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Waits for the writes that have begun to end: the kernel looks for data under the lock that they
/// hold. Where it does not (xfs), reading waits for them.
pub(super) fn await_writes(file: BorrowedFd<'_>) {
    let _ = rustix::fs::seek(file, rustix::fs::SeekFrom::Data(0));
}

/// Writes the file's pages out, and so protects those that are mapped: the next store through a
/// mapping changes the file's ctime (see [`Root::mapped_writes_show`](super::Root)). Not for
/// durability, so an error is none of ours.
pub(super) fn protect_mapped(file: BorrowedFd<'_>) {
    let flags = libc::SYNC_FILE_RANGE_WAIT_BEFORE
        | libc::SYNC_FILE_RANGE_WRITE
        | libc::SYNC_FILE_RANGE_WAIT_AFTER;
    // SAFETY: takes numbers, and the file is open. A length of zero is up to its end.
    unsafe { libc::sync_file_range(file.as_raw_fd(), 0, 0, flags) };
}
