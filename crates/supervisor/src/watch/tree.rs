//! What the watcher believes is on disk.
//!
//! One node per directory, one entry per name. A path is never stored: it is put together from the
//! nodes, so renaming a directory renames everything below it at once.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Stat};

/// A directory's node. A slot is used again, an id never is: a hint about a directory that is gone
/// must not be taken for one about whatever got its slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct NodeId {
    slot: u32,
    generation: u32,
}

impl NodeId {
    pub(crate) const ROOT: Self = Self { slot: 0, generation: 0 };
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Other,
    /// A directory that is not watched: it cannot be read, or it was gone when we looked.
    Closed,
    Open(NodeId),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) inode: u64,
    /// Differs when content or metadata does.
    pub(crate) print: u64,
    pub(crate) kind: Kind,
}

impl Entry {
    /// As the kernel describes it; a directory is closed until somebody opens it.
    pub(crate) fn of(stat: &Stat) -> Self {
        let directory = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
        // A directory's times change with its entries, which are reported themselves.
        let words = if directory {
            [u64::from(stat.st_mode), u64::from(stat.st_uid), u64::from(stat.st_gid), 0]
        } else {
            let modified = (stat.st_mtime as u64) ^ stat.st_mtime_nsec.rotate_left(32);
            let changed = (stat.st_ctime as u64) ^ stat.st_ctime_nsec.rotate_left(32);
            [stat.st_size as u64, u64::from(stat.st_mode), modified, changed]
        };
        let print = words.iter().fold(0xcbf2_9ce4_8422_2325_u64, |print, word| {
            (print.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        });
        let kind = if directory { Kind::Closed } else { Kind::Other };
        Self { inode: stat.st_ino, print, kind }
    }

    /// The same file or directory as far as one can tell: an inode is used again.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.inode == other.inode && self.is_directory() == other.is_directory()
    }

    pub(crate) fn is_directory(&self) -> bool {
        self.kind != Kind::Other
    }
}

#[derive(Debug)]
pub(crate) struct Node {
    parent: Option<NodeId>,
    name: Box<[u8]>,
    pub(crate) inode: u64,
    pub(crate) watch: Option<i32>,
    pub(crate) entries: BTreeMap<Box<[u8]>, Entry>,
}

#[derive(Debug)]
struct Slot {
    /// Of the node that is here, or of the next one.
    generation: u32,
    node: Option<Node>,
}

#[derive(Debug)]
pub(crate) struct Tree {
    slots: Vec<Slot>,
    free: Vec<u32>,
    by_watch: HashMap<i32, NodeId>,
    root: PathBuf,
}

impl Tree {
    pub(crate) fn new(root: PathBuf, inode: u64) -> Self {
        let node = Node {
            parent: None,
            name: Box::default(),
            inode,
            watch: None,
            entries: BTreeMap::new(),
        };
        let slots = vec![Slot { generation: 0, node: Some(node) }];
        Self { slots, free: Vec::new(), by_watch: HashMap::new(), root }
    }

    pub(crate) fn node(&self, id: NodeId) -> Option<&Node> {
        let slot = self.slots.get(id.slot as usize)?;
        slot.node.as_ref().filter(|_| slot.generation == id.generation)
    }

    pub(crate) fn node_mut(&mut self, id: NodeId) -> Option<&mut Node> {
        let slot = self.slots.get_mut(id.slot as usize)?;
        slot.node.as_mut().filter(|_| slot.generation == id.generation)
    }

    pub(crate) fn entry(&self, id: NodeId, name: &[u8]) -> Option<Entry> {
        self.node(id)?.entries.get(name).copied()
    }

    pub(crate) fn set(&mut self, id: NodeId, name: &[u8], entry: Entry) {
        if let Some(node) = self.node_mut(id) {
            node.entries.insert(name.into(), entry);
        }
    }

    pub(crate) fn watched(&self, watch: i32) -> Option<NodeId> {
        self.by_watch.get(&watch).copied()
    }

    pub(crate) fn watches(&self) -> usize {
        self.by_watch.len()
    }

    pub(crate) fn set_watch(&mut self, id: NodeId, watch: i32) {
        // The kernel gives one descriptor per inode: a directory that was found again under
        // another name takes it over.
        self.by_watch.insert(watch, id);
        if let Some(node) = self.node_mut(id) {
            node.watch = Some(watch);
        }
    }

    /// The kernel ended this watch.
    pub(crate) fn forget_watch(&mut self, watch: i32) {
        if let Some(id) = self.by_watch.remove(&watch)
            && let Some(node) = self.node_mut(id)
        {
            node.watch = None;
        }
    }

    /// Gives the directory entry `name` in `parent` a node of its own.
    pub(crate) fn open(&mut self, parent: NodeId, name: &[u8]) -> Option<NodeId> {
        let inode = self.entry(parent, name)?.inode;
        let node = Node {
            parent: Some(parent),
            name: name.into(),
            inode,
            watch: None,
            entries: BTreeMap::new(),
        };
        let id = self.settle_in(node)?;
        self.node_mut(parent)?.entries.get_mut(name)?.kind = Kind::Open(id);
        Some(id)
    }

    fn settle_in(&mut self, node: Node) -> Option<NodeId> {
        if let Some(slot) = self.free.pop() {
            let free = &mut self.slots[slot as usize];
            free.node = Some(node);
            return Some(NodeId { slot, generation: free.generation });
        }
        let slot = u32::try_from(self.slots.len()).ok()?;
        self.slots.push(Slot { generation: 0, node: Some(node) });
        Some(NodeId { slot, generation: 0 })
    }

    fn vacate(&mut self, id: NodeId) -> Option<Node> {
        self.node(id)?;
        let slot = self.slots.get_mut(id.slot as usize)?;
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(id.slot);
        slot.node.take()
    }

    /// Removes an entry with all that is below it; returns the watches to end.
    pub(crate) fn remove(&mut self, id: NodeId, name: &[u8]) -> Vec<i32> {
        let removed = self.node_mut(id).and_then(|node| node.entries.remove(name));
        match removed.map(|entry| entry.kind) {
            Some(Kind::Open(node)) => self.close(node),
            Some(Kind::Closed | Kind::Other) | None => Vec::new(),
        }
    }

    /// Drops a directory's node and those below; its entry stays with whoever holds it.
    pub(crate) fn close(&mut self, id: NodeId) -> Vec<i32> {
        let mut watches = Vec::new();
        let mut waiting = vec![id];
        while let Some(id) = waiting.pop() {
            let Some(node) = self.vacate(id) else { continue };
            waiting.extend(node.entries.values().filter_map(|entry| match entry.kind {
                Kind::Open(child) => Some(child),
                Kind::Closed | Kind::Other => None,
            }));
            // Unless another node has taken it over.
            if let Some(watch) = node.watch
                && self.by_watch.get(&watch) == Some(&id)
            {
                self.by_watch.remove(&watch);
                watches.push(watch);
            }
        }
        watches
    }

    /// Moves an entry, with everything below it, over whatever was there; returns the watches to
    /// end, or `None` when there is nothing known at `from`.
    pub(crate) fn rename(
        &mut self,
        (from, name): (NodeId, &[u8]),
        (to, new_name): (NodeId, &[u8]),
    ) -> Option<Vec<i32>> {
        self.node(to)?;
        let entry = self.node_mut(from)?.entries.remove(name)?;
        let ended = self.remove(to, new_name);
        self.set(to, new_name, entry);
        if let Kind::Open(id) = entry.kind
            && let Some(node) = self.node_mut(id)
        {
            node.parent = Some(to);
            node.name = new_name.into();
        }
        Some(ended)
    }

    /// Names from the root down; empty for the root itself.
    pub(crate) fn relative(&self, id: NodeId) -> PathBuf {
        let mut names = Vec::new();
        let mut current = self.node(id);
        while let Some(node) = current {
            let Some(parent) = node.parent else { break };
            names.push(OsStr::from_bytes(&node.name));
            current = self.node(parent);
        }
        names.into_iter().rev().collect()
    }

    pub(crate) fn path(&self, id: NodeId, name: &[u8]) -> PathBuf {
        let mut path = self.root.join(self.relative(id));
        path.push(OsStr::from_bytes(name));
        path
    }

    /// Whether `id` is `top` or somewhere below it.
    pub(crate) fn is_within(&self, id: NodeId, top: NodeId) -> bool {
        let up = |id: &NodeId| self.node(*id).and_then(|node| node.parent);
        std::iter::successors(Some(id), up).any(|id| id == top)
    }

    /// Where a node hangs; `None` for the root.
    pub(crate) fn place(&self, id: NodeId) -> Option<(NodeId, Box<[u8]>)> {
        let node = self.node(id)?;
        Some((node.parent?, node.name.clone()))
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Every directory that has a node, parents before children.
    pub(crate) fn open_nodes(&self) -> Vec<NodeId> {
        let mut found = vec![NodeId::ROOT];
        let mut next = 0;
        while next < found.len() {
            let children = self.node(found[next]).into_iter().flat_map(|n| n.entries.values());
            found.extend(children.filter_map(|entry| match entry.kind {
                Kind::Open(id) => Some(id),
                Kind::Closed | Kind::Other => None,
            }));
            next += 1;
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: Entry = Entry { inode: 9, print: 1, kind: Kind::Other };
    const DIRECTORY: Entry = Entry { inode: 7, print: 1, kind: Kind::Closed };

    fn with_directory(tree: &mut Tree, parent: NodeId, name: &[u8], watch: i32) -> NodeId {
        tree.set(parent, name, DIRECTORY);
        let id = tree.open(parent, name).unwrap();
        tree.set_watch(id, watch);
        id
    }

    #[test]
    fn renaming_a_directory_moves_every_path_below() {
        let mut tree = Tree::new(PathBuf::from("/w"), 1);
        let a = with_directory(&mut tree, NodeId::ROOT, b"a", 1);
        let b = with_directory(&mut tree, a, b"b", 2);
        tree.set(b, b"f", FILE);
        assert_eq!(tree.path(b, b"f"), Path::new("/w/a/b/f"));
        assert_eq!(tree.rename((NodeId::ROOT, b"a"), (NodeId::ROOT, b"z")), Some(vec![]));
        assert_eq!(tree.path(b, b"f"), Path::new("/w/z/b/f"));
        assert_eq!(tree.watched(2), Some(b));
    }

    #[test]
    fn a_rename_over_a_directory_ends_its_watches() {
        let mut tree = Tree::new(PathBuf::from("/w"), 1);
        with_directory(&mut tree, NodeId::ROOT, b"a", 1);
        let old = with_directory(&mut tree, NodeId::ROOT, b"b", 2);
        with_directory(&mut tree, old, b"c", 3);
        assert_eq!(tree.rename((NodeId::ROOT, b"a"), (NodeId::ROOT, b"b")), Some(vec![2, 3]));
        assert_eq!((tree.watches(), tree.watched(2)), (1, None));
        assert_eq!(tree.rename((NodeId::ROOT, b"nothing"), (NodeId::ROOT, b"x")), None);
    }

    #[test]
    fn the_id_of_a_directory_that_is_gone_names_nothing() {
        let mut tree = Tree::new(PathBuf::from("/w"), 1);
        let old = with_directory(&mut tree, NodeId::ROOT, b"a", 1);
        assert_eq!(tree.remove(NodeId::ROOT, b"a"), vec![1]);
        let new = with_directory(&mut tree, NodeId::ROOT, b"a", 2);
        tree.set(new, b"f", FILE);
        assert_eq!((old.slot, tree.slots.len()), (new.slot, 2));
        assert_eq!((tree.entry(old, b"f"), tree.entry(new, b"f")), (None, Some(FILE)));
        assert_eq!(tree.close(old), Vec::<i32>::new());
        assert_eq!(tree.entry(new, b"f"), Some(FILE));
    }

    #[test]
    fn what_is_within() {
        let mut tree = Tree::new(PathBuf::from("/w"), 1);
        let a = with_directory(&mut tree, NodeId::ROOT, b"a", 1);
        let b = with_directory(&mut tree, a, b"b", 2);
        assert!(tree.is_within(b, a) && tree.is_within(a, a) && tree.is_within(b, NodeId::ROOT));
        assert!(!tree.is_within(a, b));
    }

    #[test]
    fn a_watch_that_was_taken_over_is_not_ended() {
        let mut tree = Tree::new(PathBuf::from("/w"), 1);
        with_directory(&mut tree, NodeId::ROOT, b"old", 1);
        let new = with_directory(&mut tree, NodeId::ROOT, b"new", 1);
        assert_eq!(tree.remove(NodeId::ROOT, b"old"), Vec::<i32>::new());
        assert_eq!(tree.watched(1), Some(new));
    }
}
