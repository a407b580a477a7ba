//! Every call while somebody swaps what its path goes through.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use http_body_util::BodyExt;
use nacre_wire::client::{Client, Error, WriteOptions, full};
use nacre_wire::files::{Chmod, Mkdir, Remove, Symlink, Transfer};
use rustix::fs::{CWD, RenameFlags, renameat_with};

use crate::harness::{CANARY, Computer};

/// Swaps a real directory with a symlink that leads out, and a real file with one that does, as
/// fast as it can, until dropped.
struct Swapper {
    stop: Arc<AtomicBool>,
    swaps: Arc<AtomicU64>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Swapper {
    fn start(pc: &Computer) -> Self {
        let (stop, swaps) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (stopped, counted) = (stop.clone(), swaps.clone());
        let workspace = pc.workspace();
        let outside = pc.outside();
        let thread = std::thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                for (name, target) in
                    [("swap", "../../outside/dir"), ("leaf", "../../outside/canary")]
                {
                    prepare(&workspace, &outside, name, target);
                    let (real, evil) =
                        (workspace.join(name), workspace.join(format!("{name}-evil")));
                    for _ in 0..8 {
                        if renameat_with(CWD, &real, CWD, &evil, RenameFlags::EXCHANGE).is_ok() {
                            counted.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                }
                // A directory below which `..` is resolved moves up and down.
                let _ = fs::create_dir_all(workspace.join("a/b"));
                let _ = fs::rename(workspace.join("a/b"), workspace.join("b"));
                let _ = fs::rename(workspace.join("b"), workspace.join("a/b"));
            }
        });
        Self { stop, swaps, thread: Some(thread) }
    }
}

fn prepare(workspace: &Path, outside: &Path, name: &str, target: &str) {
    let (real, evil) = (workspace.join(name), workspace.join(format!("{name}-evil")));
    let absolute = outside.join(if name == "swap" { "dir" } else { "canary" });
    let _ = symlink(target, &evil);
    let _ = symlink(absolute, &evil);
    if name == "swap" {
        let _ = fs::create_dir(&real);
        let _ = fs::write(workspace.join("swap-inside"), "inside");
        let _ = fs::rename(workspace.join("swap-inside"), real.join("canary"));
    } else if !real.exists() {
        let _ = fs::write(workspace.join("leaf-inside"), "inside");
        let _ = fs::rename(workspace.join("leaf-inside"), &real);
    }
}

impl Drop for Swapper {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let result = self.thread.take().map(std::thread::JoinHandle::join);
        if !std::thread::panicking() {
            assert!(matches!(result, Some(Ok(()))));
            assert!(self.swaps.load(Ordering::Relaxed) > 100, "the race did not happen");
        }
    }
}

const PATHS: [&str; 4] =
    ["swap/canary", "leaf", "a/b/../../../../outside/canary", "a/b/../../swap/canary"];

/// Runs one kind of call over and over against everything that is being swapped.
async fn attack<F, Fut>(rounds: usize, call: F)
where
    F: Fn(Client, PathBuf, usize) -> Fut,
    Fut: Future<Output = Result<(), Error>>,
{
    let pc = Computer::start().await;
    {
        let _swapper = Swapper::start(&pc);
        for round in 0..rounds {
            for path in PATHS {
                let result = call(pc.client.clone(), PathBuf::from(path), round).await;
                assert!(matches!(result, Ok(()) | Err(Error::Api(_))), "{path}: {result:?}");
            }
        }
    }
    pc.assert_outside_untouched();
}

const ROUNDS: usize = 300;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn read() {
    attack(ROUNDS, |client, path, _| async move {
        let bytes = client.read(path).await?;
        assert_ne!(bytes, CANARY);
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn write() {
    attack(ROUNDS, |client, path, round| async move {
        let options = WriteOptions { parents: round % 2 == 0, ..WriteOptions::default() };
        client.write(path, "written", &options).await.map(drop)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn append() {
    attack(ROUNDS, |client, path, _| async move { client.append(path, "more").await.map(drop) })
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stat_and_list() {
    attack(ROUNDS, |client, path, _| async move {
        let listing = client.list(path.parent().unwrap(), None, None).await?;
        assert!(
            listing
                .entries
                .iter()
                .all(|entry| entry.size != CANARY.len() as u64
                    || entry.path.0 != Path::new("canary"))
        );
        let stat = client.stat(path).await?;
        assert!(stat.target.is_some() || stat.size != CANARY.len() as u64);
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn chmod() {
    attack(ROUNDS, |client, path, _| async move {
        client.chmod(&Chmod { path: path.into(), mode: 0o666 }).await
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mkdir_and_symlink() {
    attack(ROUNDS, |client, path, round| async move {
        let path = path.with_file_name(format!("new{round}"));
        let mkdir = Mkdir { path: path.join("deep").into(), parents: true, mode: Some(0o755) };
        client.mkdir(&mkdir).await?;
        client.symlink(&Symlink { path: path.join("link").into(), target: "x".into() }).await
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn copy_and_move() {
    attack(ROUNDS, |client, path, round| async move {
        let there = Transfer {
            from: path.clone().into(),
            to: format!("got{round}").into(),
            overwrite: true,
        };
        let copied = client.copy(&there).await;
        if copied.is_ok() {
            let bytes = client.read(format!("got{round}")).await.unwrap_or_default();
            assert_ne!(bytes, CANARY);
        }
        let back =
            Transfer { from: format!("got{round}").into(), to: path.into(), overwrite: true };
        client.rename(&back).await?;
        copied
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn remove() {
    attack(ROUNDS, |client, path, round| async move {
        let path = if round % 2 == 0 { path } else { path.parent().unwrap().to_owned() };
        if path == Path::new("") {
            return Ok(());
        }
        client.remove(&Remove { path: path.into(), recursive: true, if_match: None }).await
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn archive_download() {
    attack(ROUNDS / 2, |client, path, round| async move {
        let path = if round % 2 == 0 { PathBuf::from(".") } else { path };
        let body = client.pack(path).await?;
        // Broken off when a file cannot be read, which is no escape.
        let Ok(body) = body.collect().await else { return Ok(()) };
        assert!(!content_is(&body.to_bytes(), CANARY));
        Ok(())
    })
    .await;
}

/// Whether any regular file in an archive holds exactly `content`.
fn content_is(archive: &[u8], content: &[u8]) -> bool {
    let mut archive = tar::Archive::new(archive);
    archive.entries().unwrap().any(|entry| {
        let mut bytes = Vec::new();
        let mut entry = entry.unwrap();
        std::io::Read::read_to_end(&mut entry, &mut bytes).unwrap();
        entry.header().entry_type().is_file() && bytes == content
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn archive_upload() {
    attack(ROUNDS, |client, path, _| async move {
        let mut archive = tar::Builder::new(Vec::new());
        for name in ["canary", "swap/canary", "swap/new/deep", "leaf"] {
            let mut header = tar::Header::new_gnu();
            header.set_size(8);
            header.set_mode(0o644);
            archive.append_data(&mut header, name, &b"unpacked"[..]).unwrap();
        }
        let archive = archive.into_inner().unwrap();
        client.unpack(path.parent().unwrap().join("."), full(archive)).await.map(drop)
    })
    .await;
}
