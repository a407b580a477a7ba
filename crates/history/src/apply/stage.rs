//! Makes everything new beside the tree.

use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use rustix::fs::{self, AtFlags, Mode, OFlags};
use rustix::io::Errno;

use super::at::{self, Staging, slot};
use super::journal::{Action, Attributes, Journal, Record};
use super::links::{self, Group};
use super::{Reason, Step, clear};
use crate::contents::Fetch;
use crate::entry::{ContentId, Entry, Kind};
use crate::error::{Context, Error, Result};
use crate::planted::{Fault, is_planted};
use crate::tree::Root;

/// To start a thread takes as long as to stage a file or two.
const WORTH_A_THREAD: usize = 8;

/// What became of one step.
#[derive(Debug, Default)]
struct Made {
    action: Option<Action>,
    left: Option<Reason>,
}

impl Made {
    fn left(reason: Reason) -> Self {
        Self { action: None, left: Some(reason) }
    }

    fn action(action: Action) -> Self {
        Self { action: Some(action), left: None }
    }
}

/// Makes every new file, link and directory in `staging`, which must be on the filesystem and mount
/// of the tree, and syncs it. Touches no name of the tree. After an error `staging` is gone.
pub(crate) fn stage(
    root: &Root,
    staging: &Path,
    steps: &[Step],
    contents: &dyn Fetch,
    threads: usize,
) -> Result<Journal> {
    let staged = stage_all(root, staging, steps, contents, threads);
    if staged.is_err() {
        // The first error is the one to tell; what stays is cleared on the next start.
        let _ = clear(staging);
    }
    staged
}

fn stage_all(
    root: &Root,
    staging: &Path,
    steps: &[Step],
    contents: &dyn Fetch,
    threads: usize,
) -> Result<Journal> {
    clear(staging)?;
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(staging)
        .context(|| format!("make {}", staging.display()))?;
    let staging = Staging::open(staging)?;
    let mut steps: Vec<&Step> = steps.iter().collect();
    steps.sort_by(|one, other| one.path.cmp(&other.path));
    staging.make_folders(steps.len() as u64)?;

    let mut all: Vec<Made> = Vec::new();
    for (number, step) in steps.iter().enumerate() {
        all.push(without_bytes(&staging, number, step)?);
    }
    let stager = Stager { root, staging: &staging, steps: &steps, contents };
    for (number, made) in stager.make_groups(&links::groups(root, &steps)?, threads)? {
        all[number] = made;
    }
    if !is_planted(Fault::StagingNotSynced) {
        staging.sync()?;
    }
    Ok(journal(&steps, all))
}

fn journal(steps: &[&Step], all: Vec<Made>) -> Journal {
    let mut journal = Journal { records: Vec::new(), left: Vec::new() };
    for (number, (step, made)) in steps.iter().zip(all).enumerate() {
        if let Some(reason) = made.left {
            journal.left.push((step.path.clone(), reason));
        }
        if let Some(action) = made.action {
            journal.records.push(Record {
                path: step.path.clone(),
                slot: number as u64,
                signature: step.signature,
                was_directory: step.now.as_ref().is_some_and(Entry::is_directory),
                action,
            });
        }
    }
    journal
}

/// All but files and symbolic links, which come by groups.
fn without_bytes(staging: &Staging, number: usize, step: &Step) -> Result<Made> {
    let is_special = |entry: &Entry| matches!(entry.kind, Kind::Special(_));
    Ok(match (&step.now, &step.target) {
        (None, None) => Made::default(),
        (Some(now), Some(target)) if now.same(target) => Made::default(),
        (Some(now), _) if is_special(now) => Made::left(Reason::Special),
        (_, Some(target)) if is_special(target) => Made::left(Reason::Special),
        (Some(_), None) => Made::action(Action::Remove),
        (Some(now), Some(target)) if now.is_directory() && target.is_directory() => {
            Made::action(Action::Adjust(Attributes::between(now, target)))
        }
        (_, Some(target)) if target.is_directory() => {
            // Its children are placed before it has its own mode, which may forbid that.
            let slot = slot(number as u64);
            let made = fs::mkdirat(staging.fd(), &slot, Mode::RWXU)
                .and_then(|()| at::stat(staging.fd(), &slot))
                .context(|| format!("stage {}", step.path))?;
            let inode = made.map_or(0, |made| made.signature.inode);
            let attributes = Attributes::of(target, Some(target.mtime));
            Made::action(Action::PlaceDirectory { inode, attributes })
        }
        (_, Some(_)) => Made::default(),
    })
}

struct Stager<'a> {
    root: &'a Root,
    staging: &'a Staging,
    steps: &'a [&'a Step],
    contents: &'a dyn Fetch,
}

impl Stager<'_> {
    fn make_groups(&self, groups: &[Group], threads: usize) -> Result<Vec<(usize, Made)>> {
        let batch = (groups.len() / (threads.max(1) * 4)).clamp(1, at::NAMES_PER_FOLDER as usize);
        let batches: Vec<&[Group]> = groups.chunks(batch).collect();
        let next = AtomicUsize::new(0);
        let stopped = AtomicBool::new(false);
        let work = || -> Result<Vec<(usize, Made)>> {
            let mut all = Vec::new();
            while let Some(batch) = batches.get(next.fetch_add(1, Ordering::Relaxed)) {
                for group in *batch {
                    if stopped.load(Ordering::Relaxed) {
                        return Ok(all);
                    }
                    let made = self.make_group(group);
                    stopped.fetch_or(made.is_err(), Ordering::Relaxed);
                    all.extend(made?);
                }
            }
            Ok(all)
        };
        if threads <= 1 || groups.len() < WORTH_A_THREAD {
            return work();
        }
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
            let mut all = Vec::new();
            for worker in workers {
                match worker.join() {
                    Ok(made) => all.extend(made?),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            Ok(all)
        })
    }

    fn make_group(&self, group: &Group) -> Result<Vec<(usize, Made)>> {
        if let Some(base) = group.base
            && let Some(made) = self.link_to(base, &group.members)?
        {
            return Ok(made);
        }
        self.make_new(&group.members)
    }

    /// Keeps the inode of `base`. `None` when it is no longer what was recorded.
    fn link_to(&self, base: usize, members: &[usize]) -> Result<Option<Vec<(usize, Made)>>> {
        let inode = self.steps[base].signature.inode;
        let mut made = Vec::new();
        for &member in members {
            let step = self.steps[member];
            let (now, Some(target)) = (&step.now, &step.target) else { continue };
            match now {
                Some(now) if step.signature.inode == inode => {
                    let adjust = || Made::action(Action::Adjust(Attributes::between(now, target)));
                    made.push((
                        member,
                        if now.same_file(target) { Made::default() } else { adjust() },
                    ));
                }
                _ => {
                    if !self.link_from_tree(base, member)? {
                        return self.forget(members).map(|()| None);
                    }
                    made.push((member, Made::action(Action::Place { inode })));
                }
            }
        }
        Ok(Some(made))
    }

    fn link_from_tree(&self, base: usize, member: usize) -> Result<bool> {
        let step = self.steps[base];
        let link = || -> io::Result<bool> {
            let (Some(parent), Some(name)) = (step.path.parent(), step.path.name()) else {
                return Ok(false);
            };
            let Some(parent) = self.root.directory(&parent)? else { return Ok(false) };
            let slot = slot(member as u64);
            match fs::linkat(&parent, name, self.staging.fd(), &slot, AtFlags::empty()) {
                Ok(()) => {}
                Err(Errno::NOENT | Errno::PERM | Errno::MLINK) => return Ok(false),
                Err(error) => return Err(error.into()),
            }
            // Between the record and the link someone may have put another file there.
            let linked = at::stat(self.staging.fd(), &slot)?;
            Ok(linked.is_some_and(|linked| {
                let (is, was) = (linked.signature, step.signature);
                (is.inode, is.size, is.mtime) == (was.inode, was.size, was.mtime)
            }))
        };
        link().context(|| format!("link {}", step.path))
    }

    fn forget(&self, members: &[usize]) -> Result<()> {
        for &member in members {
            match fs::unlinkat(self.staging.fd(), slot(member as u64), AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(error) => return Err(error).context(|| "clear a staged link".to_owned()),
            }
        }
        Ok(())
    }

    /// Makes the file once and links the other names to it.
    fn make_new(&self, members: &[usize]) -> Result<Vec<(usize, Made)>> {
        let Some((&first, others)) = members.split_first() else { return Ok(Vec::new()) };
        let step = self.steps[first];
        let Some(target) = &step.target else { return Ok(Vec::new()) };
        let first_slot = slot(first as u64);
        let attributes = Attributes::of(target, self.time_of(members, target));
        let made = match &target.kind {
            Kind::File { content, .. } => match content.id() {
                Some(id) => self.make_file(&first_slot, id, &attributes),
                None => Ok(Err(Reason::NotKept)),
            },
            Kind::Symlink { target } => self.make_symlink(&first_slot, target, &attributes),
            Kind::Directory | Kind::Special(_) => Ok(Err(Reason::Special)),
        };
        let (inode, left) = match made.map_err(|error| in_staging(error, step))? {
            Ok(made) => made,
            Err(reason) => {
                return Ok(members.iter().map(|member| (*member, Made::left(reason))).collect());
            }
        };
        for &other in others {
            let to = slot(other as u64);
            fs::linkat(self.staging.fd(), &first_slot, self.staging.fd(), to, AtFlags::empty())
                .context(|| format!("link {}", self.steps[other].path))?;
        }
        let place =
            |member: &usize| (*member, Made { action: Some(Action::Place { inode }), left });
        Ok(members.iter().map(place).collect())
    }

    /// The rule is told at the top of [`super`]. `None` is the present.
    fn time_of(&self, members: &[usize], target: &Entry) -> Option<i64> {
        let now = || members.iter().filter_map(|member| self.steps[*member].now.as_ref());
        if now().any(|now| now.kind != target.kind) {
            return None;
        }
        Some(now().next().unwrap_or(target).mtime)
    }

    fn make_file(
        &self,
        slot: &Path,
        id: ContentId,
        attributes: &Attributes,
    ) -> Result<Result<(u64, Option<Reason>), Reason>> {
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
        // Set-id bits come when the owner is right.
        let mode = Mode::from_raw_mode(attributes.mode & 0o777);
        let fd = fs::openat(self.staging.fd(), slot, flags, mode)
            .context(|| "make a staged file".to_owned())?;
        let mut file = File::from(fd);
        match self.contents.fetch(id, &mut file) {
            Ok(()) => {}
            Err(Error::Missing(_) | Error::Damaged { .. }) => {
                fs::unlinkat(self.staging.fd(), slot, AtFlags::empty())
                    .context(|| "clear a staged file".to_owned())?;
                return Ok(Err(Reason::Damaged));
            }
            Err(error) => return Err(error),
        }
        finish(&file, attributes).map(Ok)
    }

    fn make_symlink(
        &self,
        slot: &Path,
        target: &[u8],
        attributes: &Attributes,
    ) -> Result<Result<(u64, Option<Reason>), Reason>> {
        let what = || "make a staged link".to_owned();
        fs::symlinkat(target, self.staging.fd(), slot).context(what)?;
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = fs::openat(self.staging.fd(), slot, flags, Mode::empty()).context(what)?;
        finish(&fd, attributes).map(Ok)
    }
}

/// Gives the inode, and what of the attributes was refused: the bytes are worth having without.
fn finish(fd: impl std::os::fd::AsFd, attributes: &Attributes) -> Result<(u64, Option<Reason>)> {
    let what = || "set attributes of a staged file".to_owned();
    let Some(stat) = at::stat(&fd, "").context(what)? else {
        return Err(Errno::NOENT).context(what);
    };
    let left = match at::set_attributes(&fd, &stat, attributes) {
        Ok(()) => None,
        Err(error) if at::is_fatal(error) => return Err(error).context(what),
        Err(error) => Some(Reason::Refused(error.raw_os_error())),
    };
    Ok((stat.signature.inode, left))
}

/// A store that copies says "no space" in its own words.
fn in_staging(error: Error, step: &Step) -> Error {
    match error {
        Error::Io { context, source } => {
            match Err::<(), _>(source).context(|| format!("stage {}: {context}", step.path)) {
                Err(error) => error,
                Ok(()) => Error::NoSpace { context },
            }
        }
        other => other,
    }
}
