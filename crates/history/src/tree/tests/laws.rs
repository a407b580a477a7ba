//! Whatever happens to a tree, a scan says what a plain comparison says.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use proptest::prelude::*;

use super::*;
use crate::path::TreePath;

#[derive(Debug, Clone)]
enum Act {
    Write(String, usize),
    Directory(String),
    Link(String),
    HardLink(String, String),
    Remove(String),
    Rename(String, String),
    Mode(String, u32),
    Owner(String, u32),
}

/// Few names, so that they meet; some sort differently with and without what is below them.
fn name() -> impl Strategy<Value = String> {
    proptest::collection::vec(proptest::sample::select(&["a", "b", "a.b", "a-", "b!"][..]), 1..4)
        .prop_map(|names| names.join("/"))
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => (name(), 0..3_usize).prop_map(|(name, size)| Act::Write(name, size)),
        4 => name().prop_map(Act::Directory),
        1 => name().prop_map(Act::Link),
        1 => (name(), name()).prop_map(|(from, to)| Act::HardLink(from, to)),
        2 => name().prop_map(Act::Remove),
        2 => (name(), name()).prop_map(|(from, to)| Act::Rename(from, to)),
        1 => (name(), prop_oneof![Just(0), Just(0o755), Just(0o644)])
            .prop_map(|(name, mode)| Act::Mode(name, mode)),
        1 => (name(), 0..3_u32).prop_map(|(name, owner)| Act::Owner(name, owner)),
    ]
}

/// What fails changes nothing, and that is as good a case.
fn perform(top: &Path, act: &Act) {
    let at = |name: &String| top.join(name);
    let _ = match act {
        Act::Write(name, size) => fs::write(at(name), vec![b'x'; *size]),
        Act::Directory(name) => fs::create_dir_all(at(name)),
        Act::Link(name) => symlink("..", at(name)),
        Act::HardLink(from, to) => fs::hard_link(at(from), at(to)),
        Act::Remove(name) => fs::remove_file(at(name)).or_else(|_| fs::remove_dir_all(at(name))),
        Act::Rename(from, to) => fs::rename(at(from), at(to)),
        Act::Mode(name, mode)
            if fs::symlink_metadata(at(name)).is_ok_and(|now| !now.is_symlink()) =>
        {
            fs::set_permissions(at(name), fs::Permissions::from_mode(*mode))
        }
        Act::Mode(..) => Ok(()),
        Act::Owner(name, owner) => std::os::unix::fs::lchown(at(name), Some(*owner), None),
    };
}

fn state(top: &Path) -> BTreeMap<TreePath, Recorded> {
    let mut found = BTreeMap::new();
    let mut left = vec![top.to_owned()];
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let place = entry.unwrap().path();
            let now = fs::symlink_metadata(&place).unwrap();
            let path = TreePath::parse(place.strip_prefix(top).unwrap()).unwrap();
            let signature = Signature {
                inode: now.ino(),
                size: now.size(),
                mtime: now.mtime() * 1_000_000_000 + now.mtime_nsec(),
                ctime: now.ctime() * 1_000_000_000 + now.ctime_nsec(),
            };
            let (mode, uid, gid, directory) =
                (now.mode() & 0o7777, now.uid(), now.gid(), now.is_dir());
            let recorded = Recorded { path: path.clone(), signature, mode, uid, gid, directory };
            found.insert(path, recorded);
            if directory {
                left.push(place);
            }
        }
    }
    found
}

fn same(one: &Recorded, other: &Recorded) -> bool {
    one.directory == other.directory
        && (one.mode, one.uid, one.gid) == (other.mode, other.uid, other.gid)
        && (one.directory || one.signature == other.signature)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn a_scan_finds_what_is_different(
        before in proptest::collection::vec(act(), 0..30),
        then in proptest::collection::vec(act(), 0..12),
        part in name(),
    ) {
        let top = tempfile::tempdir().unwrap();
        let root = Root::open(top.path()).unwrap();
        before.iter().for_each(|act| perform(top.path(), act));
        let old = state(top.path());
        then.iter().for_each(|act| perform(top.path(), act));
        let new = state(top.path());
        let part = TreePath::parse(Path::new(&part)).unwrap();
        for below in [TreePath::root(), part] {
            let names: BTreeSet<&TreePath> =
                old.keys().chain(new.keys()).filter(|path| path.is_within(&below)).collect();
            let expected: Vec<(&TreePath, bool)> = names
                .into_iter()
                .filter(|path| match (old.get(path), new.get(path)) {
                    (Some(old), Some(new)) => !same(old, new),
                    _ => true,
                })
                .map(|path| (path, new.contains_key(path)))
                .collect();
            let rows = || old.values().filter(|row| row.path.is_within(&below)).cloned().map(Ok);
            let exclude = Exclusions::default();
            let found = scan(&root, &below, &exclude, 1, &mut rows()).unwrap();
            let by_two = scan(&root, &below, &exclude, 2, &mut rows()).unwrap();
            prop_assert_eq!(&found.differences, &by_two.differences);
            prop_assert_eq!(&found.touched, &by_two.touched);
            let differences: Vec<(&TreePath, bool)> = found
                .differences
                .iter()
                .map(|difference| match difference {
                    Difference::Changed(path, _) => (path, true),
                    Difference::Gone(path) => (path, false),
                })
                .collect();
            prop_assert_eq!(differences, expected);
            prop_assert_eq!(found.unreadable, []);
            let within = new.values().filter(|row| row.path.is_within(&below));
            let (directories, files): (Vec<_>, Vec<_>) = within.partition(|row| row.directory);
            prop_assert_eq!(found.directories, directories.len() as u64);
            prop_assert_eq!(found.files, files.len() as u64);
        }
        let all: BTreeSet<TreePath> = old.keys().chain(new.keys()).cloned().collect();
        for (path, stat) in look(&root, &all).unwrap().seen {
            let now = new.get(&path).map(|row| (row.mode, row.directory, row.signature));
            let seen = stat.map(|stat| (stat.mode, stat.is_directory(), stat.signature));
            prop_assert_eq!(seen, now);
        }
    }
}
