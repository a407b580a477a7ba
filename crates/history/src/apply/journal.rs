//! What is to be published, in a form that outlives the process.

use super::Reason;
use crate::code::{Decoder, Encoder, Malformed};
use crate::entry::{Entry, Xattr};
use crate::path::TreePath;
use crate::tree::Signature;

const VERSION: u8 = 1;

/// Everything [`super::publish`] needs to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Journal {
    /// In the order of a walk.
    pub(super) records: Vec<Record>,
    /// What could not be staged, wholly or in part.
    pub(super) left: Vec<(TreePath, Reason)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) path: TreePath,
    pub(super) slot: u64,
    /// Of what was there.
    pub(super) signature: Signature,
    pub(super) was_directory: bool,
    pub(super) action: Action,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Action {
    Remove,
    /// A file or symbolic link of this inode waits in staging, complete.
    Place {
        inode: u64,
    },
    /// An empty directory waits in staging, with its final attributes still to come.
    PlaceDirectory {
        inode: u64,
        attributes: Attributes,
    },
    /// Only owner, mode and attributes differ.
    Adjust(Attributes),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Attributes {
    pub(super) mode: u32,
    pub(super) uid: u32,
    pub(super) gid: u32,
    pub(super) set_xattrs: Vec<Xattr>,
    pub(super) remove_xattrs: Vec<Vec<u8>>,
    /// `None` leaves it as it is.
    pub(super) mtime: Option<i64>,
}

impl Attributes {
    /// Of something new.
    pub(super) fn of(entry: &Entry, mtime: Option<i64>) -> Self {
        Self {
            mode: entry.mode,
            uid: entry.uid,
            gid: entry.gid,
            set_xattrs: entry.xattrs.clone(),
            remove_xattrs: Vec::new(),
            mtime,
        }
    }

    /// Attributes that are not recorded, such as labels of the system, stay.
    pub(super) fn between(now: &Entry, target: &Entry) -> Self {
        let kept = |xattr: &Xattr| target.xattrs.iter().any(|other| other.name == xattr.name);
        let set = target.xattrs.iter().filter(|xattr| !now.xattrs.contains(xattr));
        let remove = now.xattrs.iter().filter(|xattr| !kept(xattr));
        Self {
            set_xattrs: set.cloned().collect(),
            remove_xattrs: remove.map(|xattr| xattr.name.clone()).collect(),
            ..Self::of(target, None)
        }
    }

    fn encode(&self, to: &mut Encoder) {
        to.number(self.mode.into());
        to.number(self.uid.into());
        to.number(self.gid.into());
        to.number(self.set_xattrs.len() as u64);
        for xattr in &self.set_xattrs {
            to.bytes(&xattr.name);
            to.bytes(&xattr.value);
        }
        to.number(self.remove_xattrs.len() as u64);
        for name in &self.remove_xattrs {
            to.bytes(name);
        }
        to.byte(self.mtime.is_some().into());
        to.number(self.mtime.unwrap_or(0).cast_unsigned());
    }

    fn decode(from: &mut Decoder<'_>) -> Result<Self, Malformed> {
        let (mode, uid, gid) = (from.small()?, from.small()?, from.small()?);
        let mut set_xattrs = Vec::new();
        for _ in 0..from.number()? {
            set_xattrs.push(Xattr { name: from.bytes()?.to_vec(), value: from.bytes()?.to_vec() });
        }
        let mut remove_xattrs = Vec::new();
        for _ in 0..from.number()? {
            remove_xattrs.push(from.bytes()?.to_vec());
        }
        let timed = from.byte()? != 0;
        let mtime = Some(from.number()?.cast_signed()).filter(|_| timed);
        Ok(Self { mode, uid, gid, set_xattrs, remove_xattrs, mtime })
    }
}

impl Journal {
    /// Every name that is or might have been changed.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &TreePath> {
        self.records.iter().map(|record| &record.path).chain(self.left.iter().map(|(path, _)| path))
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut to = Encoder::default();
        to.byte(VERSION);
        to.number(self.records.len() as u64);
        let mut before: &[u8] = &[];
        for record in &self.records {
            let key = record.path.key();
            let shared = key.iter().zip(before).take_while(|(one, other)| one == other).count();
            to.number(shared as u64);
            to.bytes(&key[shared..]);
            before = key;
            record.encode(&mut to);
        }
        to.number(self.left.len() as u64);
        for (path, reason) in &self.left {
            to.bytes(path.key());
            reason.encode(&mut to);
        }
        to.finish()
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut from = Decoder::new(bytes);
        if from.byte()? != VERSION {
            return Err(Malformed);
        }
        let mut records: Vec<Record> = Vec::new();
        let mut key = Vec::new();
        for _ in 0..from.number()? {
            let shared: usize = from.number()?.try_into().map_err(|_| Malformed)?;
            if shared > key.len() {
                return Err(Malformed);
            }
            key.truncate(shared);
            key.extend_from_slice(from.bytes()?);
            let path = TreePath::from_key(&key).ok_or(Malformed)?;
            if records.last().is_some_and(|last| last.path >= path) {
                return Err(Malformed);
            }
            records.push(Record::decode(path, &mut from)?);
        }
        let mut left = Vec::new();
        for _ in 0..from.number()? {
            let path = TreePath::from_key(from.bytes()?).ok_or(Malformed)?;
            left.push((path, Reason::decode(&mut from)?));
        }
        if from.is_empty() { Ok(Self { records, left }) } else { Err(Malformed) }
    }
}

impl Record {
    fn encode(&self, to: &mut Encoder) {
        to.number(self.slot);
        to.byte(self.was_directory.into());
        let Signature { inode, size, mtime, ctime } = self.signature;
        for number in [inode, size, mtime.cast_unsigned(), ctime.cast_unsigned()] {
            to.number(number);
        }
        match &self.action {
            Action::Remove => to.byte(0),
            Action::Place { inode } => {
                to.byte(1);
                to.number(*inode);
            }
            Action::PlaceDirectory { inode, attributes } => {
                to.byte(2);
                to.number(*inode);
                attributes.encode(to);
            }
            Action::Adjust(attributes) => {
                to.byte(3);
                attributes.encode(to);
            }
        }
    }

    fn decode(path: TreePath, from: &mut Decoder<'_>) -> Result<Self, Malformed> {
        let slot = from.number()?;
        let was_directory = from.byte()? != 0;
        let signature = Signature {
            inode: from.number()?,
            size: from.number()?,
            mtime: from.number()?.cast_signed(),
            ctime: from.number()?.cast_signed(),
        };
        let action = match from.byte()? {
            0 => Action::Remove,
            1 => Action::Place { inode: from.number()? },
            2 => Action::PlaceDirectory {
                inode: from.number()?,
                attributes: Attributes::decode(from)?,
            },
            3 => Action::Adjust(Attributes::decode(from)?),
            _ => return Err(Malformed),
        };
        Ok(Self { path, slot, signature, was_directory, action })
    }
}

impl Reason {
    fn encode(self, to: &mut Encoder) {
        match self {
            Self::Special => to.byte(0),
            Self::NotEmpty => to.byte(1),
            Self::NoParent => to.byte(2),
            Self::NotKept => to.byte(3),
            Self::Damaged => to.byte(4),
            Self::Changed => to.byte(5),
            Self::Refused(number) => {
                to.byte(6);
                to.number(number.unsigned_abs().into());
            }
        }
    }

    fn decode(from: &mut Decoder<'_>) -> Result<Self, Malformed> {
        Ok(match from.byte()? {
            0 => Self::Special,
            1 => Self::NotEmpty,
            2 => Self::NoParent,
            3 => Self::NotKept,
            4 => Self::Damaged,
            5 => Self::Changed,
            6 => Self::Refused(from.small()?.try_into().map_err(|_| Malformed)?),
            _ => return Err(Malformed),
        })
    }
}
