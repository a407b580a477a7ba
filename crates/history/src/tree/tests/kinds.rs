//! Each kind of thing that can be in a tree.

use super::*;

#[test]
fn every_kind_is_captured() {
    let top = tempfile::tempdir().unwrap();
    let at = |name: &str| top.path().join(name);
    fs::create_dir(at("dir")).unwrap();
    fs::write(at("dir/file"), "text").unwrap();
    fs::write(at("large"), vec![7; 3 << 20]).unwrap();
    fs::set_permissions(at("dir/file"), fs::Permissions::from_mode(0o4751)).unwrap();
    symlink("no such thing", at("link")).unwrap();
    fs::hard_link(at("dir/file"), at("other")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, at("fifo"), rustix::fs::Mode::RUSR).unwrap();
    let mut kept = Kept::new(top.path());
    let names = kept.checkpoint();
    let expected = ["dir", "dir/file", "fifo", "large", "link", "other", "socket"].map(path);
    assert_eq!(names, expected);
    assert_eq!(kept.entry("dir").kind, Kind::Directory);
    let content = Content::Kept(ContentId::of(b"text"));
    assert_eq!(kept.entry("dir/file").kind, Kind::File { size: 4, content });
    assert_eq!(kept.entry("dir/file").mode, 0o4751);
    assert_eq!(kept.entry("link").kind, Kind::Symlink { target: b"no such thing".to_vec() });
    assert_eq!(kept.entry("fifo").kind, Kind::Special(Special::Fifo));
    assert_eq!(kept.entry("socket").kind, Kind::Special(Special::Socket));
    assert_eq!(kept.contents.get(kept.entry("large").content().unwrap()), vec![7; 3 << 20]);
    let (one, other) = (&kept.state[&path("dir/file")], &kept.state[&path("other")]);
    assert_eq!((one.links, one.inode), (2, other.inode));
    kept.trust();
    let quiet = kept.scan();
    assert_eq!(quiet.differences, []);
    assert_eq!((quiet.files, quiet.directories), (6, 1));
}

/// `top/…` with the deepest directory last.
fn deep(top: &Path, depth: usize) {
    use rustix::fs::{Mode, OFlags, mkdirat, openat};
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut directory = openat(rustix::fs::CWD, top, flags, Mode::empty()).unwrap();
    for level in 0..depth {
        mkdirat(&directory, "dd", Mode::RWXU).unwrap();
        if level % 100 == 0 {
            // Sorts after the directory, so that the walk has to come back.
            rustix::fs::symlinkat("target", &directory, "z").unwrap();
        }
        directory = openat(&directory, "dd", flags, Mode::empty()).unwrap();
    }
    let file = openat(&directory, "f", OFlags::CREATE | OFlags::WRONLY, Mode::RUSR).unwrap();
    rustix::io::write(&file, b"deep").unwrap();
}

#[test]
fn depth_has_no_limit() {
    let top = tempfile::tempdir().unwrap();
    deep(top.path(), 3000);
    let mut kept = Kept::new(top.path());
    let names = kept.checkpoint();
    assert_eq!(names.len(), 3000 + 30 + 1);
    assert!(names.is_sorted());
    let bottom = names.iter().max_by_key(|path| path.key().len()).unwrap();
    let captured = &kept.state[bottom];
    let Now::There(entry) = &captured.now else { panic!("{captured:?}") };
    assert_eq!(entry.content(), Some(ContentId::of(b"deep")));
    let seen = look(&kept.root, &names.iter().cloned().collect()).unwrap().seen;
    assert_eq!(seen.len(), names.len());
    for (path, stat) in seen {
        kept.state.get_mut(&path).unwrap().signature = stat.unwrap().signature;
    }
    assert_eq!(kept.scan().differences, []);
}

#[test]
fn any_name_is_a_name() {
    let top = tempfile::tempdir().unwrap();
    let names: [&[u8]; 6] = [b"\xff\xfe", b"a\nb", &[b'x'; 255], b" ", b"-", b"\x01"];
    for name in names {
        fs::write(top.path().join(OsStr::from_bytes(name)), name).unwrap();
    }
    let mut kept = Kept::new(top.path());
    assert_eq!(kept.checkpoint().len(), names.len());
    for name in names {
        let captured = &kept.state[&TreePath::from_key(name).unwrap()];
        let Now::There(entry) = &captured.now else { panic!("{captured:?}") };
        assert_eq!(entry.content(), Some(ContentId::of(name)));
    }
    let long = BTreeSet::from([TreePath::from_key(&[b'x'; 256]).unwrap()]);
    assert_eq!(look(&kept.root, &long).unwrap().seen[0].1, None);
}

/// As a user who may not read everything.
fn as_nobody<T: Send>(act: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            // SAFETY: changes only this thread, which ends with the test; capabilities over files go
            // with it.
            unsafe { libc::setfsuid(65534) };
            act()
        });
        thread.join().unwrap()
    })
}

#[test]
fn what_may_not_be_read_is_kept_and_said() {
    let top = tempfile::tempdir().unwrap();
    let at = |name: &str| top.path().join(name);
    fs::create_dir_all(at("shut/inner")).unwrap();
    fs::write(at("shut/inner/file"), "x").unwrap();
    fs::write(at("zecret"), "x").unwrap();
    let mut kept = Kept::new(top.path());
    kept.checkpoint();
    kept.trust();
    fs::set_permissions(top.path(), fs::Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(at("shut"), fs::Permissions::from_mode(0o0)).unwrap();
    fs::set_permissions(at("zecret"), fs::Permissions::from_mode(0o0)).unwrap();
    let paths = ["shut", "shut/inner/file", "zecret"].map(path);
    let (scan, seen, captured) = as_nobody(|| {
        let seen = look(&kept.root, &paths.iter().cloned().collect()).unwrap();
        let policy = Policy { threads: 1, ..Policy::default() };
        let captured = capture(&kept.root, &kept.contents, &policy, &paths).unwrap();
        (kept.scan(), seen, captured)
    });
    let different: Vec<_> = scan.differences.iter().map(Difference::path).collect();
    assert_eq!(different, [&paths[0], &paths[2]]);
    assert_eq!(scan.unreadable.len(), 1);
    assert_eq!(scan.unreadable[0].0, paths[0]);
    assert_eq!(seen.seen.len(), 2);
    assert_eq!(seen.unreadable[0].0, paths[1]);
    assert!(captured.iter().all(|captured| captured.note.is_some()), "{captured:?}");
    assert_eq!(captured[1].now, Now::Unknown);
    let Now::There(entry) = &captured[2].now else { panic!("{captured:?}") };
    assert_eq!(entry.kind, Kind::File { size: 1, content: Content::Unreadable });
    assert_eq!(captured[2].signature, Signature::UNKNOWN);
    // With every right, nothing is hidden.
    assert_eq!(kept.scan().unreadable, []);
    fs::set_permissions(at("shut"), fs::Permissions::from_mode(0o700)).unwrap();
}

#[test]
fn what_is_excluded_is_not_mentioned() {
    let top = tempfile::tempdir().unwrap();
    let at = |name: &str| top.path().join(name);
    fs::create_dir_all(at("a/target")).unwrap();
    fs::write(at("a/target/x"), "x").unwrap();
    fs::write(at("a/file"), "x").unwrap();
    let mut kept = Kept::new(top.path());
    kept.checkpoint();
    kept.trust();
    kept.exclude = Exclusions::new(["**/target"]).unwrap();
    fs::write(at("a/target/new"), "x").unwrap();
    fs::remove_file(at("a/target/x")).unwrap();
    fs::remove_file(at("a/file")).unwrap();
    assert_eq!(kept.scan().differences, [Difference::Gone(path("a/file"))]);
}

#[test]
fn a_part_is_scanned_alone() {
    let top = tempfile::tempdir().unwrap();
    let at = |name: &str| top.path().join(name);
    fs::create_dir_all(at("a/b")).unwrap();
    fs::write(at("a/b/c"), "x").unwrap();
    let mut kept = Kept::new(top.path());
    kept.checkpoint();
    kept.trust();
    fs::write(at("new"), "x").unwrap();
    fs::write(at("a/b/d"), "x").unwrap();
    let names = |scan: Scan| -> Vec<_> {
        scan.differences.iter().map(|difference| difference.path().clone()).collect()
    };
    assert_eq!(names(kept.scan_below(&path("a/b"))), [path("a/b/d")]);
    assert_eq!(names(kept.scan_below(&path("new"))), [path("new")]);
    fs::remove_dir_all(at("a")).unwrap();
    assert_eq!(kept.scan_below(&path("a/b")).differences.len(), 2);
    assert_eq!(kept.scan_below(&path("none")).differences, []);
}

#[test]
fn attributes_are_recorded() {
    let top = tempfile::tempdir().unwrap();
    let at = |name: &str| top.path().join(name);
    fs::create_dir(at("dir")).unwrap();
    fs::write(at("file"), "x").unwrap();
    let set = |name: &str, attribute: &str, value: &[u8]| {
        let flags = rustix::fs::XattrFlags::empty();
        rustix::fs::setxattr(at(name), attribute, value, flags).unwrap();
    };
    set("file", "user.b", b"2");
    set("file", "user.a", b"");
    set("file", "trusted.machine", b"no");
    set("dir", "user.c", &[9; 2000]);
    let mut kept = Kept::new(top.path());
    kept.checkpoint();
    let attributes = |entry: &Entry| -> Vec<(Vec<u8>, Vec<u8>)> {
        entry.xattrs.iter().map(|xattr| (xattr.name.clone(), xattr.value.clone())).collect()
    };
    let expected = [(b"user.a".to_vec(), b"".to_vec()), (b"user.b".to_vec(), b"2".to_vec())];
    assert_eq!(attributes(kept.entry("file")), expected);
    assert_eq!(attributes(kept.entry("dir")), [(b"user.c".to_vec(), vec![9; 2000])]);
}

#[test]
fn what_is_too_large_is_noted_and_not_kept() {
    let top = tempfile::tempdir().unwrap();
    fs::write(top.path().join("file"), "12345").unwrap();
    let root = Root::open(top.path()).unwrap();
    let policy = Policy { largest_file: 4, ..Policy::default() };
    let contents = Memory::default();
    let captured = &capture(&root, &contents, &policy, &[path("file")]).unwrap()[0];
    assert_eq!(captured.note, Some(Note::TooLarge { size: 5 }));
    assert!(contents.0.lock().unwrap().is_empty());
}

#[test]
fn a_mount_is_not_entered() {
    let top = tempfile::tempdir().unwrap();
    let at = |name: &str| top.path().join(name);
    fs::create_dir_all(at("mnt")).unwrap();
    fs::create_dir_all(at("bound")).unwrap();
    fs::create_dir_all(at("dir")).unwrap();
    fs::write(at("file"), "").unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            use rustix::mount::*;
            // SAFETY: this thread has mounts of its own from here on.
            unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::NEWNS) }.unwrap();
            mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC).unwrap();
            mount("none", at("mnt"), "tmpfs", MountFlags::empty(), None).unwrap();
            mount_bind(at("dir"), at("bound")).unwrap();
            mount_bind("/etc/passwd", at("file")).unwrap();
            fs::write(at("mnt/inside"), "x").unwrap();
            fs::write(at("bound/inside"), "x").unwrap();
            let mut kept = Kept::new(top.path());
            let names = kept.checkpoint();
            let expected = ["bound", "dir", "dir/inside", "file", "mnt"].map(path);
            assert_eq!(names, expected);
            for name in ["bound", "file", "mnt"] {
                assert_eq!(kept.entry(name).kind, Kind::Special(Special::MountPoint), "{name}");
            }
            let inside = ["bound/inside", "mnt/inside"].map(path);
            assert!(kept.capture(&inside).iter().all(|captured| captured.now == Now::Gone));
            kept.state.get_mut(&path("dir/inside")).unwrap().signature =
                kept.root.stat(&path("dir/inside")).unwrap().unwrap().signature;
            // What happens in there is no change here.
            fs::write(at("mnt/more"), "x").unwrap();
            assert_eq!(kept.scan().differences, []);
        });
    });
}

/// Has room for so many.
struct Full(std::sync::atomic::AtomicUsize);

impl Keep for Full {
    fn keep(&self, bytes: &[u8]) -> Result<ContentId> {
        use std::sync::atomic::Ordering::Relaxed;
        let left = self.0.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1));
        left.map_err(|_| Error::NoSpace { context: "test".into() })?;
        Ok(ContentId::of(bytes))
    }

    fn keep_stream(&self, _: &mut dyn Read) -> Result<(ContentId, u64)> {
        Err(Error::NoSpace { context: "test".into() })
    }
}

#[test]
fn results_come_in_the_order_of_names_or_not_at_all() {
    let top = tempfile::tempdir().unwrap();
    let names: Vec<TreePath> =
        (0..1000).map(|number| path(&format!("d{}/{number}", number % 7))).collect();
    for name in &names {
        let file = top.path().join(name.to_path());
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, name.key()).unwrap();
    }
    let root = Root::open(top.path()).unwrap();
    let policy = Policy { threads: 3, ..Policy::default() };
    let captured = capture(&root, &Full(1000.into()), &policy, &names).unwrap();
    assert_eq!(captured.len(), names.len());
    for (captured, name) in captured.iter().zip(&names) {
        let Now::There(entry) = &captured.now else { panic!("{captured:?}") };
        assert_eq!((&captured.path, entry.content()), (name, Some(ContentId::of(name.key()))));
    }
    let failed = capture(&root, &Full(500.into()), &policy, &names);
    assert!(matches!(failed, Err(Error::NoSpace { .. })));
    fs::write(top.path().join("large"), vec![1; 2 << 20]).unwrap();
    let failed = capture(&root, &Full(500.into()), &policy, &[path("large")]);
    assert!(matches!(failed, Err(Error::NoSpace { .. })));
}
