//! Where the space goes.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::os::unix::fs::MetadataExt;

use crate::entry::{ContentId, Kind};
use crate::error::{Context, Result};
use crate::history::History;
use crate::log::{Checkpoints, More, State};
use crate::path::TreePath;

/// What a history takes, and why.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Usage {
    /// Everything, as the disk counts it.
    pub disk_bytes: u64,
    pub packs_bytes: u64,
    pub log_bytes: u64,
    pub checkpoints: u64,
    pub names: u64,
    /// Uncompressed size of the files of the present.
    pub present_bytes: u64,
    /// Uncompressed size of contents that only the past needs.
    pub past_bytes: u64,
    /// Names whose past takes the most, largest first, uncompressed.
    pub largest: Vec<(TreePath, u64)>,
}

impl History {
    pub fn usage(&self, largest: usize) -> Result<Usage> {
        let mut seen: HashSet<ContentId> = HashSet::new();
        let mut usage = Usage {
            packs_bytes: self.store.usage(&self.db)?.bytes,
            disk_bytes: self.disk_bytes()?,
            checkpoints: Checkpoints(&self.db).count()?,
            ..Usage::default()
        };
        usage.log_bytes = usage.disk_bytes.saturating_sub(usage.packs_bytes);
        State(&self.db).each_below(&TreePath::root(), |recorded| {
            usage.names += 1;
            if let (Kind::File { size, .. }, Some(id)) =
                (&recorded.entry.kind, recorded.entry.content())
                && seen.insert(id)
            {
                usage.present_bytes += size;
            }
            Ok(())
        })?;
        let mut by_name: BTreeMap<TreePath, u64> = BTreeMap::new();
        Checkpoints(&self.db).deltas_after(0, |_, delta| {
            for change in delta.into_changes() {
                for entry in [change.old, change.new].into_iter().flatten() {
                    if let (Kind::File { size, .. }, Some(id)) = (&entry.kind, entry.content())
                        && seen.insert(id)
                    {
                        usage.past_bytes += size;
                        *by_name.entry(change.path.clone()).or_default() += size;
                    }
                }
            }
            Ok(More::Yes)
        })?;
        usage.largest = by_name.into_iter().collect();
        usage.largest.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
        usage.largest.truncate(largest);
        Ok(usage)
    }

    /// Blocks of every file of the store.
    pub(crate) fn disk_bytes(&self) -> Result<u64> {
        let top = self.staging.parent().unwrap_or(&self.staging);
        let mut todo = vec![top.to_owned()];
        let mut bytes = 0;
        while let Some(directory) = todo.pop() {
            let step = || format!("look at {}", directory.display());
            for entry in fs::read_dir(&directory).context(step)? {
                let entry = entry.context(step)?;
                // What goes away meanwhile takes nothing.
                let Ok(metadata) = entry.metadata() else { continue };
                if metadata.is_dir() {
                    todo.push(entry.path());
                } else {
                    bytes += metadata.blocks() * 512;
                }
            }
        }
        Ok(bytes)
    }
}
