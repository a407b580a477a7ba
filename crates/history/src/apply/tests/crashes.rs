use super::harness::*;
use crate::apply::at::crash;
use crate::apply::{Journal, clear};
use proptest::prelude::*;

/// Makes both trees anew, stages, crashes after `changes` of each of the `threads`, maybe again, and
/// finishes. Tells whether it crashed at all.
fn crash_and_finish(
    threads: usize,
    (a, b): (&Plan, &Plan),
    changes: u64,
    again: Option<u64>,
) -> bool {
    let ground = Ground::new();
    build(&ground.live(), a);
    build(&ground.wanted(), b);
    let target = ground.state(&ground.wanted());
    let stored = ground.stage(&target).encode();
    let publish = || ground.publish_in(threads, &Journal::decode(&stored).unwrap());
    let crashed = crash::after(changes, publish);
    if crashed.is_some() {
        return false;
    }
    if let Some(again) = again {
        let _ = crash::after(again, publish);
    }
    let outcome = publish();
    assert_eq!(outcome.left, [], "after {changes} and {again:?}");
    ground.assert_live_is(&target);
    clear(&ground.staging()).unwrap();
    ground.assert_live_is(&target);
    true
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn a_crash_at_any_change_is_finished((a, b) in any_change(), threads in 1..=3_usize) {
        let crash = |changes, again| crash_and_finish(threads, (&a, &b), changes, again);
        let crashes = (0..).take_while(|changes| crash(*changes, None)).count();
        for changes in 0..crashes as u64 {
            for again in [0, 1, 3] {
                crash(changes, Some(again));
            }
        }
    }
}

#[test]
fn what_is_done_after_a_swap_stays_when_the_swap_is_finished_later() {
    let ground = Ground::new();
    for (name, bytes) in [("replaced", "old"), ("removed", "old"), ("z", "old")] {
        std::fs::write(ground.live().join(name), bytes).unwrap();
    }
    for name in ["replaced", "z"] {
        std::fs::write(ground.wanted().join(name), "new bytes").unwrap();
    }
    let journal = ground.stage(&ground.state(&ground.wanted()));
    // The removal and the first swap are done, the second is not.
    assert!(crash::after(2, || ground.publish(&journal)).is_none());
    assert_eq!(std::fs::read(ground.live().join("replaced")).unwrap(), b"new bytes");
    std::fs::write(ground.around.path().join("save"), "later").unwrap();
    std::fs::rename(ground.around.path().join("save"), ground.live().join("replaced")).unwrap();
    std::fs::write(ground.live().join("removed"), "later").unwrap();
    assert_eq!(ground.publish(&journal).left, []);
    for (name, bytes) in [("replaced", "later"), ("removed", "later"), ("z", "new bytes")] {
        assert_eq!(std::fs::read_to_string(ground.live().join(name)).unwrap(), bytes, "{name}");
    }
    assert!(ground.displaced(&journal).is_empty());
}

#[test]
fn a_file_that_others_removed_is_not_missed_after_its_directory_went() {
    let ground = Ground::new();
    std::fs::create_dir(ground.live().join("d")).unwrap();
    for name in ["d/x", "z"] {
        std::fs::write(ground.live().join(name), "old").unwrap();
    }
    std::fs::write(ground.wanted().join("z"), "new bytes").unwrap();
    let journal = ground.stage(&ground.state(&ground.wanted()));
    std::fs::remove_file(ground.live().join("d/x")).unwrap();
    assert!(crash::after(1, || ground.publish(&journal)).is_none());
    assert!(!ground.live().join("d").exists());
    assert_eq!(ground.publish(&journal).left, []);
    ground.assert_live_is(&ground.state(&ground.wanted()));
}
