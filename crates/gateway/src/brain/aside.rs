//! What was put into files so that the model can look it up: long output, old results, what a summary
//! stands for.
//!
//! The model reads them in the sandbox, below `/tmp`, which is empty after each start of a sandbox; and a
//! role may be another sandbox tomorrow. So each of them is also here, beside the journal, and goes when
//! the conversation does.
//!
//! ```text
//! sandbox  /tmp/nacre/CONVERSATION/NAME        host  conversations/ID/CONVERSATION/NAME
//! ```
//! The two names of a conversation differ in a fork, which has the files of the one it was forked from.

use std::collections::HashMap;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Read, Write as _};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use nacre_agent::body::{Body, Expected, Write};

/// Where they are in a sandbox.
const BELOW: &str = "/tmp/nacre";
/// Of one conversation, here. What comes after that is in the sandbox alone.
const MOST: u64 = 256 << 20;
/// What is written into a sandbox that has lost them, the newest first: its memory holds it.
const BROUGHT_BACK: u64 = 32 << 20;

/// The files of one conversation. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Aside {
    folder: PathBuf,
}

#[derive(Debug, PartialEq, Eq)]
struct Kept {
    conversation: String,
    name: String,
    bytes: u64,
    at: SystemTime,
}

impl Kept {
    fn path(&self) -> String {
        format!("{}/{}", scratch(&self.conversation), self.name)
    }
}

/// The folder of a conversation in a sandbox.
pub(super) fn scratch(conversation: &str) -> String {
    format!("{BELOW}/{conversation}")
}

impl Aside {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Where a file of a sandbox is here; `None` when it is none of ours.
    fn place(&self, path: &str) -> Option<PathBuf> {
        let (conversation, name) = path.strip_prefix(BELOW)?.strip_prefix('/')?.split_once('/')?;
        let good = is_plain(conversation) && is_plain(name);
        good.then(|| self.folder.join(conversation).join(name))
    }

    /// It is on disk when this returns true; false when it is not kept here.
    pub(super) async fn keep(&self, path: &str, bytes: &[u8]) -> bool {
        let Some(place) = self.place(path) else { return false };
        let (this, bytes) = (self.clone(), bytes.to_vec());
        let keeping = tokio::task::spawn_blocking(move || this.keep_at(&place, &bytes));
        match keeping.await.map_err(io::Error::other).flatten() {
            Ok(kept) => kept,
            Err(error) => {
                tracing::warn!(path, %error, "what was put aside is in the sandbox alone");
                false
            }
        }
    }

    fn keep_at(&self, place: &Path, bytes: &[u8]) -> io::Result<bool> {
        let held: u64 = self.all()?.iter().map(|kept| kept.bytes).sum();
        if held + bytes.len() as u64 > MOST {
            return Ok(false);
        }
        if let Some(above) = place.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(above)?;
        }
        let mut options = OpenOptions::new();
        let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(place)?;
        file.write_all(bytes)?;
        file.sync_data()?;
        Ok(true)
    }

    /// What a sandbox has lost, unless it is longer than that.
    pub(super) async fn read(&self, path: &str, at_most: u64) -> Option<Vec<u8>> {
        let place = self.place(path)?;
        let reading = tokio::task::spawn_blocking(move || {
            let mut bytes = Vec::new();
            fs::File::open(place)?.take(at_most.saturating_add(1)).read_to_end(&mut bytes)?;
            Ok::<_, io::Error>(bytes)
        });
        let bytes = reading.await.ok()?.ok()?;
        (bytes.len() as u64 <= at_most).then_some(bytes)
    }

    /// Puts into a sandbox what it does not have, so that commands find it too.
    pub(super) async fn bring_back(&self, body: &dyn Body) {
        let this = self.clone();
        let listed = tokio::task::spawn_blocking(move || this.all()).await;
        let Ok(Ok(mut all)) = listed else { return };
        all.sort_by_key(|kept| std::cmp::Reverse(kept.at));
        let mut there: HashMap<String, HashMap<String, u64>> = HashMap::new();
        let mut brought = 0;
        for kept in &all {
            brought += kept.bytes;
            if brought > BROUGHT_BACK {
                return;
            }
            if !there.contains_key(&kept.conversation) {
                // None of them, when there is no such folder.
                let found = body.list_files(&scratch(&kept.conversation)).await.unwrap_or_default();
                let found = found.into_iter().map(|entry| (entry.name, entry.size)).collect();
                there.insert(kept.conversation.clone(), found);
            }
            let known = there.get(&kept.conversation).and_then(|found| found.get(&kept.name));
            if known == Some(&kept.bytes) {
                continue;
            }
            let path = kept.path();
            let Some(bytes) = self.read(&path, kept.bytes).await else { continue };
            let write = Write { bytes, expected: Expected::Anything, call: None };
            if let Err(error) = body.write_file(&path, &write).await {
                tracing::debug!(path, %error, "a sandbox does not get back what was put aside");
                return;
            }
        }
    }

    /// For a fork: the same files, which nobody ever changes.
    pub(super) fn share_with(&self, other: &Self) -> io::Result<()> {
        for kept in self.all()? {
            let above = other.folder.join(&kept.conversation);
            DirBuilder::new().recursive(true).mode(0o700).create(&above)?;
            let from = self.folder.join(&kept.conversation).join(&kept.name);
            fs::hard_link(from, above.join(&kept.name))?;
        }
        Ok(())
    }

    pub(super) fn remove(&self) -> io::Result<()> {
        match fs::remove_dir_all(&self.folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    fn all(&self) -> io::Result<Vec<Kept>> {
        let mut all = Vec::new();
        for (conversation, folder) in entries(&self.folder)? {
            for (name, file) in entries(&folder)? {
                let about = fs::metadata(file)?;
                let (bytes, at) = (about.len(), about.modified()?);
                all.push(Kept { conversation: conversation.clone(), name, bytes, at });
            }
        }
        Ok(all)
    }
}

/// A folder that is not there has none.
fn entries(folder: &Path) -> io::Result<Vec<(String, PathBuf)>> {
    let read = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        read => read?,
    };
    let named = |entry: io::Result<fs::DirEntry>| {
        let entry = entry?;
        Ok((entry.file_name().to_string_lossy().into_owned(), entry.path()))
    };
    read.map(named).collect()
}

/// One name, and not one that leads elsewhere.
fn is_plain(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    !name.is_empty() && !name.starts_with('.') && name.chars().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[tokio::test]
    async fn only_what_is_put_aside_is_kept_and_for_the_owner_alone() {
        let dir = tempfile::tempdir().unwrap();
        let aside = Aside::new(dir.path().join("c-1"));
        assert!(aside.keep("/tmp/nacre/c-1/3-call.txt", b"long").await);
        for other in [
            "/workspace/a.txt",
            "/tmp/nacre/c-1",
            "/tmp/nacre/c-1/..",
            "/tmp/nacre/../x/y",
            "/tmp/nacre/c-1/a/b",
            "/tmp/nacrec-1/a",
        ] {
            assert!(!aside.keep(other, b"x").await, "{other}");
            assert_eq!(aside.read(other, 9).await, None, "{other}");
        }
        let path = "/tmp/nacre/c-1/3-call.txt";
        assert_eq!(aside.read(path, 4).await.unwrap(), b"long");
        assert_eq!(aside.read(path, 3).await, None, "it is longer");
        let file = dir.path().join("c-1/c-1/3-call.txt");
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o600);

        let fork = Aside::new(dir.path().join("c-2"));
        aside.share_with(&fork).unwrap();
        aside.remove().unwrap();
        aside.remove().unwrap();
        assert_eq!(fork.read(path, 4).await.unwrap(), b"long", "the original is gone");
        assert_eq!(aside.read(path, 4).await, None);
    }
}
