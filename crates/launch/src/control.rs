//! Messages with descriptors over one end of a socket pair.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The most descriptors one message carries.
const MAX_FDS: usize = 8;
/// The largest message; a task with long paths stays far below.
const MAX_MESSAGE: usize = 64 * 1024;

/// A `SOCK_SEQPACKET` socket: each message arrives whole or not at all.
#[derive(Debug)]
pub struct Control(OwnedFd);

/// A message and the descriptors that came with it.
#[derive(Debug)]
pub struct Received<T> {
    pub message: T,
    pub fds: Vec<OwnedFd>,
}

impl Control {
    pub fn pair() -> io::Result<(Self, Self)> {
        let (ours, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        Ok((Self(ours), Self(theirs)))
    }

    pub fn send(&self, message: &impl Serialize, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
        let bytes = serde_json::to_vec(message)?;
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if !fds.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(fds)) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "too many descriptors"));
        }
        sendmsg(&self.0, &[IoSlice::new(&bytes)], &mut ancillary, SendFlags::NOSIGNAL)?;
        Ok(())
    }

    /// Blocks for the next message; `None` when the other side is gone.
    pub fn receive<T: DeserializeOwned>(&self) -> io::Result<Option<Received<T>>> {
        let mut bytes = vec![0; MAX_MESSAGE];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let received = loop {
            let slices = &mut [IoSliceMut::new(&mut bytes)];
            match recvmsg(&self.0, slices, &mut ancillary, RecvFlags::CMSG_CLOEXEC) {
                Err(rustix::io::Errno::INTR) => {}
                other => break other?,
            }
        };
        if received.bytes == 0 {
            return Ok(None);
        }
        let fds = ancillary
            .drain()
            .flat_map(|message| match message {
                RecvAncillaryMessage::ScmRights(fds) => fds.collect(),
                _ => Vec::new(),
            })
            .collect();
        let message = serde_json::from_slice(&bytes[..received.bytes])?;
        Ok(Some(Received { message, fds }))
    }
}

impl From<OwnedFd> for Control {
    fn from(fd: OwnedFd) -> Self {
        Self(fd)
    }
}

impl From<Control> for OwnedFd {
    fn from(control: Control) -> Self {
        control.0
    }
}

impl AsFd for Control {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_arrives_with_its_descriptors() {
        let (ours, theirs) = Control::pair().unwrap();
        let null = std::fs::File::open("/dev/null").unwrap();
        ours.send(&"hello", &[null.as_fd(), null.as_fd()]).unwrap();
        let received: Received<String> = theirs.receive().unwrap().unwrap();
        assert_eq!((received.message.as_str(), received.fds.len()), ("hello", 2));
    }

    #[test]
    fn a_closed_peer_is_the_end_not_an_error() {
        let (ours, theirs) = Control::pair().unwrap();
        drop(ours);
        assert!(theirs.receive::<String>().unwrap().is_none());
    }
}
