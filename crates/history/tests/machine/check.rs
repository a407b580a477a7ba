//! What must be true after an operation.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use nacre_history::{Content, Entry, Kind as EntryKind, Outcome, TreePath};

use crate::tree::{Kind, Node, Snapshot, identities, snapshot};

/// The tree before an operation.
pub(crate) struct Before {
    pub(crate) snapshot: Snapshot,
    identities: BTreeMap<PathBuf, (u64, i64, i64, u64)>,
}

impl Before {
    pub(crate) fn of(root: &Path) -> Self {
        let snapshot = snapshot(root);
        let identities = identities(root, &snapshot);
        Self { snapshot, identities }
    }

    /// What the outcome does not name is the same file, and nobody touched it.
    pub(crate) fn assert_only_changed(&self, root: &Path, outcome: &Outcome) {
        let now = snapshot(root);
        let identities = identities(root, &now);
        let changed: Vec<PathBuf> =
            outcome.changes.changes().iter().map(|change| change.path.to_path()).collect();
        for (name, node) in &self.snapshot {
            if changed.contains(name) {
                continue;
            }
            assert_eq!(now.get(name).map(plain), Some(plain(node)), "{}", name.display());
            let (was, is) = (self.identities[name], identities[name]);
            assert_eq!(was.0, is.0, "{} is another file", name.display());
            // The change time of a directory is that of its names, and a link counts its names.
            if node.kind != Kind::Directory && (was.3, is.3) == (1, 1) {
                assert_eq!(was, is, "{} was touched", name.display());
            }
        }
        for name in now.keys() {
            let known = self.snapshot.contains_key(name) || changed.contains(name);
            assert!(known, "{} came from nowhere", name.display());
        }
    }
}

/// Without the names it shares its file with.
fn plain(node: &Node) -> Node {
    Node { twin_of: None, ..node.clone() }
}

fn holds_special(tree: &Snapshot, name: &Path) -> bool {
    tree.iter().any(|(other, node)| node.kind == Kind::Special && other.starts_with(name))
}

/// Sockets and pipes are never made and never removed, and so what is in their way stays.
fn excused(name: &Path, now: &Snapshot, wanted: &Snapshot) -> bool {
    let special = |tree: &Snapshot| tree.get(name).is_some_and(|node| node.kind == Kind::Special);
    let is_directory =
        |path: &Path| wanted.get(path).is_some_and(|node| node.kind == Kind::Directory);
    let blocked = |path: &Path| holds_special(now, path) && !is_directory(path);
    special(now) || special(wanted) || name.ancestors().any(blocked)
}

pub(crate) fn assert_like(now: &Snapshot, wanted: &Snapshot, what: &str) {
    let names: BTreeSet<&PathBuf> = now.keys().chain(wanted.keys()).collect();
    for name in names {
        if !excused(name, now, wanted) {
            assert_eq!(now.get(name), wanted.get(name), "{what}: {}", name.display());
        }
    }
}

/// Within the name as it was, elsewhere as before.
pub(crate) fn assert_restored(before: &Snapshot, now: &Snapshot, then: &Snapshot, within: &Path) {
    if within.as_os_str().is_empty() {
        return assert_like(now, then, "restore");
    }
    let is = |tree: &Snapshot, name: &Path, kind: &Kind| {
        tree.get(name).is_some_and(|node| node.kind == *kind)
    };
    let below_special =
        |name: &Path| name.ancestors().any(|above| is(before, above, &Kind::Special));
    // A directory it needs to be in comes along, and takes the place of a file.
    let is_parent = |name: &Path| within.starts_with(name);
    let names: BTreeSet<&PathBuf> = now.keys().chain(then.keys()).chain(before.keys()).collect();
    for name in names {
        let inside = name.starts_with(within);
        let left = match inside {
            true => excused(name, now, then) || below_special(name),
            false => is_parent(name),
        };
        if left {
            continue;
        }
        let wanted = if inside { then } else { before };
        let (is, wanted) = (now.get(name).map(plain), wanted.get(name).map(plain));
        assert_eq!(is, wanted, "restore of {}: {}", within.display(), name.display());
    }
}

pub(crate) fn assert_entry(entry: Option<&Entry>, node: Option<&Node>, path: &TreePath) {
    let (Some(entry), Some(node)) = (entry, node) else {
        assert_eq!(entry.is_some(), node.is_some(), "{path}");
        return;
    };
    assert_eq!((entry.mode, (entry.uid, entry.gid)), (node.mode, node.owner), "{path}");
    assert_eq!(
        entry.link.is_some(),
        node.twin_of.is_some() && node.kind != Kind::Special,
        "{path}"
    );
    match (&entry.kind, &node.kind) {
        (EntryKind::File { size, content: Content::Kept(id) }, Kind::File(bytes)) => {
            assert_eq!(*size, bytes.len() as u64, "{path}");
            assert_eq!(*id, nacre_history::ContentId::of(bytes), "{path}");
            let note = entry.xattrs.iter().find(|xattr| xattr.name == b"user.note");
            assert_eq!(note.map(|note| &note.value), node.note.as_ref(), "{path}");
        }
        (EntryKind::Symlink { target }, Kind::Symlink(expected)) => assert_eq!(target, expected),
        (EntryKind::Directory, Kind::Directory) | (EntryKind::Special(_), Kind::Special) => {}
        (is, was) => panic!("{path} was {was:?} and is said to be {is:?}"),
    }
}
