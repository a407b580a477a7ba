//! The whole of it on real directories. Some of these need root: to mount, to give files away, and to
//! be somebody else.

mod kinds;
mod laws;
mod mapped;
mod races;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsStr;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::sync::Mutex;

use super::*;
use crate::contents::Keep;
use crate::entry::{Content, ContentId, Entry, Kind, Special};
use crate::error::{Error, Result};
use crate::path::TreePath;

/// Contents in memory.
#[derive(Default)]
struct Memory(Mutex<HashMap<ContentId, Vec<u8>>>);

impl Memory {
    fn get(&self, id: ContentId) -> Vec<u8> {
        self.0.lock().unwrap()[&id].clone()
    }
}

impl Keep for Memory {
    fn keep(&self, bytes: &[u8]) -> Result<ContentId> {
        let id = ContentId::of(bytes);
        self.0.lock().unwrap().insert(id, bytes.to_vec());
        Ok(id)
    }

    fn keep_stream(&self, from: &mut dyn Read) -> Result<(ContentId, u64)> {
        let mut bytes = Vec::new();
        from.read_to_end(&mut bytes)
            .map_err(|source| Error::Io { context: "stream".into(), source })?;
        Ok((self.keep(&bytes)?, bytes.len() as u64))
    }
}

fn path(text: &str) -> TreePath {
    TreePath::parse(Path::new(text)).unwrap()
}

fn recorded(captured: &Captured) -> Option<Recorded> {
    let Now::There(entry) = &captured.now else { return None };
    Some(Recorded {
        path: captured.path.clone(),
        signature: captured.signature,
        mode: entry.mode,
        uid: entry.uid,
        gid: entry.gid,
        directory: entry.is_directory(),
    })
}

/// What a history would remember, in memory.
struct Kept {
    root: Root,
    contents: Memory,
    exclude: Exclusions,
    state: BTreeMap<TreePath, Captured>,
}

impl Kept {
    fn new(top: &Path) -> Self {
        let root = Root::open(top).unwrap();
        let (contents, exclude) = (Memory::default(), Exclusions::default());
        Self { root, contents, exclude, state: BTreeMap::new() }
    }

    fn scan_below(&self, below: &TreePath) -> Scan {
        let within = self.state.values().filter(|captured| captured.path.is_within(below));
        let mut rows = within.filter_map(recorded).map(Ok);
        scan(&self.root, below, &self.exclude, 2, &mut rows).unwrap()
    }

    fn scan(&self) -> Scan {
        self.scan_below(&TreePath::root())
    }

    fn capture(&self, names: &[TreePath]) -> Vec<Captured> {
        capture(&self.root, &self.contents, &Policy::default(), names).unwrap()
    }

    /// Brings the state up to date and says what was different.
    fn checkpoint(&mut self) -> Vec<TreePath> {
        let names: Vec<TreePath> =
            self.scan().differences.iter().map(|difference| difference.path().clone()).collect();
        for captured in self.capture(&names) {
            match captured.now {
                Now::There(_) => self.state.insert(captured.path.clone(), captured),
                Now::Gone => self.state.remove(&captured.path),
                Now::Unknown => None,
            };
        }
        names
    }

    fn entry(&self, text: &str) -> &Entry {
        match &self.state[&path(text)].now {
            Now::There(entry) => entry,
            other => panic!("{text}: {other:?}"),
        }
    }

    /// Pretends that enough time has passed since the last capture.
    fn trust(&mut self) {
        for (path, captured) in &mut self.state {
            captured.signature = self.root.stat(path).unwrap().unwrap().signature;
        }
    }
}

impl Difference {
    fn path(&self) -> &TreePath {
        match self {
            Self::Changed(path, _) | Self::Gone(path) => path,
        }
    }
}
