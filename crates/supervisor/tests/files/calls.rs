//! What each call does, and how it refuses.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use http::{Method, StatusCode};
use nacre_wire::client::WriteOptions;
use nacre_wire::files::{Chmod, FileKind, Mkdir, Remove, Symlink, Transfer};
use nacre_wire::{ErrorKind, WirePath};

use crate::harness::{Call, Computer, names, refused};

fn transfer(from: &str, to: &str, overwrite: bool) -> Transfer {
    Transfer { from: from.into(), to: to.into(), overwrite }
}

fn removal(path: &str, recursive: bool) -> Remove {
    Remove { path: path.into(), recursive, if_match: None }
}

#[tokio::test]
async fn what_is_written_is_read() {
    let pc = Computer::start().await;
    let stat = pc.client.write("a.txt", "hello", &WriteOptions::default()).await.unwrap();
    assert_eq!((stat.size, stat.mode, stat.kind), (5, 0o644, FileKind::File));
    assert_eq!(stat.path, WirePath::from("/workspace/a.txt"));
    assert_eq!(pc.client.read("/workspace/a.txt").await.unwrap(), "hello");
    assert_eq!(pc.client.stat("a.txt").await.unwrap(), stat);
    assert_eq!(names(&pc.workspace()), ["a.txt"]);
}

#[tokio::test]
async fn a_large_file_arrives_whole() {
    let pc = Computer::start().await;
    let bytes: Vec<u8> = (0..5_000_003u32).map(|i| (i * 7 % 251) as u8).collect();
    pc.client.write("big", bytes.clone(), &WriteOptions::default()).await.unwrap();
    assert!(pc.get("big") == bytes);
    assert!(pc.client.read("big").await.unwrap() == bytes);
}

#[tokio::test]
async fn writing_keeps_the_mode_and_goes_through_symlinks() {
    let pc = Computer::start().await;
    pc.put("real", "old");
    fs::set_permissions(pc.workspace().join("real"), fs::Permissions::from_mode(0o750)).unwrap();
    symlink("/workspace/real", pc.workspace().join("absolute")).unwrap();
    symlink("absolute", pc.workspace().join("relative")).unwrap();
    pc.client.write("relative", "new", &WriteOptions::default()).await.unwrap();
    assert_eq!(pc.get("real"), b"new");
    let metadata = fs::symlink_metadata(pc.workspace().join("real")).unwrap();
    assert!(metadata.is_file() && metadata.mode() & 0o7777 == 0o750);
    assert!(pc.workspace().join("relative").is_symlink());
    let options = WriteOptions { mode: Some(0o600), sync: true, ..WriteOptions::default() };
    assert_eq!(pc.client.write("real", "", &options).await.unwrap().mode, 0o600);
}

#[tokio::test]
async fn writing_creates_parents_only_when_asked() {
    let pc = Computer::start().await;
    let plain = WriteOptions::default();
    refused(pc.client.write("x/y/z", "1", &plain).await, ErrorKind::NotFound);
    let options = WriteOptions { parents: true, ..plain };
    pc.client.write("x/y/z", "1", &options).await.unwrap();
    assert_eq!(pc.get("x/y/z"), b"1");
}

#[tokio::test]
async fn appending_adds_to_the_end_and_creates() {
    let pc = Computer::start().await;
    pc.client.append("log", "one ").await.unwrap();
    let stat = pc.client.append("log", "two").await.unwrap();
    assert_eq!((stat.size, pc.get("log").as_slice()), (7, &b"one two"[..]));
    let big = vec![b'x'; 3 << 20];
    assert_eq!(pc.client.append("log", big).await.unwrap().size, (3 << 20) + 7);
    refused(pc.client.append(".", "x").await, ErrorKind::IsDirectory);
}

#[tokio::test]
async fn a_listing_comes_in_sorted_pages() {
    let pc = Computer::start().await;
    let mut expected: Vec<OsString> =
        ["b", "a", "Z", "é", "a b", "a.b"].iter().map(OsString::from).collect();
    expected.push(OsString::from_vec(vec![0xff, b'x']));
    for name in &expected {
        fs::write(pc.workspace().join(name), "").unwrap();
    }
    expected.sort();
    for limit in 1..=8 {
        let (mut found, mut after) = (Vec::new(), None);
        loop {
            let page = pc.client.list("/workspace", Some(limit), after.as_ref()).await.unwrap();
            assert!(page.entries.len() <= limit);
            found.extend(page.entries.into_iter().map(|entry| entry.path.0.into_os_string()));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(found, expected, "pages of {limit}");
    }
    pc.put("file", "");
    refused(pc.client.list("file", None, None).await, ErrorKind::NotDirectory);
    refused(pc.client.list("nothing", None, None).await, ErrorKind::NotFound);
    refused(pc.client.list("/", Some(0), None).await, ErrorKind::InvalidRequest);
}

#[tokio::test]
async fn a_directory_of_100k_entries_is_listed_page_by_page() {
    let pc = Computer::start().await;
    let many = pc.workspace().join("many");
    fs::create_dir(&many).unwrap();
    for i in 0..100_000 {
        fs::File::create(many.join(format!("{i:06}"))).unwrap();
    }
    let after = WirePath::from("049999");
    let page = pc.client.list("many", Some(3), Some(&after)).await.unwrap();
    let found: Vec<_> = page.entries.iter().map(|entry| entry.path.to_string()).collect();
    assert_eq!(found, ["050000", "050001", "050002"]);
    assert_eq!(page.next, Some(WirePath::from("050002")));
}

#[tokio::test]
async fn stat_follows_only_when_asked() {
    let pc = Computer::start().await;
    pc.put("file", "abc");
    symlink("file", pc.workspace().join("link")).unwrap();
    let stat = pc.client.stat("link").await.unwrap();
    assert_eq!((stat.kind, stat.target), (FileKind::Symlink, Some(WirePath::from("file"))));
    let answer = pc.call(Call::new(Method::GET, "stat", "link").query("follow", "true")).await;
    let stat: nacre_wire::files::Stat = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!((stat.kind, stat.size, stat.target), (FileKind::File, 3, None));
    assert_eq!(pc.client.stat("/").await.unwrap().kind, FileKind::Directory);
    refused(pc.client.stat("file/x").await, ErrorKind::NotDirectory);
}

#[tokio::test]
async fn mkdir_makes_directories() {
    let pc = Computer::start().await;
    let make = |path: &str, parents, mode| Mkdir { path: path.into(), parents, mode };
    pc.client.mkdir(&make("a", false, Some(0o1777))).await.unwrap();
    let mode = fs::metadata(pc.workspace().join("a")).unwrap().mode() & 0o7777;
    assert_eq!(mode, 0o1777);
    refused(pc.client.mkdir(&make("a", false, None)).await, ErrorKind::Exists);
    refused(pc.client.mkdir(&make("p/q", false, None)).await, ErrorKind::NotFound);
    pc.client.mkdir(&make("p/q/r", true, None)).await.unwrap();
    pc.client.mkdir(&make("p/q/r", true, None)).await.unwrap();
    pc.put("file", "");
    refused(pc.client.mkdir(&make("file", true, None)).await, ErrorKind::Exists);
    refused(pc.client.mkdir(&make("file/x", true, None)).await, ErrorKind::NotDirectory);
    refused(pc.client.mkdir(&make("a/..", true, None)).await, ErrorKind::InvalidPath);
    refused(pc.client.mkdir(&make("m", true, Some(0o10000))).await, ErrorKind::InvalidRequest);
}

#[tokio::test]
async fn move_renames_and_replaces_only_when_told() {
    let pc = Computer::start().await;
    pc.put("a", "A");
    pc.put("b", "B");
    pc.put("dir/inner", "I");
    refused(pc.client.rename(&transfer("a", "b", false)).await, ErrorKind::Exists);
    pc.client.rename(&transfer("a", "b", true)).await.unwrap();
    assert_eq!(pc.get("b"), b"A");
    pc.client.rename(&transfer("dir", "moved", false)).await.unwrap();
    assert_eq!(pc.get("moved/inner"), b"I");
    refused(pc.client.rename(&transfer("gone", "x", false)).await, ErrorKind::NotFound);
    refused(pc.client.rename(&transfer("b", "moved", true)).await, ErrorKind::IsDirectory);
    let error = refused(
        pc.client.rename(&transfer("moved", "moved/x", false)).await,
        ErrorKind::InvalidRequest,
    );
    assert!(error.message.contains("/workspace/moved"), "{error}");
}

#[tokio::test]
async fn copy_keeps_modes_symlinks_and_times() {
    let pc = Computer::start().await;
    pc.put("tree/sub/script", vec![7; 300_000]);
    let script = pc.workspace().join("tree/sub/script");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o4755)).unwrap();
    fs::set_permissions(pc.workspace().join("tree/sub"), fs::Permissions::from_mode(0o700))
        .unwrap();
    symlink("/nowhere", pc.workspace().join("tree/link")).unwrap();
    fs::create_dir(pc.workspace().join("tree/empty")).unwrap();
    pc.client.copy(&transfer("tree", "copy", false)).await.unwrap();
    assert_eq!(names(&pc.workspace()), ["copy", "tree"]);
    assert_eq!(names(&pc.workspace().join("copy")), ["empty", "link", "sub"]);
    let copied = fs::metadata(pc.workspace().join("copy/sub/script")).unwrap();
    // Set-id bits belong to the original's owner.
    assert_eq!(copied.mode() & 0o7777, 0o755);
    assert_eq!(copied.mtime_nsec(), fs::metadata(&script).unwrap().mtime_nsec());
    assert_eq!(fs::metadata(pc.workspace().join("copy/sub")).unwrap().mode() & 0o777, 0o700);
    assert_eq!(pc.get("copy/sub/script"), vec![7; 300_000]);
    let link = fs::read_link(pc.workspace().join("copy/link")).unwrap();
    assert_eq!(link, Path::new("/nowhere"));
    refused(pc.client.copy(&transfer("tree", "copy", false)).await, ErrorKind::Exists);
    refused(pc.client.copy(&transfer("tree", "copy", true)).await, ErrorKind::Exists);
    refused(pc.client.copy(&transfer("tree", "tree/inside", false)).await, ErrorKind::InvalidPath);
    refused(pc.client.copy(&transfer("gone", "x", false)).await, ErrorKind::NotFound);
    assert_eq!(names(&pc.workspace()), ["copy", "tree"]);
    assert_eq!(names(&pc.workspace().join("tree")), ["empty", "link", "sub"]);
}

#[tokio::test]
async fn remove_takes_directories_only_when_told() {
    let pc = Computer::start().await;
    pc.put("dir/a/b", "");
    symlink("/outside", pc.workspace().join("dir/link")).unwrap();
    let error = refused(pc.client.remove(&removal("dir", false)).await, ErrorKind::IsDirectory);
    assert!(error.hint.unwrap().contains("recursive"));
    pc.client.remove(&removal("dir", true)).await.unwrap();
    refused(pc.client.remove(&removal("dir", true)).await, ErrorKind::NotFound);
    fs::create_dir(pc.workspace().join("empty")).unwrap();
    pc.client.remove(&removal("empty", false)).await.unwrap();
    refused(pc.client.remove(&removal("/", true)).await, ErrorKind::InvalidPath);
    refused(pc.client.remove(&removal("..", true)).await, ErrorKind::InvalidPath);
    assert_eq!(names(&pc.workspace()), [""; 0]);
}

#[tokio::test]
async fn a_tree_deeper_than_there_are_descriptors_is_removed() {
    let pc = Computer::start().await;
    let deep: PathBuf = std::iter::repeat_n("d", 1500).collect();
    fs::create_dir_all(pc.workspace().join(&deep)).unwrap();
    pc.client.remove(&removal("d", true)).await.unwrap();
    assert_eq!(names(&pc.workspace()), [""; 0]);
}

#[tokio::test]
async fn symlink_and_chmod() {
    let pc = Computer::start().await;
    pc.put("file", "");
    let link = Symlink { path: "link".into(), target: "file".into() };
    pc.client.symlink(&link).await.unwrap();
    refused(pc.client.symlink(&link).await, ErrorKind::Exists);
    let empty = Symlink { path: "x".into(), target: "".into() };
    refused(pc.client.symlink(&empty).await, ErrorKind::InvalidPath);
    pc.client.chmod(&Chmod { path: "link".into(), mode: 0o640 }).await.unwrap();
    assert_eq!(fs::metadata(pc.workspace().join("file")).unwrap().mode() & 0o7777, 0o640);
    let wrong = Chmod { path: "file".into(), mode: 0o100_644 };
    refused(pc.client.chmod(&wrong).await, ErrorKind::InvalidRequest);
    let gone = Chmod { path: "gone".into(), mode: 0o644 };
    refused(pc.client.chmod(&gone).await, ErrorKind::NotFound);
}

#[tokio::test]
async fn names_may_hold_any_bytes() {
    let pc = Computer::start().await;
    let name = Path::new(OsStr::from_bytes(b"\xff\xfe +%&=?#\n\"\\"));
    pc.client.write(name, "odd", &WriteOptions::default()).await.unwrap();
    assert_eq!(fs::read(pc.workspace().join(name)).unwrap(), b"odd");
    assert_eq!(pc.client.read(name).await.unwrap(), "odd");
    let other = Path::new(OsStr::from_bytes(b"\x80"));
    let rename = Transfer { from: name.into(), to: other.into(), overwrite: false };
    pc.client.rename(&rename).await.unwrap();
    let listing = pc.client.list(".", None, None).await.unwrap();
    assert_eq!(listing.entries[0].path, WirePath::from(other));
    pc.client
        .remove(&Remove { path: other.into(), recursive: false, if_match: None })
        .await
        .unwrap();
}

#[tokio::test]
async fn only_regular_files_have_content() {
    let pc = Computer::start().await;
    let fifo = pc.workspace().join("fifo");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, 0o666.into(), 0)
        .unwrap();
    std::os::unix::net::UnixListener::bind(pc.workspace().join("socket"))
        .map(std::mem::forget)
        .unwrap();
    for name in ["fifo", "socket"] {
        refused(pc.client.read(name).await, ErrorKind::InvalidRequest);
        refused(pc.client.append(name, "x").await, ErrorKind::InvalidRequest);
        let write = pc.client.write(name, "x", &WriteOptions::default()).await;
        refused(write, ErrorKind::InvalidRequest);
    }
    refused(pc.client.read(".").await, ErrorKind::IsDirectory);
    refused(pc.client.write(".", "", &WriteOptions::default()).await, ErrorKind::InvalidPath);
    fs::create_dir(pc.workspace().join("dir")).unwrap();
    refused(pc.client.write("dir", "", &WriteOptions::default()).await, ErrorKind::IsDirectory);
}

#[tokio::test]
async fn a_bad_request_says_what_is_bad() {
    let pc = Computer::start().await;
    let mut call = Call::new(Method::GET, "content", "x");
    call.query.clear();
    assert_eq!(pc.call(call).await.error().kind, ErrorKind::InvalidRequest);
    for body in ["", "{", "[]", "{\"path\": 1}", "{\"path\": {\"base64\": \"!\"}}"] {
        let answer = pc.call(Call::new(Method::POST, "mkdir", "x").body(body)).await;
        assert_eq!(answer.error().kind, ErrorKind::InvalidRequest, "{body}");
    }
    let huge = Call::new(Method::POST, "mkdir", "x").body(vec![b' '; 1 << 20]);
    assert_eq!(pc.call(huge).await.status, StatusCode::PAYLOAD_TOO_LARGE);
    let mode = Call::new(Method::PUT, "content", "x").query("mode", "rwx");
    assert_eq!(pc.call(mode).await.error().kind, ErrorKind::InvalidRequest);
    let nobody = Call::new(Method::GET, "stat", "/").query("user", "nobody-here");
    assert_eq!(pc.call(nobody).await.error().kind, ErrorKind::NotFound);
}

#[tokio::test]
async fn a_path_too_long_or_with_nul_is_invalid() {
    let pc = Computer::start().await;
    let long = "x/".repeat(2100);
    for path in [long.as_str(), &"n".repeat(300), "a\0b", ""] {
        let error = refused(pc.client.stat(path).await, ErrorKind::InvalidPath);
        assert!(error.message.len() < 400, "{error}");
        refused(
            pc.client.mkdir(&Mkdir { path: path.into(), parents: true, mode: None }).await,
            ErrorKind::InvalidPath,
        );
    }
}
