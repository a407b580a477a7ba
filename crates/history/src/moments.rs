//! Looking back: what was where, when, and what changed since.

use std::collections::BTreeMap;
use std::io::Write;

use serde::{Deserialize, Serialize};

use crate::checkpoint::{Author, Cause, Checkpoint, CheckpointId};
use crate::contents::Fetch;
use crate::delta::{Change, Delta};
use crate::entry::{Content, ContentId, Entry, Kind};
use crate::error::{Error, Result};
use crate::history::History;
use crate::log::{Checkpoints, Filter, More, State};
use crate::path::TreePath;

/// Which checkpoints to list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Query {
    /// Only older ones: the `next` of the page before.
    pub before: Option<CheckpointId>,
    /// Only newer ones.
    pub after: Option<CheckpointId>,
    /// Only of this author.
    pub by: Option<Author>,
    /// Only those that changed this name or something below it.
    pub within: Option<TreePath>,
    /// Milliseconds since 1970.
    pub since: Option<i64>,
    pub until: Option<i64>,
    /// Only with a label.
    pub labelled: bool,
    pub limit: usize,
}

/// Newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    pub checkpoints: Vec<Checkpoint>,
    /// Where the next page begins; `None` at the end.
    pub next: Option<CheckpointId>,
}

impl History {
    pub fn list(&self, query: &Query) -> Result<Page> {
        let filter = Filter { before: query.before, after: query.after };
        let mut page = Page { checkpoints: Vec::new(), next: None };
        Checkpoints(&self.db).newest_first(&filter, |checkpoint| {
            if query.since.is_some_and(|since| checkpoint.time < since) {
                return Ok(More::No);
            }
            if !self.matches(query, &checkpoint)? {
                return Ok(More::Yes);
            }
            if page.checkpoints.len() == query.limit.max(1) {
                page.next = page.checkpoints.last().map(|last| last.id);
                return Ok(More::No);
            }
            page.checkpoints.push(checkpoint);
            Ok(More::Yes)
        })?;
        Ok(page)
    }

    fn matches(&self, query: &Query, checkpoint: &Checkpoint) -> Result<bool> {
        if query.until.is_some_and(|until| checkpoint.time > until)
            || query.labelled && checkpoint.label.is_none()
        {
            return Ok(false);
        }
        let by = query.by.as_ref();
        if by.is_some_and(|by| !checkpoint.authors.iter().any(|author| author.is(by))) {
            return Ok(false);
        }
        // The record is only read when nothing else has ruled it out.
        let Some(within) = &query.within else { return Ok(true) };
        let delta = self.delta_of(checkpoint)?;
        Ok(delta.changes().iter().any(|change| change.path.is_within(within)))
    }

    /// What a checkpoint changed. Of the first that is everything there was, which is not kept twice.
    pub(crate) fn delta_of(&self, checkpoint: &Checkpoint) -> Result<Delta> {
        if checkpoint.cause != Cause::First {
            return Checkpoints(&self.db).delta(checkpoint.id);
        }
        let all = self.state_after(checkpoint.id)?.into_iter();
        Ok(Delta::new(all.map(|(path, new)| Change { path, old: None, new })))
    }

    /// Every name as it was after a checkpoint.
    pub(crate) fn state_after(&self, at: CheckpointId) -> Result<Vec<(TreePath, Option<Entry>)>> {
        let mut state = BTreeMap::new();
        State(&self.db).each_below(&TreePath::root(), |recorded| {
            state.insert(recorded.path, Some(recorded.entry));
            Ok(())
        })?;
        Checkpoints(&self.db).deltas_after(at, |_, delta| {
            for change in delta.into_changes() {
                state.insert(change.path, change.old);
            }
            Ok(More::Yes)
        })?;
        state.retain(|_, entry| entry.is_some());
        Ok(state.into_iter().collect())
    }

    /// The last checkpoint at or before a time, in milliseconds since 1970.
    pub fn at_time(&self, time: i64) -> Result<CheckpointId> {
        match Checkpoints(&self.db).at(time)? {
            Some(id) => Ok(id),
            None => Err(Error::Invalid("the history does not reach back that far".to_owned())),
        }
    }

    /// What a name was after a checkpoint.
    pub fn entry_at(&self, path: &TreePath, at: CheckpointId) -> Result<Option<Entry>> {
        Checkpoints(&self.db).get(at)?;
        let mut then = State(&self.db).get(path)?.map(|recorded| recorded.entry);
        Checkpoints(&self.db).deltas_after(at, |_, delta| {
            let changes = delta.into_changes();
            if let Ok(index) = changes.binary_search_by(|change| change.path.cmp(path)) {
                then.clone_from(&changes[index].old);
            }
            Ok(More::Yes)
        })?;
        Ok(then)
    }

    /// Writes out the bytes of a file as it was after a checkpoint.
    pub fn read_at(&mut self, path: &TreePath, at: CheckpointId, to: &mut dyn Write) -> Result<()> {
        let entry = self.entry_at(path, at)?.ok_or_else(|| Error::NotThere(path.clone()))?;
        match &entry.kind {
            Kind::File { content: Content::Kept(id) | Content::Torn(id), .. } => {
                self.fetch(*id, to)
            }
            Kind::File { content: Content::TooLarge | Content::Unreadable, .. } => {
                Err(Error::Invalid(format!("the content of {path} was not kept")))
            }
            Kind::Symlink { .. } | Kind::Directory | Kind::Special(_) => {
                Err(Error::Invalid(format!("{path} was not a file")))
            }
        }
    }

    pub fn fetch(&mut self, id: ContentId, to: &mut dyn Write) -> Result<()> {
        self.store.fetcher(&mut self.db).fetch(id, to)
    }

    /// What changed from one checkpoint to another, or back when the second is the older.
    pub fn between(
        &self,
        from: CheckpointId,
        to: CheckpointId,
        within: &TreePath,
    ) -> Result<Delta> {
        let log = Checkpoints(&self.db);
        log.get(from)?;
        log.get(to)?;
        let mut all = Delta::default();
        log.deltas_after(from.min(to), |id, delta| {
            if id <= from.max(to) {
                let changes = delta.into_changes().into_iter();
                let newer = std::mem::take(&mut all);
                all =
                    Delta::new(changes.filter(|change| change.path.is_within(within))).then(newer);
            }
            Ok(More::Yes)
        })?;
        Ok(if from <= to {
            all
        } else {
            Delta::new(all.into_changes().into_iter().map(Change::inverse))
        })
    }
}
