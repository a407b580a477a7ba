//! Programs that write while history records and takes back what somebody else did: they notice
//! nothing of it, and what they made in the end is recorded to the last byte.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on has failed")]

mod tree;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;

use nacre_history::{Author, History, How, Look, Options, Selection, TreePath};
use tree::snapshot;

fn run(directory: &Path, program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program)
        .args(arguments)
        .current_dir(directory)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .output()
        .unwrap_or_else(|error| panic!("{program}: {error}"));
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {error}");
    String::from_utf8(output.stdout).unwrap()
}

fn git(directory: &Path, arguments: &[&str]) -> String {
    let who = ["-c", "user.name=nacre", "-c", "user.email=nacre@localhost"];
    run(directory, "git", &[&who, arguments].concat())
}

fn me() -> Author {
    Author::Command { id: "me".to_owned(), line: "edit".to_owned() }
}

fn path(text: &str) -> TreePath {
    TreePath::parse(Path::new(text)).unwrap()
}

/// One edit of `mine/file`, recorded and taken back, while others are at work.
fn edit_and_take_back(history: &mut History, work: &Path, round: usize) {
    let dirty: BTreeSet<TreePath> = [path("mine/file")].into();
    fs::write(work.join("mine/file"), format!("edit {round}")).unwrap();
    fs::write(work.join(format!("mine/{round}")), "new").unwrap();
    let dirty = dirty.into_iter().chain([path(&format!("mine/{round}"))]).collect();
    history.checkpoint(Look::At(&dirty), &[me()]).unwrap().expect("an edit is a change");
    // Sometimes the whole tree is looked at, in the middle of whatever is going on.
    let nothing = BTreeSet::new();
    let look = if round.is_multiple_of(3) { Look::Everywhere } else { Look::At(&nothing) };
    let undone = history.undo(look, &Selection::By(me()), &How::default()).unwrap();
    assert_eq!(undone.conflicts, []);
    for change in undone.changes.changes() {
        assert!(change.path.is_within(&path("mine")), "{} is not mine", change.path);
    }
    assert_eq!(fs::read_to_string(work.join("mine/file")).unwrap(), "as begun");
    assert!(!work.join(format!("mine/{round}")).exists());
}

/// Runs `writer` beside a history that is kept busy, and checks its work with `is_sound`, also after
/// all of it was lost and restored.
fn beside(writer: impl FnOnce(&Path) + Send, is_sound: impl Fn(&Path)) {
    let home = tempfile::tempdir_in("/dev/shm").unwrap();
    let work = home.path().join("work");
    fs::create_dir_all(work.join("mine")).unwrap();
    fs::write(work.join("mine/file"), "as begun").unwrap();
    let options = Options::new(&work, home.path().join("store"));
    let mut history = History::open(&options).unwrap();
    history.checkpoint(Look::Everywhere, &[]).unwrap();
    let rounds = thread::scope(|scope| {
        let writing = scope.spawn(|| writer(&work));
        let mut rounds = 0;
        while !writing.is_finished() || rounds < 3 {
            edit_and_take_back(&mut history, &work, rounds);
            rounds += 1;
        }
        writing.join().unwrap();
        rounds
    });
    eprintln!("{rounds} edits were taken back meanwhile");
    is_sound(&work);
    let last = history.checkpoint(Look::Everywhere, &[]).unwrap();
    let last = last.or_else(|| history.latest().unwrap()).unwrap().id;
    let made = snapshot(&work);
    let again = history.restore(Look::Everywhere, last, &How::default()).unwrap();
    assert!(again.changes.is_empty(), "the present is what was recorded last");
    for entry in fs::read_dir(&work).unwrap().map(Result::unwrap) {
        fs::remove_dir_all(entry.path()).unwrap();
    }
    let restored = history.restore(Look::Everywhere, last, &How::default()).unwrap();
    assert_eq!(restored.remarks, []);
    assert!(snapshot(&work) == made, "everything came back");
    is_sound(&work);
    assert_eq!(history.verify(&mut |_, _| {}).unwrap().damaged, []);
}

#[test]
fn git_in_a_nested_repository() {
    let writer = |work: &Path| {
        let repository = work.join("project/nested");
        fs::create_dir_all(repository.join("src")).unwrap();
        git(&repository, &["init", "-q", "-b", "main"]);
        for round in 0..12 {
            for file in 0..8 {
                let text = format!("file {file} of round {}", round * (file % 3));
                fs::write(repository.join(format!("src/{file}")), text).unwrap();
            }
            fs::write(repository.join(format!("round-{round}")), "x").unwrap();
            git(&repository, &["add", "-A"]);
            git(&repository, &["commit", "-q", "-m", "a round"]);
            git(&repository, &["checkout", "-q", "-b", &format!("branch-{round}")]);
            git(&repository, &["checkout", "-q", "main"]);
        }
        git(&repository, &["checkout", "-q", "branch-3"]);
        git(&repository, &["gc", "-q"]);
    };
    beside(writer, |work| {
        let repository = work.join("project/nested");
        assert_eq!(git(&repository, &["fsck", "--full", "--strict"]), "");
        // The index knows the inodes of before; git compares the contents then.
        git(&repository, &["update-index", "-q", "--really-refresh"]);
        assert_eq!(git(&repository, &["status", "--porcelain"]), "");
        assert_eq!(git(&repository, &["log", "--format=%s", "main"]).lines().count(), 12);
        assert!(repository.join("round-3").exists() && !repository.join("round-4").exists());
    });
}

#[test]
fn many_small_files_as_a_package_manager_brings_them() {
    let packages = tempfile::tempdir_in("/dev/shm").unwrap();
    for package in 0..120 {
        let directory = packages.path().join(format!("tree/package-{package}/lib"));
        fs::create_dir_all(&directory).unwrap();
        for file in 0..20 {
            let text = format!("module.exports = {package} + {file};\n").repeat(file + 1);
            fs::write(directory.join(format!("{file}.js")), text).unwrap();
        }
        fs::hard_link(directory.join("0.js"), directory.join("../index.js")).unwrap();
        std::os::unix::fs::symlink("lib/1.js", directory.join("../main.js")).unwrap();
    }
    let tar = packages.path().join("packages.tar");
    run(&packages.path().join("tree"), "tar", &["-cf", tar.to_str().unwrap(), "."]);
    let expected = snapshot(&packages.path().join("tree"));
    let writer = |work: &Path| {
        for _ in 0..3 {
            let modules = work.join("node_modules");
            let _ = fs::remove_dir_all(&modules);
            fs::create_dir(&modules).unwrap();
            run(&modules, "tar", &["-xf", tar.to_str().unwrap()]);
        }
    };
    beside(writer, |work| assert!(snapshot(&work.join("node_modules")) == expected));
}

#[test]
fn npm_install() {
    const PACKAGES: usize = 40;
    let shelf = tempfile::tempdir_in("/dev/shm").unwrap();
    let mut dependencies = Vec::new();
    for package in 0..PACKAGES {
        let directory = shelf.path().join(format!("{package}/package"));
        fs::create_dir_all(directory.join("lib")).unwrap();
        let about = format!(
            r#"{{"name": "part-{package}", "version": "1.0.0", "main": "lib/0.js", "bin": "lib/0.js"}}"#
        );
        fs::write(directory.join("package.json"), about).unwrap();
        for file in 0..15 {
            let text = format!("module.exports = {package};\n").repeat(file + 1);
            fs::write(directory.join(format!("lib/{file}.js")), text).unwrap();
        }
        let tarball = shelf.path().join(format!("{package}.tgz")).display().to_string();
        run(&shelf.path().join(package.to_string()), "tar", &["-czf", &tarball, "package"]);
        dependencies.push(format!(r#""part-{package}": "file:{tarball}""#));
    }
    let about = format!(r#"{{"name": "app", "dependencies": {{{}}}}}"#, dependencies.join(","));
    let cache = format!("--cache={}", shelf.path().join("cache").display());
    let npm = |directory: &Path, command: &str| {
        let quiet = ["--offline", "--no-audit", "--no-fund", "--ignore-scripts", &cache];
        run(directory, "npm", &[&[command], &quiet[..]].concat())
    };
    let writer = |work: &Path| {
        let project = work.join("app");
        fs::create_dir(&project).unwrap();
        fs::write(project.join("package.json"), &about).unwrap();
        npm(&project, "install");
        // Throws everything away and brings it again.
        npm(&project, "ci");
    };
    beside(writer, |work| {
        npm(&work.join("app"), "ls");
        let all: Vec<String> =
            (0..PACKAGES).map(|package| format!("require('part-{package}')")).collect();
        let script = format!("process.stdout.write(String({}))", all.join("+"));
        assert_eq!(run(&work.join("app"), "node", &["-e", &script]), "780");
    });
}

#[test]
fn a_compiler() {
    let writer = |work: &Path| {
        let project = work.join("c");
        fs::create_dir(&project).unwrap();
        let mut objects = Vec::new();
        for file in 0..8 {
            let source = format!("int part_{file}(void) {{ return {file}; }}\n");
            fs::write(project.join(format!("{file}.c")), source).unwrap();
            objects.push(format!("{file}.o"));
        }
        let calls: Vec<String> = (0..8).map(|file| format!("part_{file}()")).collect();
        let parts: String = (0..8).map(|file| format!("int part_{file}(void);\n")).collect();
        let main = format!("{parts}int main(void) {{ return !({} == 28); }}\n", calls.join(" + "));
        fs::write(project.join("main.c"), main).unwrap();
        for _ in 0..2 {
            for file in 0..8 {
                run(&project, "cc", &["-c", &format!("{file}.c")]);
            }
            let objects: Vec<&str> = objects.iter().map(String::as_str).collect();
            run(&project, "cc", &[&["-o", "program", "main.c"], &objects[..]].concat());
        }
    };
    beside(writer, |work| {
        run(&work.join("c"), "./program", &[]);
    });
}
