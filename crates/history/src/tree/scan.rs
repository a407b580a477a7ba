use std::cmp::Ordering;
use std::iter::Peekable;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;

use super::about_the_name;
use super::exclude::Exclusions;
use super::root::{Root, Signature, Stat};
use super::walk::{Step, Walk};
use crate::error::Result;
use crate::path::TreePath;

/// What is recorded of a name, as far as a scan needs it.
#[derive(Debug, Clone)]
pub(crate) struct Recorded {
    pub(crate) path: TreePath,
    pub(crate) signature: Signature,
    pub(crate) mode: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    /// A directory of this tree, not one that something is mounted on.
    pub(crate) directory: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Difference {
    /// New, or not as it is recorded.
    Changed(TreePath, Stat),
    Gone(TreePath),
}

/// How the tree differs from what is recorded.
#[derive(Debug, Default)]
pub(crate) struct Scan {
    /// In the order of a walk.
    pub(crate) differences: Vec<Difference>,
    /// Directories that match, but whose attributes are to be read again.
    pub(crate) touched: Vec<(TreePath, Stat)>,
    /// What is there and no directory.
    pub(crate) files: u64,
    pub(crate) directories: u64,
    /// What could not be looked at, and why. Of it, and of what is recorded below it, nothing is
    /// said.
    pub(crate) unreadable: Vec<(TreePath, String)>,
}

impl Recorded {
    /// Of a directory only what it is and who may use it counts: its times and its size tell of the
    /// names in it, and those are compared each.
    pub(crate) fn matches(&self, stat: &Stat, root: &Root) -> bool {
        let directory = stat.is_directory() && stat.special(root).is_none();
        self.directory == directory
            && (self.mode, self.uid, self.gid) == (stat.mode, stat.uid, stat.gid)
            && (directory
                || self.signature != Signature::UNKNOWN && self.signature == stat.signature)
    }

    /// Whether a directory that matches may be another one, or have other attributes: only its change
    /// time tells, and that tells of the names in it as well.
    pub(crate) fn is_touched(&self, stat: &Stat) -> bool {
        let (is, was) = (stat.signature, self.signature);
        self.directory && (is.inode, is.ctime) != (was.inode, was.ctime)
    }
}

/// Compares `below` and everything below it with what is recorded of these names, which must come in
/// the order of [`TreePath`]. The root itself is no name, and is not compared. Of what is excluded
/// nothing is said, recorded or not.
///
/// With more than one of `threads` the tree is walked by one and compared by another.
pub(crate) fn scan(
    root: &Root,
    below: &TreePath,
    exclude: &Exclusions,
    threads: usize,
    recorded: &mut dyn Iterator<Item = Result<Recorded>>,
) -> Result<Scan> {
    let mut merge = Merge { root, exclude, recorded: recorded.peekable(), scan: Scan::default() };
    let mut walk = Walk::new(root, exclude);
    if threads > 1 {
        merge.follow(walk, below)?;
    } else {
        let mut step = walk.begin(below);
        while let Some(now) = step {
            merge.step(walk.key(), now)?;
            step = walk.next();
        }
    }
    while let Some(left) = merge.recorded.next() {
        merge.gone(left?.path);
    }
    Ok(merge.scan)
}

/// Steps of a walk on their way to another thread.
#[derive(Default)]
struct Block {
    /// Where each key ends in `keys`, where it begins is where the one before it ends.
    steps: Vec<(usize, Step)>,
    keys: Vec<u8>,
}

/// So many that threads seldom wait for each other, and few enough to be in the cache still.
const BLOCK: usize = 512;

/// Blocks that wait for who compares.
const BLOCKS: usize = 16;

/// Ends early when nobody wants the rest.
fn walk_ahead(mut walk: Walk<'_>, below: &TreePath, to: &SyncSender<Block>) {
    let mut block = Block::default();
    let mut step = walk.begin(below);
    while let Some(now) = step {
        block.keys.extend_from_slice(walk.key());
        block.steps.push((block.keys.len(), now));
        if block.steps.len() == BLOCK && to.send(std::mem::take(&mut block)).is_err() {
            return;
        }
        step = walk.next();
    }
    // As above.
    let _ = to.send(block);
}

struct Merge<'a, I: Iterator> {
    root: &'a Root,
    exclude: &'a Exclusions,
    recorded: Peekable<I>,
    scan: Scan,
}

impl<I: Iterator<Item = Result<Recorded>>> Merge<'_, I> {
    /// Takes each step of a walk that another thread makes.
    fn follow(&mut self, walk: Walk<'_>, below: &TreePath) -> Result<()> {
        thread::scope(|scope| {
            let (to, from) = sync_channel(BLOCKS);
            scope.spawn(move || walk_ahead(walk, below, &to));
            // By value: it is gone, and the walk ends, when this returns early.
            for Block { steps, keys } in from {
                let mut start = 0;
                for (end, step) in steps {
                    self.step(&keys[start..end], step)?;
                    start = end;
                }
            }
            Ok(())
        })
    }

    fn step(&mut self, key: &[u8], step: Step) -> Result<()> {
        match step {
            Step::Name(stat) => {
                if stat.is_directory() {
                    self.scan.directories += 1;
                } else {
                    self.scan.files += 1;
                }
                match self.reach(key)? {
                    Some(recorded) if recorded.matches(&stat, self.root) => {
                        if recorded.is_touched(&stat) {
                            self.scan.touched.push((path(key), stat));
                        }
                    }
                    Some(_) | None => {
                        self.scan.differences.push(Difference::Changed(path(key), stat));
                    }
                }
            }
            Step::Vanished => self.look_again(key)?,
            Step::Unreadable(error) => {
                let error = about_the_name(error)?;
                let path = path(key);
                self.reach(key)?;
                while let Some(Ok(_)) = self
                    .recorded
                    .next_if(|next| next.as_ref().is_ok_and(|next| next.path.is_within(&path)))
                {
                }
                self.scan.unreadable.push((path, error.to_string()));
            }
        }
        Ok(())
    }

    /// What is recorded under this name. What is recorded before it is gone.
    fn reach(&mut self, key: &[u8]) -> Result<Option<Recorded>> {
        while let Some(next) = self.recorded.peek() {
            let order = next.as_ref().map_or(Ordering::Less, |next| next.path.key().cmp(key));
            match order {
                Ordering::Greater => return Ok(None),
                Ordering::Equal => return self.recorded.next().transpose(),
                Ordering::Less => {
                    if let Some(next) = self.recorded.next() {
                        self.gone(next?.path);
                    }
                }
            }
        }
        Ok(None)
    }

    fn gone(&mut self, path: TreePath) {
        if !self.exclude.covers(path.key()) {
            self.scan.differences.push(Difference::Gone(path));
        }
    }

    /// A directory that was there a moment ago: whoever reads the difference finds out what became
    /// of it. What is recorded below it turns out to be gone by itself.
    fn look_again(&mut self, key: &[u8]) -> Result<()> {
        let path = path(key);
        let known = match self.scan.differences.last() {
            Some(Difference::Changed(last, _)) => *last == path,
            Some(Difference::Gone(_)) | None => false,
        };
        if !known && !path.is_root() {
            match self.root.stat(&path) {
                Ok(Some(stat)) => {
                    let stat = stat.comparable(self.root);
                    self.scan.differences.push(Difference::Changed(path, stat));
                }
                Ok(None) => self.scan.differences.push(Difference::Gone(path)),
                Err(error) => {
                    self.scan.unreadable.push((path, about_the_name(error)?.to_string()));
                }
            }
        }
        Ok(())
    }
}

/// Names as the kernel lists them are plain.
fn path(key: &[u8]) -> TreePath {
    TreePath::from_key(key).unwrap_or_default()
}
