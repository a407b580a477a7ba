//! Reading a tar stream with bounded memory.
//!
//! The headers are parsed by the `tar` crate; the walk is ours because that crate reads a long
//! name of any size into memory, and what arrives here is not to be trusted.

use std::io::{self, Read};

use bytes::Bytes;
use tar::{EntryType, Header};

use super::upload::BatchReader;

const BLOCK: u64 = 512;
/// No path is longer than 4 KiB; extended headers hold a few of them and some attributes.
const LARGEST_EXTENSION: u64 = 256 * 1024;

#[derive(Debug)]
pub(crate) struct TarReader {
    input: BatchReader,
    /// Content of the current entry that was not read yet.
    remaining: u64,
    padding: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TarEntry {
    pub kind: EntryType,
    pub path: Vec<u8>,
    pub link: Option<Vec<u8>>,
    pub mode: u32,
    /// Seconds since 1970.
    pub modified: i64,
}

/// What the entries before an entry say about it.
#[derive(Debug, Default)]
struct Extensions {
    path: Option<Vec<u8>>,
    link: Option<Vec<u8>>,
    size: Option<u64>,
    modified: Option<i64>,
}

impl TarReader {
    pub(crate) fn new(input: BatchReader) -> Self {
        Self { input, remaining: 0, padding: 0 }
    }

    pub(crate) fn next_entry(&mut self) -> io::Result<Option<TarEntry>> {
        let mut extensions = Extensions::default();
        while let Some(header) = self.header()? {
            match header.entry_type() {
                EntryType::GNULongName => extensions.path = Some(self.name()?),
                EntryType::GNULongLink => extensions.link = Some(self.name()?),
                EntryType::XHeader => extensions.read_pax(&self.extension()?)?,
                EntryType::XGlobalHeader => {}
                _ => return self.entry(&header, extensions).map(Some),
            }
        }
        Ok(None)
    }

    /// The next piece of the current entry's content, already consumed.
    pub(crate) fn content(&mut self) -> io::Result<Option<Bytes>> {
        if self.remaining == 0 {
            return Ok(None);
        }
        let piece = self.input.peek();
        if piece.is_empty() {
            return Err(truncated());
        }
        let length = piece.len().min(usize::try_from(self.remaining).unwrap_or(usize::MAX));
        let piece = piece.slice(..length);
        self.input.consume(length);
        self.remaining -= length as u64;
        Ok(Some(piece))
    }

    fn entry(&mut self, header: &Header, extensions: Extensions) -> io::Result<TarEntry> {
        if let Some(size) = extensions.size {
            self.expect(size);
        }
        let path = extensions.path.unwrap_or_else(|| header.path_bytes().into_owned());
        let link =
            extensions.link.or_else(|| header.link_name_bytes().map(std::borrow::Cow::into_owned));
        let kind = match header.entry_type() {
            // How archives older than the directory type mark one.
            EntryType::Regular if path.ends_with(b"/") => EntryType::Directory,
            kind => kind,
        };
        let modified = match extensions.modified {
            Some(modified) => modified,
            None => i64::try_from(header.mtime().map_err(|_| bad_field())?).unwrap_or(i64::MAX),
        };
        let mode = header.mode().map_err(|_| bad_field())?;
        Ok(TarEntry { kind, path, link, mode, modified })
    }

    fn expect(&mut self, size: u64) {
        self.remaining = size;
        self.padding = (BLOCK - size % BLOCK) % BLOCK;
    }

    /// Skips what is left of the last entry and reads a header; `None` at the end.
    fn header(&mut self) -> io::Result<Option<Header>> {
        while self.content()?.is_some() {}
        self.remaining = std::mem::take(&mut self.padding);
        while self.content()?.is_some() {}
        let mut header = Header::new_old();
        let block = header.as_mut_bytes();
        if self.input.peek().is_empty() {
            return Ok(None);
        }
        self.input.read_exact(block).map_err(|_| truncated())?;
        if block.iter().all(|byte| *byte == 0) {
            return Ok(None);
        }
        let sum = block.iter().enumerate().fold(0u32, |sum, (position, byte)| {
            sum + u32::from(if (148..156).contains(&position) { b' ' } else { *byte })
        });
        if header.cksum().ok() != Some(sum) {
            return Err(malformed("a header has a wrong checksum: this is not a tar archive"));
        }
        self.expect(header.entry_size().map_err(|_| bad_field())?);
        Ok(Some(header))
    }

    fn extension(&mut self) -> io::Result<Vec<u8>> {
        if self.remaining > LARGEST_EXTENSION {
            return Err(malformed("an extended header is too long"));
        }
        let mut bytes = Vec::with_capacity(self.remaining as usize);
        while let Some(piece) = self.content()? {
            bytes.extend_from_slice(&piece);
        }
        Ok(bytes)
    }

    fn name(&mut self) -> io::Result<Vec<u8>> {
        let mut name = self.extension()?;
        if name.last() == Some(&0) {
            name.pop();
        }
        Ok(name)
    }
}

impl Extensions {
    fn read_pax(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut rest = bytes;
        while let Some((key, value)) = pax_record(&mut rest)? {
            let text = || std::str::from_utf8(value).unwrap_or_default();
            match key {
                b"path" => self.path = Some(value.to_vec()),
                b"linkpath" => self.link = Some(value.to_vec()),
                b"size" => self.size = Some(text().parse().map_err(|_| bad_field())?),
                b"mtime" => self.modified = seconds(text()),
                _ => {}
            }
        }
        Ok(())
    }
}

/// Takes one `LENGTH KEY=VALUE\n` off the front. The length rules: a value may hold newlines.
fn pax_record<'a>(rest: &mut &'a [u8]) -> io::Result<Option<(&'a [u8], &'a [u8])>> {
    // Some writers pad with zeros.
    if rest.first().is_none_or(|first| *first == 0) {
        return Ok(None);
    }
    let parse = |rest: &&'a [u8]| {
        let space = rest.iter().position(|byte| *byte == b' ')?;
        let length: usize = std::str::from_utf8(&rest[..space]).ok()?.parse().ok()?;
        let record = rest.get(space + 1..length)?.strip_suffix(b"\n")?;
        let equals = record.iter().position(|byte| *byte == b'=')?;
        Some((length, &record[..equals], &record[equals + 1..]))
    };
    let (length, key, value) = parse(rest).ok_or_else(bad_field)?;
    *rest = &rest[length..];
    Ok(Some((key, value)))
}

/// Whole seconds of a decimal fraction.
fn seconds(text: &str) -> Option<i64> {
    text.split('.').next()?.parse().ok()
}

fn bad_field() -> io::Error {
    malformed("a header of the archive is malformed")
}

fn truncated() -> io::Error {
    malformed("the archive ends too early")
}

fn malformed(why: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_record_is_as_long_as_it_says() {
        let mut rest: &[u8] = b"13 path=a\nb\n\n20 linkpath=xyz=abc\n\0\0";
        assert_eq!(pax_record(&mut rest).unwrap(), Some((&b"path"[..], &b"a\nb\n"[..])));
        assert_eq!(pax_record(&mut rest).unwrap(), Some((&b"linkpath"[..], &b"xyz=abc"[..])));
        assert_eq!(pax_record(&mut rest).unwrap(), None);
        for bad in [&b"5"[..], b"99 a=b\n", b"6 a=bc\n", b"5 ab\n", b"x a=b\n", b"1 a=b\n"] {
            assert!(pax_record(&mut &bad[..]).is_err(), "{bad:?}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..4096)) {
            let (sender, receiver) = tokio::sync::mpsc::channel(1);
            sender.try_send(vec![Bytes::from(bytes)]).unwrap();
            drop(sender);
            let mut archive = TarReader::new(BatchReader::new(receiver));
            while let Ok(Some(_)) = archive.next_entry() {}
        }
    }
}
