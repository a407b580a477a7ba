//! Looking at files through the door, and writing down what they say.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use http_body_util::{BodyExt, Limited};
use nacre_knowledge::embed::Table;
use nacre_knowledge::{Known, hash_of, prepare};
use nacre_wire::ErrorKind;
use nacre_wire::client::{Client, Error, Result};
use nacre_wire::files::{FileKind, Stat};

use super::follow::Followed;
use super::ignored::{self, Ignored};
use super::{Knowledge, which};
use crate::clock::now_ms;

/// What is looked at of one sandbox, so that no workspace holds up the others.
const MOST_DOCUMENTS: usize = 20_000;
const MOST_FOLDERS: usize = 50_000;
const DEEPEST: usize = 32;

/// At one sandbox.
pub(super) struct Look<'a> {
    pub(super) knowledge: &'a Knowledge,
    pub(super) source: &'a str,
    pub(super) client: &'a Client,
    /// As of the last look at each folder.
    pub(super) ignored: Mutex<Ignored>,
}

/// What a walk has come across.
#[derive(Default)]
struct Walk {
    documents: HashSet<String>,
    folders: usize,
    /// There was more than is looked at.
    cut: bool,
}

impl Look<'_> {
    /// All that is there, and what no longer is.
    pub(super) async fn everything(&self) -> Result<()> {
        let walk = self.folder("").await?;
        let problem = walk.cut.then(|| {
            format!(
                "only the first {MOST_DOCUMENTS} documents and {MOST_FOLDERS} folders are indexed"
            )
        });
        let state = Followed { current: true, problem };
        self.knowledge.followed().insert(self.source.to_owned(), state);
        Ok(())
    }

    /// Everything below a folder. What is known by its signature is not read.
    async fn folder(&self, top: &str) -> Result<Walk> {
        let source = self.source.to_owned();
        let mut known = self.knowledge.with(move |library| library.known(&source)).await?;
        let below = format!("{top}/");
        known.retain(|path, _| top.is_empty() || path.starts_with(&below));
        let walk = self.walk(top, &known).await?;
        for path in known.into_keys().filter(|path| !walk.documents.contains(path)) {
            self.remove(path).await?;
        }
        Ok(walk)
    }

    /// What is at a path now: a document, a folder, or nothing any more.
    pub(super) async fn at(&self, path: &str) -> Result<()> {
        if path.is_empty() {
            return self.everything().await;
        }
        let (above, name) = path.rsplit_once('/').unwrap_or(("", path));
        if name == ignored::NAME && self.is_looked_into(above) {
            // What it says now may be about anything beside and below it.
            return if above.is_empty() {
                self.everything().await
            } else {
                self.folder(above).await.map(|_| ())
            };
        }
        let folder = self.is_looked_into(path);
        let document = self.is_document(path);
        if !folder && !document {
            return Ok(());
        }
        let stat = match self.client.stat(which::absolute(path)).await {
            Ok(stat) => stat,
            Err(error) if is_gone(&error) => return self.remove(path.to_owned()).await,
            Err(error) => return Err(error),
        };
        match stat.kind {
            FileKind::File if document => {
                let (source, wanted) = (self.source.to_owned(), path.to_owned());
                let known = self.knowledge.with(move |library| library.known_one(&source, &wanted));
                self.file(path, &stat, known.await?.as_ref()).await
            }
            FileKind::Directory if folder => self.folder(path).await.map(|_| ()),
            _ => self.remove(path.to_owned()).await,
        }
    }

    fn is_looked_into(&self, folder: &str) -> bool {
        which::folder(&self.knowledge.config, folder) && !self.ignored().holds(folder, true)
    }

    fn is_document(&self, path: &str) -> bool {
        which::document(&self.knowledge.config, path) && !self.ignored().holds(path, false)
    }

    fn ignored(&self) -> MutexGuard<'_, Ignored> {
        self.ignored.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a folder says is to be left out, before anything in it is looked at.
    async fn heed(&self, folder: &str, entries: &[Stat]) -> Result<()> {
        if !self.knowledge.config.gitignore {
            return Ok(());
        }
        let here = |stat: &&Stat| {
            stat.kind == FileKind::File
                && stat.size <= ignored::LARGEST
                && stat.path.as_path().to_str() == Some(ignored::NAME)
        };
        let text = match entries.iter().find(here) {
            Some(_) if folder.is_empty() => self.read(ignored::NAME).await?,
            Some(_) => self.read(&format!("{folder}/{}", ignored::NAME)).await?,
            None => None,
        };
        self.ignored().set(folder, text.and_then(which::text).as_deref());
        Ok(())
    }

    async fn walk(&self, top: &str, known: &HashMap<String, Known>) -> Result<Walk> {
        let mut walk = Walk::default();
        let mut folders = vec![top.to_owned()];
        while let Some(folder) = folders.pop() {
            let deep = folder.split('/').count() > DEEPEST;
            if deep || walk.folders >= MOST_FOLDERS || walk.documents.len() >= MOST_DOCUMENTS {
                walk.cut = true;
                continue;
            }
            walk.folders += 1;
            let entries = self.entries(&folder).await?;
            self.heed(&folder, &entries).await?;
            for stat in entries {
                let Some(name) = stat.path.as_path().to_str() else { continue };
                let path =
                    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") };
                match stat.kind {
                    FileKind::Directory if self.is_looked_into(&path) => {
                        folders.push(path);
                    }
                    FileKind::File if self.is_document(&path) => {
                        self.file(&path, &stat, known.get(&path)).await?;
                        walk.documents.insert(path);
                    }
                    _ => {}
                }
            }
        }
        Ok(walk)
    }

    /// A folder that goes away meanwhile is empty.
    async fn entries(&self, folder: &str) -> Result<Vec<Stat>> {
        let mut entries = Vec::new();
        let mut after = None;
        loop {
            let page = match self.client.list(which::absolute(folder), None, after.as_ref()).await {
                Ok(page) => page,
                Err(error) if is_gone(&error) => return Ok(entries),
                Err(error) => return Err(error),
            };
            entries.extend(page.entries);
            after = page.next;
            if after.is_none() {
                return Ok(entries);
            }
        }
    }

    async fn file(&self, path: &str, stat: &Stat, known: Option<&Known>) -> Result<()> {
        if known.is_some_and(|known| known.signature == stat.etag) {
            return Ok(());
        }
        let text = match stat.size {
            0..=which::LARGEST => self.read(path).await?.and_then(which::text),
            _ => None,
        };
        let Some(text) = text else { return self.remove(path.to_owned()).await };
        let same = known.is_some_and(|known| known.hash == hash_of(text.as_bytes()));
        let (source, path) = (self.source.to_owned(), path.to_owned());
        let etag = stat.etag.clone();
        if same {
            let touched = self.knowledge.with(move |library| library.touch(&source, &path, &etag));
            return Ok(touched.await?);
        }
        let table = self.knowledge.config.embeddings.is_none();
        let name = path.clone();
        // Not on a thread that answers others.
        let prepared =
            tokio::task::spawn_blocking(move || prepare(&name, &text, table.then(Table::builtin)));
        let prepared = prepared.await.map_err(|error| Error::Protocol(error.to_string()))?;
        let put = move |library: &mut nacre_knowledge::Library| {
            library.put(&source, &path, &etag, &prepared, now_ms())
        };
        self.knowledge.with(put).await?;
        if !table {
            self.knowledge.waiting.notify_one();
        }
        Ok(())
    }

    /// `None` when it is gone, may not be read, or has grown too long.
    async fn read(&self, path: &str) -> Result<Option<Vec<u8>>> {
        let body = match self.client.read_stream(which::absolute(path), None).await {
            Ok(body) => body,
            Err(error) if is_gone(&error) => return Ok(None),
            Err(error) => return Err(error),
        };
        let most = usize::try_from(which::LARGEST).unwrap_or(usize::MAX);
        match Limited::new(body, most).collect().await {
            Ok(body) => Ok(Some(body.to_bytes().into())),
            Err(error) if error.is::<http_body_util::LengthLimitError>() => Ok(None),
            Err(error) => Err(Error::Protocol(error.to_string())),
        }
    }

    async fn remove(&self, path: String) -> Result<()> {
        let source = self.source.to_owned();
        self.knowledge.with(move |library| library.remove(&source, &path)).await?;
        Ok(())
    }
}

/// What is not there, or not for the owner of the workspace to read, is no document.
fn is_gone(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::NotFound
            | ErrorKind::NotDirectory
            | ErrorKind::IsDirectory
            | ErrorKind::Permission
            | ErrorKind::InvalidPath
    )
}
