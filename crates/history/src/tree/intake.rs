//! A tree of which nothing is recorded, walked and read at the same time.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use super::about_the_name;
use super::capture::{Captured, Capturer, Moment, Policy, Sight, join};
use super::exclude::Exclusions;
use super::root::{Root, Stat};
use super::walk::{Step, Walk};
use crate::contents::Keep;
use crate::error::Result;
use crate::path::TreePath;

/// Names that one thread walks by and then reads: so many that another seldom waits for it, so few
/// that what was seen of them is still so.
const BLOCK: usize = 128;

/// Blocks that wait for who takes them.
const WAITING: usize = 32;

/// Reads everything there is, and keeps the bytes of files. `each` gets it in the order of a walk, on
/// the calling thread, while others read on. Gives the names of which nothing can be known, and why.
pub(crate) fn take_in(
    root: &Root,
    exclude: &Exclusions,
    contents: &dyn Keep,
    policy: &Policy,
    each: &mut dyn FnMut(Vec<Captured>) -> Result<()>,
) -> Result<Vec<(TreePath, String)>> {
    let source = Mutex::new(Source::new(root, exclude));
    let worker = || Worker { source: &source, capturer: Capturer::new(root, contents, policy) };
    if policy.threads > 1 {
        share(policy.threads, &worker, each)?;
    } else {
        let mut worker = worker();
        while let Some((_, block)) = worker.next()? {
            each(block)?;
        }
    }
    Ok(source.into_inner().unwrap_or_else(PoisonError::into_inner).unreadable)
}

fn share<'s, 'a: 's>(
    threads: usize,
    worker: &(dyn Fn() -> Worker<'s, 'a> + Sync),
    each: &mut dyn FnMut(Vec<Captured>) -> Result<()>,
) -> Result<()> {
    thread::scope(|scope| {
        let (to, from) = sync_channel(WAITING);
        let workers: Vec<_> = (0..threads)
            .map(|_| {
                let to = to.clone();
                scope.spawn(move || worker().run(&to))
            })
            .collect();
        drop(to);
        let taken = in_order(from, each);
        workers.into_iter().map(join).fold(taken, Result::and)
    })
}

type Numbered = (usize, Vec<Captured>);

/// By value: when this gives up, nobody takes what is sent, and the workers end.
fn in_order(
    from: Receiver<Numbered>,
    each: &mut dyn FnMut(Vec<Captured>) -> Result<()>,
) -> Result<()> {
    let mut early = BTreeMap::new();
    let mut due = 0;
    for (number, block) in from {
        early.insert(number, block);
        while let Some(block) = early.remove(&due) {
            each(block)?;
            due += 1;
        }
    }
    Ok(())
}

struct Worker<'s, 'a> {
    source: &'s Mutex<Source<'a>>,
    capturer: Capturer<'a>,
}

impl Worker<'_, '_> {
    fn run(mut self, to: &SyncSender<Numbered>) -> Result<()> {
        while let Some(block) = self.next()? {
            if to.send(block).is_err() {
                break;
            }
        }
        Ok(())
    }

    fn next(&mut self) -> Result<Option<Numbered>> {
        // Bound first: the lock is not held while files are read.
        let block = lock(self.source).block();
        let done = block.and_then(|block| block.map(|block| self.read(block)).transpose());
        if done.is_err() {
            // Nobody needs the rest.
            lock(self.source).walk = None;
        }
        done
    }

    fn read(&mut self, Block { number, moment, names }: Block) -> Result<Numbered> {
        let read = names.into_iter().map(|(path, stat)| {
            let sight = Sight { moment, stat };
            self.capturer.name(path, Some(sight))
        });
        Ok((number, read.collect::<Result<_>>()?))
    }
}

/// Where the names come from. One thread at a time walks on.
struct Source<'a> {
    /// `None` when it has come to its end.
    walk: Option<Walk<'a>>,
    /// Blocks so far.
    blocks: usize,
    unreadable: Vec<(TreePath, String)>,
}

struct Block {
    number: usize,
    /// Before any of them was seen.
    moment: Moment,
    names: Vec<(TreePath, Stat)>,
}

impl<'a> Source<'a> {
    fn new(root: &'a Root, exclude: &'a Exclusions) -> Self {
        Self { walk: Some(Walk::whole(root, exclude)), blocks: 0, unreadable: Vec::new() }
    }

    fn block(&mut self) -> Result<Option<Block>> {
        let moment = Moment::now();
        let mut names = Vec::with_capacity(BLOCK);
        while let Some(walk) = &mut self.walk
            && names.len() < BLOCK
        {
            match walk.next() {
                Some(Step::Name(stat)) => names.push((walk.path(), stat)),
                // It was met a moment ago, and whoever reads it finds out what became of it.
                Some(Step::Vanished) => {}
                Some(Step::Unreadable(error)) => {
                    let why = about_the_name(error)?.to_string();
                    self.unreadable.push((walk.path(), why));
                }
                None => self.walk = None,
            }
        }
        if names.is_empty() {
            return Ok(None);
        }
        self.blocks += 1;
        Ok(Some(Block { number: self.blocks - 1, moment, names }))
    }
}

/// A walk that a panic cut short is not gone on with: the panic goes on instead.
fn lock<'a, 'b>(source: &'a Mutex<Source<'b>>) -> MutexGuard<'a, Source<'b>> {
    source.lock().unwrap_or_else(PoisonError::into_inner)
}
