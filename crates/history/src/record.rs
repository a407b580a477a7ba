//! From a look at the tree to a checkpoint.
//!
//! ```text
//! look ──► differences ──► capture ──► links ──► delta ──► packs synced ──► one transaction
//! ```
//! Until the transaction commits, nothing is recorded; after it, everything is.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::Path;

use rusqlite::Transaction;

use crate::checkpoint::{Author, Cause, Checkpoint, Notes, Remark, What};
use crate::delta::{Change, Delta};
use crate::entry::{ContentId, Entry, Kind};
use crate::error::Result;
use crate::history::{History, Look, now};
use crate::log::{self, Checkpoints, New, Recorded, State};
use crate::path::TreePath;
use crate::store::Batch;
use crate::tree::{self, Captured, Difference, Note, Now, Signature, Stat};

/// What the caller has just looked up, and need not be looked up again.
#[derive(Debug, Default)]
pub(crate) struct Known {
    /// What is recorded of some names.
    pub(crate) names: Names,
    /// Contents that are in the store.
    pub(crate) contents: HashSet<ContentId>,
}

pub(crate) type Names = HashMap<TreePath, Option<Recorded>>;

/// What differs from the recorded present.
#[derive(Debug, Default)]
struct Differences {
    /// A stat, or nothing when the name is gone.
    names: BTreeMap<TreePath, Option<Stat>>,
    /// What is recorded of some of them.
    known: Names,
    /// What the system would not tell, and why. Of these nothing is concluded.
    unreadable: Vec<(TreePath, String)>,
}

/// A present that has been read but not recorded.
pub(crate) struct Seen {
    pub(crate) batch: Batch,
    rows: Vec<Row>,
    pub(crate) delta: Delta,
    pub(crate) notes: Notes,
    unsettled: BTreeSet<TreePath>,
    looked_at: BTreeSet<TreePath>,
}

/// A name that may have changed: what is recorded, and what was found.
struct Row {
    path: TreePath,
    old: Option<Recorded>,
    /// `None` when it was seen to be gone before it was read.
    captured: Option<Captured>,
}

impl History {
    pub(crate) fn record(
        &mut self,
        look: Look<'_>,
        authors: &[Author],
    ) -> Result<Option<Checkpoint>> {
        self.finish_interrupted()?;
        let Look::At(paths) = look else { return self.record_one(look, authors) };
        let others: BTreeSet<TreePath> = self.unsettled.difference(paths).cloned().collect();
        if others.is_empty() {
            return self.record_one(look, authors);
        }
        if authors.is_empty() {
            let all = paths.union(&others).cloned().collect();
            return self.record_one(Look::At(&all), authors);
        }
        // Who holds those open is not known, and to take back what the authors did must not take
        // theirs along.
        self.record_one(Look::At(&others), &[])?;
        self.record_one(look, authors)
    }

    fn record_one(&mut self, look: Look<'_>, authors: &[Author]) -> Result<Option<Checkpoint>> {
        let first = Checkpoints(&self.db).latest()?.is_none();
        if first
            && matches!(look, Look::Everywhere)
            && let Some(checkpoint) = self.record_beginning(authors)?
        {
            return Ok(Some(checkpoint));
        }
        let seen = self.see(look)?;
        let cause = if first { Cause::First } else { Cause::Change };
        let tx = self.db.transaction()?;
        let checkpoint = if seen.delta.is_empty() && !first {
            seen.write(&tx)?;
            None
        } else {
            // The first is what was there, and that is the present with all that came later taken back.
            let nothing = Delta::default();
            let delta = if first { &nothing } else { &seen.delta };
            let notes = seen.notes.clone();
            let new = New { cause, authors, label: None, notes, delta, time: now() };
            seen.write(&tx)?;
            let mut appended = Checkpoints(&tx).append(new)?;
            if first {
                appended.counts = log::count(&seen.delta);
                Checkpoints(&tx).set_counts(appended.id, appended.counts)?;
            }
            Some(appended)
        };
        tx.commit()?;
        self.settle(seen);
        Ok(checkpoint)
    }

    /// Reads what differs. Contents are in the packs when this returns, and durable once written.
    pub(crate) fn see(&mut self, look: Look<'_>) -> Result<Seen> {
        self.see_knowing(look, &Known::default())
    }

    pub(crate) fn see_knowing(&mut self, look: Look<'_>, known: &Known) -> Result<Seen> {
        // Asked before the look: what was written before they closed it is seen then.
        let closed: Vec<TreePath> = self
            .unsettled
            .iter()
            .filter(|path| !tree::has_writers(&self.root, path))
            .cloned()
            .collect();
        let mut differences = match look {
            Look::Everywhere => self.scan()?,
            Look::At(paths) => self.look_at(paths, &known.names)?,
        };
        // Before the first checkpoint there is nothing to look up.
        let begun = Checkpoints(&self.db).latest()?.is_some();
        if begun {
            self.add_other_names(&mut differences)?;
        }
        let mut rows = Vec::with_capacity(differences.names.len());
        let mut present = Vec::new();
        for (path, stat) in differences.names {
            let old = match differences.known.remove(&path) {
                Some(known) => known,
                None if begun => State(&self.db).get(&path)?,
                None => None,
            };
            if stat.is_some() {
                present.push(path.clone());
            }
            rows.push(Row { path, old, captured: None });
        }
        let writer = self.store.writer(&mut self.db)?.knowing(&known.contents);
        let captured = tree::capture(&self.root, &writer, &self.policy, &present)?;
        let batch = writer.finish()?;
        // Both are in the order of a walk.
        let mut captured = captured.into_iter().peekable();
        for row in &mut rows {
            row.captured = captured.next_if(|captured| captured.path == row.path);
            row.believe();
        }
        self.assign_links(&mut rows)?;
        let mut seen = Seen::new(batch, rows, differences.unreadable);
        seen.looked_at.extend(closed);
        Ok(seen)
    }

    /// After the transaction that wrote it has committed.
    pub(crate) fn settle(&mut self, seen: Seen) {
        self.unsettled.retain(|path| !seen.looked_at.contains(path));
        self.unsettled.extend(seen.unsettled);
    }

    fn scan(&self) -> Result<Differences> {
        let state = State(&self.db);
        let mut statement = state.select_all()?;
        let mut recorded = State::scan(&mut statement)?;
        let root = TreePath::root();
        let scan =
            tree::scan(&self.root, &root, &self.exclude, self.policy.threads, &mut recorded)?;
        Ok(Differences::from(scan))
    }

    fn look_at(&self, paths: &BTreeSet<TreePath>, known: &Names) -> Result<Differences> {
        let mut wanted = paths.clone();
        // A name is of no use without the directories it is in.
        let mut recorded = HashSet::new();
        for path in paths {
            for parent in path.ancestors() {
                if wanted.contains(&parent) || recorded.contains(&parent) {
                    break;
                }
                if self.recorded(&parent, known)?.is_some() {
                    recorded.insert(parent);
                    break;
                }
                wanted.insert(parent);
            }
        }
        wanted.retain(|path| !path.is_root() && !self.exclude.covers(path.key()));
        let looked = tree::look(&self.root, &wanted)?;
        let mut differences =
            Differences { unreadable: looked.unreadable, ..Differences::default() };
        for (path, stat) in looked.seen {
            self.compare(path, stat, known, &mut differences)?;
        }
        Ok(differences)
    }

    pub(crate) fn recorded(&self, path: &TreePath, known: &Names) -> Result<Option<Recorded>> {
        match known.get(path) {
            Some(known) => Ok(known.clone()),
            None => State(&self.db).get(path),
        }
    }

    fn compare(
        &self,
        path: TreePath,
        stat: Option<Stat>,
        known: &Names,
        differences: &mut Differences,
    ) -> Result<()> {
        if differences.names.contains_key(&path) {
            return Ok(());
        }
        let recorded = self.recorded(&path, known)?;
        let was_directory = recorded.as_ref().is_some_and(|recorded| recorded.entry.is_directory());
        let is_directory = stat.is_some_and(|stat| stat.is_directory())
            && stat.and_then(|stat| stat.special(&self.root)).is_none();
        if was_directory && !is_directory {
            State(&self.db).each_below(&path, |below| {
                differences.names.insert(below.path.clone(), None);
                differences.known.insert(below.path.clone(), Some(below));
                Ok(())
            })?;
        }
        let inode = |signature: Signature| signature.inode;
        let replaced = recorded.as_ref().map(|recorded| inode(recorded.signature))
            != stat.map(|stat| inode(stat.signature));
        if is_directory && (!was_directory || replaced) {
            // The directory itself is among what the scan finds.
            let found = self.scan_below(&path, was_directory)?;
            differences.names.extend(found.names);
            differences.unreadable.extend(found.unreadable);
            return Ok(());
        }
        let unchanged = match (&recorded, &stat) {
            (None, None) => true,
            (Some(recorded), Some(stat)) => {
                let recorded = recorded.for_scan();
                recorded.matches(stat, &self.root) && !recorded.is_touched(stat)
            }
            (None, Some(_)) | (Some(_), None) => false,
        };
        if !unchanged {
            differences.known.insert(path.clone(), recorded);
            differences.names.insert(path, stat);
        }
        Ok(())
    }

    /// Compares a directory that is not the one that was there, and what is in it.
    fn scan_below(&self, path: &TreePath, was_directory: bool) -> Result<Differences> {
        let mut recorded = Vec::new();
        if was_directory {
            recorded.extend(State(&self.db).get(path)?);
            State(&self.db).each_below(path, |below| {
                recorded.push(below);
                Ok(())
            })?;
        }
        let mut recorded = recorded.iter().map(|recorded| Ok(recorded.for_scan()));
        let scan = tree::scan(&self.root, path, &self.exclude, 1, &mut recorded)?;
        Ok(Differences::from(scan))
    }

    /// A file with several names changes under all of them, and events tell of one.
    fn add_other_names(&self, differences: &mut Differences) -> Result<()> {
        let state = State(&self.db);
        let mut others = BTreeSet::new();
        let mut unknown: HashMap<u64, u32> = HashMap::new();
        for (path, stat) in &differences.names {
            if !differences.known.contains_key(path) {
                differences.known.insert(path.clone(), state.get(path)?);
            }
            let recorded = differences.known.get(path).and_then(Option::as_ref);
            if let Some(link) = recorded.and_then(|recorded| recorded.entry.link) {
                others.extend(state.names_of(link)?.into_iter().map(|recorded| recorded.path));
            }
            if let Some(stat) = stat.filter(|stat| stat.links > 1 && !stat.is_directory()) {
                let missing = unknown.entry(stat.signature.inode).or_insert(stat.links);
                *missing = missing.saturating_sub(1);
            }
        }
        let unknown: Vec<u64> = unknown
            .into_iter()
            .filter(|(_, missing)| *missing > 0)
            .map(|(inode, _)| inode)
            .collect();
        if !unknown.is_empty() {
            others.extend(state.with_inodes(&unknown)?);
        }
        others.retain(|path| !differences.names.contains_key(path));
        let looked = tree::look(&self.root, &others)?;
        differences.names.extend(looked.seen);
        differences.unreadable.extend(looked.unreadable);
        Ok(())
    }

    /// Names of one file get one number, which they keep while they are names of one file.
    fn assign_links(&self, rows: &mut [Row]) -> Result<()> {
        let mut files: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
        for (index, row) in rows.iter().enumerate() {
            let Some(captured) = &row.captured else { continue };
            let is_file = matches!(&captured.now, Now::There(entry) if entry.is_file());
            if is_file && captured.links > 1 {
                files.entry(captured.inode).or_default().push(index);
            }
        }
        files.retain(|_, names| names.len() > 1);
        if files.is_empty() {
            return Ok(());
        }
        let mut next = State(&self.db).next_link()?;
        let mut taken = BTreeSet::new();
        for names in files.values() {
            let known = names.iter().find_map(|index| {
                let old = rows[*index].old.as_ref()?;
                old.entry.link.filter(|link| !taken.contains(link))
            });
            let link = known.unwrap_or_else(|| {
                next += 1;
                next - 1
            });
            taken.insert(link);
            for index in names {
                let captured = rows[*index].captured.as_mut();
                if let Some(Captured { now: Now::There(entry), .. }) = captured {
                    entry.link = Some(link);
                }
            }
        }
        Ok(())
    }
}

impl From<tree::Scan> for Differences {
    fn from(scan: tree::Scan) -> Self {
        let names = scan.differences.into_iter().map(|difference| match difference {
            Difference::Changed(path, stat) => (path, Some(stat)),
            Difference::Gone(path) => (path, None),
        });
        let touched = scan.touched.into_iter().map(|(path, stat)| (path, Some(stat)));
        let known = HashMap::new();
        Self { names: names.chain(touched).collect(), known, unreadable: scan.unreadable }
    }
}

impl Row {
    fn old(&self) -> Option<&Entry> {
        self.old.as_ref().map(|old| &old.entry)
    }

    /// What cannot be read, but looks as it did when it could be, is believed to hold the same.
    fn believe(&mut self) {
        let (Some(old), Some(captured)) = (&self.old, &mut self.captured) else { return };
        let (Now::There(now), Some(Note::Unreadable { .. })) = (&mut captured.now, &captured.note)
        else {
            return;
        };
        let same = match (&old.entry.kind, &now.kind) {
            (Kind::File { size, .. }, Kind::File { size: now_size, .. }) => {
                (size, old.entry.mtime) == (now_size, now.mtime)
            }
            (Kind::Directory, Kind::Directory) => true,
            _ => false,
        };
        if same && old.signature.inode == captured.inode {
            now.kind = old.entry.kind.clone();
            now.xattrs.clone_from(&old.entry.xattrs);
        }
    }

    fn now(&self) -> Option<&Entry> {
        match self.captured.as_ref().map(|captured| &captured.now) {
            Some(Now::There(entry)) => Some(entry),
            // What cannot be looked at is believed to be as it was.
            Some(Now::Unknown) => self.old(),
            Some(Now::Gone) | None => None,
        }
    }
}

impl Seen {
    fn new(batch: Batch, rows: Vec<Row>, unreadable: Vec<(TreePath, String)>) -> Self {
        let (mut unsettled, mut remarks) = (BTreeSet::new(), Vec::new());
        for captured in rows.iter().filter_map(|row| row.captured.as_ref()) {
            if captured.unsettled {
                unsettled.insert(captured.path.clone());
            }
            if let Some(note) = &captured.note {
                remarks.push(Remark { path: captured.path.clone(), what: note.into() });
            }
        }
        remarks.extend(
            unreadable
                .into_iter()
                .map(|(path, why)| Remark { path, what: What::Unreadable { why } }),
        );
        let delta = Delta::new(rows.iter().map(|row| Change {
            path: row.path.clone(),
            old: row.old().cloned(),
            new: row.now().cloned(),
        }));
        let notes = Notes { moved: moved(&rows), remarks, merged: 0 };
        let looked_at = rows.iter().map(|row| row.path.clone()).collect();
        Self { batch, delta, notes, rows, unsettled, looked_at }
    }

    pub(crate) fn write(&self, tx: &Transaction<'_>) -> Result<()> {
        let state = State(tx);
        for row in &self.rows {
            match row.captured.as_ref().map(|captured| (&captured.now, captured)) {
                Some((Now::There(entry), captured)) => put(&state, captured, entry)?,
                Some((Now::Unknown, _)) => {}
                Some((Now::Gone, _)) | None if row.old.is_some() => state.remove(&row.path)?,
                Some((Now::Gone, _)) | None => {}
            }
        }
        // Last: contents are still on their way to the disk.
        self.batch.record(tx)
    }
}

/// What was found at a name is what is recorded of it from now on.
pub(crate) fn put(state: &State<'_>, captured: &Captured, entry: &Entry) -> Result<()> {
    // Without the rest it matches nothing; the inode still tells where it moved.
    let signature = Signature { inode: captured.inode, ..captured.signature };
    state.put(&captured.path, entry, &signature)
}

impl From<&Note> for What {
    fn from(note: &Note) -> Self {
        match note {
            Note::Torn => Self::Torn,
            Note::TooLarge { size } => Self::TooLarge { size: *size },
            Note::Unreadable { reason } => Self::Unreadable { why: reason.clone() },
        }
    }
}

/// Files and directories that went in one place and came in another. What went along with its
/// directory is not listed.
fn moved(rows: &[Row]) -> Vec<(TreePath, TreePath)> {
    let mut went: HashMap<u64, &Recorded> = HashMap::new();
    for row in rows {
        if let (None, Some(old)) = (row.now(), &row.old) {
            went.insert(old.signature.inode, old);
        }
    }
    let mut moved: Vec<(TreePath, TreePath)> = Vec::new();
    if went.is_empty() {
        return moved;
    }
    for row in rows.iter().filter(|row| row.old.is_none()) {
        let (Some(captured), Some(entry)) = (&row.captured, row.now()) else { continue };
        let Some(from) = went.get(&captured.inode) else { continue };
        if !is_same_thing(&from.entry, entry) {
            continue;
        }
        let (from, to) = (from.path.clone(), row.path.clone());
        let along = from
            .parent()
            .zip(to.parent())
            .is_some_and(|(old, new)| moved.iter().any(|(from, to)| carried(&old, &new, from, to)));
        if !along {
            moved.push((from, to));
        }
    }
    moved
}

/// Whether the directory `old` became `new` by a move of `from` to `to`.
fn carried(old: &TreePath, new: &TreePath, from: &TreePath, to: &TreePath) -> bool {
    let below = |path: &TreePath, top: &TreePath| {
        path.is_within(top).then(|| path.to_path().strip_prefix(top.to_path()).map(Path::to_owned))
    };
    matches!((below(old, from), below(new, to)), (Some(Ok(one)), Some(Ok(other))) if one == other)
}

fn is_same_thing(one: &Entry, other: &Entry) -> bool {
    match (&one.kind, &other.kind) {
        (Kind::Directory, Kind::Directory) => true,
        (Kind::Symlink { target }, Kind::Symlink { target: other }) => target == other,
        (Kind::File { .. }, Kind::File { .. }) => one.content() == other.content(),
        _ => false,
    }
}
