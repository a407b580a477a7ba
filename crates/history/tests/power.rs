//! A disk that loses power keeps what history has acknowledged: ext4 in a file, of which a copy is
//! taken in the moment the program is killed, so that whatever was not synced is missing.
//! `NACRE_LONG=1` tries every call instead of a sample.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on has failed")]

mod day;
mod tree;

use day::check::trees;
use day::power::Socket;
use day::run::{Place, count, kill_at, sample};

/// Before and after each of these the disk may differ.
const CALLS: [&str; 6] =
    ["fsync", "fdatasync", "syncfs", "rename,renameat,renameat2", "pwrite64", "write"];

#[test]
fn a_power_cut_at_any_call_loses_nothing() {
    let trees = trees();
    let socket = Socket::new();
    let clean = socket.pull(&[], &[], &trees);
    assert!(clean.ended, "{clean:?}");
    let counts = count(Place::new().path(), &["sync"]);
    let mut cut = 0;
    for calls in CALLS {
        for nth in sample(counts[calls], 8) {
            eprintln!("power cut at {calls} {nth} of {}", counts[calls]);
            let said = socket.pull(&kill_at(calls, nth), &[], &trees);
            cut += usize::from(!said.ended);
        }
    }
    assert!(cut > 2 * CALLS.len(), "only {cut} were cut: is strace injecting?");
}
