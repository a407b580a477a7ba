//! Which names to set to what, to take changes back and keep everything else.
//!
//! Pure: it looks names up and touches nothing. A name is taken back when the present is still what
//! the changes made of it. Otherwise somebody changed it later, and only the caller can say which of
//! the two shall be: that is a [`Conflict`], and nothing is guessed.

use std::collections::{BTreeMap, HashSet};

use serde::{Deserialize, Serialize};

use crate::checkpoint::{Remark, What};
use crate::delta::Delta;
use crate::entry::Entry;
use crate::error::Result;
use crate::path::TreePath;

/// What names shall be.
pub(crate) type Targets = BTreeMap<TreePath, Option<Entry>>;

/// A name that cannot be taken back without losing a later change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    pub path: TreePath,
    pub reason: Reason,
    pub present: Option<Entry>,
    /// What it would become.
    pub target: Option<Entry>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// Something else changed it since.
    ChangedLater,
    /// Something else changed it between two of the changes.
    ChangedBetween,
    /// It is a directory that holds files which came later.
    HoldsLaterFiles,
    /// A later file stands where its directory was.
    ParentReplaced,
}

/// What to do about a conflict.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Choice {
    /// Do nothing at all and report every conflict.
    #[default]
    Ask,
    /// Leave the name as it is.
    Keep,
    /// Take it back all the same. The later change stays in the history.
    Overwrite,
}

/// Choices by name; one for a directory counts for what is below it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Choices {
    pub otherwise: Choice,
    pub paths: BTreeMap<TreePath, Choice>,
}

impl Choices {
    fn of(&self, path: &TreePath) -> Choice {
        std::iter::once(path.clone())
            .chain(path.ancestors())
            .find_map(|path| self.paths.get(&path).copied())
            .unwrap_or(self.otherwise)
    }
}

/// The recorded present, and a little of the past.
pub(crate) trait Present {
    fn entry(&self, path: &TreePath) -> Result<Option<Entry>>;
    /// Names below, in any order.
    fn below(&self, path: &TreePath) -> Result<Vec<TreePath>>;
    /// What a name was when it last was a directory.
    fn last_directory(&self, path: &TreePath) -> Result<Option<Entry>>;
}

/// What came of it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Decided {
    pub(crate) targets: Targets,
    pub(crate) conflicts: Vec<Conflict>,
    pub(crate) remarks: Vec<Remark>,
}

/// Takes back `deltas`, given oldest first, as far as they are within `within`.
pub(crate) fn take_back<'a>(
    deltas: impl IntoIterator<Item = &'a Delta>,
    within: &TreePath,
    choices: &Choices,
    present: &dyn Present,
) -> Result<Decided> {
    let mut decided = Decided::default();
    for (path, chain) in chains(deltas, within) {
        let now = present.entry(&path)?;
        if same(&now, &chain.old) {
            continue;
        }
        let reason = if !same(&now, &chain.new) {
            Some(Reason::ChangedLater)
        } else if chain.broken {
            Some(Reason::ChangedBetween)
        } else {
            None
        };
        let conflict = |reason| Conflict {
            path: path.clone(),
            reason,
            present: now.clone(),
            target: chain.old.clone(),
        };
        if reason.is_none_or(|reason| decided.settle(conflict(reason), choices)) {
            decided.targets.insert(path, chain.old);
        }
    }
    fit(&mut decided, choices, present)?;
    Ok(decided)
}

/// Sets names to `targets`, which the caller has asked for by name.
pub(crate) fn set_to(
    targets: Targets,
    choices: &Choices,
    present: &dyn Present,
) -> Result<Decided> {
    let mut decided = Decided::default();
    for (path, target) in targets {
        if !same(&present.entry(&path)?, &target) {
            decided.targets.insert(path, target);
        }
    }
    fit(&mut decided, choices, present)?;
    Ok(decided)
}

/// The changes of one name, joined.
struct Chain {
    old: Option<Entry>,
    new: Option<Entry>,
    /// One change did not begin where the one before it ended.
    broken: bool,
}

fn chains<'a>(
    deltas: impl IntoIterator<Item = &'a Delta>,
    within: &TreePath,
) -> BTreeMap<TreePath, Chain> {
    let mut chains: BTreeMap<TreePath, Chain> = BTreeMap::new();
    let changes = deltas.into_iter().flat_map(Delta::changes);
    for change in changes.filter(|change| change.path.is_within(within)) {
        match chains.get_mut(&change.path) {
            Some(chain) => {
                chain.broken |= !same(&chain.new, &change.old);
                chain.new = change.new.clone();
            }
            None => {
                let (old, new) = (change.old.clone(), change.new.clone());
                chains.insert(change.path.clone(), Chain { old, new, broken: false });
            }
        }
    }
    chains
}

fn same(one: &Option<Entry>, other: &Option<Entry>) -> bool {
    match (one, other) {
        (None, None) => true,
        (Some(one), Some(other)) => one.same(other),
        (None, Some(_)) | (Some(_), None) => false,
    }
}

impl Decided {
    /// Whether to go ahead in spite of a conflict.
    fn settle(&mut self, conflict: Conflict, choices: &Choices) -> bool {
        match choices.of(&conflict.path) {
            Choice::Ask => {
                // One question for each name is enough.
                if self.conflicts.iter().all(|known| known.path != conflict.path) {
                    self.conflicts.push(conflict);
                }
                false
            }
            Choice::Keep => false,
            Choice::Overwrite => true,
        }
    }

    fn after(&self, path: &TreePath, present: &dyn Present) -> Result<Option<Entry>> {
        match self.targets.get(path) {
            Some(target) => Ok(target.clone()),
            None => present.entry(path),
        }
    }
}

/// Makes the targets a tree: what shall be has a directory to be in, and a directory that shall go is
/// empty.
fn fit(decided: &mut Decided, choices: &Choices, present: &dyn Present) -> Result<()> {
    let wanted: Vec<TreePath> = decided
        .targets
        .iter()
        .filter(|(_, target)| target.is_some())
        .map(|(path, _)| path.clone())
        .collect();
    let mut fitted = HashSet::new();
    for path in wanted {
        // Names that share a directory share those above it.
        let parent = path.parent().unwrap_or_default();
        if !fitted.contains(&parent) && fit_parents(decided, &path, choices, present)? {
            fitted.insert(parent);
        }
    }
    // From the deepest up: a directory that stays keeps its parents.
    let going: Vec<TreePath> = decided.targets.keys().rev().cloned().collect();
    for path in going {
        fit_directory(decided, &path, choices, present)?;
    }
    Ok(())
}

/// Whether there is or will be a directory for it.
fn fit_parents(
    decided: &mut Decided,
    path: &TreePath,
    choices: &Choices,
    present: &dyn Present,
) -> Result<bool> {
    let mut parents: Vec<TreePath> = path.ancestors().filter(|parent| !parent.is_root()).collect();
    parents.reverse();
    for parent in parents {
        let after = decided.after(&parent, present)?;
        if after.as_ref().is_some_and(Entry::is_directory) {
            continue;
        }
        let directory = present.last_directory(&parent)?;
        let conflict = Conflict {
            path: parent.clone(),
            reason: Reason::ParentReplaced,
            present: present.entry(&parent)?,
            target: directory.clone(),
        };
        let free = after.is_none() && conflict.present.is_none();
        match directory {
            Some(directory) if free || decided.settle(conflict, choices) => {
                decided.targets.insert(parent, Some(directory));
            }
            Some(_) | None => {
                decided.targets.remove(path);
                let why = format!("{parent} is no directory any more");
                let what = What::LeftAlone { why };
                decided.remarks.push(Remark { path: path.clone(), what });
                return Ok(false);
            }
        }
    }
    Ok(true)
}

fn fit_directory(
    decided: &mut Decided,
    path: &TreePath,
    choices: &Choices,
    present: &dyn Present,
) -> Result<()> {
    let Some(target) = decided.targets.get(path).cloned() else { return Ok(()) };
    let now = present.entry(path)?;
    let goes = now.as_ref().is_some_and(Entry::is_directory)
        && !target.as_ref().is_some_and(Entry::is_directory);
    if !goes {
        return Ok(());
    }
    let mut staying = Vec::new();
    for child in present.below(path)? {
        if decided.after(&child, present)?.is_some() {
            staying.push(child);
        }
    }
    if staying.is_empty() {
        return Ok(());
    }
    if target.is_none() {
        // It was made by what is taken back, and is used by what came later.
        decided.targets.remove(path);
        return Ok(());
    }
    let conflict =
        Conflict { path: path.clone(), reason: Reason::HoldsLaterFiles, present: now, target };
    if decided.settle(conflict, choices) {
        decided.targets.extend(staying.into_iter().map(|child| (child, None)));
    } else {
        decided.targets.remove(path);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::delta::Change;
    use crate::entry::{Content, ContentId, Kind};
    use std::path::Path;

    /// Names with a slash at the end are directories; other values are contents.
    struct Tree(BTreeMap<TreePath, Entry>);

    fn path(text: &str) -> TreePath {
        TreePath::parse(Path::new(text)).unwrap()
    }

    fn entry(content: &str) -> Entry {
        let kind = match content {
            "/" => Kind::Directory,
            text => Kind::File {
                size: text.len() as u64,
                content: Content::Kept(ContentId::of(text.as_bytes())),
            },
        };
        Entry { kind, mode: 0o644, uid: 0, gid: 0, mtime: 0, link: None, xattrs: Vec::new() }
    }

    fn tree(names: &[(&str, &str)]) -> Tree {
        Tree(names.iter().map(|(name, content)| (path(name), entry(content))).collect())
    }

    impl Present for Tree {
        fn entry(&self, path: &TreePath) -> Result<Option<Entry>> {
            Ok(self.0.get(path).cloned())
        }

        fn below(&self, path: &TreePath) -> Result<Vec<TreePath>> {
            Ok(self.0.keys().filter(|name| name.is_below(path)).cloned().collect())
        }

        fn last_directory(&self, _: &TreePath) -> Result<Option<Entry>> {
            Ok(Some(entry("/")))
        }
    }

    /// Name, content before, content after; "" is nothing.
    fn delta(changes: &[(&str, &str, &str)]) -> Delta {
        let side = |content: &str| (!content.is_empty()).then(|| entry(content));
        Delta::new(changes.iter().map(|(name, old, new)| Change {
            path: path(name),
            old: side(old),
            new: side(new),
        }))
    }

    fn otherwise(otherwise: Choice) -> Choices {
        Choices { otherwise, ..Choices::default() }
    }

    fn check(
        deltas: &[Delta],
        now: &[(&str, &str)],
        choice: Choice,
        targets: &[(&str, &str)],
        conflicts: &[(&str, Reason)],
    ) {
        let decided = take_back(deltas, &TreePath::root(), &otherwise(choice), &tree(now)).unwrap();
        let wanted: Targets = targets
            .iter()
            .map(|(name, content)| (path(name), (!content.is_empty()).then(|| entry(content))))
            .collect();
        assert_eq!(decided.targets, wanted);
        let found: Vec<(String, Reason)> =
            decided.conflicts.iter().map(|c| (c.path.to_string(), c.reason)).collect();
        let wanted: Vec<(String, Reason)> =
            conflicts.iter().map(|(name, reason)| ((*name).to_owned(), *reason)).collect();
        assert_eq!(found, wanted);
    }

    #[test]
    fn what_is_still_as_it_was_made_is_taken_back() {
        let made = delta(&[("a", "", "new"), ("b", "old", "new"), ("c", "old", "")]);
        let now = [("a", "new"), ("b", "new"), ("d", "unrelated")];
        check(&[made], &now, Choice::Ask, &[("a", ""), ("b", "old"), ("c", "old")], &[]);
    }

    #[test]
    fn what_is_back_already_needs_nothing() {
        check(&[delta(&[("a", "1", "2")])], &[("a", "1")], Choice::Ask, &[], &[]);
    }

    #[test]
    fn a_later_change_is_a_conflict_and_the_owner_decides() {
        let made = [delta(&[("a", "1", "2"), ("b", "1", "2")])];
        let now = [("a", "3"), ("b", "2")];
        let conflict = [("a", Reason::ChangedLater)];
        check(&made, &now, Choice::Ask, &[("b", "1")], &conflict);
        check(&made, &now, Choice::Keep, &[("b", "1")], &[]);
        check(&made, &now, Choice::Overwrite, &[("a", "1"), ("b", "1")], &[]);
    }

    #[test]
    fn several_changes_join_unless_another_came_between() {
        let joined = [delta(&[("a", "1", "2")]), delta(&[("a", "2", "3")])];
        check(&joined, &[("a", "3")], Choice::Ask, &[("a", "1")], &[]);
        let split = [delta(&[("a", "1", "2")]), delta(&[("a", "x", "3")])];
        check(&split, &[("a", "3")], Choice::Ask, &[], &[("a", Reason::ChangedBetween)]);
    }

    #[test]
    fn a_directory_stays_when_later_files_are_in_it() {
        let made = [delta(&[("d", "", "/"), ("d/e", "", "/"), ("d/e/a", "", "1")])];
        let now = [("d", "/"), ("d/e", "/"), ("d/e/a", "1")];
        check(&made, &now, Choice::Ask, &[("d", ""), ("d/e", ""), ("d/e/a", "")], &[]);
        let later = [&now[..], &[("d/e/later", "x")]].concat();
        check(&made, &later, Choice::Ask, &[("d/e/a", "")], &[]);
    }

    #[test]
    fn a_file_does_not_take_the_place_of_a_directory_with_later_files() {
        let made = [delta(&[("d", "file", "/"), ("d/a", "", "1")])];
        let now = [("d", "/"), ("d/a", "1"), ("d/later", "x")];
        let conflict = [("d", Reason::HoldsLaterFiles)];
        check(&made, &now, Choice::Ask, &[("d/a", "")], &conflict);
        let all = [("d", "file"), ("d/a", ""), ("d/later", "")];
        check(&made, &now, Choice::Overwrite, &all, &[]);
    }

    #[test]
    fn a_parent_that_went_comes_back_with_its_child() {
        let made = [delta(&[("d/a", "1", "2")])];
        check(&made, &[], Choice::Overwrite, &[("d", "/"), ("d/a", "1")], &[]);
        check(&made, &[], Choice::Ask, &[], &[("d/a", Reason::ChangedLater)]);
    }

    #[test]
    fn a_file_where_the_parent_was_is_a_conflict() {
        let gone = [delta(&[("d", "/", ""), ("d/a", "1", "")])];
        let now = [("d", "file")];
        check(&gone, &now, Choice::Ask, &[], &[("d", Reason::ChangedLater)]);
        check(&gone, &now, Choice::Keep, &[], &[]);
        check(&gone, &now, Choice::Overwrite, &[("d", "/"), ("d/a", "1")], &[]);
    }

    #[test]
    fn a_choice_for_a_directory_counts_below_it() {
        let choices = Choices {
            otherwise: Choice::Ask,
            paths: [(path("d"), Choice::Keep), (path("d/b"), Choice::Overwrite)].into(),
        };
        let made = [delta(&[("d/a", "1", "2"), ("d/b", "1", "2")])];
        let now = tree(&[("d", "/"), ("d/a", "3"), ("d/b", "3")]);
        let decided = take_back(&made, &TreePath::root(), &choices, &now).unwrap();
        assert_eq!(decided.targets.keys().cloned().collect::<Vec<_>>(), [path("d/b")]);
        assert!(decided.conflicts.is_empty());
    }
}
