//! What is recorded of one name in the tree.

use std::fmt;
use std::str::FromStr;

use crate::code::{Decoder, Encoder, Malformed};

/// The BLAKE3 of a file's bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContentId(pub [u8; 32]);

impl ContentId {
    pub fn of(bytes: &[u8]) -> Self {
        Self(*blake3::hash(bytes).as_bytes())
    }
}

impl fmt::Display for ContentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for ContentId {
    type Err = Malformed;

    fn from_str(text: &str) -> Result<Self, Malformed> {
        let mut id = [0; 32];
        if text.len() != 64 || !text.is_ascii() {
            return Err(Malformed);
        }
        for (index, byte) in id.iter_mut().enumerate() {
            let digits = &text[2 * index..2 * index + 2];
            *byte = u8::from_str_radix(digits, 16).map_err(|_| Malformed)?;
        }
        Ok(Self(id))
    }
}

impl fmt::Debug for ContentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.12}", self.to_string())
    }
}

/// A file, directory, link or other thing as it was at a moment.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Entry {
    pub kind: Kind,
    /// Permission bits with set-id and sticky, without the type.
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
    /// Nanoseconds since 1970. Not compared by [`Entry::same`]: to touch a file is not to change it.
    pub mtime: i64,
    /// Names with the same number are names of one file.
    pub link: Option<u64>,
    /// Sorted by name.
    pub xattrs: Vec<Xattr>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Xattr {
    pub name: Vec<u8>,
    pub value: Vec<u8>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Kind {
    File {
        size: u64,
        content: Content,
    },
    Directory,
    Symlink {
        target: Vec<u8>,
    },
    /// Noted, never made and never removed.
    Special(Special),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Special {
    Socket,
    Fifo,
    BlockDevice,
    CharacterDevice,
    /// Another filesystem begins here.
    MountPoint,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Content {
    Kept(ContentId),
    /// Changed while it was read, every time: a later checkpoint reads it again. What was read is
    /// kept.
    Torn(ContentId),
    /// Larger than the owner lets history keep.
    TooLarge,
    /// The reason is in the checkpoint's notes.
    Unreadable,
}

impl Content {
    pub fn id(self) -> Option<ContentId> {
        match self {
            Self::Kept(id) | Self::Torn(id) => Some(id),
            Self::TooLarge | Self::Unreadable => None,
        }
    }
}

impl Entry {
    /// Whether a restore has nothing to do to get from one to the other.
    pub fn same(&self, other: &Self) -> bool {
        self.same_file(other) && self.link == other.link
    }

    /// As [`Entry::same`], whatever other names the file has.
    pub fn same_file(&self, other: &Self) -> bool {
        self.kind == other.kind
            && self.mode == other.mode
            && (self.uid, self.gid) == (other.uid, other.gid)
            && self.xattrs == other.xattrs
    }

    pub fn content(&self) -> Option<ContentId> {
        match self.kind {
            Kind::File { content, .. } => content.id(),
            Kind::Directory | Kind::Symlink { .. } | Kind::Special(_) => None,
        }
    }

    pub fn is_file(&self) -> bool {
        matches!(self.kind, Kind::File { .. })
    }

    pub fn is_directory(&self) -> bool {
        self.kind == Kind::Directory
    }

    pub(crate) fn encode(&self, to: &mut Encoder) {
        match &self.kind {
            Kind::File { size, content } => {
                let (tag, id) = match content {
                    Content::Kept(id) => (0, Some(id)),
                    Content::Torn(id) => (1, Some(id)),
                    Content::TooLarge => (2, None),
                    Content::Unreadable => (3, None),
                };
                to.byte(tag);
                to.number(*size);
                if let Some(id) = id {
                    to.raw(&id.0);
                }
            }
            Kind::Directory => to.byte(4),
            Kind::Symlink { target } => {
                to.byte(5);
                to.bytes(target);
            }
            Kind::Special(special) => to.byte(match special {
                Special::Socket => 6,
                Special::Fifo => 7,
                Special::BlockDevice => 8,
                Special::CharacterDevice => 9,
                Special::MountPoint => 10,
            }),
        }
        to.number(self.mode.into());
        to.number(self.uid.into());
        to.number(self.gid.into());
        to.number(self.mtime.cast_unsigned());
        to.number(self.link.unwrap_or(0));
        to.number(self.xattrs.len() as u64);
        for xattr in &self.xattrs {
            to.bytes(&xattr.name);
            to.bytes(&xattr.value);
        }
    }

    pub(crate) fn decode(from: &mut Decoder<'_>) -> Result<Self, Malformed> {
        let tag = from.byte()?;
        let kind = match tag {
            0..=3 => {
                let size = from.number()?;
                let content = match tag {
                    0 => Content::Kept(ContentId(from.array()?)),
                    1 => Content::Torn(ContentId(from.array()?)),
                    2 => Content::TooLarge,
                    _ => Content::Unreadable,
                };
                Kind::File { size, content }
            }
            4 => Kind::Directory,
            5 => Kind::Symlink { target: from.bytes()?.to_vec() },
            6 => Kind::Special(Special::Socket),
            7 => Kind::Special(Special::Fifo),
            8 => Kind::Special(Special::BlockDevice),
            9 => Kind::Special(Special::CharacterDevice),
            10 => Kind::Special(Special::MountPoint),
            _ => return Err(Malformed),
        };
        let (mode, uid, gid) = (from.small()?, from.small()?, from.small()?);
        let mtime = from.number()?.cast_signed();
        let link = Some(from.number()?).filter(|link| *link != 0);
        let count = from.number()?;
        let mut xattrs = Vec::new();
        for _ in 0..count {
            xattrs.push(Xattr { name: from.bytes()?.to_vec(), value: from.bytes()?.to_vec() });
        }
        Ok(Self { kind, mode, uid, gid, mtime, link, xattrs })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    pub(crate) fn any_entry() -> impl Strategy<Value = Entry> {
        let bytes = || proptest::collection::vec(any::<u8>(), 0..9);
        let id = || any::<[u8; 32]>().prop_map(ContentId);
        let content = prop_oneof![
            id().prop_map(Content::Kept),
            id().prop_map(Content::Torn),
            Just(Content::TooLarge),
            Just(Content::Unreadable)
        ];
        let special = prop_oneof![
            Just(Special::Socket),
            Just(Special::Fifo),
            Just(Special::BlockDevice),
            Just(Special::CharacterDevice),
            Just(Special::MountPoint)
        ];
        let kind = prop_oneof![
            (any::<u64>(), content).prop_map(|(size, content)| Kind::File { size, content }),
            Just(Kind::Directory),
            bytes().prop_map(|target| Kind::Symlink { target }),
            special.prop_map(Kind::Special)
        ];
        let xattr = (bytes(), bytes()).prop_map(|(name, value)| Xattr { name, value });
        let numbers = (any::<u32>(), any::<u32>(), any::<u32>(), any::<i64>(), 0..4_u64);
        (kind, numbers, proptest::collection::vec(xattr, 0..3)).prop_map(
            |(kind, (mode, uid, gid, mtime, link), xattrs)| Entry {
                kind,
                mode,
                uid,
                gid,
                mtime,
                link: Some(link).filter(|link| *link != 0),
                xattrs,
            },
        )
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(entry in any_entry()) {
            let mut encoder = Encoder::default();
            entry.encode(&mut encoder);
            let bytes = encoder.finish();
            let mut decoder = Decoder::new(&bytes);
            prop_assert_eq!(Entry::decode(&mut decoder), Ok(entry));
            prop_assert!(decoder.is_empty());
        }

        #[test]
        fn damage_is_refused_or_another_entry(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = Entry::decode(&mut Decoder::new(&bytes));
        }
    }
}
