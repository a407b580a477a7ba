//! Taking back, for the JSON calls and for the rescue page alike.

use std::path::PathBuf;

use nacre_history::History;
use nacre_wire::events::Event;
use nacre_wire::history::{
    Changes, Outcome, ProcessAfter, RedoRequest, RestoreRequest, UndoRequest,
};
use nacre_wire::{ApiError, ErrorKind};

use super::keeper::Keeper;
use super::{Recorder, jobs};
use crate::events::Events;
use crate::runtime::{CONFIG, Runtime};

/// Files of one checkpoint whose lines are shown.
const MOST_SHOWN: usize = 100;

/// The keeper of history, with what has to be started again after it changed files. Cheap to clone.
#[derive(Clone)]
pub struct Actions {
    recorder: Recorder,
    runtime: Runtime,
    events: Events,
}

impl Actions {
    pub fn new(recorder: Recorder, runtime: Runtime, events: Events) -> Self {
        Self { recorder, runtime, events }
    }

    pub(crate) async fn undo(&self, request: UndoRequest) -> Result<Outcome, ApiError> {
        self.carry_out(move |keeper, history| jobs::undo(keeper, history, &request)).await
    }

    pub(crate) async fn redo(&self, request: RedoRequest) -> Result<Outcome, ApiError> {
        self.carry_out(move |keeper, history| jobs::redo(keeper, history, &request)).await
    }

    pub(crate) async fn restore(&self, request: RestoreRequest) -> Result<Outcome, ApiError> {
        self.carry_out(move |keeper, history| jobs::restore(keeper, history, &request)).await
    }

    /// The newest checkpoints, each with the names of its first files.
    pub(crate) async fn timeline(
        &self,
        checkpoints: usize,
        names: usize,
    ) -> Result<Vec<Changes>, ApiError> {
        self.recorder
            .job(move |keeper, history| jobs::timeline(keeper, history, checkpoints, names))
            .await
    }

    /// One checkpoint, line by line.
    pub(crate) async fn show(&self, id: u64) -> Result<Changes, ApiError> {
        let shown = move |keeper: &mut Keeper, history: &mut History| {
            let (everywhere, with_diff) = (None, true);
            jobs::show(keeper, history, id, everywhere, MOST_SHOWN, with_diff)
        };
        self.recorder.job(shown).await
    }

    /// To its end, restarts included, whether or not whoever asked is still there.
    async fn carry_out(
        &self,
        job: impl FnOnce(&mut Keeper, &mut History) -> Result<Outcome, ApiError> + Send + 'static,
    ) -> Result<Outcome, ApiError> {
        let actions = self.clone();
        let work = tokio::spawn(async move {
            let outcome = actions.recorder.job(job).await?;
            actions.after(&outcome);
            Ok(outcome)
        });
        let failed = |_| Err(ApiError::new(ErrorKind::Internal, "the supervisor failed at it"));
        work.await.unwrap_or_else(failed)
    }

    /// Starts again what the files affect, and tells on `/ws` how that went. Nobody waits for it.
    fn after(&self, outcome: &Outcome) {
        let Some(checkpoint) = &outcome.checkpoint else { return };
        let paths = affected(&outcome.changes);
        let (settled, events) = (self.runtime.affected(&paths), self.events.clone());
        let checkpoint = checkpoint.id;
        tokio::spawn(async move {
            let processes = settled.await.into_iter().map(|settled| ProcessAfter {
                ready: settled.is_ready(),
                name: settled.name,
                reason: settled.reason,
            });
            events.publish(Event::Restored { checkpoint, processes: processes.collect() });
        });
    }
}

/// What is not in the answer may be anything: the whole workspace, and what it runs.
fn affected(changes: &Changes) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> =
        changes.changes.iter().map(|change| change.path.0.clone()).collect();
    if changes.total > paths.len() as u64 {
        paths.extend([PathBuf::new(), PathBuf::from(CONFIG)]);
    }
    paths
}

#[cfg(test)]
mod tests {
    use super::*;
    use nacre_wire::WirePath;

    #[test]
    fn what_the_answer_leaves_out_may_be_anything() {
        let check = |total, expected: &[&str]| {
            let change = nacre_wire::history::FileChange {
                path: WirePath::from("a"),
                from: None,
                old: None,
                new: None,
                diff: None,
                omitted: None,
            };
            let changes = Changes { checkpoint: None, changes: vec![change], total };
            let expected: Vec<PathBuf> = expected.iter().map(PathBuf::from).collect();
            assert_eq!(affected(&changes), expected);
        };
        check(1, &["a"]);
        check(2, &["a", "", "nacre.toml"]);
    }
}
