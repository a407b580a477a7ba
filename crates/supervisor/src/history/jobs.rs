//! What the keeper's thread does for a request.

use std::fs::File;
use std::io::{BufWriter, Seek, Write};

use nacre_history::{Author, Cause, Delta, FileDiff, History, Options, Query, Selection, TreePath};
use nacre_wire::history as wire;
use nacre_wire::{ApiError, ErrorKind, WirePath};

use super::convert;
use super::http::ListQuery;
use super::keeper::Keeper;
use super::settings;

type Done<T> = Result<T, ApiError>;

/// Changes in the answer to an undo.
const MOST_CHANGES: usize = 10_000;
/// How far back the newest command is looked for.
const FAR: usize = 10_000;

/// Records the present first, so that the answer includes it.
fn catch_up(keeper: &mut Keeper, history: &mut History) -> Done<()> {
    if keeper.dirty.is_clean() && !history.has_unsettled() {
        return Ok(());
    }
    let authors = keeper.authors();
    let recorded = history.checkpoint(keeper.dirty.look(), &authors).map_err(convert::error)?;
    keeper.recorded(recorded.as_ref());
    Ok(())
}

pub(super) fn status(keeper: &mut Keeper, history: &mut History) -> Done<wire::HistoryStatus> {
    let latest = history.latest().map_err(convert::error)?.map_or(0, |latest| latest.id);
    Ok(wire::HistoryStatus {
        state: wire::HistoryState::Starting,
        latest,
        checkpoints: history.checkpoints().map_err(convert::error)?,
        names: history.names().map_err(convert::error)?,
        quota_bytes: keeper.retention().quota,
        set_aside: None,
    })
}

pub(super) fn list(
    keeper: &mut Keeper,
    history: &mut History,
    wanted: ListQuery,
) -> Done<wire::CheckpointPage> {
    catch_up(keeper, history)?;
    let mut query = wanted.query;
    if let Some(path) = &wanted.path {
        query.within = Some(convert::tree_path(path, &keeper.place.workspace)?);
    }
    let page = history.list(&query).map_err(convert::error)?;
    let undone = history.undone().map_err(convert::error)?;
    let checkpoints = page.checkpoints.iter().map(|checkpoint| wire::CheckpointInfo {
        undone: undone.contains(&checkpoint.id),
        ..convert::checkpoint(checkpoint)
    });
    Ok(wire::CheckpointPage { checkpoints: checkpoints.collect(), next: page.next })
}

/// More names than this are only counted: to find the first of them means to read them all.
const MOST_NAMED: u64 = 500;

/// The newest checkpoints, each with the names of its first files.
pub(super) fn timeline(
    keeper: &mut Keeper,
    history: &mut History,
    checkpoints: usize,
    names: usize,
) -> Done<Vec<wire::Changes>> {
    let query = Query { limit: checkpoints, ..Query::default() };
    let page = list(keeper, history, ListQuery { query, path: None })?;
    let mut timeline = Vec::new();
    for checkpoint in page.checkpoints {
        let total = checkpoint.added + checkpoint.changed + checkpoint.removed;
        let mut shown = wire::Changes { checkpoint: None, changes: Vec::new(), total };
        if total <= MOST_NAMED {
            let (everywhere, with_diff) = (None, false);
            shown = show(keeper, history, checkpoint.id, everywhere, names, with_diff)?;
        }
        // As the list has it, which knows whether it is undone.
        shown.checkpoint = Some(checkpoint);
        timeline.push(shown);
    }
    Ok(timeline)
}

pub(super) fn show(
    keeper: &mut Keeper,
    history: &mut History,
    id: u64,
    path: Option<&WirePath>,
    limit: usize,
    with_diff: bool,
) -> Done<wire::Changes> {
    let (checkpoint, delta) = history.show(id).map_err(convert::error)?;
    let delta = within(keeper, delta, path)?;
    let mut changes = convert::changes(&delta, &checkpoint.notes.moved, limit);
    if with_diff {
        add_diffs(history, &delta, &mut changes)?;
    }
    changes.checkpoint = Some(convert::checkpoint(&checkpoint));
    Ok(changes)
}

fn within(keeper: &Keeper, delta: Delta, path: Option<&WirePath>) -> Done<Delta> {
    let Some(path) = path else { return Ok(delta) };
    let path = convert::tree_path(path, &keeper.place.workspace)?;
    let changes = delta.into_changes().into_iter();
    Ok(Delta::new(changes.filter(|change| change.path.is_within(&path))))
}

pub(super) fn between(
    keeper: &mut Keeper,
    history: &mut History,
    from: u64,
    to: Option<u64>,
    path: Option<&WirePath>,
    limit: usize,
) -> Done<wire::Changes> {
    let to = match to {
        Some(to) => to,
        None => {
            catch_up(keeper, history)?;
            history.latest().map_err(convert::error)?.map_or(0, |latest| latest.id)
        }
    };
    let within = match path {
        Some(path) => convert::tree_path(path, &keeper.place.workspace)?,
        None => TreePath::root(),
    };
    let delta = history.between(from, to, &within).map_err(convert::error)?;
    let mut changes = convert::changes(&delta, &[], limit);
    add_diffs(history, &delta, &mut changes)?;
    Ok(changes)
}

fn add_diffs(history: &mut History, delta: &Delta, to: &mut wire::Changes) -> Done<()> {
    for (change, shown) in delta.changes().iter().zip(&mut to.changes) {
        match history.diff(change).map_err(convert::error)? {
            FileDiff::Text(text) => shown.diff = Some(text),
            FileDiff::Binary => shown.omitted = Some("binary".to_owned()),
            FileDiff::TooLarge => shown.omitted = Some("too_large".to_owned()),
            FileDiff::None => {}
        }
    }
    Ok(())
}

/// As `patch` and people read it.
pub(super) fn unified(changes: &wire::Changes) -> String {
    let mut text = String::new();
    for change in &changes.changes {
        match (&change.diff, &change.omitted) {
            (Some(diff), _) if !diff.is_empty() => text.push_str(diff),
            (_, Some(why)) => text.push_str(&format!("{why} file {} differs\n", change.path)),
            (_, None) => {
                let what = match (&change.old, &change.new) {
                    (None, Some(new)) => format!("new {}", new.kind),
                    (Some(old), None) => format!("removed {}", old.kind),
                    (Some(old), Some(new)) if old.mode != new.mode => {
                        format!("mode {:o} -> {:o} of", old.mode, new.mode)
                    }
                    _ => "changed".to_owned(),
                };
                text.push_str(&format!("{what} {}\n", change.path));
            }
        }
    }
    text
}

/// In a file without a name, so that a slow client keeps nobody waiting.
pub(super) fn file(
    keeper: &mut Keeper,
    history: &mut History,
    path: Option<&WirePath>,
    at: Option<u64>,
    content: Option<String>,
) -> Done<File> {
    let mut file = unnamed(keeper)?;
    match (content, path, at) {
        (Some(id), None, None) => {
            let id = id.parse().map_err(|_| {
                ApiError::new(ErrorKind::InvalidRequest, format!("\"{id}\" is no content id"))
            })?;
            history.fetch(id, &mut file).map_err(convert::error)?;
        }
        (None, Some(path), Some(at)) => {
            let path = convert::tree_path(path, &keeper.place.workspace)?;
            history.read_at(&path, at, &mut file).map_err(convert::error)?;
        }
        _ => {
            let message = "give \"path\" and \"at\", or \"content\"";
            return Err(ApiError::new(ErrorKind::InvalidRequest, message));
        }
    }
    rewound(file)
}

pub(super) fn export(keeper: &mut Keeper, history: &mut History, branch: &str) -> Done<File> {
    catch_up(keeper, history)?;
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    if branch.is_empty() || !branch.chars().all(plain) || branch.contains("..") {
        let message = format!("\"{branch}\" is not the name of a branch");
        return Err(ApiError::new(ErrorKind::InvalidRequest, message));
    }
    let mut out = BufWriter::with_capacity(1 << 18, unnamed(keeper)?);
    history.export_git(branch, &mut out).map_err(convert::error)?;
    let file = out.into_inner().map_err(|error| ApiError::io("export", error.error()))?;
    rewound(file)
}

fn unnamed(keeper: &Keeper) -> Done<File> {
    use rustix::fs::{Mode, OFlags};
    let flags = OFlags::RDWR | OFlags::TMPFILE | OFlags::CLOEXEC;
    let fd = rustix::fs::open(&keeper.place.store, flags, Mode::RUSR | Mode::WUSR)
        .map_err(|error| ApiError::io("make room for the answer", &error.into()))?;
    Ok(File::from(fd))
}

fn rewound(mut file: File) -> Done<File> {
    let rewound = file.flush().and_then(|()| file.rewind());
    rewound.map_err(|error| ApiError::io("read the answer back", &error))?;
    Ok(file)
}

pub(super) fn undo(
    keeper: &mut Keeper,
    history: &mut History,
    request: &wire::UndoRequest,
) -> Done<wire::Outcome> {
    catch_up(keeper, history)?;
    let named = usize::from(request.last.is_some())
        + usize::from(!request.checkpoints.is_empty())
        + usize::from(request.by.is_some());
    if named > 1 {
        let message = "give one of \"last\", \"checkpoints\" and \"by\"";
        return Err(ApiError::new(ErrorKind::InvalidRequest, message));
    }
    let what = match (&request.by, request.checkpoints.as_slice()) {
        (Some(wire::By::Author { author }), _) => Selection::By(convert::author(author.clone())),
        (Some(wire::By::LastCommand), _) => Selection::By(last_command(history)?),
        (None, []) => Selection::Last(request.last.unwrap_or(1)),
        (None, ids) => Selection::Checkpoints(ids.to_vec()),
    };
    let how = convert::how(&request.how, &keeper.place.workspace)?;
    let outcome = history.undo(keeper.dirty.look(), &what, &how).map_err(convert::error)?;
    finish(keeper, history, outcome)
}

/// The newest command with something to undo.
fn last_command(history: &mut History) -> Done<Author> {
    let query = Query { limit: FAR, ..Query::default() };
    let page = history.list(&query).map_err(convert::error)?;
    let undone = history.undone().map_err(convert::error)?;
    let standing = page
        .checkpoints
        .iter()
        .filter(|checkpoint| checkpoint.cause == Cause::Change && !undone.contains(&checkpoint.id));
    let mut commands = standing.flat_map(|checkpoint| &checkpoint.authors);
    commands
        .find(|author| matches!(author, Author::Command { .. }))
        .cloned()
        .ok_or_else(|| ApiError::new(ErrorKind::NotFound, "no command has changed anything"))
}

pub(super) fn redo(
    keeper: &mut Keeper,
    history: &mut History,
    request: &wire::RedoRequest,
) -> Done<wire::Outcome> {
    catch_up(keeper, history)?;
    let how = convert::how(&request.how, &keeper.place.workspace)?;
    let outcome = history.redo(keeper.dirty.look(), &how).map_err(convert::error)?;
    finish(keeper, history, outcome)
}

pub(super) fn restore(
    keeper: &mut Keeper,
    history: &mut History,
    request: &wire::RestoreRequest,
) -> Done<wire::Outcome> {
    catch_up(keeper, history)?;
    let to = match (request.checkpoint, request.time) {
        (Some(id), None) => id,
        (None, Some(time)) => history.at_time(time).map_err(convert::error)?,
        _ => {
            let message = "give one of \"checkpoint\" and \"time\"";
            return Err(ApiError::new(ErrorKind::InvalidRequest, message));
        }
    };
    let how = convert::how(&request.how, &keeper.place.workspace)?;
    let outcome = history.restore(keeper.dirty.look(), to, &how).map_err(convert::error)?;
    finish(keeper, history, outcome)
}

fn finish(
    keeper: &mut Keeper,
    history: &mut History,
    outcome: nacre_history::Outcome,
) -> Done<wire::Outcome> {
    keeper.recorded(outcome.checkpoint.as_ref());
    let mut conflicts = Vec::new();
    for conflict in &outcome.conflicts {
        let query = Query { within: Some(conflict.path.clone()), limit: 1, ..Query::default() };
        let by = history.list(&query).map_err(convert::error)?;
        conflicts.push(wire::Conflict {
            path: convert::path(&conflict.path),
            reason: convert::reason(conflict.reason).to_owned(),
            present: conflict.present.as_ref().map(convert::version),
            target: conflict.target.as_ref().map(convert::version),
            by: by.checkpoints.first().map(convert::checkpoint),
        });
    }
    Ok(wire::Outcome {
        checkpoint: outcome.checkpoint.as_ref().map(convert::checkpoint),
        changes: convert::changes(&outcome.changes, &[], MOST_CHANGES),
        conflicts,
        remarks: convert::remarks(&outcome.remarks),
        of: outcome.of,
    })
}

pub(super) fn usage(keeper: &mut Keeper, history: &mut History) -> Done<wire::HistoryUsage> {
    let usage = history.usage(20).map_err(convert::error)?;
    Ok(wire::HistoryUsage {
        disk_bytes: usage.disk_bytes,
        quota_bytes: keeper.retention().quota,
        packs_bytes: usage.packs_bytes,
        log_bytes: usage.log_bytes,
        checkpoints: usage.checkpoints,
        names: usage.names,
        present_bytes: usage.present_bytes,
        past_bytes: usage.past_bytes,
        largest: usage
            .largest
            .iter()
            .map(|(path, bytes)| wire::PathBytes { path: convert::path(path), bytes: *bytes })
            .collect(),
    })
}

pub(super) fn verify(history: &mut History) -> Done<wire::Verified> {
    let found = history.verify(&mut |_, _| {}).map_err(convert::error)?;
    let damaged = found.damaged.into_iter().map(|damage| wire::Damaged {
        content: damage.content.to_string(),
        why: damage.why,
        uses: damage
            .uses
            .iter()
            .map(|(path, checkpoint)| wire::Use {
                path: convert::path(path),
                checkpoint: *checkpoint,
            })
            .collect(),
    });
    Ok(wire::Verified { contents: found.contents, damaged: damaged.collect() })
}

/// New settings hold from the next record on; exclusions are checked first.
pub(super) fn set(
    keeper: &mut Keeper,
    history: &mut History,
    new: wire::HistorySettings,
) -> Done<()> {
    // Settings without a limit are back at the usual one.
    let usual = Options::new(&keeper.place.root, &keeper.place.store).largest_file;
    let largest = new.largest_file_bytes.unwrap_or(usual);
    history.configure(&new.exclude, Some(largest)).map_err(convert::error)?;
    settings::save(&keeper.place.store, &new)?;
    keeper.settings = new;
    keeper.dirty.add_everything();
    Ok(())
}
