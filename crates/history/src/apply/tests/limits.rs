//! What is kept, what cannot be had, and what names share.

use std::fs;
use std::io::Write;
use std::os::unix::fs::MetadataExt;

use super::harness::*;
use crate::apply::{Journal, Reason, stage};
use crate::contents::Fetch;
use crate::entry::{Content, ContentId, Entry, Kind};
use crate::error::{Error, Result};
use proptest::prelude::*;

/// A store whose every fetch fails as a full disk does.
struct Full;

impl Fetch for Full {
    fn fetch(&self, _: ContentId, _: &mut dyn Write) -> Result<()> {
        let mut full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        full.write_all(b"x").map_err(|source| Error::Io { context: "fetch".into(), source })
    }
}

#[test]
fn no_space_leaves_all_as_it_was() {
    let ground = Ground::new();
    fs::write(ground.live().join("gone"), "old").unwrap();
    for name in 0..20 {
        fs::write(ground.wanted().join(name.to_string()), "new").unwrap();
    }
    let before = ground.state(&ground.live());
    let steps = steps(&before, &ground.state(&ground.wanted()));
    let staged = stage(&ground.root(), &ground.staging(), &steps, &Full, 2);
    assert!(matches!(staged, Err(Error::NoSpace { .. })), "{staged:?}");
    assert!(!ground.staging().exists());
    assert_eq!(ground.state(&ground.live()), before);
}

#[test]
fn content_that_is_not_there_is_left_and_the_rest_is_done() {
    let ground = Ground::new();
    for name in ["large", "large-changed", "lost", "good"] {
        fs::write(ground.live().join(name), "old").unwrap();
        fs::write(ground.wanted().join(name), "new bytes").unwrap();
    }
    let too_large = |size| Kind::File { size, content: Content::TooLarge };
    let mut now = ground.state(&ground.live());
    let mut target = ground.state(&ground.wanted());
    fs::write(ground.wanted().join("lost"), "lost").unwrap();
    let lost = ContentId::of(b"lost");
    target.get_mut(&path("lost")).unwrap().0.kind =
        Kind::File { size: 4, content: Content::Kept(lost) };
    ground.contents.lose(lost);
    for name in ["large", "large-changed"] {
        now.get_mut(&path(name)).unwrap().0.kind = too_large(3);
        target.get_mut(&path(name)).unwrap().0 =
            Entry { kind: too_large(3), mode: 0o600, ..now[&path(name)].0.clone() };
    }
    target.get_mut(&path("large-changed")).unwrap().0.kind = too_large(9);
    let steps = steps(&now, &target);
    let journal = stage(&ground.root(), &ground.staging(), &steps, &ground.contents, 1).unwrap();
    let outcome = ground.publish(&journal);
    let expected = [(path("large-changed"), Reason::NotKept), (path("lost"), Reason::Damaged)];
    assert_eq!(outcome.left, expected);
    for (name, bytes, mode) in [
        ("large", "old", 0o600),
        ("large-changed", "old", 0o644),
        ("lost", "old", 0o644),
        ("good", "new bytes", 0o644),
    ] {
        let at = ground.live().join(name);
        assert_eq!(fs::read_to_string(&at).unwrap(), bytes, "{name}");
        assert_eq!(fs::metadata(&at).unwrap().mode() & 0o777, mode, "{name}");
    }
}

#[test]
fn a_name_joins_the_file_that_is_already_there() {
    let ground = Ground::new();
    for tree in [ground.live(), ground.wanted()] {
        fs::write(tree.join("b"), "same").unwrap();
        fs::hard_link(tree.join("b"), tree.join("c")).unwrap();
    }
    fs::write(ground.live().join("a"), "another file").unwrap();
    fs::hard_link(ground.wanted().join("b"), ground.wanted().join("a")).unwrap();
    let before = fs::metadata(ground.live().join("b")).unwrap();
    ground.apply(&ground.state(&ground.wanted()));
    for name in ["a", "b", "c"] {
        let after = fs::metadata(ground.live().join(name)).unwrap();
        assert_eq!((after.ino(), after.nlink()), (before.ino(), 3), "{name}");
    }
}

#[test]
fn a_name_leaves_a_file_whose_other_names_are_not_among_the_steps() {
    let ground = Ground::new();
    let names = ["a", "b", "c"];
    fs::write(ground.live().join("a"), "same").unwrap();
    for name in ["b", "c"] {
        fs::hard_link(ground.live().join("a"), ground.live().join(name)).unwrap();
    }
    let mut target = ground.state(&ground.live());
    target.get_mut(&path("a")).unwrap().0.link = None;
    let mut steps = steps(&ground.state(&ground.live()), &target);
    steps.retain(|step| step.path == path("a"));
    let journal = stage(&ground.root(), &ground.staging(), &steps, &ground.contents, 1).unwrap();
    assert_eq!(ground.publish(&journal).left, []);
    assert!(ground.displaced(&journal).is_empty());
    crate::apply::clear(&ground.staging()).unwrap();
    let links = names.map(|name| fs::metadata(ground.live().join(name)).unwrap().nlink());
    assert_eq!(links, [1, 2, 2]);
}

proptest! {
    #[test]
    fn a_damaged_journal_does_no_harm(a in any_plan(), at: usize, flip in 1..=255_u8) {
        let ground = Ground::new();
        build(&ground.wanted(), &a);
        let journal = ground.stage(&ground.state(&ground.wanted()));
        let mut bytes = journal.encode();
        prop_assert_eq!(Journal::decode(&bytes), Ok(journal));
        let at = at % bytes.len();
        prop_assert!(Journal::decode(&bytes[..at]).is_err());
        bytes[at] ^= flip;
        let _ = Journal::decode(&bytes);
    }
}

#[test]
fn times_follow_the_rules() {
    let ground = Ground::new();
    let long_ago = std::time::UNIX_EPOCH + std::time::Duration::new(1_000_000_000, 123_456_789);
    let age = |at: &std::path::Path| {
        let times = fs::FileTimes::new().set_modified(long_ago);
        fs::File::open(at).unwrap().set_times(times).unwrap();
    };
    for (tree, bytes) in [(ground.live(), "old"), (ground.wanted(), "new bytes")] {
        fs::write(tree.join("replaced"), bytes).unwrap();
        age(&tree.join("replaced"));
    }
    fs::create_dir(ground.wanted().join("made")).unwrap();
    fs::write(ground.wanted().join("made/back"), "back").unwrap();
    for name in ["made/back", "made"] {
        age(&ground.wanted().join(name));
    }
    ground.apply(&ground.state(&ground.wanted()));
    let modified = |name: &str| fs::metadata(ground.live().join(name)).unwrap().modified().unwrap();
    assert_eq!([modified("made"), modified("made/back")], [long_ago; 2]);
    assert!(modified("replaced") > long_ago);
}

#[test]
fn names_of_one_file_become_files_of_their_own() {
    let ground = Ground::new();
    for name in ["a", "b"] {
        fs::write(ground.wanted().join(name), "same").unwrap();
    }
    fs::write(ground.live().join("a"), "same").unwrap();
    fs::hard_link(ground.live().join("a"), ground.live().join("b")).unwrap();
    let before = fs::metadata(ground.live().join("a")).unwrap();
    ground.apply(&ground.state(&ground.wanted()));
    let inodes = ["a", "b"].map(|name| fs::metadata(ground.live().join(name)).unwrap().ino());
    assert_eq!(inodes.iter().filter(|inode| **inode == before.ino()).count(), 1);
}
