//! Between the library's words and those of the wire.

use std::collections::BTreeMap;

use nacre_history as lib;
use nacre_wire::history as wire;
use nacre_wire::{ApiError, ErrorKind, WirePath};

/// Milliseconds since 1970.
pub(super) fn now() -> i64 {
    std::time::UNIX_EPOCH
        .elapsed()
        .map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

pub(super) fn error(error: lib::Error) -> ApiError {
    let message = error.to_string();
    match error {
        lib::Error::NoSpace { .. } => ApiError::new(ErrorKind::NoSpace, message)
            .hint("free some space on the host, or lower the quota of the history"),
        lib::Error::NoCheckpoint(_) | lib::Error::NotThere(_) => {
            ApiError::new(ErrorKind::NotFound, message)
        }
        lib::Error::Stale { .. } => ApiError::new(ErrorKind::Conflict, message)
            .hint("look at what changed since, and ask again"),
        lib::Error::Unfinished(_) => ApiError::new(ErrorKind::Unavailable, message).hint(
            "it is finished before anything else is done; free some space if the disk is full",
        ),
        lib::Error::Invalid(_) => ApiError::new(ErrorKind::InvalidRequest, message),
        lib::Error::Missing(_) | lib::Error::Damaged { .. } => {
            ApiError::new(ErrorKind::Internal, message)
                .hint("`nacre history verify` tells what is hit")
        }
        lib::Error::Io { .. } | lib::Error::Database(_) => {
            ApiError::new(ErrorKind::Internal, message)
        }
    }
}

pub(super) fn path(path: &lib::TreePath) -> WirePath {
    WirePath(path.to_path())
}

/// Relative to the workspace, or absolute below it.
pub(super) fn tree_path(
    path: &WirePath,
    workspace: &std::path::Path,
) -> Result<lib::TreePath, ApiError> {
    let relative = path.as_path().strip_prefix(workspace).unwrap_or(path.as_path());
    // `./a` and `a//b` are as good as `a` and `a/b`.
    let plain: std::path::PathBuf = relative
        .components()
        .filter(|part| !matches!(part, std::path::Component::CurDir))
        .collect();
    lib::TreePath::parse(&plain).ok_or_else(|| {
        ApiError::new(ErrorKind::InvalidPath, format!("\"{path}\" is not below the workspace"))
    })
}

pub(super) fn author(author: wire::Author) -> lib::Author {
    match author {
        wire::Author::Api { call } => lib::Author::Api { call },
        wire::Author::Command { id, line } => lib::Author::Command { id, line },
        wire::Author::Conversation { id, call } => lib::Author::Conversation { id, call },
        wire::Author::Ssh { session } => lib::Author::Ssh { session },
    }
}

fn author_info(author: &lib::Author) -> wire::Author {
    match author.clone() {
        lib::Author::Api { call } => wire::Author::Api { call },
        lib::Author::Command { id, line } => wire::Author::Command { id, line },
        lib::Author::Conversation { id, call } => wire::Author::Conversation { id, call },
        lib::Author::Ssh { session } => wire::Author::Ssh { session },
    }
}

pub(super) fn checkpoint(checkpoint: &lib::Checkpoint) -> wire::CheckpointInfo {
    wire::CheckpointInfo {
        id: checkpoint.id,
        time: checkpoint.time,
        cause: match &checkpoint.cause {
            lib::Cause::First => wire::Cause::First,
            lib::Cause::Change => wire::Cause::Change,
            lib::Cause::Undo { of, within } => wire::Cause::Undo {
                of: of.clone(),
                path: (!within.is_root()).then(|| path(within)),
            },
            lib::Cause::Redo { of } => wire::Cause::Redo { of: *of },
            lib::Cause::Restore { to } => wire::Cause::Restore { to: *to },
        },
        authors: checkpoint.authors.iter().map(author_info).collect(),
        label: checkpoint.label.clone(),
        added: checkpoint.counts.added,
        changed: checkpoint.counts.changed,
        removed: checkpoint.counts.removed,
        moved: checkpoint
            .notes
            .moved
            .iter()
            .map(|(from, to)| wire::Moved { from: path(from), to: path(to) })
            .collect(),
        remarks: remarks(&checkpoint.notes.remarks),
        undone: false,
    }
}

pub(super) fn remarks(remarks: &[lib::Remark]) -> Vec<wire::Remark> {
    remarks
        .iter()
        .map(|remark| {
            let (what, message) = match &remark.what {
                lib::What::Torn => ("torn", "it changed each time it was read".to_owned()),
                lib::What::TooLarge { size } => {
                    ("too_large", format!("its {size} bytes are more than history keeps of a file"))
                }
                lib::What::Unreadable { why } => ("unreadable", why.clone()),
                lib::What::LeftAlone { why } => ("left_alone", why.clone()),
                lib::What::Displaced { content } => {
                    ("displaced", format!("it was written to meanwhile; that is kept as {content}"))
                }
            };
            wire::Remark { path: path(&remark.path), what: what.to_owned(), message }
        })
        .collect()
}

pub(super) fn version(entry: &lib::Entry) -> wire::Version {
    let (kind, size, target) = match &entry.kind {
        lib::Kind::File { size, .. } => ("file", *size, None),
        lib::Kind::Directory => ("directory", 0, None),
        lib::Kind::Symlink { target } => {
            use std::os::unix::ffi::OsStrExt;
            let target = WirePath::from(std::ffi::OsStr::from_bytes(target));
            ("symlink", 0, Some(target))
        }
        lib::Kind::Special(_) => ("special", 0, None),
    };
    wire::Version {
        kind: kind.to_owned(),
        size,
        mode: entry.mode,
        uid: entry.uid,
        gid: entry.gid,
        mtime: entry.mtime.div_euclid(1_000_000),
        target,
        content: entry.content().map(|id| id.to_string()),
    }
}

/// The first `limit` changes of a delta. What moved is told once, under its new name.
pub(super) fn changes(
    delta: &lib::Delta,
    moved: &[(lib::TreePath, lib::TreePath)],
    limit: usize,
) -> wire::Changes {
    let came: BTreeMap<&lib::TreePath, &lib::TreePath> =
        moved.iter().map(|(from, to)| (to, from)).collect();
    let all = delta.changes();
    let changes = all.iter().take(limit).map(|change| wire::FileChange {
        path: path(&change.path),
        from: came.get(&change.path).map(|from| path(from)),
        old: change.old.as_ref().map(version),
        new: change.new.as_ref().map(version),
        diff: None,
        omitted: None,
    });
    wire::Changes { checkpoint: None, changes: changes.collect(), total: all.len() as u64 }
}

pub(super) fn how(how: &wire::How, workspace: &std::path::Path) -> Result<lib::How, ApiError> {
    let choice = |choice: wire::Choice| match choice {
        wire::Choice::Ask => lib::Choice::Ask,
        wire::Choice::Keep => lib::Choice::Keep,
        wire::Choice::Overwrite => lib::Choice::Overwrite,
    };
    let mut paths = BTreeMap::new();
    for (name, chosen) in &how.choices {
        paths.insert(tree_path(&WirePath::from(name), workspace)?, choice(*chosen));
    }
    let within = match &how.path {
        Some(path) => tree_path(path, workspace)?,
        None => lib::TreePath::root(),
    };
    Ok(lib::How {
        within,
        choices: lib::Choices { otherwise: choice(how.on_conflict), paths },
        expected: how.expected,
        authors: Vec::new(),
        dry_run: how.dry_run,
    })
}

pub(super) fn reason(reason: lib::Reason) -> &'static str {
    match reason {
        lib::Reason::ChangedLater => "changed_later",
        lib::Reason::ChangedBetween => "changed_between",
        lib::Reason::HoldsLaterFiles => "holds_later_files",
        lib::Reason::ParentReplaced => "parent_replaced",
    }
}
