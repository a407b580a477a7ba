//! A store whose files are damaged: nothing panics, nothing wrong is given out, and what is not hit
//! can still be read. `PROPTEST_CASES` asks for more cases.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on has failed")]

mod damaged;
mod day;
mod tree;

use std::fs;
use std::path::Path;

use damaged::{copy, files, template, use_it};
use proptest::prelude::*;
use proptest::sample::Index;

#[derive(Debug, Clone)]
enum Damage {
    Flip(Index, u8),
    Cut(Index),
    Blank(Index, u16),
    Remove,
}

fn any_damage() -> impl Strategy<Value = Damage> {
    prop_oneof![
        6 => (any::<Index>(), 1..=255_u8).prop_map(|(at, mask)| Damage::Flip(at, mask)),
        2 => any::<Index>().prop_map(Damage::Cut),
        2 => (any::<Index>(), 1..5000_u16).prop_map(|(at, length)| Damage::Blank(at, length)),
        1 => Just(Damage::Remove),
    ]
}

fn inflict(file: &Path, damage: &Damage) {
    let mut bytes = fs::read(file).unwrap();
    if bytes.is_empty() {
        return;
    }
    let length = bytes.len();
    match damage {
        Damage::Flip(at, mask) => bytes[at.index(length)] ^= mask,
        Damage::Cut(at) => bytes.truncate(at.index(length)),
        Damage::Blank(at, blank) => {
            let at = at.index(length);
            bytes[at..length.min(at + usize::from(*blank))].fill(0);
        }
        Damage::Remove => return fs::remove_file(file).unwrap(),
    }
    fs::write(file, bytes).unwrap();
}

fn cases() -> ProptestConfig {
    let asked = std::env::var("PROPTEST_CASES").ok().and_then(|text| text.parse().ok());
    let persistence = proptest::test_runner::FileFailurePersistence::WithSource("regressions");
    ProptestConfig {
        cases: asked.unwrap_or(150),
        max_shrink_iters: 100,
        failure_persistence: Some(Box::new(persistence)),
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn damage_is_never_given_out(
        crashed: bool,
        all in prop::collection::vec((any::<Index>(), any_damage()), 1..4),
    ) {
        let template = template(crashed);
        let home = tempfile::tempdir_in("/dev/shm").unwrap();
        copy(template.home.path(), home.path());
        for (file, damage) in &all {
            let files = files(&home.path().join("store"));
            if !files.is_empty() {
                let file = &files[file.index(files.len())];
                eprintln!("{damage:?} of {:?}", file.file_name());
                inflict(file, damage);
            }
        }
        let _ = use_it(home.path(), &template.past);
    }
}
