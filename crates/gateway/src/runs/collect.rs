//! What a run did to the files: taken out of its sandbox before that is removed.
//!
//! The sandbox's own history knows the names, and the lines. The bytes are read through the door, one
//! file after another, so that neither the number of files nor a program that is missing in the sandbox
//! matters; how much is read is bounded.

use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use axum::body::Bytes;
use http::Method;
use http_body_util::{BodyExt, Limited};
use nacre_wire::client::{Client, ListHistory, empty};
use nacre_wire::history::{Changes, FileChange};
use nacre_wire::runs::{RunChange, RunChangeKind, RunChanges};
use nacre_wire::{ApiError, ErrorKind};
use tokio::sync::mpsc;

use super::record::{self, Folder};
use super::told;

/// The state of a workspace that nobody has touched, which is where each history begins.
const UNTOUCHED: u64 = 1;
const LARGEST_ANSWER: usize = 256 << 20;
/// It is held in memory while it passes.
const LARGEST_FILE: u64 = 64 << 20;
/// Named in the record of the run.
const MOST_NAMED: usize = 1000;
const PATIENCE: Duration = Duration::from_secs(120);

/// A moment to compare with later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Base(u64);

impl Base {
    pub(super) const UNTOUCHED: Self = Self(UNTOUCHED);

    /// The present, recorded now.
    pub(super) async fn now(client: &Client) -> Result<Self, ApiError> {
        let wanted = ListHistory { limit: Some(1), ..ListHistory::default() };
        let page = client.history(&wanted).await.map_err(told)?;
        Ok(page.checkpoints.first().map_or(Self::UNTOUCHED, |newest| Self(newest.id)))
    }
}

/// One entry for the archive.
struct Item {
    change: FileChange,
    bytes: Bytes,
}

pub(super) async fn collect(
    client: &Client,
    base: Base,
    folder: &Folder,
    largest: u64,
) -> Result<RunChanges, ApiError> {
    let collecting = collect_all(client, base, folder, largest);
    match tokio::time::timeout(PATIENCE, collecting).await {
        Ok(collected) => collected,
        Err(_) => Err(ApiError::new(ErrorKind::TimedOut, "the sandbox took too long to tell")),
    }
}

async fn collect_all(
    client: &Client,
    base: Base,
    folder: &Folder,
    largest: u64,
) -> Result<RunChanges, ApiError> {
    let Changes { changes, total, .. } = changes_since(client, base).await?;
    let mut result = RunChanges::default();
    if total > changes.len() as u64 {
        result.incomplete = Some(format!("only the first {} of {total} names", changes.len()));
    }
    write_patch(folder, &changes)?;
    let (sender, receiver) = mpsc::channel(4);
    let path = folder.files();
    let writing = tokio::task::spawn_blocking(move || write_archive(&path, receiver));
    for change in changes {
        let left_out = match wanted(&change, largest - result.bytes) {
            Wanted::Nothing => None,
            Wanted::Name => send(&sender, change.clone(), Bytes::new()).await,
            Wanted::Bytes => match content(client, &change).await {
                Ok(bytes) => {
                    result.bytes += bytes.len() as u64;
                    send(&sender, change.clone(), bytes).await
                }
                Err(why) => Some(why),
            },
            Wanted::TooLarge(why) => Some(why),
        };
        count(&mut result, &change, left_out);
    }
    drop(sender);
    let written = writing.await.map_err(|error| internal(&error))?;
    written.map_err(|error| ApiError::io(folder.files().display(), &error))?;
    Ok(result)
}

/// Returns why it is not in the archive.
async fn send(sender: &mpsc::Sender<Item>, change: FileChange, bytes: Bytes) -> Option<String> {
    let sent = sender.send(Item { change, bytes }).await;
    sent.is_err().then(|| "it could not be written".to_owned())
}

async fn changes_since(client: &Client, base: Base) -> Result<Changes, ApiError> {
    let path = format!("/supervisor/history/diff?from={}", base.0);
    let request = client.request(Method::GET, &path, empty()).map_err(told)?;
    let body = client.send(request).await.map_err(told)?.into_body();
    let body =
        Limited::new(body, LARGEST_ANSWER).collect().await.map_err(|error| internal(&error))?;
    serde_json::from_slice(&body.to_bytes()).map_err(|error| internal(&error))
}

enum Wanted {
    /// It is gone.
    Nothing,
    Name,
    Bytes,
    TooLarge(String),
}

fn wanted(change: &FileChange, room: u64) -> Wanted {
    let Some(new) = &change.new else { return Wanted::Nothing };
    match new.kind.as_str() {
        "file" if new.size > LARGEST_FILE => {
            Wanted::TooLarge(format!("it has more than {} MiB", LARGEST_FILE >> 20))
        }
        "file" if new.size > room => {
            Wanted::TooLarge("together with the others it is more than is kept".to_owned())
        }
        "file" => Wanted::Bytes,
        "directory" | "symlink" => Wanted::Name,
        other => Wanted::TooLarge(format!("it is a {other} file")),
    }
}

async fn content(client: &Client, change: &FileChange) -> Result<Bytes, String> {
    let body = client.read_stream(change.path.as_path(), None).await;
    let body = body.map_err(|error| error.to_string())?;
    let most = usize::try_from(LARGEST_FILE).unwrap_or(usize::MAX);
    let read = Limited::new(body, most).collect().await.map_err(|error| error.to_string())?;
    Ok(read.to_bytes())
}

fn count(result: &mut RunChanges, change: &FileChange, left_out: Option<String>) {
    let is_directory = |side: &Option<nacre_wire::history::Version>| {
        side.as_ref().is_none_or(|version| version.kind == "directory")
    };
    if is_directory(&change.old) && is_directory(&change.new) {
        return;
    }
    let (kind, number) = match (&change.old, &change.new) {
        (None, _) => (RunChangeKind::Added, &mut result.added),
        (Some(_), Some(_)) => (RunChangeKind::Changed, &mut result.changed),
        (Some(_), None) => (RunChangeKind::Removed, &mut result.removed),
    };
    *number += 1;
    if result.paths.len() < MOST_NAMED {
        let (lines_added, lines_removed) = lines(change.diff.as_deref().unwrap_or_default());
        let path = change.path.clone();
        result.paths.push(RunChange { path, change: kind, lines_added, lines_removed, left_out });
    }
}

/// Of a unified diff of one file.
fn lines(diff: &str) -> (u64, u64) {
    let hunks = diff.lines().skip_while(|line| !line.starts_with("@@"));
    hunks.fold((0, 0), |(added, removed), line| match line.as_bytes().first() {
        Some(b'+') => (added + 1, removed),
        Some(b'-') => (added, removed + 1),
        _ => (added, removed),
    })
}

/// As `patch -p1` reads it; what it cannot hold is said in words, which that skips.
fn write_patch(folder: &Folder, changes: &[FileChange]) -> Result<(), ApiError> {
    let write = || {
        let mut file = io::BufWriter::new(record::private(&folder.patch())?);
        for change in changes {
            match remark(change) {
                Some(remark) => writeln!(file, "# {remark}: {}", change.path)?,
                None => file.write_all(change.diff.as_deref().unwrap_or_default().as_bytes())?,
            }
        }
        file.into_inner()?.sync_data()
    };
    write().map_err(|error| ApiError::io(folder.patch().display(), &error))
}

fn remark(change: &FileChange) -> Option<&'static str> {
    let kind = |side: &Option<nacre_wire::history::Version>| {
        side.as_ref().map_or("", |version| version.kind.as_str()).to_owned()
    };
    let sides = [kind(&change.old), kind(&change.new)];
    let of = |kind: &str| sides.iter().any(|side| side == kind);
    let has_diff = change.diff.as_ref().is_some_and(|diff| !diff.is_empty());
    match (change.omitted.as_deref(), has_diff) {
        (Some("binary"), _) => Some("not text, see the files"),
        (Some(_), _) => Some("too large for a patch, see the files"),
        (None, _) if of("symlink") => Some("a link, see the files"),
        (None, true) => None,
        (None, false) if of("directory") => Some("a directory"),
        (None, false) if change.old.is_none() => Some("new and empty"),
        (None, false) if change.new.is_none() => Some("removed, was empty"),
        (None, false) => Some("only its mode or owner changed"),
    }
}

fn write_archive(path: &Path, mut items: mpsc::Receiver<Item>) -> io::Result<()> {
    let file = io::BufWriter::with_capacity(1 << 18, record::private(path)?);
    let mut archive = tar::Builder::new(file);
    while let Some(Item { change, bytes }) = items.blocking_recv() {
        let Some(new) = &change.new else { continue };
        let mut header = tar::Header::new_gnu();
        header.set_mode(new.mode & 0o777);
        header.set_mtime(u64::try_from(new.mtime / 1000).unwrap_or(0));
        let path = change.path.as_path();
        match (new.kind.as_str(), &new.target) {
            ("symlink", Some(target)) => {
                header.set_entry_type(tar::EntryType::Symlink);
                header.set_size(0);
                archive.append_link(&mut header, path, target.as_path())?;
            }
            ("directory", _) => {
                header.set_entry_type(tar::EntryType::Directory);
                header.set_size(0);
                archive.append_data(&mut header, path, io::empty())?;
            }
            _ => {
                header.set_size(bytes.len() as u64);
                archive.append_data(&mut header, path, &bytes[..])?;
            }
        }
    }
    // The record that names it is on the disk soon after.
    archive.into_inner()?.into_inner()?.sync_data()
}

fn internal(error: &dyn std::fmt::Display) -> ApiError {
    ApiError::new(ErrorKind::Internal, error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_diff_are_counted_without_its_head() {
        let diff = "--- a/x\n+++ b/x\n@@ -1,2 +1,3 @@\n same\n-old\n+new\n+--- more\n";
        assert_eq!(lines(diff), (2, 1));
        assert_eq!(lines(""), (0, 0));
    }
}
