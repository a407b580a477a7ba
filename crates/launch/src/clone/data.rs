//! The contents of one file: shared where the filesystem can, copied without its holes where not.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use rustix::fs::{SeekFrom, Stat, copy_file_range, ftruncate, ioctl_ficlone, seek};
use rustix::io::Errno;

/// Asked for at once; the kernel may do less.
const STEP: usize = 1 << 30;
/// Not in the libc crate for this target.
const F_SETSIG: libc::c_int = 10;

/// Makes `to` share everything with `from`. `None` when this filesystem does not.
pub(super) fn share(from: BorrowedFd<'_>, to: BorrowedFd<'_>) -> io::Result<Option<()>> {
    match ioctl_ficlone(to, from) {
        Ok(()) => Ok(Some(())),
        Err(Errno::OPNOTSUPP | Errno::NOTTY | Errno::XDEV | Errno::INVAL | Errno::NOSYS) => {
            Ok(None)
        }
        // Some filesystems that could refuse this one file, such as one in use as swap.
        Err(Errno::PERM | Errno::TXTBSY) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

pub(super) fn copy(from: BorrowedFd<'_>, to: BorrowedFd<'_>, stat: &Stat) -> io::Result<()> {
    let sparse = stat.st_blocks.saturating_mul(512) < stat.st_size;
    if !sparse {
        return copy_range(from, to, 0, u64::MAX);
    }
    let mut at = 0;
    loop {
        let start = match seek(from, SeekFrom::Data(at)) {
            Ok(start) => start,
            // Nothing but a hole to the end.
            Err(Errno::NXIO) => break,
            Err(Errno::INVAL) => return copy_range(from, to, 0, u64::MAX),
            Err(error) => return Err(error.into()),
        };
        let end = seek(from, SeekFrom::Hole(start))?;
        copy_range(from, to, start, end)?;
        at = end;
    }
    Ok(ftruncate(to, stat.st_size.max(0).unsigned_abs())?)
}

fn copy_range(from: BorrowedFd<'_>, to: BorrowedFd<'_>, start: u64, end: u64) -> io::Result<()> {
    let (mut read_at, mut write_at) = (start, start);
    while read_at < end {
        let wanted = usize::try_from(end - read_at).unwrap_or(STEP).min(STEP);
        match copy_file_range(from, Some(&mut read_at), to, Some(&mut write_at), wanted) {
            // A file that has become shorter ends earlier.
            Ok(0) => return Ok(()),
            Ok(_) => {}
            Err(Errno::INTR) => {}
            Err(Errno::XDEV | Errno::NOSYS | Errno::OPNOTSUPP | Errno::INVAL) => {
                return by_hand(from, to, read_at, end);
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn by_hand(from: BorrowedFd<'_>, to: BorrowedFd<'_>, start: u64, end: u64) -> io::Result<()> {
    let mut buffer = vec![0; 256 * 1024];
    let mut at = start;
    while at < end {
        let wanted = usize::try_from(end - at).unwrap_or(buffer.len()).min(buffer.len());
        let count = rustix::io::pread(from, &mut buffer[..wanted], at)?;
        if count == 0 {
            return Ok(());
        }
        let mut written = 0;
        while written < count {
            written += rustix::io::pwrite(to, &buffer[written..count], at + written as u64)?;
        }
        at += count as u64;
    }
    Ok(())
}

/// Whether somebody may have the file open for writing. A lease is granted only when nobody has.
pub(super) fn may_have_writers(file: impl AsFd, owner: u32) -> bool {
    let file = file.as_fd();
    // Who opens it meanwhile makes the kernel send a signal, and SIGIO would end the process.
    if fcntl(file, F_SETSIG, libc::SIGURG).is_err() {
        return true;
    }
    let ask = || fcntl(file, libc::F_SETLEASE, libc::F_RDLCK);
    let asked = match ask() {
        // In a user namespace only the owner may; capabilities do not count.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => as_user(owner, ask),
        other => other,
    };
    let granted = asked.is_ok();
    if granted {
        let _ = fcntl(file, libc::F_SETLEASE, libc::F_UNLCK);
    }
    !granted
}

fn as_user<T>(owner: u32, act: impl FnOnce() -> T) -> T {
    // SAFETY: changes only how the kernel judges this thread's access to files.
    let before = unsafe { libc::setfsuid(owner) };
    let done = act();
    // SAFETY: as above.
    unsafe { libc::setfsuid(before.cast_unsigned()) };
    done
}

fn fcntl(file: BorrowedFd<'_>, command: libc::c_int, argument: libc::c_int) -> io::Result<()> {
    // SAFETY: these commands take a number, and the file is open.
    match unsafe { libc::fcntl(file.as_raw_fd(), command, argument) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}
