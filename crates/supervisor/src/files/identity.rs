//! Acting as a user, one thread at a time.
//!
//! The kernel keeps filesystem credentials per thread; only the C library pretends otherwise, by
//! telling every thread about each change. So these are raw system calls: the thread that does a
//! user's file work takes on the user's groups, fsgid and fsuid, and gives them back when the guard
//! is dropped. Leaving fsuid 0 takes the capabilities that override file permissions out of
//! the effective set, which is what keeps a symlink planted by a user from letting root act.

use std::io;
use std::marker::PhantomData;

use nacre_wire::{ApiError, ErrorKind};

use crate::users::User;

/// Reads the current value: never valid, so nothing changes.
const ASK: u32 = u32::MAX;

/// `CAP_{CHOWN, DAC_OVERRIDE, DAC_READ_SEARCH, FOWNER, FSETID, LINUX_IMMUTABLE, MKNOD}`.
const FS_CAPABILITIES: u32 = 1 | 1 << 1 | 1 << 2 | 1 << 3 | 1 << 4 | 1 << 9 | 1 << 27;

#[derive(Debug, Clone, PartialEq, Eq)]
struct Credentials {
    uid: u32,
    gid: u32,
    groups: Vec<u32>,
}

/// While it lives, the current thread touches files as somebody else.
#[derive(Debug)]
#[must_use = "the thread acts as itself again when this is dropped"]
pub struct Acting {
    before: Option<Credentials>,
    // The credentials belong to this thread, so the guard must not leave it.
    thread: PhantomData<*const ()>,
}

/// Takes on `user`'s credentials. Nests: the guard restores what was there before.
pub fn act_as(user: &User) -> Result<Acting, ApiError> {
    let wanted = Credentials { uid: user.uid, gid: user.gid, groups: sorted(&user.groups) };
    take_on(wanted).map_err(|error| {
        ApiError::new(ErrorKind::Permission, format!("cannot act as \"{}\": {error}", user.name))
            .hint("only a supervisor that runs as root can act as another user")
    })
}

fn take_on(wanted: Credentials) -> io::Result<Acting> {
    let before = Credentials::current()?;
    // Acting as oneself needs no change, and must work where none is possible: a sandbox with a
    // single uid may not even set its groups.
    if before.uid == wanted.uid {
        return Ok(Acting { before: None, thread: PhantomData });
    }
    // Built before the change, so that a change that fails halfway is undone too.
    let acting = Acting { before: Some(before), thread: PhantomData };
    wanted.set()?;
    wanted.verify()?;
    Ok(acting)
}

impl Drop for Acting {
    fn drop(&mut self) {
        let Some(before) = self.before.take() else { return };
        if let Err(error) = before.set().and_then(|()| before.verify()) {
            // The thread is left with less power than it had, and whoever acts next sets and
            // verifies again: an error to hear about, not a breach.
            tracing::error!(%error, "file credentials were not restored");
        }
    }
}

impl Credentials {
    fn current() -> io::Result<Self> {
        Ok(Self {
            uid: set_id(libc::SYS_setfsuid, ASK),
            gid: set_id(libc::SYS_setfsgid, ASK),
            groups: groups()?,
        })
    }

    fn set(&self) -> io::Result<()> {
        if groups()? != self.groups {
            set_groups(&self.groups)?;
        }
        set_id(libc::SYS_setfsgid, self.gid);
        set_id(libc::SYS_setfsuid, self.uid);
        Ok(())
    }

    /// setfsuid reports no errors, so the answer is read back.
    fn verify(&self) -> io::Result<()> {
        if Self::current()? != *self {
            return Err(io::Error::from_raw_os_error(libc::EPERM));
        }
        if self.uid != 0 && effective_capabilities()? & FS_CAPABILITIES != 0 {
            return Err(io::Error::other("file capabilities are still in effect"));
        }
        Ok(())
    }
}

fn sorted(groups: &[u32]) -> Vec<u32> {
    let mut groups = groups.to_vec();
    groups.sort_unstable();
    groups.dedup();
    groups
}

fn set_id(call: libc::c_long, id: u32) -> u32 {
    // SAFETY: setfsuid and setfsgid take one integer and touch no memory of ours.
    let previous = unsafe { libc::syscall(call, libc::c_long::from(id)) };
    // The kernel returns the previous id, a u32, widened.
    previous as u32
}

fn groups() -> io::Result<Vec<u32>> {
    let groups = rustix::process::getgroups()?;
    Ok(sorted(&groups.iter().map(|group| group.as_raw()).collect::<Vec<_>>()))
}

fn set_groups(groups: &[u32]) -> io::Result<()> {
    // SAFETY: the pointer and the length describe a live slice of gid_t.
    let result = unsafe { libc::syscall(libc::SYS_setgroups, groups.len(), groups.as_ptr()) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The low 32 capabilities that are in effect on this thread.
fn effective_capabilities() -> io::Result<u32> {
    const VERSION_3: u32 = 0x2008_0522;
    let header: [u32; 2] = [VERSION_3, 0];
    let mut sets = [0u32; 6];
    // SAFETY: capget reads an 8-byte header and, for version 3, writes two 12-byte sets.
    let result = unsafe { libc::syscall(libc::SYS_capget, header.as_ptr(), sets.as_mut_ptr()) };
    if result == 0 { Ok(sets[0]) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn effective_uid() -> u32 {
        rustix::process::geteuid().as_raw()
    }

    fn user(uid: u32, groups: &[u32]) -> User {
        User {
            name: uid.to_string(),
            uid,
            gid: uid,
            groups: groups.to_vec(),
            home: PathBuf::from("/"),
            shell: PathBuf::from("/bin/sh"),
        }
    }

    #[test]
    fn a_guard_changes_this_thread_only_and_gives_back_what_was_there() {
        let before = Credentials::current().unwrap();
        if effective_uid() != 0 {
            assert_eq!(act_as(&user(1, &[])).unwrap_err().kind, ErrorKind::Permission);
            return;
        }
        {
            let _outer = act_as(&user(4242, &[7, 5])).unwrap();
            let outer = Credentials { uid: 4242, gid: 4242, groups: vec![5, 7] };
            assert_eq!(Credentials::current().unwrap(), outer);
            assert_eq!(effective_capabilities().unwrap() & FS_CAPABILITIES, 0);
            let elsewhere = std::thread::spawn(|| set_id(libc::SYS_setfsuid, ASK));
            // A new thread inherits from the one that starts it; an existing one is untouched,
            // which the real uid below stands for.
            assert_eq!(elsewhere.join().unwrap(), 4242);
            assert_eq!(effective_uid(), 0);
            {
                let _inner = act_as(&user(77, &[])).unwrap();
                assert_eq!(Credentials::current().unwrap().uid, 77);
            }
            assert_eq!(Credentials::current().unwrap(), outer);
        }
        assert_eq!(Credentials::current().unwrap(), before);
        assert_ne!(effective_capabilities().unwrap() & FS_CAPABILITIES, 0);
    }
}
