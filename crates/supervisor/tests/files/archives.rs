//! Archives, honest and not.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use http_body_util::BodyExt;
use nacre_wire::ErrorKind;
use nacre_wire::client::{Body, Error, full};
use nacre_wire::files::Unpacked;
use tar::{EntryType, Header};

use crate::harness::{Computer, names, refused};

/// Everything an archive keeps about an entry, by relative path.
#[derive(Debug, PartialEq, Eq)]
struct Kept {
    mode: u32,
    modified: i64,
    content: Vec<u8>,
    target: Option<PathBuf>,
    links: u64,
}

fn snapshot(top: &Path) -> BTreeMap<PathBuf, Kept> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![top.to_owned()];
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let metadata = fs::symlink_metadata(&path).unwrap();
            let file = metadata.is_file();
            let kept = Kept {
                mode: metadata.mode() & 0o7777,
                modified: metadata.mtime(),
                content: if file { fs::read(&path).unwrap() } else { Vec::new() },
                target: metadata.is_symlink().then(|| fs::read_link(&path).unwrap()),
                links: if file { metadata.nlink() } else { 0 },
            };
            if metadata.is_dir() {
                waiting.push(path.clone());
            }
            found.insert(path.strip_prefix(top).unwrap().to_owned(), kept);
        }
    }
    found
}

fn plant(pc: &Computer) {
    let long = "long".repeat(50);
    pc.put("tree/plain", "plain");
    pc.put("tree/empty-file", "");
    pc.put("tree/big", vec![3; 1_234_567]);
    pc.put(&format!("tree/{long}/{long}/{long}"), "deep");
    pc.put("tree/script", "#!");
    let tree = pc.workspace().join("tree");
    fs::set_permissions(tree.join("script"), fs::Permissions::from_mode(0o751)).unwrap();
    fs::hard_link(tree.join("plain"), tree.join("second")).unwrap();
    symlink("../elsewhere", tree.join("link")).unwrap();
    symlink("t".repeat(300), tree.join("long-link")).unwrap();
    fs::create_dir(tree.join("empty")).unwrap();
    fs::create_dir(tree.join("read-only")).unwrap();
    pc.put("tree/read-only/inside", "x");
    fs::set_permissions(tree.join("read-only"), fs::Permissions::from_mode(0o555)).unwrap();
    let odd = std::ffi::OsStr::new("odd \u{fffd}\n");
    fs::write(tree.join(odd), "odd").unwrap();
    use std::os::unix::ffi::OsStrExt;
    fs::write(tree.join(std::ffi::OsStr::from_bytes(b"\xff\xfe")), "bytes").unwrap();
    for entry in ["plain", "big", "read-only", "empty"] {
        let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_234_567_890);
        fs::File::open(tree.join(entry)).unwrap().set_modified(time).unwrap();
    }
}

async fn pack(pc: &Computer, path: &str) -> Vec<u8> {
    pc.client.pack(path).await.unwrap().collect().await.unwrap().to_bytes().to_vec()
}

async fn unpack(pc: &Computer, archive: Vec<u8>) -> Result<Unpacked, Error> {
    pc.client.unpack("target", full(archive)).await
}

#[tokio::test]
async fn a_tree_survives_the_round_trip() {
    let pc = Computer::start().await;
    plant(&pc);
    let archive = pack(&pc, "tree").await;
    assert_eq!(archive.len() % 512, 0);
    let unpacked = unpack(&pc, archive).await.unwrap();
    let (before, after) =
        (snapshot(&pc.workspace().join("tree")), snapshot(&pc.workspace().join("target")));
    assert_eq!(unpacked.entries as usize, before.len());
    for (path, kept) in &before {
        let mut found = after.get(path).unwrap_or_else(|| panic!("{path:?} is missing"));
        let fixed;
        if kept.target.is_none() && found.modified != kept.modified {
            // Only what was planted with a time of its own is old enough to differ in seconds.
            fixed = Kept {
                modified: kept.modified,
                content: found.content.clone(),
                target: None,
                ..*found
            };
            assert!((found.modified - kept.modified).abs() <= 1, "{path:?}");
            found = &fixed;
        }
        assert_eq!(found, kept, "{path:?}");
    }
    assert_eq!(before.len(), after.len());
}

#[tokio::test]
async fn system_tar_reads_what_we_pack_and_we_unpack_what_it_packs() {
    let pc = Computer::start().await;
    plant(&pc);
    let theirs = pc.workspace().join("theirs");
    fs::create_dir(&theirs).unwrap();
    let mut tar =
        Command::new("tar").arg("-xpC").arg(&theirs).stdin(Stdio::piped()).spawn().unwrap();
    tar.stdin.take().unwrap().write_all(&pack(&pc, "tree").await).unwrap();
    assert!(tar.wait().unwrap().success());
    let tree = snapshot(&pc.workspace().join("tree"));
    assert_eq!(snapshot(&theirs), tree);
    for format in ["gnu", "posix", "oldgnu"] {
        let output = Command::new("tar")
            .args(["-c", "--format", format, "-C"])
            .arg(pc.workspace().join("tree"))
            .arg(".")
            .output()
            .unwrap();
        let target = format!("from-{format}");
        pc.client.unpack(&target, full(output.stdout)).await.unwrap();
        assert_eq!(snapshot(&pc.workspace().join(&target)), tree, "{format}");
    }
}

#[tokio::test]
async fn one_file_is_packed_under_its_own_name() {
    let pc = Computer::start().await;
    pc.put("dir/file", "content");
    symlink("dir/file", pc.workspace().join("link")).unwrap();
    let archive = pack(&pc, "link").await;
    let mut archive = tar::Archive::new(&archive[..]);
    let paths: Vec<_> = archive
        .entries()
        .unwrap()
        .map(|entry| entry.unwrap().path().unwrap().into_owned())
        .collect();
    assert_eq!(paths, [Path::new("file")]);
    refused(pc.client.pack("gone").await.map(drop), ErrorKind::NotFound);
}

#[tokio::test]
async fn unpacking_replaces_files_and_merges_directories() {
    let pc = Computer::start().await;
    pc.put("target/dir/old", "old");
    pc.put("target/dir/both", "old");
    symlink("/workspace/target/dir/old", pc.workspace().join("target/link")).unwrap();
    let archive = archive(&[("dir/both", "new"), ("link", "a file now")]);
    unpack(&pc, archive).await.unwrap();
    assert_eq!(names(&pc.workspace().join("target/dir")), ["both", "old"]);
    assert_eq!(pc.get("target/dir/both"), b"new");
    assert_eq!(pc.get("target/dir/old"), b"old");
    assert_eq!(pc.get("target/link"), b"a file now");
    pc.put("target/busy/inside", "");
    refused(unpack(&pc, self::archive(&[("busy", "x")])).await, ErrorKind::IsDirectory);
    pc.put("target/file", "");
    refused(unpack(&pc, self::archive(&[("file/x", "x")])).await, ErrorKind::NotDirectory);
}

fn header(name: &[u8], kind: EntryType, size: u64, link: &[u8]) -> Header {
    let mut header = Header::new_gnu();
    // By hand: the crate refuses to write what an attacker would.
    header.as_old_mut().name[..name.len()].copy_from_slice(name);
    header.as_old_mut().linkname[..link.len()].copy_from_slice(link);
    header.set_entry_type(kind);
    header.set_size(size);
    header.set_mode(0o6777);
    header.set_mtime(0);
    header.set_cksum();
    header
}

fn entry(archive: &mut Vec<u8>, header: &Header, content: &[u8]) {
    archive.extend_from_slice(header.as_bytes());
    archive.extend_from_slice(content);
    archive.resize(archive.len().next_multiple_of(512), 0);
}

fn archive(files: &[(&str, &str)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (name, content) in files {
        let header = header(name.as_bytes(), EntryType::Regular, content.len() as u64, b"");
        entry(&mut bytes, &header, content.as_bytes());
    }
    bytes.resize(bytes.len() + 1024, 0);
    bytes
}

#[tokio::test]
async fn a_name_that_leads_out_is_refused_by_name() {
    let pc = Computer::start().await;
    for name in ["../evil", "a/../../evil", "/evil", "//evil", "a/..", ".."] {
        let error = refused(unpack(&pc, archive(&[(name, "x")])).await, ErrorKind::InvalidPath);
        assert!(error.message.contains(name), "{error}");
    }
    pc.assert_outside_untouched();
    assert_eq!(names(&pc.workspace()), ["target"]);
    assert_eq!(names(&pc.workspace().join("target")), [""; 0]);
}

#[tokio::test]
async fn a_symlink_in_the_archive_is_not_a_way_out() {
    let pc = Computer::start().await;
    pc.put("secret", "secret");
    let outside = pc.outside();
    for target in ["..", "../../../outside", "/workspace", outside.to_str().unwrap()] {
        let mut through = Vec::new();
        entry(&mut through, &header(b"s", EntryType::Symlink, 0, target.as_bytes()), b"");
        let by_link = through.clone();
        entry(&mut through, &header(b"s/evil", EntryType::Regular, 1, b""), b"x");
        refused(unpack(&pc, through).await, ErrorKind::InvalidPath);
        for (name, kind) in [(&b"s/d"[..], EntryType::Directory), (b"s/d/e/f", EntryType::Regular)]
        {
            let mut archive = by_link.clone();
            entry(&mut archive, &header(name, kind, 0, b""), b"");
            refused(unpack(&pc, archive).await, ErrorKind::InvalidPath);
        }
        let mut archive = by_link.clone();
        entry(&mut archive, &header(b"h", EntryType::Link, 0, b"s/secret"), b"");
        refused(unpack(&pc, archive).await, ErrorKind::InvalidPath);
    }
    pc.assert_outside_untouched();
    assert_eq!(names(&pc.workspace()), ["secret", "target"]);
    assert_eq!(names(&pc.workspace().join("target")), ["s"]);
}

#[tokio::test]
async fn hard_links_lead_only_to_what_is_beneath() {
    let pc = Computer::start().await;
    pc.put("secret", "secret");
    for target in ["../secret", "/workspace/secret", "/etc/passwd", "../../../outside/canary"] {
        let mut archive = Vec::new();
        entry(&mut archive, &header(b"h", EntryType::Link, 0, target.as_bytes()), b"");
        refused(unpack(&pc, archive).await, ErrorKind::InvalidPath);
    }
    let mut archive = Vec::new();
    entry(&mut archive, &header(b"h", EntryType::Link, 0, b"gone"), b"");
    refused(unpack(&pc, archive).await, ErrorKind::NotFound);
    assert_eq!(names(&pc.workspace().join("target")), [""; 0]);
}

#[tokio::test]
async fn devices_are_refused_and_set_id_bits_dropped() {
    let pc = Computer::start().await;
    for kind in [EntryType::Char, EntryType::Block, EntryType::Fifo] {
        let mut archive = Vec::new();
        entry(&mut archive, &header(b"node", kind, 0, b""), b"");
        let error = refused(unpack(&pc, archive).await, ErrorKind::InvalidRequest);
        assert!(error.message.contains("target/node"), "{error}");
    }
    let mut archive = archive(&[("program", "x")]);
    archive.truncate(1024);
    entry(&mut archive, &header(b"folder/", EntryType::Directory, 0, b""), b"");
    unpack(&pc, archive).await.unwrap();
    for name in ["program", "folder"] {
        let mode = fs::metadata(pc.workspace().join("target").join(name)).unwrap().mode();
        assert_eq!(mode & 0o7777, 0o777, "{name}");
    }
}

#[tokio::test]
async fn what_is_no_archive_is_refused() {
    let pc = Computer::start().await;
    let good = archive(&[("file", "content")]);
    let mut long_name = Vec::new();
    // Claims a name of a gigabyte; memory must not follow.
    entry(&mut long_name, &header(b"L", EntryType::GNULongName, 1 << 30, b""), &[b'x'; 4096]);
    let mut bad_sum = good.clone();
    bad_sum[0] ^= 1;
    let cases = [
        ("noise", vec![0xa5; 2000]),
        ("cut in a header", good[..300].to_vec()),
        ("cut in content", good[..515].to_vec()),
        ("a name without end", long_name),
        ("a wrong checksum", bad_sum),
    ];
    for (what, archive) in cases {
        let result = unpack(&pc, archive).await;
        assert!(
            matches!(&result, Err(Error::Api(e)) if e.kind == ErrorKind::InvalidRequest),
            "{what}: {result:?}"
        );
    }
    // Nothing at all is an archive of nothing.
    assert_eq!(unpack(&pc, Vec::new()).await.unwrap(), Unpacked::default());
}

#[tokio::test]
async fn an_archive_in_tiny_pieces_is_the_same_archive() {
    let pc = Computer::start().await;
    plant(&pc);
    let archive = pack(&pc, "tree").await;
    let pieces: Vec<Result<hyper::body::Frame<axum::body::Bytes>, nacre_wire::client::BoxError>> =
        archive
            .chunks(777)
            .map(|piece| Ok(hyper::body::Frame::data(axum::body::Bytes::copy_from_slice(piece))))
            .collect();
    let body: Body =
        http_body_util::StreamBody::new(futures_util::stream::iter(pieces)).boxed_unsync();
    let unpacked = pc.client.unpack("target", body).await.unwrap();
    assert_eq!(unpacked.entries as usize, snapshot(&pc.workspace().join("tree")).len());
}
