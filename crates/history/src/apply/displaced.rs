//! What a restore took out of the tree.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType};

use super::at::{self, MARK};
use super::journal::{Action, Journal, Record};
use crate::error::{Context, Result};
use crate::path::TreePath;
use crate::tree::Stat;

/// A file or symbolic link that is not what was recorded: it was changed between the record and the
/// restore, and only staging has it now.
#[derive(Debug)]
pub(crate) struct Displaced {
    /// Where it was.
    pub(crate) path: TreePath,
    /// Where it is. Not to be followed: it may be a symbolic link to anywhere.
    pub(crate) at: PathBuf,
    pub(crate) stat: Stat,
}

/// What is in staging after [`super::publish`].
#[derive(Debug, Default)]
pub(crate) struct Taken {
    /// What is not as recorded.
    pub(crate) changed: Vec<Displaced>,
    /// Names in staging of files that may have other names in the tree, where these are counted.
    pub(crate) linked: Vec<PathBuf>,
}

/// What was taken out of the tree. To be asked after [`super::publish`].
pub(crate) fn displaced(staging: &Path, journal: &Journal) -> Result<Taken> {
    let by_slot: HashMap<u64, &Record> =
        journal.records.iter().map(|record| (record.slot, record)).collect();
    let mut taken = Taken::default();
    for folder in list(staging)? {
        let names = list(&folder)?;
        let marked: HashSet<u64> = names.iter().filter_map(|name| parse(name, MARK)).collect();
        for name in &names {
            let slot = parse(name, "").or_else(|| parse_further(name));
            if let Some(record) = slot.and_then(|slot| by_slot.get(&slot)) {
                examine(name, record, marked.contains(&record.slot), &mut taken)?;
            }
        }
    }
    taken.changed.sort_by(|one, other| (&one.path, &one.at).cmp(&(&other.path, &other.at)));
    Ok(taken)
}

/// Removes the staging folder with all that was displaced.
pub(crate) fn clear(staging: &Path) -> Result<()> {
    match fs::remove_dir_all(staging) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(error).context(|| format!("remove {}", staging.display()))
        }
        _ => Ok(()),
    }
}

fn list(directory: &Path) -> Result<Vec<PathBuf>> {
    let read = || -> io::Result<Vec<PathBuf>> {
        fs::read_dir(directory)?.map(|entry| entry.map(|entry| entry.path())).collect()
    };
    read().context(|| format!("read {}", directory.display()))
}

/// The number before `suffix`.
fn parse(name: &Path, suffix: &str) -> Option<u64> {
    name.file_name()?.to_str()?.strip_suffix(suffix)?.parse().ok()
}

fn parse_further(name: &Path) -> Option<u64> {
    let (slot, further) = name.file_name()?.to_str()?.split_once('.')?;
    further.parse::<u32>().ok()?;
    slot.parse().ok()
}

fn examine(at: &Path, record: &Record, marked: bool, taken: &mut Taken) -> Result<()> {
    let Some(stat) = at::stat(CWD, at).context(|| format!("look at {}", at.display()))? else {
        return Ok(());
    };
    if !stat.is_directory() && stat.links > 1 {
        taken.linked.push(at.to_owned());
    }
    let (is, was) = (stat.signature, record.signature);
    // The change time is not compared: the rename has changed it. The mark stands for it.
    let as_recorded = (is.inode, is.size, is.mtime) == (was.inode, was.size, was.mtime);
    match (stat.file_type, &record.action) {
        (_, Action::Place { inode } | Action::PlaceDirectory { inode, .. })
            if is.inode == *inode => {}
        (FileType::RegularFile | FileType::Symlink, _) if !as_recorded || marked => {
            let (path, at) = (record.path.clone(), at.to_owned());
            taken.changed.push(Displaced { path, at, stat });
        }
        // Only when someone was faster twice: a directory is never taken on purpose.
        (FileType::Directory, _) => gather(at, &record.path, taken)?,
        _ => {}
    }
    Ok(())
}

fn gather(directory: &Path, path: &TreePath, taken: &mut Taken) -> Result<()> {
    for at in list(directory)? {
        let Some(name) = at.file_name() else { continue };
        let path = path.join(name);
        match at::stat(CWD, &at).context(|| format!("look at {}", at.display()))? {
            Some(stat) if stat.is_directory() => gather(&at, &path, taken)?,
            Some(stat) if matches!(stat.file_type, FileType::RegularFile | FileType::Symlink) => {
                if stat.links > 1 {
                    taken.linked.push(at.clone());
                }
                taken.changed.push(Displaced { path, at, stat });
            }
            Some(_) | None => {}
        }
    }
    Ok(())
}
