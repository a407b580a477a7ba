//! The first checkpoint: everything there was, which is kept once and told as long as it is in reach.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::path::Path;

use nacre_history::{History, How, Look, Options, Query, Selection, TreePath};

fn path(text: &str) -> TreePath {
    TreePath::parse(Path::new(text)).unwrap()
}

#[test]
fn it_tells_what_was_there_whatever_came_later() {
    let home = tempfile::tempdir().unwrap();
    let at = |name: &str| home.path().join("work").join(name);
    fs::create_dir_all(at("dir")).unwrap();
    fs::write(at("a"), "as begun").unwrap();
    fs::write(at("dir/b"), "goes").unwrap();
    let options = Options::new(home.path().join("work"), home.path().join("store"));
    let mut history = History::open(&options).unwrap();
    let first = history.checkpoint(Look::Everywhere, &[]).unwrap().unwrap();
    assert_eq!((first.counts.added, first.counts.changed), (3, 0));

    let tells = |history: &History| {
        let (checkpoint, delta) = history.show(first.id).unwrap();
        assert_eq!(checkpoint, first);
        let names: Vec<_> = delta.changes().iter().map(|change| change.path.clone()).collect();
        assert_eq!(names, [path("a"), path("dir"), path("dir/b")]);
        assert!(delta.changes().iter().all(|change| change.old.is_none()));
        delta.changes()[0].new.as_ref().unwrap().content().unwrap()
    };
    let begun = tells(&history);
    fs::write(at("a"), "after").unwrap();
    fs::remove_file(at("dir/b")).unwrap();
    fs::write(at("c"), "new").unwrap();
    let second = history.checkpoint(Look::Everywhere, &[]).unwrap().unwrap();
    assert_eq!(tells(&history), begun);
    history.undo(Look::Everywhere, &Selection::Last(1), &How::default()).unwrap();
    drop(history);
    let mut history = History::open(&options).unwrap();
    assert_eq!(tells(&history), begun);

    let query = Query { within: Some(path("dir/b")), limit: 10, ..Query::default() };
    let listed = history.list(&query).unwrap().checkpoints;
    assert!([first.id, second.id].iter().all(|id| listed.iter().any(|there| there.id == *id)));
    let mut bytes = Vec::new();
    history.fetch(begun, &mut bytes).unwrap();
    assert_eq!(bytes, b"as begun");
}

#[test]
fn damage_to_what_was_there_is_named_though_only_the_past_has_it() {
    let home = tempfile::tempdir().unwrap();
    let work = home.path().join("work");
    fs::create_dir(&work).unwrap();
    fs::write(work.join("a"), "as begun").unwrap();
    let options = Options::new(&work, home.path().join("store"));
    let mut history = History::open(&options).unwrap();
    let first = history.checkpoint(Look::Everywhere, &[]).unwrap().unwrap().id;
    fs::write(work.join("a"), "after").unwrap();
    history.checkpoint(Look::Everywhere, &[]).unwrap();
    drop(history);
    let pack = home.path().join("store/packs/00000001.pack");
    let mut bytes = fs::read(&pack).unwrap();
    // In the first frame, which holds what was there at the beginning.
    bytes[30] ^= 1;
    fs::write(&pack, bytes).unwrap();
    let damaged = History::open(&options).unwrap().verify(&mut |_, _| {}).unwrap().damaged;
    assert_eq!(damaged.len(), 1);
    assert_eq!(damaged[0].uses, [(path("a"), first)]);
}
