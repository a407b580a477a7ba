//! Large contents: cut where their bytes say so, that a change in one place leaves the other parts
//! as they are, and listed in a recipe.

use std::io::Read;

use fastcdc::v2020::StreamCDC;

use crate::code::{Decoder, Encoder, Malformed};
use crate::entry::ContentId;

/// Contents up to here are kept in one piece.
pub(super) const WHOLE: usize = 1 << 20;

const SMALLEST: usize = 128 << 10;
const USUAL: usize = 512 << 10;
const LARGEST: usize = 2 << 20;

pub(super) fn cut<R: Read>(from: R) -> StreamCDC<R> {
    StreamCDC::new(from, SMALLEST, USUAL, LARGEST)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) id: ContentId,
    pub(super) length: u64,
}

pub(super) fn encode(parts: &[Part]) -> Vec<u8> {
    let mut encoder = Encoder::default();
    for part in parts {
        encoder.raw(&part.id.0);
        encoder.number(part.length);
    }
    encoder.finish()
}

pub(super) fn decode(bytes: &[u8]) -> Result<Vec<Part>, Malformed> {
    let mut decoder = Decoder::new(bytes);
    let mut parts = Vec::new();
    while !decoder.is_empty() {
        parts.push(Part { id: ContentId(decoder.array()?), length: decoder.number()? });
    }
    Ok(parts)
}
