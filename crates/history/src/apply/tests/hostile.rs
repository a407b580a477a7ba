//! Others change the tree between the record and the swap, by chance or on purpose.

use std::fs::{self, FileTimes, OpenOptions, Permissions};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use super::harness::*;
use crate::apply::Reason;
use crate::path::TreePath;

fn write(tree: &Path, files: &[(&str, &str)]) {
    for (name, bytes) in files {
        fs::create_dir_all(tree.join(name).parent().unwrap()).unwrap();
        fs::write(tree.join(name), bytes).unwrap();
    }
}

fn fifo(at: &Path) {
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, at, rustix::fs::FileType::Fifo, mode, 0).unwrap();
}

fn left(names: &[(&str, Reason)]) -> Vec<(TreePath, Reason)> {
    names.iter().map(|(name, reason)| (path(name), *reason)).collect()
}

fn read(at: impl AsRef<Path>) -> String {
    fs::read_to_string(at).unwrap()
}

/// In `d`: one file to replace, one to remove, one to adjust, one to make, and directories alike.
fn ground_with_all_kinds() -> Ground {
    let ground = Ground::new();
    write(&ground.live(), &[("d/swap", "old"), ("d/gone", "old"), ("d/mode", "same")]);
    write(&ground.wanted(), &[("d/swap", "new bytes"), ("d/mode", "same"), ("d/new", "new")]);
    for directory in ["d/emptied", "d/kept"] {
        fs::create_dir(ground.live().join(directory)).unwrap();
    }
    for directory in ["d/made", "d/kept"] {
        fs::create_dir(ground.wanted().join(directory)).unwrap();
    }
    for name in ["d/mode", "d/kept"] {
        let mode = Permissions::from_mode(0o711);
        fs::set_permissions(ground.wanted().join(name), mode).unwrap();
    }
    ground
}

#[test]
fn a_parent_that_became_a_link_is_not_followed() {
    let ground = ground_with_all_kinds();
    let journal = ground.stage(&ground.state(&ground.wanted()));
    let outside = ground.around.path().join("outside");
    fs::rename(ground.live().join("d"), &outside).unwrap();
    symlink(&outside, ground.live().join("d")).unwrap();
    let before = ground.state(&outside);
    let outcome = ground.publish(&journal);
    let no_parent = ["d/emptied", "d/gone", "d/made", "d/new", "d/swap"];
    let mut expected: Vec<_> = no_parent.map(|name| (name, Reason::NoParent)).into();
    expected.extend([("d/kept", Reason::Changed), ("d/mode", Reason::Changed)]);
    expected.sort_by_key(|(name, _)| *name);
    assert_eq!(outcome.left, left(&expected));
    assert_eq!(ground.state(&outside), before);
}

#[test]
fn a_parent_that_is_swapped_all_the_time_leads_nowhere() {
    let ground = ground_with_all_kinds();
    let target = ground.state(&ground.wanted());
    let original = ground.state(&ground.live());
    let outside = ground.around.path().join("outside");
    write(&outside, &[("swap", "mine"), ("gone", "mine"), ("mode", "mine"), ("kept/x", "mine")]);
    let untouched = ground.state(&outside);
    symlink(&outside, ground.live().join("link")).unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (d, link) = (ground.live().join("d"), ground.live().join("link"));
            while !stop.load(Ordering::Relaxed) {
                let swap = rustix::fs::RenameFlags::EXCHANGE;
                let cwd = rustix::fs::CWD;
                rustix::fs::renameat_with(cwd, &d, cwd, &link, swap).unwrap();
            }
        });
        for turn in 0..300 {
            let to = if turn % 2 == 0 { &target } else { &original };
            let from = if turn % 2 == 0 { &original } else { &target };
            let steps = steps(from, to);
            let (root, staging) = (ground.root(), ground.staging());
            let contents = &ground.contents;
            let journal = crate::apply::stage(&root, &staging, &steps, contents, 1).unwrap();
            crate::apply::publish(&root, &staging, &journal, 2).unwrap();
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert_eq!(ground.state(&outside), untouched);
}

#[test]
fn specials_are_neither_made_nor_removed() {
    let ground = Ground::new();
    write(&ground.live(), &[("file", "old"), ("late", "old"), ("gone-late", "old")]);
    write(&ground.wanted(), &[("pipe", "new"), ("late", "new bytes"), ("below/pipe/x", "new")]);
    fs::create_dir_all(ground.live().join("below")).unwrap();
    fs::create_dir_all(ground.live().join("goes")).unwrap();
    for pipe in ["pipe", "below/pipe", "goes/pipe"] {
        fifo(&ground.live().join(pipe));
    }
    fifo(&ground.wanted().join("file"));
    let journal = ground.stage(&ground.state(&ground.wanted()));
    for late in ["late", "gone-late"] {
        fs::remove_file(ground.live().join(late)).unwrap();
        fifo(&ground.live().join(late));
    }
    let outcome = ground.publish(&journal);
    let expected = [
        ("below/pipe", Reason::Special),
        ("below/pipe/x", Reason::NoParent),
        ("file", Reason::Special),
        ("goes", Reason::NotEmpty),
        ("goes/pipe", Reason::Special),
        ("gone-late", Reason::Special),
        ("late", Reason::Special),
        ("pipe", Reason::Special),
    ];
    assert_eq!(outcome.left, left(&expected));
    for pipe in ["pipe", "below/pipe", "goes/pipe", "late", "gone-late"] {
        let found = fs::symlink_metadata(ground.live().join(pipe)).unwrap();
        assert!(found.file_type().is_fifo(), "{pipe}");
    }
    assert_eq!(read(ground.live().join("file")), "old");
}

#[test]
fn what_changed_after_it_was_recorded_is_given_back() {
    let ground = Ground::new();
    let names = ["appended", "backdated", "deleted", "replaced", "same"];
    for name in names {
        write(&ground.live(), &[(name, "old")]);
    }
    for name in ["appended", "backdated", "created", "replaced", "same"] {
        write(&ground.wanted(), &[(name, "new bytes")]);
    }
    let journal = ground.stage(&ground.state(&ground.wanted()));
    let live = ground.live();
    let modified = fs::metadata(live.join("backdated")).unwrap().modified().unwrap();
    let file = OpenOptions::new().write(true).open(live.join("backdated")).unwrap();
    std::io::Write::write_all(&mut &file, b"odd").unwrap();
    file.set_times(FileTimes::new().set_modified(modified)).unwrap();
    write(&live, &[("appended", "old and more"), ("deleted", "edited"), ("created", "by others")]);
    write(&live, &[("other", "saved")]);
    fs::rename(live.join("other"), live.join("replaced")).unwrap();
    assert_eq!(ground.publish(&journal).left, []);
    ground.assert_live_is(&ground.state(&ground.wanted()));
    let given: Vec<_> =
        ground.displaced(&journal).iter().map(|it| (it.path.to_string(), read(&it.at))).collect();
    let expected = [
        ("appended", "old and more"),
        ("backdated", "odd"),
        ("created", "by others"),
        ("deleted", "edited"),
        ("replaced", "saved"),
    ];
    assert_eq!(given, expected.map(|(name, bytes)| (name.to_owned(), bytes.to_owned())));
}

#[test]
fn directories_with_something_unrecorded_stay() {
    let ground = Ground::new();
    write(&ground.live(), &[("goes/x", "old"), ("becomes-file/x", "old"), ("was-file", "old")]);
    write(&ground.wanted(), &[("becomes-file", "new"), ("was-file", "new bytes")]);
    let journal = ground.stage(&ground.state(&ground.wanted()));
    write(&ground.live(), &[("goes/kept", "mine"), ("becomes-file/kept", "mine")]);
    fs::remove_file(ground.live().join("was-file")).unwrap();
    write(&ground.live(), &[("was-file/kept", "mine")]);
    let expected = ["becomes-file", "goes", "was-file"].map(|name| (name, Reason::NotEmpty));
    for _ in 0..2 {
        assert_eq!(ground.publish(&journal).left, left(&expected));
        for (directory, _) in expected {
            let at = ground.live().join(directory);
            assert_eq!(fs::read_dir(&at).unwrap().count(), 1);
            assert_eq!(read(at.join("kept")), "mine");
        }
    }
}

#[test]
fn rights_are_given_only_to_what_was_recorded_or_made() {
    let ground = Ground::new();
    for (tree, mode) in [(ground.live(), 0o700), (ground.wanted(), 0o777)] {
        write(&tree, &[("file", "same")]);
        fs::create_dir(tree.join("directory")).unwrap();
        for name in ["file", "directory"] {
            fs::set_permissions(tree.join(name), Permissions::from_mode(mode)).unwrap();
        }
    }
    let journal = ground.stage(&ground.state(&ground.wanted()));
    let live = ground.live();
    fs::rename(live.join("file"), live.join("moved")).unwrap();
    fs::rename(live.join("directory"), live.join("moved-directory")).unwrap();
    write(&live, &[("file", "same"), ("directory/secret", "")]);
    for name in ["file", "directory"] {
        fs::set_permissions(live.join(name), Permissions::from_mode(0o700)).unwrap();
    }
    let expected = [("directory", Reason::Changed), ("file", Reason::Changed)];
    assert_eq!(ground.publish(&journal).left, left(&expected));
    for name in ["file", "directory", "moved", "moved-directory"] {
        assert_eq!(fs::metadata(live.join(name)).unwrap().mode() & 0o777, 0o700, "{name}");
    }
}

#[test]
fn set_id_bits_are_given_only_to_bytes_from_the_store() {
    let ground = Ground::new();
    for (tree, mode) in [(ground.live(), 0o755), (ground.wanted(), 0o4755)] {
        write(&tree, &[("tool", "same")]);
        fs::set_permissions(tree.join("tool"), Permissions::from_mode(mode)).unwrap();
    }
    let before = fs::metadata(ground.live().join("tool")).unwrap();
    let mut held = OpenOptions::new().write(true).open(ground.live().join("tool")).unwrap();
    ground.apply(&ground.state(&ground.wanted()));
    std::io::Write::write_all(&mut held, b"evil").unwrap();
    let after = fs::metadata(ground.live().join("tool")).unwrap();
    assert_ne!(after.ino(), before.ino());
    assert_eq!(after.modified().unwrap(), before.modified().unwrap());
    assert_eq!(read(ground.live().join("tool")), "same");
}
