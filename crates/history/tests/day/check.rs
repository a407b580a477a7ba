//! What must be true after an interruption.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use nacre_history::{Choice, Choices, History, How, Look, Query, TreePath};

use super::{STEPS, TREES, options};
use crate::tree::{Kind, Node, Snapshot, identities, snapshot};

/// The three trees of the day.
pub(crate) fn trees() -> [Snapshot; 3] {
    let home = tempfile::tempdir_in("/dev/shm").unwrap();
    let work = home.path().join("work");
    super::begin(&work);
    let begun = snapshot(&work);
    super::morning(&work);
    let noon = snapshot(&work);
    super::afternoon(&work);
    [begun, noon, snapshot(&work)]
}

/// What was acknowledged before the end.
#[derive(Debug, Default, Clone)]
pub(crate) struct Acknowledged {
    /// The checkpoints, by step.
    pub(crate) done: Vec<u64>,
    /// The files were being changed, and by whom but history: the tree is anything.
    pub(crate) changing: bool,
    /// A step was refused, and why.
    pub(crate) refused: Option<String>,
    pub(crate) ended: bool,
}

impl Acknowledged {
    pub(crate) fn parse(text: &str) -> Self {
        let mut all = Self::default();
        for line in text.lines() {
            match line.split_once(' ').unwrap_or((line, "")) {
                ("done", id) => all.done.push(id.parse().unwrap()),
                ("changing", _) => all.changing = true,
                ("changed", _) => all.changing = false,
                ("refused", why) => all.refused = Some(why.to_owned()),
                ("end", _) => all.ended = true,
                (other, _) => assert_eq!(other, "open"),
            }
        }
        all
    }
}

/// Files that the day has nothing to do with.
pub(crate) type Still = BTreeMap<PathBuf, (u64, i64, i64, u64)>;

pub(crate) fn still(home: &Path) -> Still {
    let work = home.join("work");
    let names = snapshot(&work);
    let mut all = identities(&work, &names);
    let directory = |name: &PathBuf| names[name].kind == Kind::Directory;
    all.retain(|name, _| name.starts_with("still") && !directory(name));
    assert_eq!(all.len(), 2);
    all
}

/// Opens what is left and holds it to everything that was said.
pub(crate) fn check(home: &Path, said: &Acknowledged, still_before: &Still, trees: &[Snapshot; 3]) {
    let mut history = History::open(&options(home)).expect("opens after the interruption");
    assert!(!home.join("store/staging").exists(), "staging is cleared");
    assert_eq!(still(home), *still_before, "files that are not involved are not touched");
    if !said.changing {
        assert_tree(home, said, trees);
    }
    assert_past(&mut history, said, trees);
    assert_eq!(history.verify(&mut |_, _| {}).unwrap().damaged, []);
    // And it goes on.
    history.checkpoint(Look::Everywhere, &[]).expect("records again");
    if let (Some(id), Some(step)) = (said.done.last(), said.done.len().checked_sub(1)) {
        let choices = Choices { otherwise: Choice::Overwrite, ..Choices::default() };
        let how = How { choices, ..How::default() };
        let outcome = history.restore(Look::Everywhere, *id, &how).expect("restores again");
        assert_eq!(outcome.remarks, []);
        assert_eq!(snapshot(&home.join("work")), trees[TREES[step]], "restored to {}", STEPS[step]);
        assert_eq!(history.checkpoint(Look::Everywhere, &[]).unwrap(), None);
    }
}

/// As before or as after the step that was interrupted.
pub(crate) fn assert_tree(home: &Path, said: &Acknowledged, trees: &[Snapshot; 3]) {
    let now = snapshot(&home.join("work"));
    let step = said.done.len();
    // What the people of the day changed is there before the step begins that records it.
    let before = match STEPS.get(step) {
        Some(&"first") => 0,
        Some(_) if step < 3 => usize::MAX,
        Some(_) | None => TREES[step - 1],
    };
    let may_be: Vec<usize> = match STEPS.get(step) {
        Some(_) if before == usize::MAX => vec![TREES[step - 1], TREES[step]],
        Some(_) => vec![before, TREES[step]],
        None => vec![before],
    };
    if may_be.iter().any(|tree| trees[*tree] == now) {
        return;
    }
    for tree in may_be {
        let wanted = &trees[tree];
        let names = now.keys().chain(wanted.keys());
        let different: Vec<_> = names
            .filter(|name| now.get(*name) != wanted.get(*name))
            .map(|name| {
                format!("{}: {:?}, not {:?}", name.display(), now.get(name), wanted.get(name))
            })
            .collect();
        eprintln!("after {step} steps the tree is not {tree}: {different:#?}");
    }
    panic!("after {step} steps the tree is neither as before nor as after");
}

fn assert_past(history: &mut History, said: &Acknowledged, trees: &[Snapshot; 3]) {
    let query = Query { limit: 100, ..Query::default() };
    let list = history.list(&query).unwrap().checkpoints;
    for (step, id) in said.done.iter().enumerate() {
        assert!(list.iter().any(|there| there.id == *id), "{} was acknowledged", STEPS[step]);
        for (name, node) in &trees[TREES[step]] {
            assert_was(history, *id, name, node);
        }
        let names = trees.iter().flat_map(Snapshot::keys);
        for gone in names.filter(|name| !trees[TREES[step]].contains_key(*name)) {
            let path = TreePath::parse(gone).unwrap();
            assert_eq!(history.entry_at(&path, *id).unwrap(), None, "{path}");
        }
    }
}

fn assert_was(history: &mut History, id: u64, name: &Path, node: &Node) {
    let path = TreePath::parse(name).unwrap();
    let entry = history.entry_at(&path, id).unwrap().expect("it was there");
    let (is, was) = ((entry.mode, entry.uid, entry.gid), (node.mode, node.owner.0, node.owner.1));
    assert_eq!(is, was, "{path} at {id}");
    assert_eq!(entry.link.is_some(), node.twin_of.is_some(), "{path}");
    if let Kind::File(expected) = &node.kind {
        let mut bytes = Vec::new();
        history.read_at(&path, id, &mut bytes).unwrap();
        assert!(bytes == *expected, "{path} at {id}");
    }
}
