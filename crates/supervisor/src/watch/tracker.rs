//! Turns kernel events into changes.
//!
//! An event is only a hint that a name is worth a look: what is reported is the difference between
//! what is on disk and what the [`Tree`] believed. So events may merge, repeat or come late without
//! harm, and looking at every name heals whatever was lost. Only moves are taken from the events
//! themselves, because two looks cannot tell a move from a removal and a creation.

use std::collections::HashMap;
use std::ffi::CString;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use nacre_wire::watch::{Change, ChangeKind};
use nacre_wire::{ApiError, ErrorKind, WirePath};
use rustix::fs::inotify::ReadFlags;
use rustix::fs::{AtFlags, Mode, OFlags, ResolveFlags, fstat, openat, openat2, statat};
use rustix::io::Errno;

use super::inotify::{Inotify, RawEvent};
use super::tree::{Entry, Kind, NodeId, Tree};
use crate::files::directory::names;
use crate::files::fault::at;
use crate::files::is_temporary;

const BENEATH: ResolveFlags =
    ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS).union(ResolveFlags::NO_MAGICLINKS);
const CHANGED: ReadFlags = ReadFlags::MODIFY.union(ReadFlags::ATTRIB);
/// Directories kept open while one batch is looked at.
const OPEN_AT_ONCE: usize = 64;

#[derive(Debug)]
pub(crate) struct Tracker {
    root: OwnedFd,
    /// The watch on the root's own parent. Our descriptor keeps a removed root alive, so the
    /// kernel does not say of the root itself that it is gone.
    above: Option<i32>,
    pub(crate) inotify: Inotify,
    pub(crate) tree: Tree,
    /// Hints whose directory could not be found. It was moved, and the event that says where to
    /// comes next.
    carried: Hints,
    changes: Vec<Change>,
    /// While the tree is learned there is nothing to report.
    quiet: bool,
}

/// What a batch of events came to.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) changes: Vec<Change>,
    pub(crate) overflowed: bool,
    /// The watched directory itself was removed.
    pub(crate) gone: bool,
}

#[derive(Debug, Clone, Copy, Default)]
struct Hint {
    /// The kernel said that it changed, whatever its times say.
    changed: bool,
    /// It was moved here or away, which touches its change time.
    moved: bool,
}

/// Names worth a look, in the order in which they were first mentioned.
#[derive(Debug, Default)]
struct Hints {
    order: Vec<(NodeId, Box<[u8]>)>,
    by_name: HashMap<(NodeId, Box<[u8]>), Hint>,
}

impl Hints {
    fn add(&mut self, node: NodeId, name: &[u8], hint: Hint) {
        let key = (node, Box::from(name));
        match self.by_name.get_mut(&key) {
            Some(known) => {
                known.changed |= hint.changed;
                known.moved |= hint.moved;
            }
            None => {
                self.order.push(key.clone());
                self.by_name.insert(key, hint);
            }
        }
    }

    fn take(&mut self, node: NodeId, name: &[u8]) -> Hint {
        self.by_name.remove(&(node, Box::from(name))).unwrap_or_default()
    }
}

impl Tracker {
    pub(crate) fn new(root: OwnedFd, path: &Path) -> Result<Self, ApiError> {
        let inode = fstat(&root).map_err(at(path))?.st_ino;
        Ok(Self {
            root,
            above: None,
            inotify: Inotify::new()?,
            tree: Tree::new(path.to_owned(), inode),
            carried: Hints::default(),
            changes: Vec::new(),
            quiet: false,
        })
    }

    /// Learns the tree as it is, without a word about it.
    pub(crate) fn learn(&mut self) -> Result<(), ApiError> {
        self.quiet = true;
        let result = self.explore(NodeId::ROOT);
        self.quiet = false;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let parent = openat(&self.root, c"..", flags, Mode::empty());
        self.above = parent.and_then(|parent| self.inotify.add_removals(&parent)).ok();
        result
    }

    /// Looks at every name there is and reports what differs.
    pub(crate) fn heal(&mut self) -> Result<Vec<Change>, ApiError> {
        self.carried = Hints::default();
        for node in self.tree.open_nodes() {
            // Unless it went with a directory that was looked at before it.
            if self.tree.node(node).is_some() {
                self.compare(node)?;
            }
        }
        Ok(std::mem::take(&mut self.changes))
    }

    /// Whether a move in `events` waits for its other half.
    pub(crate) fn half_moved(events: &[RawEvent]) -> bool {
        events.iter().rev().take(8).any(|event| {
            event.flags.contains(ReadFlags::MOVED_FROM)
                && !events.iter().rev().take(8).any(|other| {
                    other.flags.contains(ReadFlags::MOVED_TO) && other.cookie == event.cookie
                })
        })
    }

    pub(crate) fn digest(&mut self, events: &[RawEvent]) -> Result<Outcome, ApiError> {
        let mut outcome = Outcome::default();
        let mut hints = std::mem::take(&mut self.carried);
        let mut departed: HashMap<u32, (NodeId, Box<[u8]>)> = HashMap::new();
        for event in events {
            if event.flags.contains(ReadFlags::QUEUE_OVERFLOW) {
                outcome.overflowed = true;
                continue;
            }
            if self.above == Some(event.watch) && event.flags.contains(ReadFlags::DELETE) {
                outcome.gone |= fstat(&self.root).is_ok_and(|stat| stat.st_nlink == 0);
            }
            let Some(node) = self.tree.watched(event.watch) else { continue };
            if event.flags.contains(ReadFlags::IGNORED) {
                self.tree.forget_watch(event.watch);
            }
            if event.flags.contains(ReadFlags::UNMOUNT) {
                outcome.gone |= node == NodeId::ROOT;
            }
            if !event.name.is_empty() {
                self.note(event, node, &mut departed, &mut hints);
            }
        }
        self.look(hints)?;
        outcome.changes = std::mem::take(&mut self.changes);
        Ok(outcome)
    }

    fn note(
        &mut self,
        event: &RawEvent,
        node: NodeId,
        departed: &mut HashMap<u32, (NodeId, Box<[u8]>)>,
        hints: &mut Hints,
    ) {
        let name = &event.name;
        // An atomic write is a change of the file it ends in, not of its draft.
        let hidden = is_temporary(name);
        if event.flags.contains(ReadFlags::MOVED_FROM) {
            departed.insert(event.cookie, (node, name.clone()));
        }
        if hidden && !event.flags.contains(ReadFlags::MOVED_TO) {
            return;
        }
        let mut hint = Hint { changed: event.flags.intersects(CHANGED), moved: false };
        if event.flags.contains(ReadFlags::MOVED_TO)
            && let Some((from, old_name)) = departed.remove(&event.cookie)
            && !hidden
        {
            if is_temporary(&old_name) {
                hint.changed = true;
            } else {
                let before = hints.take(from, &old_name);
                self.apply_move((from, &old_name), (node, name));
                hint = Hint { changed: before.changed, moved: true };
                // Something else may have taken its place already.
                hints.add(from, &old_name, Hint::default());
            }
        }
        if !hidden {
            hints.add(node, name, hint);
        }
    }

    fn apply_move(&mut self, from: (NodeId, &[u8]), to: (NodeId, &[u8])) {
        let Some(entry) = self.tree.entry(from.0, from.1) else { return };
        if let Kind::Open(node) = entry.kind
            && (self.tree.is_within(to.0, node) || self.is_found(entry, to))
        {
            // A directory that was read since showed us its future. What is at either name is
            // looked at next; here it must not lose the watch it has under its new name.
            self.settle_gone(from.0, from.1, entry);
            return;
        }
        let old_path = self.tree.path(from.0, from.1);
        let Some(ended) = self.tree.rename(from, to) else { return };
        self.end(&ended);
        self.changes.push(Change {
            kind: ChangeKind::Move,
            path: WirePath::from(self.tree.path(to.0, to.1)),
            from: Some(WirePath::from(old_path)),
            directory: entry.is_directory(),
        });
    }

    /// Whether a directory is known under the name it moves to already.
    fn is_found(&self, entry: Entry, to: (NodeId, &[u8])) -> bool {
        self.tree.entry(to.0, to.1).is_some_and(|known| known.is_same(&entry))
    }

    fn end(&self, watches: &[i32]) {
        watches.iter().for_each(|watch| self.inotify.remove(*watch));
    }

    fn look(&mut self, mut hints: Hints) -> Result<(), ApiError> {
        let mut open: HashMap<NodeId, OwnedFd> = HashMap::new();
        for (node, name) in std::mem::take(&mut hints.order) {
            let Some(hint) = hints.by_name.remove(&(node, name.clone())) else { continue };
            if self.tree.node(node).is_none() {
                continue;
            }
            if !open.contains_key(&node) {
                let directory = match self.open(node) {
                    Ok(directory) => directory,
                    Err(error) if has_moved(error) => {
                        self.carried.add(node, &name, hint);
                        continue;
                    }
                    Err(_) => continue,
                };
                if open.len() >= OPEN_AT_ONCE {
                    open.clear();
                }
                open.insert(node, directory);
            }
            if let Some(directory) = open.get(&node) {
                self.check(directory, node, &name, hint)?;
            }
        }
        Ok(())
    }

    /// Compares one name with what is believed about it.
    fn check(
        &mut self,
        directory: impl AsFd,
        node: NodeId,
        name: &[u8],
        hint: Hint,
    ) -> Result<(), ApiError> {
        let Ok(c_name) = CString::new(name) else { return Ok(()) };
        let found = match statat(directory, &c_name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Some(Entry::of(&stat)),
            Err(Errno::NOENT) => None,
            // Not readable any more: nothing can be said about it.
            Err(_) => return Ok(()),
        };
        self.settle(node, name, found, hint)
    }

    fn settle(
        &mut self,
        node: NodeId,
        name: &[u8],
        found: Option<Entry>,
        hint: Hint,
    ) -> Result<(), ApiError> {
        match (self.tree.entry(node, name), found) {
            (None, None) => Ok(()),
            (Some(known), None) => {
                self.settle_gone(node, name, known);
                Ok(())
            }
            (None, Some(found)) => self.appear(node, name, found),
            (Some(known), Some(found)) if known.is_same(&found) => {
                self.refresh(node, name, known, found, hint)
            }
            (Some(known), Some(found)) if known.is_directory() || found.is_directory() => {
                self.settle_gone(node, name, known);
                self.appear(node, name, found)
            }
            (Some(_), Some(found)) => {
                self.report(ChangeKind::Modify, node, name, found);
                self.tree.set(node, name, found);
                Ok(())
            }
        }
    }

    fn settle_gone(&mut self, node: NodeId, name: &[u8], known: Entry) {
        self.report(ChangeKind::Delete, node, name, known);
        let ended = self.tree.remove(node, name);
        self.end(&ended);
    }

    fn appear(&mut self, node: NodeId, name: &[u8], found: Entry) -> Result<(), ApiError> {
        self.report(ChangeKind::Create, node, name, found);
        self.tree.set(node, name, found);
        if found.is_directory() { self.enter(node, name) } else { Ok(()) }
    }

    /// The same inode as before.
    fn refresh(
        &mut self,
        node: NodeId,
        name: &[u8],
        known: Entry,
        found: Entry,
        hint: Hint,
    ) -> Result<(), ApiError> {
        if hint.changed || (found.print != known.print && !hint.moved) {
            self.report(ChangeKind::Modify, node, name, known);
        }
        self.tree.set(node, name, Entry { kind: known.kind, ..found });
        match known.kind {
            Kind::Other => Ok(()),
            // Perhaps it can be read now.
            Kind::Closed => self.enter(node, name),
            // The kernel ends the watch of a directory that is removed, and may give the same inode
            // to one that is made in its place.
            Kind::Open(child) if self.tree.node(child).is_some_and(|node| node.watch.is_none()) => {
                self.compare(child)
            }
            Kind::Open(_) => Ok(()),
        }
    }

    /// Watches a directory that is in the tree, and all below it.
    fn enter(&mut self, parent: NodeId, name: &[u8]) -> Result<(), ApiError> {
        match self.tree.open(parent, name) {
            Some(node) => self.explore(node),
            None => Ok(()),
        }
    }

    fn explore(&mut self, first: NodeId) -> Result<(), ApiError> {
        let mut waiting = vec![first];
        while let Some(node) = waiting.pop() {
            let directory = match self.open(node) {
                Ok(directory) => directory,
                Err(error) => {
                    self.shut(node, error)?;
                    continue;
                }
            };
            // Before the names are read: what changes in between is an event.
            match self.inotify.add(&directory) {
                Ok(watch) => self.tree.set_watch(node, watch),
                Err(Errno::NOSPC) => return Err(exhausted(self.tree.root())),
                Err(error) => {
                    self.shut(node, error)?;
                    continue;
                }
            }
            self.fill(node, &directory, &mut waiting);
        }
        Ok(())
    }

    /// Adds every entry of a directory that was empty to our knowledge.
    fn fill(&mut self, node: NodeId, directory: &OwnedFd, waiting: &mut Vec<NodeId>) {
        for name in names(directory).unwrap_or_default() {
            if is_temporary(name.to_bytes()) {
                continue;
            }
            let Ok(stat) = statat(directory, &name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
            let found = Entry::of(&stat);
            self.report(ChangeKind::Create, node, name.to_bytes(), found);
            self.tree.set(node, name.to_bytes(), found);
            if found.is_directory() {
                waiting.extend(self.tree.open(node, name.to_bytes()));
            }
        }
    }

    /// A directory that cannot be opened goes back to being an entry.
    fn shut(&mut self, node: NodeId, error: Errno) -> Result<(), ApiError> {
        let Some((parent, name)) = self.tree.place(node) else {
            return Err(at(self.tree.root())(error));
        };
        let ended = self.tree.close(node);
        self.end(&ended);
        if let Some(entry) = self.tree.entry(parent, &name) {
            self.tree.set(parent, &name, Entry { kind: Kind::Closed, ..entry });
        }
        if has_moved(error) {
            // Moved since; the event that says so has the last word.
            self.carried.add(parent, &name, Hint::default());
        }
        Ok(())
    }

    /// Compares a whole directory with what is believed about it.
    fn compare(&mut self, node: NodeId) -> Result<(), ApiError> {
        let Ok(directory) = self.open(node) else { return Ok(()) };
        if self.tree.node(node).is_some_and(|node| node.watch.is_none()) {
            match self.inotify.add(&directory) {
                Ok(watch) => self.tree.set_watch(node, watch),
                Err(Errno::NOSPC) => return Err(exhausted(self.tree.root())),
                Err(_) => return Ok(()),
            }
        }
        let Ok(found) = names(&directory) else { return Ok(()) };
        let mut all: Vec<Box<[u8]>> = found.iter().map(|name| name.to_bytes().into()).collect();
        all.retain(|name| !is_temporary(name));
        if let Some(node) = self.tree.node(node) {
            all.extend(node.entries.keys().cloned());
        }
        all.sort_unstable();
        all.dedup();
        for name in all {
            self.check(&directory, node, &name, Hint::default())?;
        }
        Ok(())
    }

    /// The directory of a node, if it is still where the tree says.
    fn open(&self, node: NodeId) -> Result<OwnedFd, Errno> {
        let path = self.tree.relative(node);
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { &path };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = openat2(&self.root, path, flags, Mode::empty(), BENEATH)?;
        let inode = fstat(&directory)?.st_ino;
        match self.tree.node(node) {
            Some(node) if node.inode == inode => Ok(directory),
            _ => Err(Errno::NOENT),
        }
    }

    fn report(&mut self, kind: ChangeKind, node: NodeId, name: &[u8], entry: Entry) {
        if self.quiet {
            return;
        }
        self.changes.push(Change {
            kind,
            path: WirePath::from(self.tree.path(node, name)),
            from: None,
            directory: entry.is_directory(),
        });
    }

    /// Everything there is, as if it had just been created.
    pub(crate) fn everything(&self) -> Vec<Change> {
        let nodes = self.tree.open_nodes().into_iter();
        nodes
            .filter_map(|id| Some((id, self.tree.node(id)?)))
            .flat_map(|(id, node)| node.entries.iter().map(move |(name, entry)| (id, name, entry)))
            .map(|(id, name, entry)| Change {
                kind: ChangeKind::Create,
                path: WirePath::from(self.tree.path(id, name)),
                from: None,
                directory: entry.is_directory(),
            })
            .collect()
    }
}

/// Whether a path led nowhere because something on it is elsewhere by now, which an event will say.
fn has_moved(error: Errno) -> bool {
    matches!(error, Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV | Errno::AGAIN)
}

fn exhausted(root: &Path) -> ApiError {
    let message = format!("{}: more directories than the kernel may watch", root.display());
    ApiError::new(ErrorKind::NoSpace, message)
        .hint("raise the sysctl fs.inotify.max_user_watches on the host")
}

#[cfg(test)]
#[path = "tracker_tests.rs"]
mod tests;
