//! The first checkpoint: everything there was, which is kept once and told as long as it is in reach.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::os::unix::fs::symlink;
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

/// Of some blocks of names, each kind of thing among them.
fn plant(work: &Path) {
    for folder in 0..20 {
        let at = work.join(format!("d{folder}/deeper"));
        fs::create_dir_all(&at).unwrap();
        for file in 0..40 {
            fs::write(at.join(format!("f{file}")), format!("{file} of {folder}").repeat(file))
                .unwrap();
        }
        fs::write(work.join(format!("d{folder}/out")), "left out").unwrap();
    }
    fs::create_dir(work.join("empty")).unwrap();
    symlink("d0", work.join("link")).unwrap();
    fs::hard_link(work.join("d0/deeper/f1"), work.join("d9/deeper/twin")).unwrap();
    fs::hard_link(work.join("d0/deeper/f1"), work.join("twin")).unwrap();
    let another = work.parent().unwrap().join("another");
    // The other name is not in the tree, so it is a file like others there.
    fs::hard_link(work.join("d1/deeper/f2"), another).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        work.join("pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )
    .unwrap();
}

#[test]
fn everything_is_taken_in_by_any_number_of_threads() {
    let home = tempfile::tempdir().unwrap();
    let work = home.path().join("work");
    plant(&work);
    let mut told = Vec::new();
    for threads in 1..=4 {
        let store = home.path().join(format!("store{threads}"));
        let exclude = vec!["*/out".to_owned()];
        let options = Options { threads, exclude, ..Options::new(&work, store) };
        let mut history = History::open(&options).unwrap();
        let first = history.checkpoint(Look::Everywhere, &[]).unwrap().unwrap();
        assert_eq!((first.counts.added, first.notes.remarks.len()), (20 * 42 + 5, 0));
        let (_, delta) = history.show(first.id).unwrap();
        let link = |name: &str| {
            let entry = history.entry_at(&path(name), first.id).unwrap().unwrap();
            entry.link
        };
        assert!(link("twin").is_some());
        assert!(["d0/deeper/f1", "d9/deeper/twin"].iter().all(|name| link(name) == link("twin")));
        assert_eq!(link("d1/deeper/f2"), None);
        // What was recorded is what a comparison finds.
        assert_eq!(history.checkpoint(Look::Everywhere, &[]).unwrap(), None);
        assert_eq!(history.verify(&mut |_, _| {}).unwrap().damaged, []);
        told.push(delta);
    }
    assert!(told.iter().all(|delta| *delta == told[0]));
}

#[test]
fn a_beginning_that_fails_leaves_nothing_and_can_be_made_again() {
    let home = tempfile::tempdir().unwrap();
    let work = home.path().join("work");
    plant(&work);
    let options = Options::new(&work, home.path().join("store"));
    let mut history = History::open(&options).unwrap();
    // Where the first pack shall be.
    let pack = home.path().join("store/packs/00000001.pack");
    fs::create_dir(&pack).unwrap();
    assert!(history.checkpoint(Look::Everywhere, &[]).is_err());
    assert_eq!((history.latest().unwrap(), history.names().unwrap()), (None, 0));
    fs::remove_dir(&pack).unwrap();
    let first = history.checkpoint(Look::Everywhere, &[]).unwrap().unwrap();
    assert_eq!(first.counts.added, 20 * 43 + 5);
}
