//! The difference between two states of the tree, with both sides of it, so that it can be taken
//! back as well as made again.

use std::collections::BTreeMap;
use std::io::Read;

use crate::code::{Decoder, Encoder, Malformed};
use crate::entry::Entry;
use crate::path::TreePath;

/// What happened to one name. At least one side is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    pub path: TreePath,
    pub old: Option<Entry>,
    pub new: Option<Entry>,
}

/// Changes in the order of a walk, one for each name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Delta(Vec<Change>);

/// More than this was not written by us, and is not worth the memory to find out.
/// A million names take about 150 MB.
const LARGEST: u64 = 2 << 30;

impl Delta {
    /// Sorts, and leaves out what is no change. A name that comes twice keeps its last change.
    pub fn new(changes: impl IntoIterator<Item = Change>) -> Self {
        let by_path: BTreeMap<TreePath, Change> =
            changes.into_iter().map(|change| (change.path.clone(), change)).collect();
        Self(by_path.into_values().filter(Change::is_real).collect())
    }

    pub fn changes(&self) -> &[Change] {
        &self.0
    }

    pub fn into_changes(self) -> Vec<Change> {
        self.0
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// One that does both, first this and then `next`.
    pub fn then(self, next: Self) -> Self {
        let mut by_path: BTreeMap<TreePath, Change> =
            self.0.into_iter().map(|change| (change.path.clone(), change)).collect();
        for change in next.0 {
            match by_path.get_mut(&change.path) {
                Some(earlier) => earlier.new = change.new,
                None => {
                    by_path.insert(change.path.clone(), change);
                }
            }
        }
        Self(by_path.into_values().filter(Change::is_real).collect())
    }

    pub(crate) fn encode(&self) -> std::io::Result<Vec<u8>> {
        let mut encoder = Encoder::default();
        encoder.number(self.0.len() as u64);
        let mut before: &[u8] = &[];
        for change in &self.0 {
            let key = change.path.key();
            let shared = key.iter().zip(before).take_while(|(one, other)| one == other).count();
            encoder.number(shared as u64);
            encoder.bytes(&key[shared..]);
            before = key;
            encoder.byte(u8::from(change.old.is_some()) | u8::from(change.new.is_some()) << 1);
            for side in [&change.old, &change.new].into_iter().flatten() {
                side.encode(&mut encoder);
            }
        }
        zstd::bulk::compress(&encoder.finish(), 3)
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut plain = Vec::new();
        let decompressed = zstd::stream::Decoder::new(bytes)
            .and_then(|decoder| decoder.take(LARGEST).read_to_end(&mut plain));
        decompressed.map_err(|_| Malformed)?;
        let mut decoder = Decoder::new(&plain);
        let count = decoder.number()?;
        let mut changes: Vec<Change> = Vec::new();
        let mut key = Vec::new();
        for _ in 0..count {
            let shared: usize = decoder.number()?.try_into().map_err(|_| Malformed)?;
            if shared > key.len() {
                return Err(Malformed);
            }
            key.truncate(shared);
            key.extend_from_slice(decoder.bytes()?);
            let path = TreePath::from_key(&key).ok_or(Malformed)?;
            if changes.last().is_some_and(|last| last.path >= path) {
                return Err(Malformed);
            }
            let sides = decoder.byte()?;
            if !(1..=3).contains(&sides) {
                return Err(Malformed);
            }
            let mut side =
                |bit: u8| (sides & bit != 0).then(|| Entry::decode(&mut decoder)).transpose();
            let (old, new) = (side(1)?, side(2)?);
            changes.push(Change { path, old, new });
        }
        if decoder.is_empty() { Ok(Self(changes)) } else { Err(Malformed) }
    }
}

impl Change {
    fn is_real(&self) -> bool {
        match (&self.old, &self.new) {
            (None, None) => false,
            (Some(old), Some(new)) => !old.same(new),
            (None, Some(_)) | (Some(_), None) => true,
        }
    }

    /// Takes it back.
    pub fn inverse(self) -> Self {
        Self { path: self.path, old: self.new, new: self.old }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::entry::tests::any_entry;
    use proptest::prelude::*;
    use std::path::Path;

    pub(crate) fn any_delta() -> impl Strategy<Value = Delta> {
        let path = "[ab]{1,2}(/[ab]{1,2}){0,2}"
            .prop_map(|text| TreePath::parse(Path::new(&text)).unwrap());
        let side = || proptest::option::of(any_entry());
        let change = (path, side(), side()).prop_map(|(path, old, new)| Change { path, old, new });
        proptest::collection::vec(change, 0..12).prop_map(Delta::new)
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(delta in any_delta()) {
            prop_assert_eq!(Delta::decode(&delta.encode().unwrap()), Ok(delta));
        }

        #[test]
        fn damage_does_no_harm(delta in any_delta(), at: usize, flip in 1..=255_u8) {
            let mut bytes = delta.encode().unwrap();
            let at = at % bytes.len();
            bytes[at] ^= flip;
            let _ = Delta::decode(&bytes);
            let _ = Delta::decode(&bytes[..at]);
        }

        #[test]
        fn there_and_back_is_nothing(delta in any_delta()) {
            let back = Delta::new(delta.clone().into_changes().into_iter().map(Change::inverse));
            prop_assert!(delta.then(back).is_empty());
        }
    }
}
