//! The kernel's side: an inotify instance and the events it holds.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use nacre_wire::{ApiError, ErrorKind};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::io::Errno;

const MASK: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MODIFY)
    .union(WatchFlags::CLOSE_WRITE)
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::ONLYDIR)
    .union(WatchFlags::EXCL_UNLINK);
const BUFFER: usize = 64 * 1024;

#[derive(Debug)]
pub(crate) struct Inotify {
    fd: OwnedFd,
    buffer: Box<[MaybeUninit<u8>]>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RawEvent {
    pub(crate) watch: i32,
    pub(crate) flags: ReadFlags,
    pub(crate) cookie: u32,
    /// Empty when it is about the watched directory itself.
    pub(crate) name: Box<[u8]>,
}

impl Inotify {
    pub(crate) fn new() -> Result<Self, ApiError> {
        let fd = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).map_err(|error| {
            let message = format!("cannot watch for changes: {error}");
            ApiError::new(ErrorKind::Unavailable, message)
                .hint("raise the sysctl fs.inotify.max_user_instances on the host")
        })?;
        Ok(Self { fd, buffer: vec![MaybeUninit::uninit(); BUFFER].into_boxed_slice() })
    }

    /// The same instance, to ask how much it holds.
    pub(crate) fn share(&self) -> std::io::Result<OwnedFd> {
        self.fd.try_clone()
    }

    /// Watches an open directory. By descriptor: a path could have become another directory.
    pub(crate) fn add(&self, directory: &OwnedFd) -> Result<i32, Errno> {
        let path = format!("/proc/self/fd/{}", directory.as_raw_fd());
        inotify::add_watch(&self.fd, path, MASK)
    }

    /// Watches an open directory for removals only, on top of what is watched there already.
    pub(crate) fn add_removals(&self, directory: &OwnedFd) -> Result<i32, Errno> {
        let path = format!("/proc/self/fd/{}", directory.as_raw_fd());
        let mask = WatchFlags::DELETE | WatchFlags::ONLYDIR | WatchFlags::MASK_ADD;
        inotify::add_watch(&self.fd, path, mask)
    }

    pub(crate) fn remove(&self, watch: i32) {
        // Fails when the directory is gone, and its watch with it.
        let _ = inotify::remove_watch(&self.fd, watch);
    }

    /// Adds all that the kernel holds to `events`, up to about `limit` of them.
    pub(crate) fn read(&mut self, events: &mut Vec<RawEvent>, limit: usize) -> Result<(), Errno> {
        let mut reader = inotify::Reader::new(&self.fd, &mut self.buffer);
        while events.len() < limit || !reader.is_buffer_empty() {
            match reader.next() {
                Ok(event) => events.push(RawEvent {
                    watch: event.wd(),
                    flags: event.events(),
                    cookie: event.cookie(),
                    name: event.file_name().map_or(&[][..], |name| name.to_bytes()).into(),
                }),
                Err(Errno::WOULDBLOCK) => break,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Waits for events, for `other` to become readable, or for the time to pass.
    pub(crate) fn wait(&self, other: &OwnedFd, timeout: Option<Timespec>) -> Result<(), Errno> {
        wait_for(&[self.fd.as_fd(), other.as_fd()], timeout)
    }

    pub(crate) fn wait_alone(&self, timeout: Timespec) -> Result<(), Errno> {
        wait_for(&[self.fd.as_fd()], Some(timeout))
    }
}

pub(crate) fn wait_for(
    fds: &[std::os::fd::BorrowedFd<'_>],
    timeout: Option<Timespec>,
) -> Result<(), Errno> {
    let mut fds: Vec<_> =
        fds.iter().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect();
    match poll(&mut fds, timeout.as_ref()) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error),
    }
}
