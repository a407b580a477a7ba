//! Reading a regular file so that what is kept is what it held at one moment, or is said to be torn.

use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::thread;

use rustix::fs::{Mode, OFlags, openat};
use rustix::io::Errno;

use super::capture::{Moment, Policy};
use super::lease::{self, Asked};
use super::near::Place;
use super::root::{Root, Stat, stat_at};
use super::xattr::xattrs;
use crate::contents::Keep;
use crate::entry::{Content, ContentId, Xattr};
use crate::error::Result;

/// Files up to this are read into memory.
const SMALL: u64 = 1 << 20;

/// How often a file that changes while it is read is read again.
const ATTEMPTS: u32 = 4;

/// What reading a file gave.
pub(super) struct Reading {
    pub(super) stat: Stat,
    /// Of the bytes that were read.
    pub(super) size: u64,
    pub(super) content: Content,
    pub(super) xattrs: Vec<Xattr>,
    /// Somebody has it open for writing.
    pub(super) writers: bool,
    /// Before the reading began.
    pub(super) moment: Moment,
}

pub(super) enum Outcome {
    Done(Reading),
    /// It is not the regular file any more that it was.
    Swapped,
    Failed(io::Error),
}

/// Where the bytes go, and a buffer used for one file after another.
pub(super) struct Reader<'a> {
    pub(super) root: &'a Root,
    pub(super) contents: &'a dyn Keep,
    pub(super) policy: &'a Policy,
    pub(super) buffer: Vec<u8>,
}

/// One attempt at the bytes of a file.
enum Bytes {
    Read(ContentId, u64),
    TooLarge,
    Failed(io::Error),
}

impl Reader<'_> {
    /// `before` was seen at `place` after `moment`.
    pub(super) fn read(
        &mut self,
        place: Place<'_>,
        before: Stat,
        moment: Moment,
    ) -> Result<Outcome> {
        let file = match open(place) {
            Ok(file) => file,
            Err(Errno::NOENT | Errno::LOOP | Errno::NXIO) => return Ok(Outcome::Swapped),
            Err(error) => return Ok(Outcome::Failed(error.into())),
        };
        let (mut before, mut moment) = (before, moment);
        let mut attempt = 1;
        loop {
            let mut reading = match self.attempt(&file, before, moment)? {
                Attempt::Whole(reading) => return Ok(Outcome::Done(reading)),
                Attempt::Torn(reading) => reading,
                Attempt::Swapped => return Ok(Outcome::Swapped),
                Attempt::Failed(error) => return Ok(Outcome::Failed(error)),
            };
            if attempt == ATTEMPTS {
                reading.content = match reading.content {
                    Content::Kept(id) | Content::Torn(id) => Content::Torn(id),
                    other => other,
                };
                return Ok(Outcome::Done(reading));
            }
            attempt += 1;
            before = reading.stat;
            moment = Moment::now();
            if !self.root.stamps_finely(&before)
                && let Some(wait) = moment.until_settled(&before)
            {
                thread::sleep(wait);
                moment = Moment::now();
            }
        }
    }

    fn attempt(&mut self, file: &OwnedFd, before: Stat, moment: Moment) -> Result<Attempt> {
        let asked = lease::ask(file.as_fd(), before.uid);
        let writers = matches!(asked, Asked::Writers);
        // To hold it while a large file is read would keep writers waiting too long.
        let lease = match asked {
            Asked::Granted(lease) if before.signature.size <= SMALL => Some(lease),
            Asked::Granted(_) | Asked::Writers | Asked::Unknown => None,
        };
        let read = before.signature.size <= self.policy.largest_file;
        if read && lease.is_none() {
            // The kernel stamps a file when a write begins, so `before` may be of one that still
            // goes on. One that begins after this changes the stamp.
            lease::await_writes(file.as_fd());
        }
        if read && writers {
            lease::protect_mapped(file.as_fd());
        }
        let (content, size) = match self.bytes(file, before.signature.size)? {
            Bytes::Read(id, size) => (Content::Kept(id), size),
            Bytes::TooLarge => (Content::TooLarge, before.signature.size),
            Bytes::Failed(error) => return Ok(Attempt::Failed(error)),
        };
        let xattrs = match self.policy.xattrs.then(|| xattrs(file.as_fd())).transpose() {
            Ok(xattrs) => xattrs.unwrap_or_default(),
            Err(error) => return Ok(Attempt::Failed(error)),
        };
        let after = match stat_at(file, c"") {
            Ok(Some(after)) => after,
            Ok(None) => return Ok(Attempt::Swapped),
            Err(error) => return Ok(Attempt::Failed(error)),
        };
        if (after.file_type, after.signature.inode) != (before.file_type, before.signature.inode) {
            return Ok(Attempt::Swapped);
        }
        // Otherwise a change in the tick of the file's last change would not show.
        let sure = lease.is_some() || self.root.stamps_finely(&before) || moment.is_after(&after);
        let whole = sure && after == before && size == after.signature.size;
        let reading = Reading { stat: after, size, content, xattrs, writers, moment };
        Ok(if whole { Attempt::Whole(reading) } else { Attempt::Torn(reading) })
    }

    fn bytes(&mut self, file: &OwnedFd, size: u64) -> Result<Bytes> {
        if size > self.policy.largest_file {
            return Ok(Bytes::TooLarge);
        }
        if size > SMALL {
            return self.stream(file);
        }
        self.buffer.clear();
        // Room for one more byte than there should be.
        let room = size as usize + 1;
        while self.buffer.len() < room {
            self.buffer.reserve(room - self.buffer.len());
            let at = self.buffer.len() as u64;
            match rustix::io::pread(file, rustix::buffer::spare_capacity(&mut self.buffer), at) {
                Ok(0) => break,
                Ok(_) if self.buffer.len() == size as usize => break,
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Ok(Bytes::Failed(error.into())),
            }
        }
        Ok(Bytes::Read(self.contents.keep(&self.buffer)?, self.buffer.len() as u64))
    }

    fn stream(&self, file: &OwnedFd) -> Result<Bytes> {
        let mut source = Source { file, at: 0, largest: self.policy.largest_file, stop: None };
        match (self.contents.keep_stream(&mut source), source.stop) {
            (_, Some(Stop::TooLarge)) => Ok(Bytes::TooLarge),
            (_, Some(Stop::Failed(error))) => Ok(Bytes::Failed(error)),
            (kept, None) => kept.map(|(id, size)| Bytes::Read(id, size)),
        }
    }
}

enum Attempt {
    Whole(Reading),
    Torn(Reading),
    Swapped,
    Failed(io::Error),
}

/// Remembers whether it was the file that failed, and not who takes its bytes.
struct Source<'a> {
    file: &'a OwnedFd,
    at: u64,
    largest: u64,
    stop: Option<Stop>,
}

enum Stop {
    TooLarge,
    Failed(io::Error),
}

impl Read for Source<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let stop = match rustix::io::pread(self.file, &mut *buffer, self.at) {
            Ok(length) => {
                self.at += length as u64;
                if self.at <= self.largest {
                    return Ok(length);
                }
                Stop::TooLarge
            }
            Err(Errno::INTR) => return Err(Errno::INTR.into()),
            Err(error) => Stop::Failed(error.into()),
        };
        self.stop = Some(stop);
        Err(io::Error::other("the file cannot be read to its end"))
    }
}

/// Without touching its access time where that is allowed, and without waiting should it be a pipe by
/// now.
fn open(place: Place<'_>) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    match openat(place.directory, place.name, flags | OFlags::NOATIME, Mode::empty()) {
        Err(Errno::PERM) => openat(place.directory, place.name, flags, Mode::empty()),
        opened => opened,
    }
}
