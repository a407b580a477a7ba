//! What is known of each conversation without its events: one small file beside each journal.
//!
//! Both are the owner's alone to read. A file is written whole under another name and then takes its
//! place, so that a crash leaves the old one or the new one.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nacre_wire::conductor::{ConversationMode, ForkedFrom};
use nacre_wire::history::How;
use serde::{Deserialize, Serialize};

use super::aside::Aside;

/// The name of the folder in the data directory.
const FOLDER: &str = "conversations";

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Meta {
    pub(super) id: String,
    pub(super) title: String,
    /// Unix milliseconds, as the next.
    pub(super) created_at: u64,
    pub(super) updated_at: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) role: Option<String>,
    pub(super) mode: ConversationMode,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) model: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) parent: Option<ForkedFrom>,
    /// Set before a turn begins and taken back when it has ended: who starts and finds it set knows of a
    /// turn that was cut off.
    #[serde(default)]
    pub(super) working: bool,
    /// Written before an undo touches anything and taken back when all of it is done: who finds it set
    /// finishes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) undoing: Option<Undoing>,
    /// As of the end of the last turn, as all below.
    #[serde(default)]
    pub(super) seq: u64,
    #[serde(default)]
    pub(super) steps: u64,
    #[serde(default)]
    pub(super) input_tokens: u64,
    #[serde(default)]
    pub(super) output_tokens: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) dollars: Option<f64>,
}

/// An undo that has begun.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Undoing {
    /// The last event before it.
    pub(super) after: u64,
    pub(super) how: How,
    pub(super) parts: Vec<UndoingIn>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct UndoingIn {
    /// By id.
    pub(super) sandbox: String,
    pub(super) checkpoints: Vec<u64>,
    /// What that changes, or the first of it.
    pub(super) paths: Vec<String>,
}

/// Where they are.
#[derive(Debug, Clone)]
pub(super) struct Index {
    folder: PathBuf,
}

impl Index {
    /// With all there are. One that cannot be read is told of and left alone.
    pub(super) fn open(data_dir: &Path) -> io::Result<(Self, Vec<Meta>)> {
        let folder = data_dir.join(FOLDER);
        DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
        let mut all = Vec::new();
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            let path = entry.path();
            if entry.file_type()?.is_dir() && !path.with_extension("json").exists() {
                // Its conversation was being removed.
                fs::remove_dir_all(&path)?;
                continue;
            }
            match path.extension().and_then(|end| end.to_str()) {
                Some("json") => match read(&path) {
                    Ok(meta) => all.push(meta),
                    Err(error) => {
                        tracing::error!(path = %path.display(), %error, "a conversation cannot be read");
                    }
                },
                // A crash came before it could take its place.
                Some("new") => fs::remove_file(&path)?,
                _ => {}
            }
        }
        Ok((Self { folder }, all))
    }

    pub(super) fn journal(&self, id: &str) -> PathBuf {
        self.folder.join(format!("{id}.jsonl"))
    }

    /// What its turns have put aside.
    pub(super) fn aside(&self, id: &str) -> Aside {
        Aside::new(self.folder.join(id))
    }

    fn file(&self, id: &str) -> PathBuf {
        self.folder.join(format!("{id}.json"))
    }

    /// It is on disk when this returns.
    pub(super) fn write(&self, meta: &Meta) -> io::Result<()> {
        let new = self.folder.join(format!("{}.new", meta.id));
        let mut file = private().truncate(true).open(&new)?;
        file.write_all(&serde_json::to_vec_pretty(meta)?)?;
        file.sync_data()?;
        fs::rename(&new, self.file(&meta.id))?;
        File::open(&self.folder)?.sync_data()
    }

    /// A journal with these lines, which nothing refers to yet.
    pub(super) fn begin(&self, id: &str, lines: &[axum::body::Bytes]) -> io::Result<()> {
        let file = private().create_new(true).open(self.journal(id))?;
        let mut file = io::BufWriter::new(file);
        for line in lines {
            file.write_all(line)?;
            file.write_all(b"\n")?;
        }
        file.into_inner().map_err(io::IntoInnerError::into_error)?.sync_data()
    }

    /// What is known of it goes first: a journal alone is no conversation.
    pub(super) fn remove(&self, id: &str) -> io::Result<()> {
        fs::remove_file(self.file(id))?;
        fs::remove_file(self.journal(id))?;
        self.aside(id).remove()
    }
}

fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).create(true).mode(0o600);
    options
}

fn read(path: &Path) -> io::Result<Meta> {
    Ok(serde_json::from_slice(&fs::read(path)?)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    pub(crate) fn meta(id: &str) -> Meta {
        Meta {
            id: id.to_owned(),
            title: "t".to_owned(),
            created_at: 1,
            updated_at: 2,
            role: None,
            mode: ConversationMode::Ask,
            model: Some("openai/x".to_owned()),
            parent: Some(ForkedFrom { id: "c-0".to_owned(), seq: 3 }),
            working: true,
            undoing: None,
            seq: 4,
            steps: 5,
            input_tokens: 6,
            output_tokens: 7,
            dollars: Some(0.5),
        }
    }

    #[test]
    fn what_is_written_is_there_again_for_its_owner_alone() {
        let dir = tempfile::tempdir().unwrap();
        let (index, none) = Index::open(dir.path()).unwrap();
        assert_eq!(none, []);
        let mut kept = meta("c-1");
        index.begin("c-1", &["a".into(), "b".into()]).unwrap();
        index.write(&kept).unwrap();
        kept.title = "u".to_owned();
        index.write(&kept).unwrap();
        assert_eq!(fs::read(index.journal("c-1")).unwrap(), b"a\nb\n");
        for file in fs::read_dir(dir.path().join(FOLDER)).unwrap() {
            assert_eq!(file.unwrap().metadata().unwrap().mode() & 0o777, 0o600);
        }
        assert_eq!(Index::open(dir.path()).unwrap().1, [kept]);
        index.remove("c-1").unwrap();
        assert_eq!(Index::open(dir.path()).unwrap().1, []);
    }

    #[test]
    fn a_crash_and_a_broken_file_leave_the_others() {
        let dir = tempfile::tempdir().unwrap();
        let (index, _) = Index::open(dir.path()).unwrap();
        index.write(&meta("c-1")).unwrap();
        fs::write(dir.path().join("conversations/c-1.new"), "{\"id\":").unwrap();
        fs::write(dir.path().join("conversations/c-2.json"), "{").unwrap();
        assert_eq!(Index::open(dir.path()).unwrap().1, [meta("c-1")]);
        assert!(dir.path().join("conversations/c-2.json").exists());
        // What one that was half removed had put aside goes, and nobody else's.
        for id in ["c-1", "c-2", "c-3"] {
            fs::create_dir_all(dir.path().join("conversations").join(id).join(id)).unwrap();
        }
        Index::open(dir.path()).unwrap();
        let left = |id: &str| dir.path().join("conversations").join(id).exists();
        assert_eq!(["c-1", "c-2", "c-3"].map(left), [true, true, false]);
    }
}
