//! What is kept of a run, in a folder of its own below `runs` in the data folder.
//!
//! | Name | What |
//! |---|---|
//! | `run.json` | [`RunInfo`], as it was last |
//! | `events.jsonl` | what happened |
//! | `input.tar` | what it begins with, until it has begun |
//! | `files.tar`, `patch` | what it changed |
//!
//! A folder whose record cannot be read is moved to `runs/unreadable`: what the run made may still be good.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::body::Bytes;
use futures_util::Stream;
use nacre_wire::runs::{RunInfo, RunState};

use super::config::Keep;

const INFO: &str = "run.json";
/// Beside the runs: what cannot be read as one.
const ASIDE: &str = "unreadable";
/// Read at once.
const PIECE: u64 = 256 * 1024;

/// The folder of one run.
#[derive(Debug, Clone)]
pub(super) struct Folder(PathBuf);

impl Folder {
    pub(super) fn create(runs: &Path, id: &str) -> io::Result<Self> {
        let path = runs.join(id);
        DirBuilder::new().recursive(true).mode(0o700).create(&path)?;
        Ok(Self(path))
    }

    pub(super) fn events(&self) -> PathBuf {
        self.0.join("events.jsonl")
    }

    pub(super) fn input(&self) -> PathBuf {
        self.0.join("input.tar")
    }

    pub(super) fn files(&self) -> PathBuf {
        self.0.join("files.tar")
    }

    pub(super) fn patch(&self) -> PathBuf {
        self.0.join("patch")
    }

    /// In one step: whoever reads it after a crash finds this or what was there before.
    pub(super) fn save(&self, info: &RunInfo) -> io::Result<()> {
        let draft = self.0.join("run.json.new");
        let mut file = private(&draft)?;
        file.write_all(&serde_json::to_vec(info)?)?;
        // Else a power cut may leave the new name and nothing in it.
        file.sync_all()?;
        fs::rename(draft, self.0.join(INFO))?;
        File::open(&self.0)?.sync_all()
    }

    /// Out of the way, with all that is in it. Gives where it is then.
    fn put_aside(&self) -> io::Result<PathBuf> {
        let runs = self.0.parent().unwrap_or(Path::new("."));
        let aside = runs.join(ASIDE);
        DirBuilder::new().recursive(true).mode(0o700).create(&aside)?;
        let name = self.0.file_name().unwrap_or_default();
        let free = |number: u32| match number {
            0 => aside.join(name),
            number => aside.join(format!("{}.{number}", name.to_string_lossy())),
        };
        let place = (0..).map(free).find(|place| !place.exists()).unwrap_or_default();
        fs::rename(&self.0, &place)?;
        Ok(place)
    }

    fn info(&self) -> io::Result<RunInfo> {
        Ok(serde_json::from_slice(&fs::read(self.0.join(INFO))?)?)
    }

    fn keep_aside(&self, why: &str) {
        let path = self.0.display();
        match self.put_aside() {
            Ok(place) => {
                let place = place.display();
                tracing::error!(%path, why, %place, "the record of a run cannot be read; it is kept aside");
            }
            Err(error) => tracing::error!(%path, why, %error, "the record of a run cannot be read"),
        }
    }

    pub(super) fn forget_input(&self) {
        if let Err(error) = fs::remove_file(self.input())
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(path = %self.input().display(), %error, "input of a run is left");
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        let Ok(entries) = fs::read_dir(&self.0) else { return 0 };
        let sizes = entries.flatten().filter_map(|entry| entry.metadata().ok());
        sizes.map(|metadata| metadata.len()).sum()
    }

    pub(super) fn remove(&self) {
        if let Err(error) = fs::remove_dir_all(&self.0)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(path = %self.0.display(), %error, "a run cannot be forgotten");
        }
    }
}

/// A new file that only its owner reads.
pub(super) fn private(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)
}

/// The bytes of a file, piece by piece.
pub(super) fn stream(file: File) -> impl Stream<Item = io::Result<Bytes>> + Send {
    let file = Arc::new(file);
    futures_util::stream::try_unfold((file, 0), |(file, at)| async move {
        let read = piece(file.clone(), at, PIECE).await?;
        let next = at + read.len() as u64;
        Ok((!read.is_empty()).then_some((read, (file, next))))
    })
}

/// As much as there is of it, read where waiting is no harm.
pub(super) async fn piece(file: Arc<File>, at: u64, length: u64) -> io::Result<Bytes> {
    let read = tokio::task::spawn_blocking(move || {
        let mut buffer = vec![0; usize::try_from(length).unwrap_or_default()];
        let count = file.read_at(&mut buffer, at)?;
        buffer.truncate(count);
        Ok(Bytes::from(buffer))
    });
    read.await.map_err(io::Error::other)?
}

/// All that are kept, oldest first. One without a record never began, and is removed.
pub(super) fn load(runs: &Path) -> io::Result<Vec<(Folder, RunInfo)>> {
    let entries = match fs::read_dir(runs) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut found = Vec::new();
    for entry in entries.flatten().filter(|entry| entry.file_name() != ASIDE) {
        let folder = Folder(entry.path());
        match folder.info() {
            Ok(info) if entry.file_name().to_str() == Some(info.id.as_str()) => {
                found.push((folder, info));
            }
            Ok(info) => folder.keep_aside(&format!("it is of {}", info.id)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => folder.remove(),
            Err(error) => folder.keep_aside(&error.to_string()),
        }
    }
    found.sort_by(|(_, a), (_, b)| (a.created_at, &a.id).cmp(&(b.created_at, &b.id)));
    Ok(found)
}

/// What a decision about a run's record needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Kept {
    pub(super) id: String,
    pub(super) ended_at: u64,
    pub(super) bytes: u64,
}

/// Of those that have ended, the ones to forget: too old, too many, or too large together. Pure.
pub(super) fn expired(mut kept: Vec<Kept>, keep: &Keep, now: u64) -> Vec<String> {
    kept.sort_by(|a, b| (b.ended_at, &b.id).cmp(&(a.ended_at, &a.id)));
    let oldest = now.saturating_sub(u64::try_from(keep.age.as_millis()).unwrap_or(u64::MAX));
    let (mut count, mut bytes) = (0, 0_u64);
    let mut forgotten = Vec::new();
    for run in kept {
        count += 1;
        bytes = bytes.saturating_add(run.bytes);
        // The newest stays, however large: somebody has just waited for it.
        let too_much = count > keep.runs || bytes > keep.bytes;
        if run.ended_at < oldest || (too_much && count > 1) {
            forgotten.push(run.id);
        }
    }
    forgotten
}

pub(super) fn is_over(info: &RunInfo) -> bool {
    info.state == RunState::Ended
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn what_cannot_be_read_is_kept_aside_with_what_it_made() {
        let dir = tempfile::tempdir().unwrap();
        let runs = dir.path().join("runs");
        let make = |id: &str, record: Option<&str>| {
            let folder = Folder::create(&runs, id).unwrap();
            fs::write(folder.files(), "made").unwrap();
            if let Some(record) = record {
                fs::write(folder.0.join(INFO), record).unwrap();
            }
        };
        for _ in 0..2 {
            make("run-half", Some("{\"id\":\"run-ha"));
            make("run-none", None);
            assert!(load(&runs).unwrap().is_empty());
        }
        for name in ["run-half", "run-half.1"] {
            let kept = runs.join("unreadable").join(name);
            assert_eq!(fs::read_to_string(kept.join("files.tar")).unwrap(), "made");
            assert!(kept.join(INFO).exists());
        }
        let mut left: Vec<_> =
            fs::read_dir(&runs).unwrap().flatten().map(|e| e.file_name()).collect();
        left.sort();
        assert_eq!(left, ["unreadable"]);
    }

    #[test]
    fn the_old_the_many_and_the_large_are_forgotten() {
        let run = |id: &str, ended_at, bytes| Kept { id: id.to_owned(), ended_at, bytes };
        let keep = Keep { runs: 3, bytes: 100, age: Duration::from_millis(50) };
        let check = |kept: Vec<Kept>, expected: &[&str]| {
            assert_eq!(expired(kept, &keep, 100), expected);
        };
        check(vec![run("a", 40, 1), run("b", 50, 1)], &["a"]);
        check((60..65).map(|at| run(&at.to_string(), at, 1)).collect(), &["61", "60"]);
        check(vec![run("a", 60, 60), run("b", 61, 60), run("c", 62, 30)], &["a"]);
        check(vec![run("huge", 60, 1000)], &[]);
    }
}
