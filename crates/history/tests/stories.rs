//! Whole stories on a real directory.

#![allow(clippy::unwrap_used, reason = "the helpers here are tests too")]

mod tree;

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use nacre_history::{
    Author, Cause, Choice, Choices, Error, History, How, Look, Options, Reason, Selection, TreePath,
};
use tree::{Snapshot, snapshot};

struct Computer {
    home: tempfile::TempDir,
    history: Option<History>,
}

impl Computer {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir(home.path().join("work")).unwrap();
        let mut computer = Self { home, history: None };
        computer.restart();
        computer
    }

    /// As after a crash or a stop: the store is opened again.
    fn restart(&mut self) {
        self.history = None;
        let options = Options::new(self.work(""), self.home.path().join("store"));
        self.history = Some(History::open(&options).unwrap());
        self.record(&[]);
    }

    fn history(&mut self) -> &mut History {
        self.history.as_mut().unwrap()
    }

    fn work(&self, path: &str) -> std::path::PathBuf {
        self.home.path().join("work").join(path)
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.work(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.work(path)).unwrap()
    }

    fn record(&mut self, authors: &[Author]) -> Option<u64> {
        self.history()
            .checkpoint(Look::Everywhere, authors)
            .unwrap()
            .map(|checkpoint| checkpoint.id)
    }

    fn see(&self) -> Snapshot {
        snapshot(&self.work(""))
    }

    fn undo(&mut self, what: Selection) -> nacre_history::Outcome {
        self.history().undo(Look::Everywhere, &what, &How::default()).unwrap()
    }

    fn redo(&mut self) -> nacre_history::Outcome {
        self.history().redo(Look::Everywhere, &How::default()).unwrap()
    }
}

fn path(text: &str) -> TreePath {
    TreePath::parse(Path::new(text)).unwrap()
}

fn command(id: &str) -> Author {
    Author::Command { id: id.to_owned(), line: format!("command {id}") }
}

#[test]
fn rm_rf_everything_and_undo() {
    let mut pc = Computer::new();
    pc.write("src/main.rs", "fn main() {}");
    pc.write("src/deep/er/file", "deep");
    pc.write(".hidden", "x");
    pc.write("node_modules/a/index.js", "a");
    fs::create_dir_all(pc.work("empty/below")).unwrap();
    symlink("src/main.rs", pc.work("link")).unwrap();
    symlink("/nowhere", pc.work("dangling")).unwrap();
    fs::hard_link(pc.work(".hidden"), pc.work("twin")).unwrap();
    fs::set_permissions(pc.work("src/main.rs"), fs::Permissions::from_mode(0o4751)).unwrap();
    fs::set_permissions(pc.work("empty"), fs::Permissions::from_mode(0o500)).unwrap();
    fs::set_permissions(pc.work("src/deep"), fs::Permissions::from_mode(0o0)).unwrap();
    pc.record(&[]);
    let before = pc.see();
    let mtime = fs::metadata(pc.work("src/main.rs")).unwrap().mtime_nsec();
    for entry in fs::read_dir(pc.work("")).unwrap() {
        let entry = entry.unwrap();
        let is_dir = entry.file_type().unwrap().is_dir();
        if is_dir { fs::remove_dir_all(entry.path()) } else { fs::remove_file(entry.path()) }
            .unwrap();
    }
    let outcome = pc.undo(Selection::Last(1));
    assert_eq!(outcome.conflicts, []);
    assert_eq!(pc.see(), before);
    assert_eq!(fs::metadata(pc.work("src/main.rs")).unwrap().mtime_nsec(), mtime);
    let twins = ["twin", ".hidden"].map(|name| fs::metadata(pc.work(name)).unwrap().ino());
    assert_eq!(twins[0], twins[1]);
    pc.redo();
    assert!(pc.see().is_empty());
    pc.undo(Selection::Last(1));
    assert_eq!(pc.see(), before);
}

#[test]
fn undo_of_one_command_keeps_what_came_later() {
    let mut pc = Computer::new();
    for number in 0..50 {
        pc.write(&format!("files/{number}"), "original");
    }
    pc.write("mine", "1");
    pc.record(&[]);
    for number in 0..50 {
        pc.write(&format!("files/{number}"), "rewritten");
    }
    pc.write("files/new", "by the command");
    let rewrite = pc.record(&[command("7")]).unwrap();
    pc.write("mine", "2");
    pc.write("files/later", "unrelated");
    pc.record(&[]);
    let outcome = pc.undo(Selection::By(command("7")));
    assert_eq!(outcome.of, [rewrite]);
    assert_eq!(pc.read("files/0"), "original");
    assert_eq!(pc.read("files/49"), "original");
    assert!(!pc.work("files/new").exists());
    assert_eq!((pc.read("mine"), pc.read("files/later")), ("2".into(), "unrelated".into()));
}

#[test]
fn a_file_that_somebody_else_holds_open_is_not_mine() {
    use std::io::Write;
    let mut pc = Computer::new();
    pc.write("mine", "1");
    let mut log = fs::File::create(pc.work("log")).unwrap();
    log.write_all(b"begins, ").unwrap();
    pc.record(&[]);
    log.write_all(b"goes on, ").unwrap();
    pc.write("mine", "2");
    let dirty: BTreeSet<TreePath> = [path("mine")].into();
    pc.history().checkpoint(Look::At(&dirty), &[command("me")]).unwrap();
    log.write_all(b"ends").unwrap();
    let nothing = BTreeSet::new();
    let what = Selection::By(command("me"));
    pc.history().undo(Look::At(&nothing), &what, &How::default()).unwrap();
    pc.redo();
    pc.undo(what);
    assert_eq!((pc.read("mine"), pc.read("log")), ("1".into(), "begins, goes on, ends".into()));
}

#[test]
fn an_empty_file_is_not_damaged() {
    let mut pc = Computer::new();
    pc.write("empty", "");
    let id = pc.record(&[]).unwrap();
    assert_eq!(pc.history().verify(&mut |_, _| {}).unwrap().damaged, []);
    let mut bytes = Vec::new();
    pc.history().read_at(&path("empty"), id, &mut bytes).unwrap();
    assert_eq!(bytes, b"");
}

#[test]
fn a_conflict_is_shown_and_nothing_is_touched() {
    let mut pc = Computer::new();
    pc.write("a", "1");
    pc.write("b", "1");
    pc.record(&[]);
    pc.write("a", "2");
    pc.write("b", "2");
    let agent = pc.record(&[command("1")]).unwrap();
    pc.write("a", "3");
    pc.record(&[]);
    let before = pc.see();
    let what = Selection::Checkpoints(vec![agent]);
    let outcome = pc.undo(what.clone());
    let conflicts: Vec<_> = outcome.conflicts.iter().map(|c| (c.path.clone(), c.reason)).collect();
    assert_eq!(conflicts, [(path("a"), Reason::ChangedLater)]);
    assert!(outcome.checkpoint.is_none());
    assert_eq!(pc.see(), before);
    let keep = How {
        choices: Choices { otherwise: Choice::Keep, ..Choices::default() },
        ..How::default()
    };
    pc.history().undo(Look::Everywhere, &what, &keep).unwrap();
    assert_eq!((pc.read("a"), pc.read("b")), ("3".into(), "1".into()));
}

#[test]
fn files_that_do_not_change_are_not_touched() {
    let mut pc = Computer::new();
    pc.write("kept", "same");
    pc.write("changed", "1");
    pc.record(&[]);
    pc.write("changed", "2");
    let before = fs::metadata(pc.work("kept")).unwrap();
    pc.undo(Selection::Last(1));
    let after = fs::metadata(pc.work("kept")).unwrap();
    assert_eq!((before.ino(), before.ctime_nsec()), (after.ino(), after.ctime_nsec()));
    assert_eq!(pc.read("changed"), "1");
}

#[test]
fn a_change_of_mode_a_moment_ago_is_taken_back() {
    let mut pc = Computer::new();
    pc.write("script", "#!/bin/sh");
    pc.record(&[]);
    let inode = fs::metadata(pc.work("script")).unwrap().ino();
    fs::set_permissions(pc.work("script"), fs::Permissions::from_mode(0o755)).unwrap();
    let outcome = pc.undo(Selection::Last(1));
    assert_eq!(outcome.remarks, []);
    let after = fs::metadata(pc.work("script")).unwrap();
    assert_eq!((after.mode() & 0o777, after.ino()), (0o644, inode));
}

#[test]
fn a_link_made_a_moment_ago_is_not_said_to_be_changed() {
    let mut pc = Computer::new();
    pc.write("a", "1");
    symlink("a", pc.work("link")).unwrap();
    pc.record(&[]);
    fs::remove_file(pc.work("link")).unwrap();
    symlink("b", pc.work("link")).unwrap();
    assert_eq!(pc.undo(Selection::Last(1)).remarks, []);
}

#[test]
fn attributes_of_a_directory_are_taken_back() {
    let mut pc = Computer::new();
    pc.write("d/file", "1");
    pc.record(&[]);
    let before = pc.see();
    let flags = rustix::fs::XattrFlags::empty();
    rustix::fs::setxattr(pc.work("d"), "user.note", b"noted", flags).unwrap();
    let after = pc.see();
    assert_eq!(pc.undo(Selection::Last(1)).remarks, []);
    assert_eq!(pc.see(), before);
    pc.redo();
    assert_eq!(pc.see(), after);
}

#[test]
fn a_stale_request_is_refused() {
    let mut pc = Computer::new();
    pc.write("a", "1");
    let seen = pc.record(&[]).unwrap();
    pc.write("a", "2");
    let how = How { expected: Some(seen), ..How::default() };
    let refused = pc.history().undo(Look::Everywhere, &Selection::Last(1), &how);
    assert!(matches!(refused, Err(Error::Stale { expected, .. }) if expected == seen));
    assert_eq!(pc.read("a"), "2");
}

#[test]
fn restore_of_a_file_a_folder_and_everything() {
    let mut pc = Computer::new();
    pc.write("a/one", "1");
    pc.write("a/two", "1");
    pc.write("b", "1");
    let old = pc.record(&[]).unwrap();
    let before = pc.see();
    fs::remove_dir_all(pc.work("a")).unwrap();
    pc.write("a", "now a file");
    pc.write("b", "2");
    pc.write("c", "2");
    pc.record(&[]);
    let now = pc.see();
    let within = |within: &str, choice| How {
        within: path(within),
        choices: Choices { otherwise: choice, ..Choices::default() },
        ..How::default()
    };
    pc.history().restore(Look::Everywhere, old, &within("b", Choice::Ask)).unwrap();
    assert_eq!(
        (pc.read("b"), pc.read("c"), pc.read("a")),
        ("1".into(), "2".into(), "now a file".into())
    );
    pc.history().restore(Look::Everywhere, old, &within("a", Choice::Ask)).unwrap();
    assert_eq!((pc.read("a/one"), pc.read("c")), ("1".into(), "2".into()));
    let last = pc.history().latest().unwrap().unwrap();
    assert_eq!(last.cause, Cause::Restore { to: old });
    pc.undo(Selection::Last(2));
    assert_eq!(pc.see(), now);
    pc.history().restore(Look::Everywhere, old, &How::default()).unwrap();
    assert_eq!(pc.see(), before);
}

#[test]
fn a_dry_run_changes_nothing_and_says_what_would() {
    let mut pc = Computer::new();
    pc.write("a", "1");
    pc.record(&[]);
    pc.write("a", "2");
    let how = How { dry_run: true, ..How::default() };
    let outcome = pc.history().undo(Look::Everywhere, &Selection::Last(1), &how).unwrap();
    let paths: Vec<_> = outcome.changes.changes().iter().map(|c| c.path.clone()).collect();
    assert_eq!(paths, [path("a")]);
    assert_eq!(pc.read("a"), "2");
}

#[test]
fn a_list_of_dirty_names_is_enough() {
    let mut pc = Computer::new();
    pc.write("old/a", "1");
    pc.write("old/b", "1");
    pc.record(&[]);
    fs::rename(pc.work("old"), pc.work("new")).unwrap();
    pc.write("x/y/z", "deep");
    let dirty: BTreeSet<TreePath> = ["old", "new", "x/y/z"].map(path).into();
    let checkpoint = pc.history().checkpoint(Look::At(&dirty), &[]).unwrap().unwrap();
    assert_eq!(checkpoint.notes.moved, [(path("old"), path("new"))]);
    // The whole truth has nothing to add.
    assert_eq!(pc.record(&[]), None);
    pc.undo(Selection::Last(1));
    assert_eq!(pc.read("old/a"), "1");
    assert!(!pc.work("x").exists() && !pc.work("new").exists());
}

#[test]
fn two_directories_that_change_places_are_looked_into() {
    let mut pc = Computer::new();
    pc.write("one/a", "1");
    pc.write("two/a", "2");
    pc.record(&[]);
    let before = pc.see();
    fs::rename(pc.work("one"), pc.work("three")).unwrap();
    fs::rename(pc.work("two"), pc.work("one")).unwrap();
    fs::rename(pc.work("three"), pc.work("two")).unwrap();
    let dirty: BTreeSet<TreePath> = ["one", "two", "three"].map(path).into();
    let checkpoint = pc.history().checkpoint(Look::At(&dirty), &[]).unwrap().unwrap();
    assert_eq!(checkpoint.counts.changed, 2);
    // It is another directory by now, and its mode is set all the same.
    fs::set_permissions(pc.work("one"), fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!(pc.undo(Selection::Last(2)).remarks, []);
    assert_eq!(pc.see(), before);
}

#[test]
fn history_survives_a_restart() {
    let mut pc = Computer::new();
    pc.write("a", "1");
    pc.record(&[]);
    pc.write("a", "2");
    pc.record(&[]);
    pc.restart();
    pc.undo(Selection::Last(1));
    assert_eq!(pc.read("a"), "1");
    pc.restart();
    pc.redo();
    assert_eq!(pc.read("a"), "2");
}

#[test]
fn the_past_can_be_read() {
    let mut pc = Computer::new();
    pc.write("a", "one\ntwo\n");
    let first = pc.record(&[]).unwrap();
    pc.write("a", "one\nthree\n");
    let second = pc.record(&[]).unwrap();
    fs::remove_file(pc.work("a")).unwrap();
    pc.record(&[]);
    let mut bytes = Vec::new();
    pc.history().read_at(&path("a"), first, &mut bytes).unwrap();
    assert_eq!(bytes, b"one\ntwo\n");
    let between = pc.history().between(first, second, &TreePath::root()).unwrap();
    let diff = pc.history().diff(&between.changes()[0]).unwrap();
    let wanted = "--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n one\n-two\n+three\n";
    assert_eq!(diff, nacre_history::FileDiff::Text(wanted.to_owned()));
}

#[test]
fn a_hard_link_is_one_file_before_and_after() {
    let mut pc = Computer::new();
    pc.write("a", "1");
    pc.record(&[]);
    fs::hard_link(pc.work("a"), pc.work("b")).unwrap();
    let dirty: BTreeSet<TreePath> = [path("b")].into();
    pc.history().checkpoint(Look::At(&dirty), &[]).unwrap();
    fs::write(pc.work("a"), "2").unwrap();
    let dirty: BTreeSet<TreePath> = [path("a")].into();
    let both = pc.history().checkpoint(Look::At(&dirty), &[]).unwrap().unwrap();
    assert_eq!(both.counts.changed, 2);
    pc.undo(Selection::Last(1));
    assert_eq!((pc.read("a"), pc.read("b")), ("1".into(), "1".into()));
    let inode = |name| fs::metadata(pc.work(name)).unwrap().ino();
    assert_eq!(inode("a"), inode("b"));
    pc.undo(Selection::Last(1));
    assert!(!pc.work("b").exists());
    assert_eq!(fs::metadata(pc.work("a")).unwrap().nlink(), 1);
}

#[test]
fn files_that_were_never_one_do_not_become_one() {
    let mut pc = Computer::new();
    let twins = |pc: &Computer, one: &str, other: &str| {
        pc.write(one, "the same bytes");
        fs::hard_link(pc.work(one), pc.work(other)).unwrap();
    };
    twins(&pc, "a", "b");
    pc.record(&[]);
    fs::remove_file(pc.work("a")).unwrap();
    fs::remove_file(pc.work("b")).unwrap();
    let removed = pc.record(&[]).unwrap();
    twins(&pc, "c", "d");
    pc.record(&[]);
    pc.undo(Selection::Checkpoints(vec![removed]));
    let inode = |name| fs::metadata(pc.work(name)).unwrap().ino();
    assert_eq!((inode("a"), inode("c")), (inode("b"), inode("d")));
    assert_ne!(inode("a"), inode("c"));
}

#[test]
fn sockets_and_pipes_are_noted_and_left_alone() {
    let mut pc = Computer::new();
    let _listener = std::os::unix::net::UnixListener::bind(pc.work("socket")).unwrap();
    pc.write("a", "1");
    pc.record(&[]);
    pc.write("d/file", "1");
    let _second = std::os::unix::net::UnixListener::bind(pc.work("d/socket")).unwrap();
    let outcome = pc.undo(Selection::Last(1));
    assert!(!pc.work("d/file").exists());
    assert!(pc.work("d/socket").exists() && pc.work("socket").exists());
    assert!(!outcome.remarks.is_empty(), "{outcome:?}");
}

#[test]
fn git_takes_the_export() {
    let mut pc = Computer::new();
    pc.write("a b/\"quoted\"", "1");
    pc.write("gone", "1");
    symlink("gone", pc.work("link")).unwrap();
    pc.record(&[command("1")]);
    fs::remove_file(pc.work("gone")).unwrap();
    pc.record(&[]);
    let mut stream = Vec::new();
    pc.history().export_git("nacre", &mut stream).unwrap();
    let repository = pc.home.path().join("git");
    let git = |arguments: &[&str], input: &[u8]| {
        use std::io::Write;
        use std::process::{Command, Stdio};
        let mut child = Command::new("git")
            .arg("-C")
            .arg(&repository)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "git {arguments:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    fs::create_dir(&repository).unwrap();
    git(&["init", "-q"], b"");
    git(&["fast-import", "--quiet"], &stream);
    assert_eq!(
        git(&["ls-tree", "-r", "--name-only", "-z", "nacre"], b""),
        "a b/\"quoted\"\0link\0"
    );
    assert_eq!(git(&["log", "--format=%s", "nacre"], b"").lines().count(), 3);
}

#[test]
fn a_file_that_was_open_settles_when_it_is_closed() {
    let mut pc = Computer::new();
    let open = fs::File::create(pc.work("log")).unwrap();
    pc.record(&[]);
    assert!(pc.history().has_unsettled());
    drop(open);
    let nothing = BTreeSet::new();
    pc.history().checkpoint(Look::At(&nothing), &[]).unwrap();
    assert!(!pc.history().has_unsettled());
}
