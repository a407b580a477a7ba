//! A store to damage, and everything that can be asked of it afterwards: nothing panics, and nothing
//! wrong is given out. For the tests of damage and for the fuzz target.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use nacre_history::{Choice, Choices, Error, History, How, Look, Query, Selection, TreePath};

use crate::day::check::trees;
use crate::day::{self, options};
use crate::tree::{Kind, Snapshot};

/// A store as it is left by a good end, or by a crash with much in the log that is written ahead.
pub(crate) struct Template {
    pub(crate) home: tempfile::TempDir,
    /// Which tree each checkpoint has seen.
    pub(crate) past: BTreeMap<u64, Snapshot>,
}

pub(crate) fn template(crashed: bool) -> &'static Template {
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

pub(crate) fn copy(from: &Path, to: &Path) {
    let done = std::process::Command::new("cp").arg("-a").arg(from.join(".")).arg(to).status();
    assert!(done.unwrap().success());
}

/// The database, what is written ahead of it, and the packs, each as likely.
pub(crate) fn files(store: &Path) -> Vec<PathBuf> {
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

/// Asks for everything that can be asked for.
pub(crate) fn use_it(home: &Path, past: &BTreeMap<u64, Snapshot>) -> Result<(), Error> {
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
