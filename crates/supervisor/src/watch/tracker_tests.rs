//! What happens when a directory is read while it changes, arranged step by step.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::*;

struct Watched {
    dir: TempDir,
    tracker: Tracker,
}

impl Watched {
    fn new(directories: &[&str]) -> Self {
        let dir = TempDir::new().unwrap();
        directories.iter().for_each(|name| fs::create_dir_all(dir.path().join(name)).unwrap());
        let root = fs::File::open(dir.path()).unwrap().into();
        let mut tracker = Tracker::new(root, dir.path()).unwrap();
        tracker.learn().unwrap();
        Self { dir, tracker }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn node(&self, name: &str) -> NodeId {
        match self.tracker.tree.entry(NodeId::ROOT, name.as_bytes()).map(|entry| entry.kind) {
            Some(Kind::Open(node)) => node,
            other => panic!("{name} is {other:?}"),
        }
    }

    fn events(&mut self) -> Vec<RawEvent> {
        let mut events = Vec::new();
        self.tracker.inotify.read(&mut events, usize::MAX).unwrap();
        events
    }

    /// What the events of the kernel until now come to.
    fn digest(&mut self) -> Vec<(ChangeKind, PathBuf)> {
        let events = self.events();
        self.digest_these(&events)
    }

    fn digest_these(&mut self, events: &[RawEvent]) -> Vec<(ChangeKind, PathBuf)> {
        let changes = self.tracker.digest(events).unwrap().changes;
        let below = |path: &Path| path.strip_prefix(self.dir.path()).unwrap().to_owned();
        changes.iter().map(|change| (change.kind, below(change.path.as_path()))).collect()
    }
}

#[test]
fn a_directory_that_is_met_before_its_move_is_told_stays_watched() {
    let mut watched = Watched::new(&["a", "n"]);
    fs::rename(watched.at("a"), watched.at("n/a")).unwrap();
    let n = watched.node("n");
    watched.tracker.compare(n).unwrap();
    watched.digest();
    fs::write(watched.at("n/a/f"), "").unwrap();
    let changes = watched.digest();
    assert!(changes.contains(&(ChangeKind::Create, PathBuf::from("n/a/f"))), "{changes:?}");
}

#[test]
fn a_directory_that_lost_its_watch_is_looked_at_again() {
    let mut watched = Watched::new(&["a"]);
    let node = watched.node("a");
    let watch = watched.tracker.tree.node(node).and_then(|node| node.watch).unwrap();
    // As the kernel does for a directory that is removed; one that is made in its place may be the
    // same inode.
    watched.tracker.inotify.remove(watch);
    fs::write(watched.at("a/f"), "").unwrap();
    fs::set_permissions(watched.at("a"), std::os::unix::fs::PermissionsExt::from_mode(0o700))
        .unwrap();
    let changes = watched.digest();
    assert!(changes.contains(&(ChangeKind::Create, PathBuf::from("a/f"))), "{changes:?}");
    fs::write(watched.at("a/g"), "").unwrap();
    let changes = watched.digest();
    assert!(changes.contains(&(ChangeKind::Create, PathBuf::from("a/g"))), "{changes:?}");
}

#[test]
fn what_is_hinted_at_below_a_directory_that_is_elsewhere_is_looked_at_there() {
    let mut watched = Watched::new(&["a"]);
    fs::write(watched.at("a/f"), "").unwrap();
    fs::rename(watched.at("a"), watched.at("b")).unwrap();
    // A file in the place of the directory: the path of the hint leads nowhere.
    fs::write(watched.at("a"), "").unwrap();
    let events = watched.events();
    let moved = events.iter().position(|event| event.flags.contains(ReadFlags::MOVED_FROM));
    let (before, after) = events.split_at(moved.unwrap());
    let mut changes = watched.digest_these(before);
    changes.extend(watched.digest_these(after));
    let created = |name: &str| changes.contains(&(ChangeKind::Create, PathBuf::from(name)));
    assert!(created("b/f") && created("a"), "{changes:?}");
}
