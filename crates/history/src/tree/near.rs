use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use rustix::fs::OFlags;

use super::about_the_name;
use super::root::{Root, Stat, open_below, stat_at};
use crate::error::Result;
use crate::path::TreePath;

/// Finds the directories of names that come in the order of a walk, and keeps the last one open:
/// neighbours need not be resolved from the root each.
#[derive(Debug)]
pub(super) struct Near<'a> {
    root: &'a Root,
    /// The key of a directory, and the directory unless there is none.
    last: Option<(Vec<u8>, Option<OwnedFd>)>,
}

/// A name and the directory it is in.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) directory: BorrowedFd<'a>,
    /// Empty for the root itself.
    pub(super) name: &'a OsStr,
}

impl Place<'_> {
    pub(super) fn stat(&self) -> io::Result<Option<Stat>> {
        let stat = stat_at(self.directory, self.name)?;
        let root = self.name.is_empty();
        Ok(stat.map(|stat| Stat { mounted: stat.mounted && !root, ..stat }))
    }
}

impl<'a> Near<'a> {
    pub(super) fn new(root: &'a Root) -> Self {
        Self { root, last: None }
    }

    /// `None` when there is no such directory in the tree.
    pub(super) fn place<'s>(&'s mut self, path: &'s TreePath) -> io::Result<Option<Place<'s>>> {
        let key = path.key();
        let Some(end) = key.iter().rposition(|byte| *byte == 0) else {
            let name = OsStr::from_bytes(key);
            return Ok(Some(Place { directory: self.root.fd(), name }));
        };
        let (parent, name) = (&key[..end], OsStr::from_bytes(&key[end + 1..]));
        if self.last.as_ref().is_none_or(|(last, _)| last != parent) {
            let directory = self.open(parent, path)?;
            self.last = Some((parent.to_vec(), directory));
        }
        let directory = self.last.as_ref().and_then(|(_, directory)| directory.as_ref());
        Ok(directory.map(|directory| Place { directory: directory.as_fd(), name }))
    }

    fn open(&self, parent: &[u8], path: &TreePath) -> io::Result<Option<OwnedFd>> {
        // A walk that goes down a step at a time: only the last step is left to take.
        if let Some((last, directory)) = &self.last
            && let Some(rest) = parent.strip_prefix(&last[..])
            && let Some(name) = rest.strip_prefix(&[0])
            && !name.contains(&0)
        {
            let Some(directory) = directory else { return Ok(None) };
            return open_below(directory, name, OFlags::PATH | OFlags::DIRECTORY);
        }
        self.root.place(&path.parent().unwrap_or_default())
    }
}

/// What [`look`] saw.
#[derive(Debug, Default)]
pub(crate) struct Look {
    /// In the order of a walk; `None` for what is not there.
    pub(crate) seen: Vec<(TreePath, Option<Stat>)>,
    /// What the system would not tell, and why: nothing is known about these.
    pub(crate) unreadable: Vec<(TreePath, String)>,
}

/// Asks about some names. What is below something that is gone or no directory is not there.
pub(crate) fn look(root: &Root, paths: &BTreeSet<TreePath>) -> Result<Look> {
    let mut near = Near::new(root);
    let mut look = Look::default();
    for path in paths {
        let stat = near.place(path).and_then(|place| match place {
            Some(place) => place.stat(),
            None => Ok(None),
        });
        match stat {
            Ok(stat) => look.seen.push((path.clone(), stat.map(|stat| stat.comparable(root)))),
            Err(error) => {
                let why = about_the_name(error)?.to_string();
                look.unreadable.push((path.clone(), why));
            }
        }
    }
    Ok(look)
}
