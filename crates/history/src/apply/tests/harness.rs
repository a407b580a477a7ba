//! Trees on disk, and what it takes to get from one to the other.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{PermissionsExt, chown, lchown, symlink};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use proptest::prelude::*;
use rustix::fs::FileType;
use tempfile::TempDir;

use crate::apply::{Displaced, Journal, Outcome, Step, clear, displaced, publish, stage};
use crate::contents::Fetch;
use crate::entry::{Content, ContentId, Entry, Kind, Special, Xattr};
use crate::error::{Error, Result};
use crate::path::TreePath;
use crate::tree::{Root, Signature};

#[derive(Default)]
pub(super) struct Memory(Mutex<HashMap<ContentId, Vec<u8>>>);

impl Fetch for Memory {
    fn fetch(&self, id: ContentId, to: &mut dyn Write) -> Result<()> {
        let bytes = self.0.lock().unwrap().get(&id).cloned().ok_or(Error::Missing(id))?;
        to.write_all(&bytes).map_err(|source| Error::Io { context: "fetch".into(), source })
    }
}

impl Memory {
    fn keep(&self, bytes: &[u8]) -> ContentId {
        let id = ContentId::of(bytes);
        self.0.lock().unwrap().insert(id, bytes.to_vec());
        id
    }

    pub(super) fn lose(&self, id: ContentId) {
        self.0.lock().unwrap().remove(&id);
    }
}

/// What a walk finds: every name with its inode and so on.
pub(super) type State = BTreeMap<TreePath, (Entry, Signature)>;

pub(super) fn path(text: &str) -> TreePath {
    TreePath::parse(Path::new(text)).unwrap()
}

/// Two trees, a place for staging, and the bytes of both.
pub(super) struct Ground {
    pub(super) around: TempDir,
    pub(super) contents: Memory,
}

impl Ground {
    /// In memory where there is such a place: the tests sync thousands of times.
    pub(super) fn new() -> Self {
        let memory = Path::new("/dev/shm");
        let around = match memory.is_dir() {
            true => tempfile::tempdir_in(memory),
            false => tempfile::tempdir(),
        };
        Self::at(around.unwrap())
    }

    pub(super) fn on_disk() -> Self {
        Self::at(tempfile::tempdir().unwrap())
    }

    pub(super) fn at(around: TempDir) -> Self {
        for tree in ["live", "wanted"] {
            fs::create_dir(around.path().join(tree)).unwrap();
        }
        Self { around, contents: Memory::default() }
    }

    pub(super) fn live(&self) -> PathBuf {
        self.around.path().join("live")
    }

    pub(super) fn wanted(&self) -> PathBuf {
        self.around.path().join("wanted")
    }

    pub(super) fn staging(&self) -> PathBuf {
        self.around.path().join("store/staging/1")
    }

    pub(super) fn root(&self) -> Root {
        Root::open(&self.live()).unwrap()
    }

    pub(super) fn state(&self, tree: &Path) -> State {
        read_state(tree, &self.contents)
    }

    pub(super) fn stage(&self, target: &State) -> Journal {
        let steps = steps(&self.state(&self.live()), target);
        stage(&self.root(), &self.staging(), &steps, &self.contents, 2).unwrap()
    }

    pub(super) fn publish(&self, journal: &Journal) -> Outcome {
        self.publish_in(1, journal)
    }

    pub(super) fn publish_in(&self, threads: usize, journal: &Journal) -> Outcome {
        publish(&self.root(), &self.staging(), journal, threads).unwrap()
    }

    pub(super) fn displaced(&self, journal: &Journal) -> Vec<Displaced> {
        displaced(&self.staging(), journal).unwrap().changed
    }

    /// From the present to `target`, with nothing in the way.
    pub(super) fn apply(&self, target: &State) {
        let journal = self.stage(target);
        let outcome = self.publish_in(2, &Journal::decode(&journal.encode()).unwrap());
        assert_eq!(outcome.left, []);
        assert!(self.displaced(&journal).is_empty());
        clear(&self.staging()).unwrap();
        assert!(!self.staging().exists());
        self.assert_live_is(target);
    }

    pub(super) fn assert_live_is(&self, target: &State) {
        let live = self.state(&self.live());
        assert_eq!(shown(&live), shown(target));
    }
}

/// All that a restore brings back: everything but times, and the first name of the same file when it
/// has several in the tree. A displaced name in staging counts as a link, but is none of the tree's.
pub(super) fn shown(state: &State) -> Vec<(TreePath, Entry, Option<TreePath>)> {
    let mut names: HashMap<u64, Vec<&TreePath>> = HashMap::new();
    for (path, (entry, _)) in state {
        names.entry(entry.link.unwrap_or(0)).or_default().push(path);
    }
    let first = |link: u64| names[&link].first().filter(|_| names[&link].len() > 1);
    state
        .iter()
        .map(|(path, (entry, _))| {
            let group = entry.link.and_then(first).map(|first| (*first).clone());
            (path.clone(), Entry { mtime: 0, link: None, ..entry.clone() }, group)
        })
        .collect()
}

pub(super) fn read_state(tree: &Path, contents: &Memory) -> State {
    let mut state = State::new();
    read_below(tree, &TreePath::root(), contents, &mut state);
    state
}

fn read_below(tree: &Path, at: &TreePath, contents: &Memory, state: &mut State) {
    let file = tree.join(at.to_path());
    let found = super::super::at::stat(rustix::fs::CWD, &file).unwrap().unwrap();
    let kind = match found.file_type {
        FileType::Directory => Kind::Directory,
        FileType::Symlink => {
            Kind::Symlink { target: fs::read_link(&file).unwrap().into_os_string().into_vec() }
        }
        FileType::RegularFile => {
            let bytes = fs::read(&file).unwrap();
            let content = Content::Kept(contents.keep(&bytes));
            Kind::File { size: bytes.len() as u64, content }
        }
        _ => Kind::Special(Special::Fifo),
    };
    let entry = Entry {
        mode: found.mode,
        uid: found.uid,
        gid: found.gid,
        mtime: found.signature.mtime,
        link: (found.links > 1 && kind != Kind::Directory).then_some(found.signature.inode),
        xattrs: xattrs(&file, &kind),
        kind,
    };
    let is_directory = entry.is_directory();
    // The two trees' own tops have nothing to do with each other.
    if !at.is_root() {
        state.insert(at.clone(), (entry, found.signature));
    }
    if is_directory {
        for child in fs::read_dir(&file).unwrap() {
            read_below(tree, &at.join(&child.unwrap().file_name()), contents, state);
        }
    }
}

fn xattrs(file: &Path, kind: &Kind) -> Vec<Xattr> {
    if matches!(kind, Kind::Symlink { .. } | Kind::Special(_)) {
        return Vec::new();
    }
    let mut value = [0; 64];
    match rustix::fs::lgetxattr(file, "user.note", &mut value) {
        Ok(length) => vec![Xattr { name: b"user.note".into(), value: value[..length].into() }],
        Err(_) => Vec::new(),
    }
}

/// What differs, with all names of every file of which one name differs.
pub(super) fn steps(now: &State, target: &State) -> Vec<Step> {
    let differs = |path: &TreePath| match (now.get(path), target.get(path)) {
        (Some((now, _)), Some((target, _))) => !now.same(target),
        _ => true,
    };
    let paths: BTreeSet<&TreePath> = now.keys().chain(target.keys()).collect();
    let link = |path: &TreePath| target.get(path).and_then(|(entry, _)| entry.link);
    let groups: BTreeSet<u64> =
        paths.iter().filter(|path| differs(path)).filter_map(|path| link(path)).collect();
    paths
        .into_iter()
        .filter(|path| differs(path) || link(path).is_some_and(|link| groups.contains(&link)))
        .map(|path| Step {
            path: path.clone(),
            now: now.get(path).map(|(entry, _)| entry.clone()),
            signature: now.get(path).map_or(Signature::UNKNOWN, |(_, signature)| *signature),
            target: target.get(path).map(|(entry, _)| entry.clone()),
        })
        .collect()
}

/// How link groups of the wanted tree are numbered: as in the live tree where a name is in both, as
/// a history does that has seen the one become the other.
pub(super) fn number_links_alike(now: &State, target: &mut State) {
    let mut numbers: HashMap<u64, u64> = HashMap::new();
    let mut used = BTreeSet::new();
    for (path, (entry, _)) in target.iter() {
        let Some(link) = entry.link else { continue };
        let known = now.get(path).and_then(|(entry, _)| entry.link);
        if let Some(known) = known
            && !numbers.contains_key(&link)
            && used.insert(known)
        {
            numbers.insert(link, known);
        }
    }
    for (entry, _) in target.values_mut() {
        entry.link = entry.link.map(|link| numbers.get(&link).copied().unwrap_or(link << 20));
    }
}

#[derive(Debug, Clone)]
pub(super) enum Thing {
    File {
        bytes: u8,
        mode: u32,
        owner: u32,
        note: bool,
    },
    Directory {
        mode: u32,
        owner: u32,
    },
    Symlink {
        target: Vec<u8>,
        owner: u32,
    },
    /// Another name of one of the files before.
    Link(prop::sample::Index),
}

pub(super) type Plan = Vec<(Vec<Vec<u8>>, Thing)>;

pub(super) fn any_plan() -> impl Strategy<Value = Plan> {
    let name = prop::sample::select(vec![
        b"a".to_vec(),
        b"b".to_vec(),
        b"c".to_vec(),
        b"a b\n".to_vec(),
        b"\xff\xfe".to_vec(),
        b"-rf".to_vec(),
    ]);
    let mode = || prop::sample::select(vec![0o644, 0o755, 0o600, 0, 0o555, 0o4755, 0o2775, 0o1777]);
    let owner = || prop::sample::select(vec![0, 0, 0, 1000]);
    let thing = prop_oneof![
        4 => (0..4_u8, mode(), owner(), any::<bool>())
            .prop_map(|(bytes, mode, owner, note)| Thing::File { bytes, mode, owner, note }),
        2 => (mode(), owner()).prop_map(|(mode, owner)| Thing::Directory { mode, owner }),
        1 => (prop::sample::select(vec![b"a".to_vec(), b"../x".to_vec()]), owner())
            .prop_map(|(target, owner)| Thing::Symlink { target, owner }),
        2 => any::<prop::sample::Index>().prop_map(Thing::Link),
    ];
    let path = prop::collection::vec(name, 1..4);
    prop::collection::vec((path, thing), 0..14)
}

/// A tree and what became of it: some of it gone, some another thing, some new.
pub(super) fn any_change() -> impl Strategy<Value = (Plan, Plan)> {
    let fates = prop::collection::vec(0..6_u8, 14);
    (any_plan(), any_plan(), fates).prop_map(|(before, new, fates)| {
        let mut after = Plan::new();
        let mut others = new.iter();
        for ((path, thing), fate) in before.iter().zip(fates) {
            match fate {
                0 => {}
                1 => after.extend(others.next().map(|(_, other)| (path.clone(), other.clone()))),
                _ => after.push((path.clone(), thing.clone())),
            }
        }
        after.extend(others.take(4).cloned());
        (before, after)
    })
}

/// Makes what it can of a plan: a name is taken once, and what is below a file is left out.
pub(super) fn build(tree: &Path, plan: &Plan) {
    let mut files: Vec<PathBuf> = Vec::new();
    let mut modes = Vec::new();
    for (names, thing) in plan {
        let at: PathBuf = names.iter().map(|name| OsString::from_vec(name.clone())).collect();
        let at = tree.join(at);
        if at.symlink_metadata().is_ok() || fs::create_dir_all(at.parent().unwrap()).is_err() {
            continue;
        }
        match thing {
            Thing::File { bytes, mode, owner, note } => {
                fs::write(&at, vec![b'0' + bytes; usize::from(*bytes) * 3000]).unwrap();
                if *note {
                    let flags = rustix::fs::XattrFlags::empty();
                    rustix::fs::setxattr(&at, "user.note", &[*bytes], flags).unwrap();
                }
                chown(&at, Some(*owner), Some(*owner)).unwrap();
                modes.push((at.clone(), *mode));
                files.push(at);
            }
            Thing::Directory { mode, owner } => {
                fs::create_dir(&at).unwrap();
                chown(&at, Some(*owner), Some(*owner)).unwrap();
                modes.push((at, *mode));
            }
            Thing::Symlink { target, owner } => {
                symlink(std::ffi::OsStr::from_bytes(target), &at).unwrap();
                lchown(&at, Some(*owner), Some(*owner)).unwrap();
                files.push(at);
            }
            Thing::Link(_) if files.is_empty() => {}
            Thing::Link(to) => fs::hard_link(to.get(&files), &at).unwrap(),
        }
    }
    for (at, mode) in modes {
        fs::set_permissions(at, fs::Permissions::from_mode(mode)).unwrap();
    }
}
