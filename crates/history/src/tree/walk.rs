use std::ffi::CStr;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;

use rustix::fs::{OFlags, RawDir};

use super::exclude::Exclusions;
use super::near::Near;
use super::root::{Root, Stat, open_below, stat_at};
use crate::path::TreePath;

/// Directories held open at once. Those further up are opened again when the walk comes back.
const OPEN_LEVELS: usize = 64;

/// Some hundred names for each call to the kernel.
const LISTING: usize = 64 << 10;

/// Goes through the tree in the order of [`TreePath`], without recursion and with a bounded number
/// of open files, however deep the tree is.
pub(super) struct Walk<'a> {
    root: &'a Root,
    exclude: &'a Exclusions,
    levels: Vec<Level>,
    /// Of the current name.
    key: Vec<u8>,
    /// The current name is a directory that was not entered yet.
    enter: bool,
    listing: Box<[MaybeUninit<u8>]>,
    /// Of directories that were left, to be filled again.
    spare: Vec<Names>,
}

/// A directory that the walk is in.
struct Level {
    key_length: usize,
    directory: Option<OwnedFd>,
    names: Names,
    next: usize,
}

/// The names of a directory, sorted.
#[derive(Default)]
struct Names {
    /// Each followed by a zero.
    bytes: Vec<u8>,
    /// Where each begins, and its length without the zero.
    at: Vec<(u32, u16)>,
}

/// What the walk comes by. The name is [`Walk::key`].
pub(super) enum Step {
    Name(Stat),
    /// The directory just met was gone, or another thing, when it was entered.
    Vanished,
    /// Nothing is known of this name, or if it was just met, of what is below it.
    Unreadable(io::Error),
}

impl Names {
    fn name(&self, index: usize) -> Option<&CStr> {
        let (start, length) = *self.at.get(index)?;
        let start = start as usize;
        CStr::from_bytes_with_nul(&self.bytes[start..=start + usize::from(length)]).ok()
    }

    fn read(&mut self, directory: &OwnedFd, listing: &mut [MaybeUninit<u8>]) -> io::Result<()> {
        self.bytes.clear();
        self.at.clear();
        let mut entries = RawDir::new(directory, listing);
        while let Some(entry) = entries.next() {
            let entry = entry?;
            let name = entry.file_name();
            if name == c"." || name == c".." {
                continue;
            }
            let full = || io::Error::from(io::ErrorKind::FileTooLarge);
            let start = u32::try_from(self.bytes.len()).map_err(|_| full())?;
            let length = u16::try_from(name.count_bytes()).map_err(|_| full())?;
            self.bytes.extend_from_slice(name.to_bytes_with_nul());
            self.at.push((start, length));
        }
        let bytes = &self.bytes;
        let name = |(start, length): &(u32, u16)| {
            &bytes[*start as usize..*start as usize + usize::from(*length)]
        };
        self.at.sort_unstable_by(|one, other| name(one).cmp(name(other)));
        // A directory that changes while it is listed may give a name twice.
        self.at.dedup_by(|one, other| name(one) == name(other));
        Ok(())
    }
}

impl<'a> Walk<'a> {
    pub(super) fn new(root: &'a Root, exclude: &'a Exclusions) -> Self {
        Self {
            root,
            exclude,
            levels: Vec::new(),
            key: Vec::new(),
            enter: false,
            listing: vec![MaybeUninit::uninit(); LISTING].into(),
            spare: Vec::new(),
        }
    }

    /// With [`Walk::next`] as the first step, to the first name in the root.
    pub(super) fn whole(root: &'a Root, exclude: &'a Exclusions) -> Self {
        Self { enter: true, ..Self::new(root, exclude) }
    }

    pub(super) fn key(&self) -> &[u8] {
        &self.key
    }

    pub(super) fn path(&self) -> TreePath {
        // Names as the kernel lists them are plain.
        TreePath::from_key(&self.key).unwrap_or_default()
    }

    /// The first step, at `below`; further ones go through what is below it. The root itself is no
    /// name, so there it is the first name in it.
    pub(super) fn begin(&mut self, below: &TreePath) -> Option<Step> {
        self.key = below.key().to_vec();
        if below.is_root() {
            self.enter = true;
            return self.next();
        }
        if self.exclude.covers(&self.key) {
            return None;
        }
        let mut near = Near::new(self.root);
        let stat = near.place(below).and_then(|place| match place {
            Some(place) => place.stat(),
            None => Ok(None),
        });
        self.meet(stat)
    }

    pub(super) fn next(&mut self) -> Option<Step> {
        if std::mem::take(&mut self.enter)
            && let Some(step) = self.enter()
        {
            return Some(step);
        }
        loop {
            let level = self.levels.last_mut()?;
            self.key.truncate(level.key_length);
            let index = level.next;
            level.next += 1;
            let Some(name) = level.names.name(index) else {
                let left = self.levels.pop()?;
                self.spare.push(left.names);
                continue;
            };
            if !self.key.is_empty() {
                self.key.push(0);
            }
            self.key.extend_from_slice(name.to_bytes());
            if self.exclude.covers(&self.key) {
                continue;
            }
            let stat = match &level.directory {
                Some(directory) => stat_at(directory, name),
                None => self.stat_again(),
            };
            if let Some(step) = self.meet(stat) {
                return Some(step);
            }
        }
    }

    /// `None` when the name is not there.
    fn meet(&mut self, stat: io::Result<Option<Stat>>) -> Option<Step> {
        match stat {
            Ok(stat) => {
                let stat = stat?.comparable(self.root);
                self.enter = stat.is_directory() && stat.special(self.root).is_none();
                Some(Step::Name(stat))
            }
            Err(error) => Some(Step::Unreadable(error)),
        }
    }

    /// For a level that was closed: finds its directory again.
    fn stat_again(&mut self) -> io::Result<Option<Stat>> {
        let Some(level) = self.levels.last_mut() else { return Ok(None) };
        let path = TreePath::from_key(&self.key[..level.key_length]).unwrap_or_default();
        let Some(directory) = self.root.place(&path)? else { return Ok(None) };
        let stat = match level.names.name(level.next - 1) {
            Some(name) => stat_at(&directory, name),
            None => Ok(None),
        };
        level.directory = Some(directory);
        stat
    }

    /// Opens and lists the directory at the current key. `None` when that went well.
    fn enter(&mut self) -> Option<Step> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let name_at = self.key.iter().rposition(|byte| *byte == 0).map_or(0, |at| at + 1);
        let opened = match self.levels.last() {
            Some(Level { directory: Some(directory), .. }) => {
                open_below(directory, &self.key[name_at..], flags)
            }
            Some(_) | None => self.root.open_at(&self.path(), flags),
        };
        let directory = match opened {
            Ok(Some(directory)) => directory,
            Ok(None) => return Some(Step::Vanished),
            Err(error) => return Some(Step::Unreadable(error)),
        };
        let mut names = self.spare.pop().unwrap_or_default();
        if let Err(error) = names.read(&directory, &mut self.listing) {
            return Some(Step::Unreadable(error));
        }
        if let Some(far) = self.levels.len().checked_sub(OPEN_LEVELS) {
            self.levels[far].directory = None;
        }
        let key_length = self.key.len();
        self.levels.push(Level { key_length, directory: Some(directory), names, next: 0 });
        None
    }
}
