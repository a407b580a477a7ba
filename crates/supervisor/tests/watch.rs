//! Changes over the WebSocket, on a real kernel.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nacre_supervisor::users::User;
use nacre_supervisor::watch::{Context, router};
use nacre_wire::client::{Client, Error, WatchStream, WriteOptions};
use nacre_wire::watch::{Change, ChangeKind, WatchMessage};
use nacre_wire::{ErrorKind, WirePath};
use tempfile::TempDir;

#[path = "files/harness.rs"]
#[allow(dead_code)]
mod harness;

use harness::{is_root, refused, serve, user};

struct Computer {
    dir: TempDir,
    client: Client,
    watchers: nacre_supervisor::watch::Watchers,
}

impl Computer {
    fn start() -> Self {
        Self::acting_as(user(rustix::process::geteuid().as_raw()))
    }

    /// Files and watch behind one door, as in a supervisor.
    fn acting_as(default_user: User) -> Self {
        let dir = TempDir::new().unwrap();
        let root = dir.path().join("root");
        fs::create_dir_all(root.join("workspace")).unwrap();
        let mut context = Context::new("/workspace", default_user.clone());
        context.root = root.clone();
        let watchers = context.watchers.clone();
        let files = nacre_supervisor::files::Context {
            root,
            workspace: PathBuf::from("/workspace"),
            default_user,
            recorder: nacre_supervisor::history::Recorder::off(),
        };
        let socket = dir.path().join("door");
        serve(router(context).merge(nacre_supervisor::files::router(files)), &socket);
        Self { dir, client: Client::unix(socket), watchers }
    }

    fn at(&self, name: impl AsRef<Path>) -> PathBuf {
        self.dir.path().join("root/workspace").join(name)
    }

    async fn watch(&self) -> Watch {
        Watch { stream: self.client.watch("/workspace").await.unwrap() }
    }
}

struct Watch {
    stream: WatchStream,
}

impl Watch {
    async fn message(&mut self) -> WatchMessage {
        tokio::time::timeout(Duration::from_secs(30), self.stream.next()).await.unwrap().unwrap()
    }

    /// Everything reported up to and with a change of `last`.
    async fn until(&mut self, last: &str) -> Vec<(ChangeKind, String, Option<String>)> {
        let last = format!("/workspace/{last}");
        let mut seen = Vec::new();
        while !seen.iter().any(|change: &Change| change.path == WirePath::from(&last)) {
            match self.message().await {
                WatchMessage::Changes { changes } => seen.extend(changes),
                other => panic!("{other:?}"),
            }
        }
        let short = |path: WirePath| path.to_string().trim_start_matches("/workspace/").to_owned();
        seen.into_iter().map(|c| (c.kind, short(c.path), c.from.map(short))).collect()
    }
}

fn create(path: &str) -> (ChangeKind, String, Option<String>) {
    (ChangeKind::Create, path.to_owned(), None)
}

fn modify(path: &str) -> (ChangeKind, String, Option<String>) {
    (ChangeKind::Modify, path.to_owned(), None)
}

fn delete(path: &str) -> (ChangeKind, String, Option<String>) {
    (ChangeKind::Delete, path.to_owned(), None)
}

fn moved(from: &str, to: &str) -> (ChangeKind, String, Option<String>) {
    (ChangeKind::Move, to.to_owned(), Some(from.to_owned()))
}

#[tokio::test]
async fn every_kind_of_change_is_reported() {
    let pc = Computer::start();
    fs::write(pc.at("old"), "1").unwrap();
    fs::write(pc.at("gone"), "1").unwrap();
    let mut watch = pc.watch().await;
    fs::create_dir(pc.at("dir")).unwrap();
    assert_eq!(watch.until("dir").await, [create("dir")]);
    fs::write(pc.at("old"), "22").unwrap();
    assert!(watch.until("old").await.iter().all(|change| *change == modify("old")));
    fs::remove_file(pc.at("gone")).unwrap();
    // A write is a truncation and what follows, and may be told as two changes.
    let mut seen = watch.until("gone").await;
    seen.retain(|change| *change != modify("old"));
    assert_eq!(seen, [delete("gone")]);
    fs::rename(pc.at("old"), pc.at("dir/new")).unwrap();
    assert_eq!(watch.until("dir/new").await, [moved("old", "dir/new")]);
    fs::set_permissions(pc.at("dir/new"), fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(watch.until("dir/new").await, [modify("dir/new")]);
    std::os::unix::fs::symlink("x", pc.at("link")).unwrap();
    assert_eq!(watch.until("link").await, [create("link")]);
    let odd = std::ffi::OsStr::from_bytes(b"\xff");
    fs::write(pc.at(odd), "").unwrap();
    let WatchMessage::Changes { changes } = watch.message().await else { panic!() };
    assert_eq!(changes[0].path, WirePath::from(Path::new("/workspace").join(odd)));
}

#[tokio::test]
async fn what_leaves_is_deleted_and_what_comes_is_created() {
    let pc = Computer::start();
    let aside = pc.dir.path().join("aside");
    fs::create_dir_all(pc.at("a/b")).unwrap();
    fs::write(pc.at("a/b/f"), "").unwrap();
    let mut watch = pc.watch().await;
    fs::rename(pc.at("a"), &aside).unwrap();
    assert_eq!(watch.until("a").await, [delete("a")]);
    fs::rename(&aside, pc.at("z")).unwrap();
    assert_eq!(watch.until("z/b/f").await, [create("z"), create("z/b"), create("z/b/f")]);
    fs::write(pc.at("z/b/f"), "x").unwrap();
    watch.until("z/b/f").await;
}

#[tokio::test]
async fn paths_are_right_after_directories_were_renamed() {
    let pc = Computer::start();
    fs::create_dir_all(pc.at("one/deep/er")).unwrap();
    let mut watch = pc.watch().await;
    fs::rename(pc.at("one"), pc.at("two")).unwrap();
    fs::write(pc.at("two/deep/er/f"), "").unwrap();
    assert_eq!(watch.until("two/deep/er/f").await, [moved("one", "two"), create("two/deep/er/f")]);
    fs::rename(pc.at("two/deep"), pc.at("deep")).unwrap();
    fs::create_dir(pc.at("deep/er/sub")).unwrap();
    fs::write(pc.at("deep/er/sub/g"), "").unwrap();
    let seen = watch.until("deep/er/sub/g").await;
    assert_eq!(seen, [moved("two/deep", "deep"), create("deep/er/sub"), create("deep/er/sub/g")]);
}

#[tokio::test]
async fn an_atomic_write_is_one_change_of_the_file() {
    let pc = Computer::start();
    let mut watch = pc.watch().await;
    let options = WriteOptions::default();
    let stat = pc.client.write("f", "1", &options).await.unwrap();
    assert_eq!(watch.until("f").await, [create("f")]);
    pc.client.write("f", "2", &options).await.unwrap();
    assert_eq!(watch.until("f").await, [modify("f")]);
    let stale = WriteOptions { if_match: Some(stat.etag), ..options.clone() };
    refused(pc.client.write("f", "3", &stale).await, ErrorKind::Conflict);
    let etag = pc.client.stat("f").await.unwrap().etag;
    let fresh = WriteOptions { if_match: Some(etag), ..options };
    pc.client.write("f", "4", &fresh).await.unwrap();
    assert_eq!(watch.until("f").await, [modify("f")]);
}

/// What a client that applies every change believes is there.
#[derive(Default)]
struct Mirror(BTreeMap<PathBuf, bool>);

impl Mirror {
    fn apply(&mut self, change: &Change) {
        let path = change.path.0.clone();
        match change.kind {
            ChangeKind::Create | ChangeKind::Modify => drop(self.0.insert(path, change.directory)),
            ChangeKind::Delete => self.0.retain(|known, _| !known.starts_with(&path)),
            ChangeKind::Move => {
                let from = change.from.as_ref().unwrap().0.clone();
                self.0.retain(|known, _| !known.starts_with(&path));
                let taken: Vec<_> = self
                    .0
                    .iter()
                    .filter(|(known, _)| known.starts_with(&from))
                    .map(|(p, d)| (p.clone(), *d))
                    .collect();
                for (old, directory) in taken {
                    self.0.remove(&old);
                    let rest = old.strip_prefix(&from).unwrap();
                    let new =
                        if rest.as_os_str().is_empty() { path.clone() } else { path.join(rest) };
                    self.0.insert(new, directory);
                }
                self.0.insert(path, change.directory);
            }
        }
    }
}

fn on_disk(top: &Path) -> BTreeMap<PathBuf, bool> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![top.to_owned()];
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let directory = path.is_dir() && !path.is_symlink();
            if directory {
                waiting.push(path.clone());
            }
            let shown = Path::new("/workspace").join(path.strip_prefix(top).unwrap());
            found.insert(shown, directory);
        }
    }
    found
}

async fn settle(watch: &mut Watch, mirror: &mut Mirror, last: &Path) {
    loop {
        match watch.message().await {
            WatchMessage::Changes { changes } => {
                changes.iter().for_each(|change| mirror.apply(change));
                if changes.iter().any(|change| change.path.as_path() == last) {
                    return;
                }
            }
            WatchMessage::Overflow { resync: false, .. } => {}
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_storm_of_nested_directories_loses_nothing() {
    let pc = Computer::start();
    let mut watch = pc.watch().await;
    let top = pc.at("");
    let storm = tokio::task::spawn_blocking(move || {
        for i in 0..300 {
            let deep = top.join(format!("{}/{i}/a/b/c", i % 10));
            fs::create_dir_all(&deep).unwrap();
            fs::write(deep.join("f"), "x").unwrap();
        }
        fs::write(top.join("end"), "").unwrap();
    });
    let mut mirror = Mirror::default();
    settle(&mut watch, &mut mirror, Path::new("/workspace/end")).await;
    storm.await.unwrap();
    assert_eq!(mirror.0, on_disk(&pc.at("")));
    assert_eq!(mirror.0.len(), 10 + 300 * 5 + 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mirror_fed_with_changes_ends_up_like_the_disk() {
    let pc = Computer::start();
    let mut watch = pc.watch().await;
    let top = pc.at("");
    let chaos = tokio::task::spawn_blocking(move || {
        // A small generator of its own, so that a failure can be repeated.
        let mut state = 0x1234_5678_u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % below
        };
        for _ in 0..6000 {
            let path = |a: u64, b: u64, c: u64| top.join(format!("d{a}/e{b}/f{c}"));
            let one = path(random(4), random(4), random(6));
            let two = path(random(4), random(4), random(6));
            let _ = match random(8) {
                0 | 1 => fs::create_dir_all(one.parent().unwrap()),
                2 | 3 => fs::write(&one, "content"),
                4 => fs::rename(&one, &two),
                5 => fs::rename(one.parent().unwrap(), two.parent().unwrap()),
                6 => fs::remove_file(&one),
                _ => fs::remove_dir_all(one.parent().unwrap()),
            };
        }
        fs::write(top.join("end"), "").unwrap();
    });
    let mut mirror = Mirror::default();
    settle(&mut watch, &mut mirror, Path::new("/workspace/end")).await;
    chaos.await.unwrap();
    assert_eq!(mirror.0, on_disk(&pc.at("")));
}

#[tokio::test]
async fn ten_clients_share_one_watcher() {
    let pc = Computer::start();
    let mut watches = Vec::new();
    for _ in 0..10 {
        watches.push(pc.watch().await);
    }
    assert_eq!(pc.watchers.running(), 1);
    fs::write(pc.at("f"), "").unwrap();
    for watch in &mut watches {
        watch.until("f").await;
    }
    drop(watches);
    let ended = async {
        while pc.watchers.running() > 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), ended).await.unwrap();
}

#[tokio::test]
async fn what_cannot_be_watched_is_refused() {
    let pc = Computer::start();
    fs::write(pc.at("file"), "").unwrap();
    let check = async |path: &str, kind| {
        refused::<()>(pc.client.watch(path).await.map(drop), kind);
    };
    check("gone", ErrorKind::NotFound).await;
    check("file", ErrorKind::NotDirectory).await;
    check("a\0b", ErrorKind::InvalidPath).await;
    let escaped = pc.client.watch("../../..").await.unwrap();
    drop(escaped);
}

#[tokio::test]
async fn a_user_watches_only_what_it_may_read() {
    assert!(is_root(), "run the tests as root");
    let pc = Computer::acting_as(user(4321));
    fs::create_dir_all(pc.at("private")).unwrap();
    fs::set_permissions(pc.at("private"), fs::Permissions::from_mode(0o700)).unwrap();
    let result = pc.client.watch("private").await;
    assert!(matches!(&result, Err(Error::Api(e)) if e.kind == ErrorKind::Permission), "{result:?}");
    let mut watch = pc.watch().await;
    fs::write(pc.at("private/secret"), "").unwrap();
    fs::write(pc.at("public"), "").unwrap();
    assert_eq!(watch.until("public").await, [create("public")]);
    // Once it may, it does.
    chown(pc.at("private"), Some(4321), None).unwrap();
    let seen = watch.until("private/secret").await;
    assert_eq!(seen, [modify("private"), create("private/secret")]);
}

#[tokio::test]
async fn a_hundred_thousand_files_are_watched() {
    let pc = Computer::start();
    for directory in 0..1000 {
        let path = pc.at(format!("{:02}/{directory:04}", directory % 50));
        fs::create_dir_all(&path).unwrap();
        for file in 0..100 {
            fs::File::create(path.join(format!("file-{file:03}.txt"))).unwrap();
        }
    }
    let started = Instant::now();
    let mut watch = pc.watch().await;
    let ready = started.elapsed();
    assert!(ready < Duration::from_secs(20), "{ready:?}");
    fs::rename(pc.at("00"), pc.at("renamed")).unwrap();
    fs::write(pc.at("renamed/0950/file-099.txt"), "x").unwrap();
    let seen = watch.until("renamed/0950/file-099.txt").await;
    assert_eq!(seen, [moved("00", "renamed"), modify("renamed/0950/file-099.txt")]);
}
