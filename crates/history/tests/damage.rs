//! A store whose files are damaged: nothing panics, nothing wrong is given out, and what is not hit
//! can still be read. `PROPTEST_CASES` asks for more cases.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on has failed")]

mod day;
mod tree;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use day::check::trees;
use day::options;
use nacre_history::{Choice, Choices, Error, History, How, Look, Query, Selection, TreePath};
use proptest::prelude::*;
use proptest::sample::Index;
use tree::{Kind, Snapshot};

/// A store as it is left by a good end, or by a crash with much in the log that is written ahead.
struct Template {
    home: tempfile::TempDir,
    /// Which tree each checkpoint has seen.
    past: BTreeMap<u64, Snapshot>,
}

fn template(crashed: bool) -> &'static Template {
    static TEMPLATES: [OnceLock<Template>; 2] = [OnceLock::new(), OnceLock::new()];
    TEMPLATES[usize::from(crashed)].get_or_init(|| {
        let live = tempfile::tempdir_in("/dev/shm").unwrap();
        let home = tempfile::tempdir_in("/dev/shm").unwrap();
        let (work, [begun, noon, evening]) = (live.path().join("work"), trees());
        day::begin(&work);
        let mut history = History::open(&options(live.path())).unwrap();
        let mut past = BTreeMap::new();
        let mut record = |history: &mut History, seen: &Snapshot| {
            let made = history.checkpoint(Look::Everywhere, &[]).unwrap().unwrap();
            past.insert(made.id, seen.clone());
        };
        record(&mut history, &begun);
        day::morning(&work);
        record(&mut history, &noon);
        day::afternoon(&work);
        record(&mut history, &evening);
        let undone = history.undo(Look::Everywhere, &Selection::Last(1), &How::default()).unwrap();
        past.insert(undone.checkpoint.unwrap().id, noon);
        if !crashed {
            drop(history);
        }
        copy(live.path(), home.path());
        Template { home, past }
    })
}

fn copy(from: &Path, to: &Path) {
    let done = std::process::Command::new("cp").arg("-a").arg(from.join(".")).arg(to).status();
    assert!(done.unwrap().success());
}

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

/// The database, what is written ahead of it, and the packs, each as likely.
fn files(store: &Path) -> Vec<PathBuf> {
    let mut todo = vec![store.to_owned()];
    let mut files = Vec::new();
    while let Some(directory) = todo.pop() {
        for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
            match entry.file_type().unwrap().is_dir() {
                true => todo.push(entry.path()),
                false => files.push(entry.path()),
            }
        }
    }
    files.retain(|file| fs::metadata(file).unwrap().len() > 0);
    files.sort();
    files
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

/// Asks for everything that can be asked for.
fn use_it(home: &Path, past: &BTreeMap<u64, Snapshot>) -> Result<(), Error> {
    let mut history = History::open(&options(home))?;
    let _ = history.list(&Query { limit: 100, ..Query::default() });
    let _ = history.usage(3);
    let _ = history.verify(&mut |_, _| {});
    let _ = history.export_git("all", &mut std::io::sink());
    let names: Vec<&PathBuf> = past.values().flat_map(Snapshot::keys).collect();
    for (id, then) in past {
        let _ = history.show(*id);
        let _ = history.between(1, *id, &TreePath::root()).map(|delta| {
            delta.changes().iter().for_each(|change| drop(history.diff(change)));
        });
        for name in &names {
            let path = TreePath::parse(name).unwrap();
            let _ = history.entry_at(&path, *id);
            let mut bytes = Vec::new();
            if history.read_at(&path, *id, &mut bytes).is_ok() {
                let Some(Kind::File(expected)) = then.get(*name).map(|node| &node.kind) else {
                    panic!("{path} was no file at {id}");
                };
                assert!(bytes == *expected, "{path} at {id} was something else");
            }
        }
    }
    let how = How {
        choices: Choices { otherwise: Choice::Overwrite, ..Choices::default() },
        ..How::default()
    };
    let _ = history.checkpoint(Look::Everywhere, &[]);
    for id in past.keys() {
        let _ = history.restore(Look::Everywhere, *id, &how);
    }
    let _ = history.undo(Look::Everywhere, &Selection::Last(1), &how);
    Ok(())
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
