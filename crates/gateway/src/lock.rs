//! One gateway per data directory, for as long as the file is locked.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

pub const LOCK_FILE: &str = "nacre.lock";
/// Where the CLI reaches the gateway of a data directory.
pub const SOCKET_FILE: &str = "nacre.sock";

/// Held until dropped. The kernel lets go when the process dies, however it dies.
#[derive(Debug)]
pub(crate) struct DataLock(#[expect(dead_code, reason = "the open file is the lock")] File);

#[derive(Debug, thiserror::Error)]
pub(crate) enum LockError {
    /// The pid is absent when the holder has not written it yet.
    #[error("taken by process {0:?}")]
    Taken(Option<u32>),
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

impl DataLock {
    pub(crate) fn take(data_dir: &Path) -> Result<Self, LockError> {
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(data_dir.join(LOCK_FILE))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Err(LockError::Taken(read_pid(&mut file))),
            Err(errno) => return Err(LockError::Io(errno.into())),
        }
        file.set_len(0)?;
        file.seek(SeekFrom::Start(0))?;
        writeln!(file, "{}", std::process::id())?;
        Ok(Self(file))
    }
}

fn read_pid(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_one_learns_who_holds_it_and_a_drop_frees_it() {
        let dir = tempfile::tempdir().unwrap();
        let first = DataLock::take(dir.path()).unwrap();
        match DataLock::take(dir.path()) {
            Err(LockError::Taken(pid)) => assert_eq!(pid, Some(std::process::id())),
            other => panic!("expected it to be taken, got {other:?}"),
        }
        drop(first);
        DataLock::take(dir.path()).unwrap();
    }
}
