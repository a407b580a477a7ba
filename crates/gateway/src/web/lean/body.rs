//! Where the body of an answer ends, and how it is passed on. Pure.

use super::chunks::{Bad, Chunks};

pub(super) enum Body {
    /// So many bytes are still to come.
    Sized(u64),
    Chunked(Chunks),
}

/// What was made of some bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Taken {
    /// How many belong to the body and its frame.
    pub(super) used: usize,
    /// How many are the body itself.
    pub(super) data: usize,
}

impl Body {
    pub(super) fn none() -> Self {
        Self::Sized(0)
    }

    pub(super) fn sized(length: u64) -> Self {
        Self::Sized(length)
    }

    pub(super) fn chunked() -> Self {
        Self::Chunked(Chunks::default())
    }

    pub(super) fn is_over(&self) -> bool {
        match self {
            Self::Sized(left) => *left == 0,
            Self::Chunked(chunks) => chunks.is_over(),
        }
    }

    /// What is known to be longer, or of no known length.
    pub(super) fn may_exceed(&self, size: u64) -> bool {
        match self {
            Self::Sized(left) => *left > size,
            Self::Chunked(_) => true,
        }
    }

    pub(super) fn is_chunked(&self) -> bool {
        matches!(self, Self::Chunked(_))
    }

    /// Appends to `out` what the client gets for `bytes`.
    pub(super) fn pass(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<Taken, Bad> {
        match self {
            Self::Sized(left) => {
                let taken = take(left, bytes.len());
                out.extend_from_slice(&bytes[..taken.used]);
                Ok(taken)
            }
            Self::Chunked(chunks) => chunks.pass(bytes, out),
        }
    }
}

/// Of `size` bytes, those that belong to a body with so many to come.
pub(super) fn take(left: &mut u64, size: usize) -> Taken {
    let size = usize::try_from(*left).unwrap_or(usize::MAX).min(size);
    *left -= size as u64;
    Taken { used: size, data: size }
}
