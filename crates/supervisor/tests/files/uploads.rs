//! Uploads that do not go well.

use std::fs;
use std::io::ErrorKind as Io;
use std::mem::MaybeUninit;
use std::path::{Path, PathBuf};

use nacre_wire::ErrorKind;
use nacre_wire::client::{WriteOptions, full};
use nacre_wire::files::Transfer;
use rustix::fs::inotify::{self, CreateFlags, Reader, WatchFlags};
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;

use crate::harness::{Computer, is_root, names, refused};

/// Waits for the next event of a kind in a directory.
struct Watch(rustix::fd::OwnedFd);

impl Watch {
    fn on(directory: &Path, flags: WatchFlags) -> Self {
        let fd = inotify::init(CreateFlags::CLOEXEC).unwrap();
        inotify::add_watch(&fd, directory, flags).unwrap();
        Self(fd)
    }

    async fn next(self) -> String {
        tokio::task::spawn_blocking(move || {
            let mut buffer = [MaybeUninit::uninit(); 4096];
            let mut reader = Reader::new(&self.0, &mut buffer);
            let event = reader.next().unwrap();
            event.file_name().unwrap().to_str().unwrap().to_owned()
        })
        .await
        .unwrap()
    }
}

#[tokio::test]
async fn an_upload_that_breaks_off_leaves_nothing() {
    let pc = Computer::start().await;
    pc.put("f", "old");
    let created = Watch::on(&pc.workspace(), WatchFlags::CREATE);
    let deleted = Watch::on(&pc.workspace(), WatchFlags::DELETE);
    let mut stream = UnixStream::connect(pc.root().parent().unwrap().join("door")).await.unwrap();
    let head = "PUT /supervisor/files/content?path=f HTTP/1.1\r\nhost: x\r\ncontent-length: 9000000\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(&vec![b'x'; 3_000_000]).await.unwrap();
    let draft = created.next().await;
    assert!(draft.starts_with(".nacre-"), "{draft}");
    drop(stream);
    assert_eq!(deleted.next().await, draft);
    assert_eq!(
        (names(&pc.workspace()), pc.get("f").as_slice()),
        (vec!["f".to_owned()], &b"old"[..])
    );
}

/// A small filesystem of its own, gone with the test.
struct Mount(PathBuf);

impl Mount {
    fn tmpfs(at: PathBuf, options: &std::ffi::CStr) -> Self {
        assert!(is_root(), "run the tests as root");
        fs::create_dir_all(&at).unwrap();
        let flags = rustix::mount::MountFlags::empty();
        rustix::mount::mount("tmpfs", &at, "tmpfs", flags, options).unwrap();
        Self(at)
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = rustix::mount::unmount(&self.0, rustix::mount::UnmountFlags::DETACH);
    }
}

#[tokio::test]
async fn a_full_disk_is_said_and_keeps_what_was_there() {
    let pc = Computer::start().await;
    let small = Mount::tmpfs(pc.workspace().join("small"), c"size=1m");
    let plain = WriteOptions::default();
    pc.client.write("small/f", "old", &plain).await.unwrap();
    let big = vec![b'x'; 8 << 20];
    pc.put("big", &big);
    let error = refused(pc.client.write("small/f", big.clone(), &plain).await, ErrorKind::NoSpace);
    assert!(error.message.contains("small/f"), "{error}");
    assert_eq!(names(&small.0), ["f"]);
    assert_eq!(pc.client.read("small/f").await.unwrap(), "old");
    let copy = Transfer { from: "big".into(), to: "small/big".into(), overwrite: false };
    refused(pc.client.copy(&copy).await, ErrorKind::NoSpace);
    refused(pc.client.rename(&copy).await, ErrorKind::NoSpace);
    assert_eq!(names(&small.0), ["f"]);
    let mut archive = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    header.set_size(big.len() as u64);
    header.set_mode(0o644);
    archive.append_data(&mut header, "big", &big[..]).unwrap();
    let archive = archive.into_inner().unwrap();
    refused(pc.client.unpack("small", full(archive)).await, ErrorKind::NoSpace);
    refused(pc.client.append("small/f", big).await, ErrorKind::NoSpace);
}

#[tokio::test]
async fn a_move_to_another_filesystem_carries_everything() {
    let pc = Computer::start().await;
    let other = Mount::tmpfs(pc.workspace().join("other"), c"size=4m");
    pc.put("tree/sub/f", "F");
    let rename = Transfer { from: "tree".into(), to: "other/tree".into(), overwrite: false };
    pc.client.rename(&rename).await.unwrap();
    assert_eq!(pc.get("other/tree/sub/f"), b"F");
    assert_eq!(
        (names(&pc.workspace()), names(&other.0)),
        (vec!["other".into()], vec!["tree".into()])
    );
    pc.put("tree/x", "");
    refused(pc.client.rename(&rename).await, ErrorKind::Exists);
    assert_eq!(fs::metadata(pc.workspace().join("gone")).unwrap_err().kind(), Io::NotFound);
}
