//! Killed at any system call, history loses nothing that it has acknowledged and leaves no tree half
//! changed. `NACRE_LONG=1` tries every call instead of a sample.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on has failed")]

mod day;
mod tree;

use day::check::{check, trees};
use day::run::{CALLS, Place, count, kill_at, live, sample};

#[test]
fn a_kill_at_any_call_loses_nothing() {
    let trees = trees();
    let clean = Place::new();
    let counts = count(clean.path(), &[]);
    assert!(clean.said().ended);
    check(clean.path(), &clean.said(), &clean.still, &trees);
    let mut killed = 0;
    for calls in CALLS {
        for nth in sample(counts[calls], 6) {
            eprintln!("kill at {calls} {nth} of {}", counts[calls]);
            let place = Place::new();
            live(place.path(), &Place::acknowledgements(place.path()), &[], &kill_at(calls, nth));
            let said = place.said();
            killed += usize::from(!said.ended);
            check(place.path(), &said, &place.still, &trees);
        }
    }
    assert!(killed > 2 * CALLS.len(), "only {killed} were killed: is strace injecting?");
}

/// The first kill leaves a restore half done, the second falls upon finishing it.
#[test]
fn a_kill_at_any_call_of_the_recovery_loses_nothing() {
    let trees = trees();
    let swap = "rename,renameat,renameat2";
    let counts = count(Place::new().path(), &[]);
    // The day's own renames are at the beginning.
    let swaps = sample(counts[swap], counts[swap].min(12));
    for nth in swaps.into_iter().skip(2).step_by(3) {
        let killed = |place: &Place| {
            let said = Place::acknowledgements(place.path());
            live(place.path(), &said, &[], &kill_at(swap, nth));
        };
        let probe = Place::new();
        killed(&probe);
        let recovery = count(probe.path(), &["reopen"]);
        for calls in CALLS {
            for again in sample(recovery[calls], 2) {
                eprintln!("kill at swap {nth}, then at {calls} {again}");
                let place = Place::new();
                killed(&place);
                let said = Place::acknowledgements(place.path());
                live(place.path(), &said, &["reopen"], &kill_at(calls, again));
                check(place.path(), &place.said(), &place.still, &trees);
            }
        }
    }
}
