//! One compressed block of a pack: a header, then zstd data that holds contents one after another.
//!
//! ```text
//! magic and version  4   "NCF" 1
//! stored length      4   little-endian, of the zstd data
//! raw length         4   little-endian, of what it decompresses to
//! checksum          16   of both lengths and the zstd data
//! ```

use std::io;

use zstd::bulk::Compressor;

use super::index::Place;
use crate::entry::ContentId;
use crate::error::{Context, Result};

pub(super) const HEADER: usize = 28;
const MAGIC: [u8; 4] = *b"NCF\x01";

/// No frame holds more, so no header makes a reader allocate more.
pub(super) const MAX_RAW: usize = 4 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) stored: usize,
    pub(super) raw: usize,
    checksum: [u8; 16],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Bad {
    #[error("no frame begins here")]
    Magic,
    #[error("the frame's lengths cannot be")]
    Lengths,
    #[error("the frame's checksum is wrong")]
    Checksum,
    #[error("the frame cannot be decompressed")]
    Zstd,
    #[error("the pack ends too early")]
    Short,
    #[error("the pack is gone")]
    Gone,
    #[error("the content lies outside its frame")]
    Outside,
    #[error("the content is not what was kept")]
    Content,
}

impl Header {
    pub(super) fn parse(bytes: &[u8; HEADER]) -> Result<Self, Bad> {
        let number = |at: usize| {
            let mut four = [0; 4];
            four.copy_from_slice(&bytes[at..at + 4]);
            u32::from_le_bytes(four) as usize
        };
        if bytes[..4] != MAGIC {
            return Err(Bad::Magic);
        }
        let mut checksum = [0; 16];
        checksum.copy_from_slice(&bytes[12..]);
        let header = Self { stored: number(4), raw: number(8), checksum };
        if header.raw > MAX_RAW || header.stored > zstd::zstd_safe::compress_bound(MAX_RAW) {
            return Err(Bad::Lengths);
        }
        Ok(header)
    }

    pub(super) fn check(&self, stored: &[u8]) -> Result<(), Bad> {
        match checksum(stored, self.raw) == self.checksum {
            true => Ok(()),
            false => Err(Bad::Checksum),
        }
    }
}

fn checksum(stored: &[u8], raw: usize) -> [u8; 16] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&lengths(stored.len(), raw));
    hasher.update(stored);
    let mut first = [0; 16];
    first.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
    first
}

fn lengths(stored: usize, raw: usize) -> [u8; 8] {
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&(stored as u32).to_le_bytes());
    bytes[4..].copy_from_slice(&(raw as u32).to_le_bytes());
    bytes
}

/// How hard to press, and how much goes in one frame.
#[derive(Debug, Clone, Copy)]
pub(super) struct Effort {
    pub(super) level: i32,
    pub(super) target: usize,
}

/// Contents gathered for one frame.
pub(super) struct Builder {
    effort: Effort,
    raw: Vec<u8>,
    contents: Vec<(ContentId, u32, u32)>,
    compressor: Compressor<'static>,
    frame: Vec<u8>,
}

impl Builder {
    pub(super) fn new(effort: Effort) -> Result<Self> {
        let compressor = Compressor::new(effort.level).context(|| "compress".into())?;
        let (raw, frame) = (Vec::new(), Vec::new());
        Ok(Self { effort, raw, contents: Vec::new(), compressor, frame })
    }

    pub(super) fn has_room_for(&self, length: usize) -> bool {
        self.raw.is_empty() || self.raw.len() + length <= self.effort.target
    }

    pub(super) fn push(&mut self, id: ContentId, content: &[u8]) {
        self.contents.push((id, self.raw.len() as u32, content.len() as u32));
        self.raw.extend_from_slice(content);
    }

    /// Takes over what another holds, if it fits.
    pub(super) fn absorb(&mut self, other: &mut Self) -> bool {
        if !self.has_room_for(other.raw.len()) {
            return false;
        }
        let base = self.raw.len() as u32;
        self.raw.append(&mut other.raw);
        let moved = other.contents.drain(..).map(|(id, start, length)| (id, base + start, length));
        self.contents.extend(moved);
        true
    }

    pub(super) fn is_full(&self) -> bool {
        self.raw.len() >= self.effort.target
    }

    pub(super) fn is_empty(&self) -> bool {
        self.contents.is_empty()
    }

    pub(super) fn raw(&self) -> u64 {
        self.raw.len() as u64
    }

    /// The frame's bytes, to be written in one go.
    pub(super) fn compress(&mut self) -> Result<&[u8]> {
        self.frame.clear();
        self.frame.resize(HEADER, 0);
        self.frame.reserve(zstd::zstd_safe::compress_bound(self.raw.len()));
        let mut body = io::Cursor::new(&mut self.frame);
        body.set_position(HEADER as u64);
        self.compressor.compress_to_buffer(&self.raw, &mut body).context(|| "compress".into())?;
        let (head, stored) = self.frame.split_at_mut(HEADER);
        head[..4].copy_from_slice(&MAGIC);
        head[4..12].copy_from_slice(&lengths(stored.len(), self.raw.len()));
        head[12..].copy_from_slice(&checksum(stored, self.raw.len()));
        Ok(&self.frame)
    }

    /// Says where each content lies, and starts over.
    pub(super) fn settle(&mut self, pack: u32, frame: u64, to: &mut Vec<(ContentId, Place)>) {
        let places = self
            .contents
            .drain(..)
            .map(|(id, start, length)| (id, Place { pack, frame, start, length }));
        to.extend(places);
        self.raw.clear();
    }
}
