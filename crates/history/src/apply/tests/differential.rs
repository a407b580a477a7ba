use super::harness::*;
use proptest::prelude::*;

/// Files that are the same before and after were not touched; others have the time the rules say.
fn assert_times(ground: &Ground, before: &State, target: &State) {
    let after = ground.state(&ground.live());
    for (path, (entry, _)) in target {
        if entry.is_directory() {
            continue;
        }
        let (now_entry, now) = &after[path];
        match before.get(path) {
            Some((old, was)) if old.same(entry) && entry.link.is_none() => {
                assert_eq!((now.inode, now.mtime, now.ctime), (was.inode, was.mtime, was.ctime));
            }
            Some((old, was)) if old.kind == entry.kind && entry.link.is_none() => {
                assert_eq!(now.mtime, was.mtime, "{path}");
                if old.link.is_none() && entry.mode & 0o6000 == 0 {
                    assert_eq!(now.inode, was.inode, "{path}");
                }
            }
            None if entry.link.is_none() => assert_eq!(now_entry.mtime, entry.mtime, "{path}"),
            Some((old, was)) if old.kind != entry.kind && entry.link.is_none() => {
                assert!(now.mtime >= was.mtime, "{path}");
                assert_ne!(now.inode, was.inode, "{path}");
            }
            Some(_) | None => {}
        }
    }
}

fn there_and_back(ground: &Ground, a: &Plan, b: &Plan, alike: bool) {
    build(&ground.live(), a);
    build(&ground.wanted(), b);
    let first = ground.state(&ground.live());
    let mut second = ground.state(&ground.wanted());
    if alike {
        number_links_alike(&first, &mut second);
    }
    ground.apply(&second);
    assert_times(ground, &first, &second);
    let between = ground.state(&ground.live());
    ground.apply(&first);
    assert_times(ground, &between, &first);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 250, ..ProptestConfig::default() })]

    #[test]
    fn any_tree_becomes_any_other_and_comes_back(a in any_plan(), b in any_plan(), alike: bool) {
        there_and_back(&Ground::new(), &a, &b, alike);
    }

    #[test]
    fn a_tree_comes_back_from_what_became_of_it((a, b) in any_change(), alike: bool) {
        there_and_back(&Ground::new(), &a, &b, alike);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, ..ProptestConfig::default() })]

    #[test]
    fn also_on_a_disk(a in any_plan(), b in any_plan(), alike: bool) {
        there_and_back(&Ground::on_disk(), &a, &b, alike);
    }
}
