//! The files of the store.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, Mutex};

use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags, mkdirat, openat, unlinkat};
use rustix::io::Errno;
use zstd::bulk::Decompressor;

use super::frame::{Bad, HEADER, Header};
use super::lock;
use crate::error::{Context, Error, Result};

/// Files held open for reading. A large store has more packs than a process may have files.
const OPEN: usize = 64;

pub(super) struct Packs {
    directory: OwnedFd,
    open: Mutex<HashMap<u32, Arc<File>>>,
    decompressors: Mutex<Vec<Decompressor<'static>>>,
}

/// A name in the directory, with its number if it is that of a pack.
pub(super) struct Listed {
    pub(super) name: Vec<u8>,
    pub(super) number: Option<u32>,
}

/// Why a frame cannot be had: the bytes are wrong, or the system refuses.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReadError {
    #[error(transparent)]
    Bad(#[from] Bad),
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl ReadError {
    pub(super) fn at(self, pack: u32, offset: u64) -> Error {
        let place = format!("pack {pack} at {offset}");
        match self {
            Self::Bad(bad) => Error::damaged(format!("{place}: {bad}")),
            Self::Io(source) => Error::Io { context: format!("read {place}"), source },
        }
    }
}

fn name(number: u32) -> String {
    format!("{number:08}.pack")
}

impl Packs {
    /// Makes the directory when it is not there.
    pub(super) fn open(store: &Path) -> Result<Self> {
        let describe = || format!("open {}", store.join("packs").display());
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
        let parent = openat(CWD, store, flags, Mode::empty()).context(describe)?;
        match mkdirat(&parent, "packs", Mode::RWXU) {
            Ok(()) => rustix::fs::fsync(&parent).context(describe)?,
            Err(Errno::EXIST) => {}
            Err(error) => return Err(error).context(describe),
        }
        let flags = flags | OFlags::NOFOLLOW;
        let directory = openat(&parent, "packs", flags, Mode::empty()).context(describe)?;
        Ok(Self { directory, open: Mutex::default(), decompressors: Mutex::default() })
    }

    pub(super) fn list(&self) -> Result<Vec<Listed>> {
        let describe = || "list packs".to_owned();
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.directory).context(describe)? {
            let entry = entry.context(describe)?;
            let bytes = entry.file_name().to_bytes();
            if bytes == b"." || bytes == b".." {
                continue;
            }
            let number = std::str::from_utf8(bytes)
                .ok()
                .and_then(|text| text.strip_suffix(".pack"))
                .and_then(|digits| digits.parse().ok())
                .filter(|number| name(*number).as_bytes() == bytes);
            names.push(Listed { name: bytes.to_vec(), number });
        }
        Ok(names)
    }

    pub(super) fn create(&self, number: u32) -> Result<File> {
        let flags = OFlags::CREATE | OFlags::TRUNC;
        self.file(number, flags).context(|| format!("create pack {number}"))
    }

    pub(super) fn writable(&self, number: u32) -> io::Result<File> {
        self.file(number, OFlags::empty())
    }

    fn file(&self, number: u32, flags: OFlags) -> io::Result<File> {
        let flags = flags | OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let mode = Mode::RUSR | Mode::WUSR;
        Ok(openat(&self.directory, name(number), flags, mode)?.into())
    }

    /// Gives back the space after the end of a pack.
    pub(super) fn cut(&self, number: u32, length: u64) -> Result<()> {
        let describe = || format!("cut pack {number}");
        let file = self.writable(number).context(describe)?;
        if file.metadata().context(describe)?.len() > length {
            file.set_len(length).context(describe)?;
        }
        Ok(())
    }

    /// To be synced when a pack was made.
    pub(super) fn directory(&self) -> Result<OwnedFd> {
        self.directory.try_clone().context(|| "sync packs".into())
    }

    /// The space comes back at once, whoever held it open here.
    pub(super) fn remove(&self, number: u32) -> Result<()> {
        lock(&self.open).remove(&number);
        self.remove_name(name(number).as_bytes())
    }

    pub(super) fn remove_name(&self, name: &[u8]) -> Result<()> {
        match unlinkat(self.directory.as_fd(), name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => {
                Err(error).context(|| format!("remove {}", String::from_utf8_lossy(name)))
            }
        }
    }

    fn readable(&self, number: u32) -> Result<Arc<File>, ReadError> {
        if let Some(file) = lock(&self.open).get(&number) {
            return Ok(Arc::clone(file));
        }
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let file = match openat(&self.directory, name(number), flags, Mode::empty()) {
            Ok(file) => Arc::new(File::from(file)),
            Err(Errno::NOENT) => return Err(Bad::Gone.into()),
            Err(error) => return Err(ReadError::Io(error.into())),
        };
        let mut open = lock(&self.open);
        if open.len() >= OPEN {
            open.clear();
        }
        open.insert(number, Arc::clone(&file));
        Ok(file)
    }

    /// The contents of one frame, checked against its header.
    pub(super) fn read(&self, number: u32, offset: u64) -> Result<Vec<u8>, ReadError> {
        let file = self.readable(number)?;
        let mut head = [0; HEADER];
        read_at(&file, &mut head, offset)?;
        let header = Header::parse(&head)?;
        let body = offset.checked_add(HEADER as u64).ok_or(Bad::Lengths)?;
        let mut stored = vec![0; header.stored];
        read_at(&file, &mut stored, body)?;
        header.check(&stored)?;
        let mut raw = Vec::with_capacity(header.raw);
        let taken = lock(&self.decompressors).pop();
        let mut decompressor = match taken {
            Some(decompressor) => decompressor,
            None => Decompressor::new()?,
        };
        let done = decompressor.decompress_to_buffer(&stored, &mut raw);
        lock(&self.decompressors).push(decompressor);
        match done {
            Ok(length) if length == header.raw => Ok(raw),
            Ok(_) | Err(_) => Err(Bad::Zstd.into()),
        }
    }
}

fn read_at(file: &File, bytes: &mut [u8], offset: u64) -> Result<(), ReadError> {
    // Past what a file can be, the kernel says EINVAL: the offset came from a damaged record.
    let end = offset.checked_add(bytes.len() as u64);
    if end.is_none_or(|end| end > i64::MAX as u64) {
        return Err(Bad::Short.into());
    }
    file.read_exact_at(bytes, offset).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => Bad::Short.into(),
        _ => ReadError::Io(error),
    })
}
