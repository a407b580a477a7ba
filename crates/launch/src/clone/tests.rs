use std::fs::{self, File, FileTimes, OpenOptions, Permissions};
use std::io::{Seek, SeekFrom, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::time::{Duration, SystemTime};

use rustix::fs::{CWD, FileType, Mode, XattrFlags, fgetxattr, fsetxattr, mknodat};

use super::{Cloner, Report};

struct Trees {
    _dir: tempfile::TempDir,
    from: std::path::PathBuf,
    to: std::path::PathBuf,
}

impl Trees {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("from"), dir.path().join("to"));
        fs::create_dir(&from).unwrap();
        fs::create_dir(&to).unwrap();
        Self { _dir: dir, from, to }
    }

    fn cloner(&self) -> Cloner {
        Cloner::new(&self.from, &self.to, &["work".into()], Default::default()).unwrap()
    }

    /// What is different between the two.
    fn differences(&self) -> Vec<String> {
        let (mut here, mut there) = (Vec::new(), Vec::new());
        describe(&self.from, &self.from, &mut here);
        describe(&self.to, &self.to, &mut there);
        let missing =
            here.iter().filter(|line| !there.contains(line)).map(|line| format!("- {line}"));
        let extra =
            there.iter().filter(|line| !here.contains(line)).map(|line| format!("+ {line}"));
        missing.chain(extra).collect()
    }
}

/// Every name with its kind, mode, owner, times, size, links and content.
fn describe(root: &Path, path: &Path, lines: &mut Vec<String>) {
    let metadata = fs::symlink_metadata(path).unwrap();
    let name = path.strip_prefix(root).unwrap();
    let content = if metadata.is_file() { fs::read(path).unwrap() } else { Vec::new() };
    let target = fs::read_link(path).ok();
    let links = if metadata.is_dir() { 0 } else { metadata.nlink() };
    lines.push(format!(
        "{} {:o} {}:{} {:?} {}.{:09} {} {target:?} {content:?}",
        name.display(),
        metadata.mode(),
        metadata.uid(),
        metadata.gid(),
        if metadata.is_dir() { 0 } else { metadata.len() },
        metadata.mtime(),
        metadata.mtime_nsec(),
        links,
    ));
    if metadata.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            describe(root, &entry.unwrap().path(), lines);
        }
    }
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[test]
fn every_kind_of_name_is_copied_as_it_is() {
    let trees = Trees::new();
    let at = |name: &str| trees.from.join(name);
    fs::create_dir_all(at("deep/er/est")).unwrap();
    fs::write(at("deep/er/est/file"), "content").unwrap();
    fs::write(at("tool"), "#!/bin/sh").unwrap();
    fs::set_permissions(at("tool"), Permissions::from_mode(0o4751)).unwrap();
    fs::hard_link(at("tool"), at("deep/other-name")).unwrap();
    symlink("../nowhere", at("deep/link")).unwrap();
    fs::write(at("secret"), "").unwrap();
    fs::set_permissions(at("secret"), Permissions::from_mode(0o000)).unwrap();
    let old = SystemTime::UNIX_EPOCH + Duration::new(1_000_000, 123_456_789);
    let times = FileTimes::new().set_modified(old).set_accessed(old);
    File::open(at("deep/er/est/file")).unwrap().set_times(times).unwrap();
    File::open(at("deep/er")).unwrap().set_times(times).unwrap();
    let tool = File::open(at("tool")).unwrap();
    fsetxattr(&tool, "user.note", b"kept", XattrFlags::empty()).unwrap();
    let deep = File::open(at("deep")).unwrap();
    fsetxattr(&deep, "user.overlay.opaque", b"y", XattrFlags::empty()).unwrap();
    fs::create_dir(at("work")).unwrap();
    if is_root() {
        std::os::unix::fs::chown(at("deep/er"), Some(1000), Some(1001)).unwrap();
        mknodat(CWD, at("gone"), FileType::CharacterDevice, Mode::empty(), 0).unwrap();
    }

    let cloner = trees.cloner();
    cloner.pass().unwrap();
    let report = cloner.finish().unwrap();
    fs::remove_dir(at("work")).unwrap();
    fs::set_permissions(at("secret"), Permissions::from_mode(0o600)).unwrap();
    fs::set_permissions(trees.to.join("secret"), Permissions::from_mode(0o600)).unwrap();
    let differences = trees.differences();
    let own = |line: &&String| !line.starts_with("-  ") && !line.starts_with("+  ");
    assert_eq!(differences.iter().filter(own).collect::<Vec<_>>(), Vec::<&String>::new());
    assert!(report.names >= 8, "{report:?}");
    let mut note = [0; 16];
    let copied = File::open(trees.to.join("deep/other-name")).unwrap();
    let length = fgetxattr(&copied, "user.note", &mut note[..]).unwrap();
    assert_eq!(&note[..length], b"kept");
    let copied = File::open(trees.to.join("deep")).unwrap();
    assert_eq!(fgetxattr(&copied, "user.overlay.opaque", &mut note[..]).unwrap(), 1);
}

#[test]
fn a_hole_stays_a_hole() {
    let trees = Trees::new();
    let mut file = File::create(trees.from.join("sparse")).unwrap();
    file.seek(SeekFrom::Start(64 << 20)).unwrap();
    file.write_all(b"middle").unwrap();
    file.set_len(128 << 20).unwrap();
    drop(file);
    let cloner = trees.cloner();
    cloner.pass().unwrap();
    cloner.finish().unwrap();
    let copy = fs::metadata(trees.to.join("sparse")).unwrap();
    assert_eq!(copy.len(), 128 << 20);
    assert!(copy.blocks() * 512 < 1 << 20, "{} blocks", copy.blocks());
    let content = fs::read(trees.to.join("sparse")).unwrap();
    assert_eq!(&content[64 << 20..(64 << 20) + 6], b"middle");
}

#[test]
fn sockets_and_pipes_are_left_out_and_named() {
    let trees = Trees::new();
    let _socket = UnixListener::bind(trees.from.join("a.sock")).unwrap();
    mknodat(CWD, trees.from.join("b.pipe"), FileType::Fifo, Mode::RUSR, 0).unwrap();
    let cloner = trees.cloner();
    cloner.pass().unwrap();
    cloner.pass().unwrap();
    let mut report = cloner.finish().unwrap();
    report.left_out_names.sort();
    let expected = Report {
        names: 1,
        left_out: 2,
        left_out_names: vec!["a.sock".to_owned(), "b.pipe".to_owned()],
        ..Report::default()
    };
    assert_eq!(report, expected);
    assert_eq!(fs::read_dir(&trees.to).unwrap().count(), 0);
}

#[test]
fn a_second_pass_brings_the_copy_up_to_date() {
    let trees = Trees::new();
    let at = |name: &str| trees.from.join(name);
    for directory in ["kept", "moved", "becomes-file", "dropped/below"] {
        fs::create_dir_all(at(directory)).unwrap();
        fs::write(at(directory).join("file"), directory).unwrap();
    }
    fs::write(at("same"), "same").unwrap();
    fs::write(at("changes"), "before").unwrap();
    fs::write(at("first-name"), "linked").unwrap();
    fs::write(at("becomes-directory"), "").unwrap();
    let cloner = trees.cloner();
    cloner.pass().unwrap();

    fs::write(at("changes"), "after").unwrap();
    fs::write(at("kept/new"), "new").unwrap();
    fs::rename(at("moved"), at("there")).unwrap();
    fs::remove_dir_all(at("becomes-file")).unwrap();
    fs::write(at("becomes-file"), "a file now").unwrap();
    fs::remove_file(at("becomes-directory")).unwrap();
    fs::create_dir(at("becomes-directory")).unwrap();
    fs::remove_dir_all(at("dropped")).unwrap();
    fs::hard_link(at("first-name"), at("kept/second-name")).unwrap();
    cloner.pass().unwrap();
    cloner.finish().unwrap();
    assert_eq!(trees.differences(), Vec::<String>::new());
}

#[test]
fn a_pass_over_what_is_at_rest_copies_nothing() {
    let trees = Trees::new();
    let old = FileTimes::new().set_modified(SystemTime::UNIX_EPOCH);
    for number in 0..20 {
        fs::write(trees.from.join(number.to_string()), "x").unwrap();
    }
    let cloner = trees.cloner();
    assert_eq!(cloner.pass().unwrap(), 20);
    // What is younger than the clock's tick is copied once more.
    let mut passes = 0;
    while cloner.pass().unwrap() > 0 {
        passes += 1;
        assert!(passes < 1000, "it never comes to rest");
    }
    File::open(trees.from.join("7")).unwrap().set_times(old).unwrap();
    assert!(cloner.pass().unwrap() >= 1);
}

/// A store through a mapping that was there before need not change any time of the file.
#[test]
fn a_file_that_somebody_has_mapped_is_copied_again() {
    let trees = Trees::new();
    let path = trees.from.join("database");
    fs::write(&path, [b'-'; 4096]).unwrap();
    let file = OpenOptions::new().read(true).write(true).open(&path).unwrap();
    // SAFETY: a fresh mapping of a file that stays as long as it is.
    let mapped = unsafe {
        use rustix::mm::{MapFlags, ProtFlags, mmap};
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        mmap(std::ptr::null_mut(), 4096, protection, MapFlags::SHARED, file.as_fd(), 0).unwrap()
    };
    let store = |byte: u8| {
        // SAFETY: within the mapping, which nobody else uses.
        unsafe { mapped.cast::<u8>().write_volatile(byte) }
    };
    store(b'1');
    drop(file);
    let cloner = trees.cloner();
    cloner.pass().unwrap();
    store(b'2');
    cloner.pass().unwrap();
    assert_eq!(fs::read(trees.to.join("database")).unwrap()[0], b'2');
}

#[test]
fn no_link_leads_out_of_the_tree() {
    let trees = Trees::new();
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret"), "host's").unwrap();
    symlink(outside.path(), trees.from.join("directory")).unwrap();
    symlink(outside.path().join("secret"), trees.from.join("file")).unwrap();
    let cloner = trees.cloner();
    cloner.pass().unwrap();
    cloner.finish().unwrap();
    for name in ["directory", "file"] {
        assert!(fs::symlink_metadata(trees.to.join(name)).unwrap().is_symlink(), "{name}");
    }
}

/// Directories and links that take each other's place all the time, as a hostile inside would do it.
#[test]
fn a_name_that_keeps_changing_its_kind_never_leads_out() {
    use std::sync::atomic::{AtomicBool, Ordering};
    let trees = Trees::new();
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret"), "host's").unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let name = trees.from.join("name");
            while !done.load(Ordering::Relaxed) {
                let _ = fs::create_dir(&name);
                let _ = fs::remove_dir(&name);
                let _ = symlink(outside.path(), &name);
                let _ = fs::remove_file(&name);
                let _ = fs::write(&name, "plain");
                let _ = fs::remove_file(&name);
                let _ = symlink(outside.path().join("secret"), &name);
                let _ = fs::remove_file(&name);
            }
        });
        let cloner = trees.cloner();
        for _ in 0..300 {
            cloner.pass().unwrap();
            let copy = trees.to.join("name");
            if fs::symlink_metadata(&copy).is_ok_and(|metadata| metadata.is_file()) {
                assert_ne!(fs::read(&copy).unwrap(), b"host's");
            }
            assert!(
                !fs::symlink_metadata(&copy).is_ok_and(|metadata| metadata.is_dir())
                    || !copy.join("secret").exists()
            );
        }
        done.store(true, Ordering::Relaxed);
    });
}
