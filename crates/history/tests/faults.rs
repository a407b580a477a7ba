//! A system that refuses: a step fails with its reason and has done nothing or is done, nothing that
//! was acknowledged is lost, and once the fault has passed it works again.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on has failed")]

mod day;
mod tree;

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;

use day::check::{assert_tree, check, trees};
use day::disk::{Disk, image};
use day::options;
use day::run::{CALLS, Place, count, inject, live, sample};
use nacre_history::{Error, History, How, Look, Selection};
use tree::snapshot;

fn every_call_fails(error: &str, all: &[&str], few: usize, what: &[&str]) {
    let trees = trees();
    let counts = count(Place::new().path(), &[]);
    let mut refused = 0;
    for calls in all {
        for nth in sample(counts[calls], few) {
            let place = Place::new();
            let said = Place::acknowledgements(place.path());
            live(place.path(), &said, what, &inject(calls, nth, &format!("error={error}")));
            let said = place.said();
            eprintln!("{error} at {calls} {nth} of {}: {:?}", counts[calls], said.refused);
            refused += usize::from(said.refused.is_some());
            if said.refused.is_some() && said.ended && !said.changing {
                // The process went on by itself, and what it left is whole before anybody repairs it.
                assert_tree(place.path(), &said, &trees);
            }
            check(place.path(), &said, &place.still, &trees);
        }
    }
    assert!(refused > 0, "nothing was refused: is strace injecting?");
}

#[test]
fn a_full_disk_at_any_call_harms_nothing() {
    let takes_space = |calls: &&&str| !["fsync", "utimensat"].contains(*calls);
    let calls: Vec<&str> = CALLS.iter().filter(takes_space).copied().collect();
    every_call_fails("ENOSPC", &calls, 4, &[]);
}

#[test]
fn a_failing_disk_at_any_call_harms_nothing() {
    every_call_fails("EIO", CALLS, 4, &[]);
}

#[test]
fn no_more_open_files_at_any_call_harms_nothing() {
    every_call_fails("EMFILE", &["openat"], 12, &[]);
}

/// What was refused may be on the disk all the same.
#[test]
fn a_crash_after_a_failed_write_harms_nothing() {
    every_call_fails("EIO", &["fsync", "fdatasync", "pwrite64"], 24, &["stop"]);
}

fn fill(path: &Path) -> u64 {
    let mut filler = OpenOptions::new().append(true).create(true).open(path).unwrap();
    let mut size = 64 << 10;
    while size > 0 {
        match filler.write(&vec![7; size]) {
            Ok(written) if written == size => {}
            Ok(_) | Err(_) => size /= 2,
        }
    }
    let _ = filler.sync_all();
    filler.metadata().unwrap().len()
}

fn a_disk_is_filled_to_the_brim(disk: &Disk) {
    let trees = trees();
    let home = disk.path();
    day::begin(&home.join("work"));
    let mut history = History::open(&options(home)).unwrap();
    let first = history.checkpoint(Look::Everywhere, &[]).unwrap().unwrap().id;
    day::morning(&home.join("work"));
    let noon = history.checkpoint(Look::Everywhere, &[]).unwrap().unwrap().id;
    day::afternoon(&home.join("work"));
    let filler = home.join("filler");
    let mut full = fill(&filler);
    let (mut refused, mut undone) = (0, false);
    // Room comes back page by page, so every place where it runs out is met.
    while !undone {
        match history.undo(Look::Everywhere, &Selection::Last(1), &How::default()) {
            Ok(outcome) => {
                assert_eq!(outcome.remarks, []);
                undone = true;
            }
            Err(Error::NoSpace { .. }) => {
                refused += 1;
                let now = snapshot(&home.join("work"));
                assert!(now == trees[2], "an undo without room changes nothing");
            }
            Err(error) => panic!("not said to be for want of room: {error}"),
        }
        if !undone {
            assert!(full > 0, "all the room there is was not enough");
            full = full.saturating_sub(32 << 10);
            OpenOptions::new().write(true).open(&filler).unwrap().set_len(full).unwrap();
        }
    }
    assert!(refused > 0, "the disk was never full");
    fs::remove_file(&filler).unwrap();
    assert!(snapshot(&home.join("work")) == trees[1]);
    assert_eq!(history.verify(&mut |_, _| {}).unwrap().damaged, []);
    for (id, tree) in [(first, 0), (noon, 1)] {
        history.restore(Look::Everywhere, id, &How::default()).unwrap();
        assert!(snapshot(&home.join("work")) == trees[tree]);
    }
}

#[test]
fn a_small_filesystem_in_memory_is_filled() {
    a_disk_is_filled_to_the_brim(&Disk::in_memory(6 << 20));
}

#[test]
fn a_small_ext4_is_filled() {
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    a_disk_is_filled_to_the_brim(&Disk::loopback(&image(directory.path(), 12)));
}

#[test]
fn a_clock_that_goes_back_does_not_take_the_log_along() {
    let place = Place::new();
    let open = || History::open(&options(place.path())).unwrap();
    let first = open().checkpoint(Look::Everywhere, &[]).unwrap().unwrap();
    // As if the clock had been a day ahead when the first was made.
    let ahead = first.time + 86_400_000;
    let db = rusqlite::Connection::open(place.path().join("store/log.db")).unwrap();
    db.execute("update checkpoint set time = ?", [ahead]).unwrap();
    drop(db);
    let mut history = open();
    day::morning(&place.path().join("work"));
    let second = history.checkpoint(Look::Everywhere, &[]).unwrap().unwrap();
    assert_eq!(second.time, ahead);
    assert_eq!(history.at_time(ahead).unwrap(), second.id);
    let undone = history.undo(Look::Everywhere, &Selection::Last(1), &How::default()).unwrap();
    assert_eq!(undone.checkpoint.unwrap().time, ahead);
    assert!(history.at_time(first.time).is_err());
}
