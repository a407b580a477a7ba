//! The tests that interrupt history would notice if it did something wrong.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on has failed")]

mod day;
mod tree;

use std::panic::{AssertUnwindSafe, catch_unwind};

use day::check::{check, trees};
use day::power::Socket;
use day::run::{Place, count, kill_at, live};
use nacre_history::planted::Fault;

const SWAP: &str = "rename,renameat,renameat2";

/// Whether one of the kills at some of these calls shows the fault.
fn killing_shows(fault: Fault, calls: &str) -> bool {
    let (trees, fault) = (trees(), format!("{fault:?}"));
    let counts = count(Place::new().path(), &[]);
    (1..=counts[calls]).any(|nth| {
        let place = Place::new();
        let said = Place::acknowledgements(place.path());
        live(place.path(), &said, &[&fault], &kill_at(calls, nth));
        let checked = AssertUnwindSafe(|| check(place.path(), &place.said(), &place.still, &trees));
        catch_unwind(checked).is_err()
    })
}

fn a_power_cut_shows(fault: Fault, calls: &str) -> bool {
    let (trees, fault, socket) = (trees(), format!("{fault:?}"), Socket::new());
    let counts = count(Place::new().path(), &["sync"]);
    (1..=counts[calls]).any(|nth| {
        let pulled = AssertUnwindSafe(|| socket.pull(&kill_at(calls, nth), &[&fault], &trees));
        catch_unwind(pulled).is_err()
    })
}

#[test]
fn a_tree_that_is_touched_without_a_journal_is_noticed() {
    assert!(killing_shows(Fault::NoJournal, SWAP));
}

#[test]
fn a_checkpoint_of_what_is_not_yet_there_is_noticed() {
    assert!(killing_shows(Fault::RecordedTooSoon, SWAP));
}

#[test]
fn a_name_that_is_forgotten_is_noticed() {
    assert!(killing_shows(Fault::NameForgotten, SWAP));
}

#[test]
fn contents_that_are_not_on_the_disk_are_noticed() {
    // Between what is said and the next change, which is synced with all that was written before.
    assert!(a_power_cut_shows(Fault::PackNotSynced, "write"));
}

#[test]
fn a_log_that_is_not_on_the_disk_is_noticed() {
    assert!(a_power_cut_shows(Fault::LogNotSynced, SWAP));
}

#[test]
fn new_files_that_are_not_on_the_disk_are_noticed() {
    assert!(a_power_cut_shows(Fault::StagingNotSynced, SWAP));
}
