//! Any sequence of changes, checkpoints, undos and restores, against snapshots of the real tree.
//!
//! The filesystem itself is the model: whatever a checkpoint saw is remembered beside the history,
//! byte for byte, and compared with what history says and does later. `PROPTEST_CASES` asks for more
//! than the usual number of cases.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on has failed")]

mod change;
mod check;
#[path = "../tree/mod.rs"]
mod tree;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use change::{Change, Program, Where, any_change, any_where, place};
use check::{Before, assert_like};
use nacre_history::{
    Author, Choice, Choices, Error, History, How, Look, Options, Outcome, Retention, Selection,
    TreePath,
};
use proptest::prelude::*;
use proptest::sample::Index;
use tree::{Snapshot, snapshot};

#[derive(Debug, Clone)]
enum Step {
    Change(Change),
    Checkpoint { by: Option<u8>, from_list: bool },
    Undo { count: u64, then_redo: bool },
    UndoOne(Index, Choice),
    UndoBy(u8),
    Redo,
    Restore { to: Index, within: Option<Where> },
    LookBack { at: Index, name: Where },
    Label(Index),
    Thin,
    Prune,
    Restart,
}

fn any_step() -> impl Strategy<Value = Step> {
    let choice = prop::sample::select(vec![Choice::Ask, Choice::Keep, Choice::Overwrite]);
    prop_oneof![
        30 => any_change().prop_map(Step::Change),
        8 => (proptest::option::of(0..2_u8), any::<bool>())
            .prop_map(|(by, from_list)| Step::Checkpoint { by, from_list }),
        3 => (1..4_u64, any::<bool>()).prop_map(|(count, then_redo)| Step::Undo { count, then_redo }),
        2 => (any::<Index>(), choice).prop_map(|(at, choice)| Step::UndoOne(at, choice)),
        1 => (0..2_u8).prop_map(Step::UndoBy),
        2 => Just(Step::Redo),
        3 => (any::<Index>(), proptest::option::of(any_where()))
            .prop_map(|(to, within)| Step::Restore { to, within }),
        2 => (any::<Index>(), any_where()).prop_map(|(at, name)| Step::LookBack { at, name }),
        1 => any::<Index>().prop_map(Step::Label),
        1 => Just(Step::Thin),
        1 => Just(Step::Prune),
        2 => Just(Step::Restart),
    ]
}

struct Machine {
    home: tempfile::TempDir,
    history: Option<History>,
    /// The tree as each checkpoint that there still is has seen it.
    past: BTreeMap<u64, Snapshot>,
    labelled: BTreeSet<u64>,
    /// Names that events told of since the last checkpoint.
    dirty: BTreeSet<TreePath>,
}

fn author(number: u8) -> Author {
    Author::Command { id: number.to_string(), line: "make".to_owned() }
}

impl Machine {
    fn new() -> Self {
        // In memory: what is tested here is what is done, not whether it lasts.
        let home = tempfile::tempdir_in("/dev/shm").unwrap();
        fs::create_dir(home.path().join("work")).unwrap();
        let (past, labelled, dirty) = (BTreeMap::new(), BTreeSet::new(), BTreeSet::new());
        let mut machine = Self { home, history: None, past, labelled, dirty };
        machine.restart();
        machine.checkpoint(None, false);
        machine
    }

    fn root(&self) -> PathBuf {
        self.home.path().join("work")
    }

    fn see(&self) -> Snapshot {
        snapshot(&self.root())
    }

    fn history(&mut self) -> &mut History {
        self.history.as_mut().unwrap()
    }

    fn restart(&mut self) {
        self.history = None;
        let options = Options::new(self.root(), self.home.path().join("store"));
        self.history = Some(History::open(&options).unwrap());
        assert!(!self.home.path().join("store/staging").exists());
    }

    fn checkpoint(&mut self, by: Option<u8>, from_list: bool) {
        let authors: Vec<Author> = by.into_iter().map(author).collect();
        let dirty = std::mem::take(&mut self.dirty);
        let look = if from_list { Look::At(&dirty) } else { Look::Everywhere };
        let made = self.history().checkpoint(look, &authors).unwrap();
        if let Some(made) = &made {
            assert_eq!(made.notes.remarks, [], "nobody else is at work");
            let seen = self.see();
            self.past.insert(made.id, seen);
        }
        let last = self.past.last_key_value().unwrap().1;
        assert_eq!(self.see(), *last, "recorded as unchanged, from a list: {from_list}");
        let rest = self.history().checkpoint(Look::Everywhere, &[]).unwrap();
        assert_eq!(rest, None, "a list of dirty names gives as much as a scan");
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Change(change) => {
                let (root, names) = (self.root(), self.see().into_keys().collect());
                Program { root: &root, names, dirty: &mut self.dirty }.make(change);
            }
            Step::Checkpoint { by, from_list } => self.checkpoint(*by, *from_list),
            Step::Undo { count, then_redo } => self.undo_last(*count, *then_redo),
            Step::UndoOne(at, choice) => {
                self.checkpoint(None, false);
                let id = self.pick(at);
                let choices = Choices { otherwise: *choice, ..Choices::default() };
                let how = How { choices, ..How::default() };
                self.operate(|history| {
                    history.undo(Look::Everywhere, &Selection::Checkpoints(vec![id]), &how)
                });
            }
            Step::UndoBy(number) => {
                self.checkpoint(None, false);
                let what = Selection::By(author(*number));
                self.operate(|history| history.undo(Look::Everywhere, &what, &How::default()));
            }
            Step::Redo => {
                self.checkpoint(None, false);
                self.operate(|history| history.redo(Look::Everywhere, &How::default()));
            }
            Step::Restore { to, within } => self.restore(to, within.as_ref()),
            Step::LookBack { at, name } => {
                let id = self.pick(at);
                let names: Vec<PathBuf> = self.past[&id].keys().cloned().collect();
                let name = place(&names, name);
                self.look_back(id, &name);
            }
            Step::Label(at) => {
                let id = self.pick(at);
                self.history().label(id, Some("kept")).unwrap();
                self.labelled.insert(id);
            }
            Step::Thin => self.maintain(u64::MAX),
            Step::Prune => self.maintain(40_000),
            Step::Restart => self.restart(),
        }
    }

    fn pick(&self, at: &Index) -> u64 {
        let ids: Vec<u64> = self.past.keys().copied().collect();
        *at.get(&ids)
    }

    /// Runs an operation on a tree that is recorded, and checks what is true of all of them.
    fn operate(
        &mut self,
        run: impl FnOnce(&mut History) -> Result<Outcome, Error>,
    ) -> Option<Outcome> {
        let before = Before::of(&self.root());
        let latest = self.history().latest().unwrap();
        let outcome = match run(self.history()) {
            Ok(outcome) => outcome,
            // Nothing to undo, or to redo.
            Err(Error::Invalid(_)) => {
                assert_eq!(self.see(), before.snapshot);
                return None;
            }
            Err(error) => panic!("{error}"),
        };
        let now = self.see();
        match &outcome.checkpoint {
            Some(made) => {
                assert_eq!(outcome.conflicts, []);
                before.assert_only_changed(&self.root(), &outcome);
                self.past.insert(made.id, now);
            }
            None => {
                assert_eq!(now, before.snapshot, "{outcome:?}");
                assert_eq!(self.history().latest().unwrap(), latest);
            }
        }
        let rest = self.history().checkpoint(Look::Everywhere, &[]).unwrap();
        assert_eq!(rest, None, "what an operation did is recorded");
        Some(outcome)
    }

    fn undo_last(&mut self, count: u64, then_redo: bool) {
        self.checkpoint(None, false);
        let before = self.see();
        let what = Selection::Last(count);
        let undone = self.operate(|history| history.undo(Look::Everywhere, &what, &How::default()));
        let Some(outcome) = undone.filter(|outcome| outcome.checkpoint.is_some()) else { return };
        let made = outcome.checkpoint.as_ref().unwrap().id;
        // When nothing else happened since, the result is the past itself.
        let earlier: Vec<u64> = self.past.range(..made).map(|(id, _)| *id).rev().collect();
        let newest: Vec<u64> = earlier.iter().take(outcome.of.len()).rev().copied().collect();
        if newest == outcome.of
            && let Some(to) = earlier.get(outcome.of.len())
        {
            assert_like(&self.see(), &self.past[to], "undo");
        }
        if then_redo && outcome.remarks.is_empty() {
            let redone = self.operate(|history| history.redo(Look::Everywhere, &How::default()));
            assert!(redone.is_some_and(|redone| redone.conflicts.is_empty()));
            assert_like(&self.see(), &before, "undo and redo");
        }
    }

    fn restore(&mut self, to: &Index, within: Option<&Where>) {
        self.checkpoint(None, false);
        let (id, before) = (self.pick(to), self.see());
        let names: Vec<PathBuf> = before
            .keys()
            .chain(self.past[&id].keys())
            .cloned()
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect();
        let within = within.map(|within| place(&names, within)).unwrap_or_default();
        let how = How {
            within: TreePath::parse(&within).unwrap(),
            choices: Choices { otherwise: Choice::Overwrite, ..Choices::default() },
            ..How::default()
        };
        self.operate(|history| history.restore(Look::Everywhere, id, &how));
        check::assert_restored(&before, &self.see(), &self.past[&id], &within);
    }

    fn look_back(&mut self, id: u64, name: &std::path::Path) {
        let node = self.past[&id].get(name).cloned();
        let path = TreePath::parse(name).unwrap();
        let entry = self.history().entry_at(&path, id).unwrap();
        check::assert_entry(entry.as_ref(), node.as_ref(), &path);
        let mut bytes = Vec::new();
        let read = self.history().read_at(&path, id, &mut bytes);
        match node.map(|node| node.kind) {
            Some(tree::Kind::File(expected)) => {
                read.unwrap();
                assert_eq!(bytes, expected);
            }
            Some(_) => assert!(matches!(read, Err(Error::Invalid(_)))),
            None => assert!(matches!(read, Err(Error::NotThere(_)))),
        }
    }

    fn maintain(&mut self, quota: u64) {
        let before = self.see();
        let retention = Retention { quota, hourly_after: -1_000_000, daily_after: i64::MAX };
        let now = self.history().latest().unwrap().unwrap().time;
        let done = self.history().maintain(&retention, now).unwrap();
        let query = nacre_history::Query { limit: 10_000, ..nacre_history::Query::default() };
        let kept: BTreeSet<u64> =
            self.history().list(&query).unwrap().checkpoints.iter().map(|kept| kept.id).collect();
        let known = self.past.len();
        self.past.retain(|id, _| kept.contains(id));
        assert_eq!(self.past.len(), kept.len(), "nothing is invented");
        assert_eq!((known - kept.len()) as u64, done.merged + done.dropped);
        if done.dropped == 0 {
            assert!(self.labelled.is_subset(&kept), "a label keeps a checkpoint from thinning");
        }
        self.labelled.retain(|id| kept.contains(id));
        assert_eq!(self.see(), before);
    }

    /// Every moment that is left can be looked at, and gone back to.
    fn go_everywhere(&mut self) {
        self.checkpoint(None, true);
        assert_eq!(self.history().verify(&mut |_, _| {}).unwrap().damaged, []);
        let past = self.past.clone();
        for (id, then) in &past {
            for name in then.keys() {
                self.look_back(*id, name);
            }
        }
        for id in past.keys().rev() {
            let before = self.see();
            let how = How {
                choices: Choices { otherwise: Choice::Overwrite, ..Choices::default() },
                ..How::default()
            };
            self.operate(|history| history.restore(Look::Everywhere, *id, &how));
            check::assert_restored(&before, &self.see(), &past[id], std::path::Path::new(""));
        }
    }
}

fn run(steps: &[Step]) {
    let mut machine = Machine::new();
    // Shown when it fails: the steps choose among the names there are.
    eprintln!("=== begins");
    for step in steps {
        eprintln!("{step:?} with {:?}", machine.see().keys());
        machine.step(step);
    }
    machine.go_everywhere();
}

fn cases() -> ProptestConfig {
    let asked = std::env::var("PROPTEST_CASES").ok().and_then(|text| text.parse().ok());
    ProptestConfig {
        cases: asked.unwrap_or(64),
        max_shrink_iters: 400,
        failure_persistence: Some(Box::new(
            proptest::test_runner::FileFailurePersistence::WithSource("regressions"),
        )),
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn whatever_happens_every_moment_comes_back(
        steps in prop::collection::vec(any_step(), 1..40)
    ) {
        run(&steps);
    }
}
