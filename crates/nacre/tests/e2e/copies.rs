//! Files and folders in and out.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;

use crate::computer::TestComputer;

fn tree(root: &std::path::Path) {
    fs::create_dir_all(root.join("a/deep")).unwrap();
    fs::write(root.join("a/deep/file"), vec![7; 100_000]).unwrap();
    fs::write(root.join("run.sh"), "#!/bin/sh\necho ran\n").unwrap();
    fs::set_permissions(root.join("run.sh"), fs::Permissions::from_mode(0o750)).unwrap();
    fs::set_permissions(root.join("a"), fs::Permissions::from_mode(0o700)).unwrap();
    symlink("run.sh", root.join("link")).unwrap();
    fs::write(root.join("odd \u{e9} name"), "").unwrap();
}

fn listing(root: &std::path::Path) -> String {
    let script = "find . -printf '%p %y %m %l\\n' | sort; find . -type f -exec cksum {} + | sort";
    let output = Command::new("sh").args(["-c", script]).current_dir(root).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_folder_comes_back_as_it_went() {
    let pc = TestComputer::start();
    let here = tempfile::tempdir().unwrap();
    let (from, back) = (here.path().join("from"), here.path().join("back"));
    tree(&from);
    pc.ok(&["cp", from.to_str().unwrap(), ":tree"]);
    assert_eq!(pc.exec("tree/run.sh; tree/link"), "ran\nran\n");
    pc.ok(&["cp", ":tree", back.to_str().unwrap()]);
    assert_eq!(listing(&back), listing(&from));

    // A target that is a folder gets the copy put into it.
    pc.ok(&["cp", ":tree/run.sh", here.path().to_str().unwrap()]);
    let copied = fs::metadata(here.path().join("run.sh")).unwrap();
    assert_eq!(copied.permissions().mode() & 0o777, 0o750);
}

#[test]
fn tar_pipes_through_exec() {
    let pc = TestComputer::start();
    let here = tempfile::tempdir().unwrap();
    tree(here.path());
    let archive = Command::new("tar").arg("c").arg(".").current_dir(here.path()).output().unwrap();
    let unpacked = pc.pipe(&["exec", "--", "tar", "x"], archive.stdout);
    assert!(unpacked.status.success());
    assert_eq!(
        pc.exec("cksum < a/deep/file"),
        pc.exec("head -c 100000 /dev/zero | tr '\\0' '\\7' | cksum")
    );
}

#[test]
fn a_copy_that_cannot_be_made_says_why() {
    let pc = TestComputer::start();
    let complaint = |args: &[&str]| {
        let output = pc.run(args);
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8(output.stderr).unwrap()
    };
    assert_eq!(
        complaint(&["cp", "no-such-file", ":"]),
        "error: no-such-file: no such file or directory\n"
    );
    assert!(complaint(&["cp", ":no-such-file", "."]).contains("no-such-file"));
    assert!(
        complaint(&["cp", "a", "b"]).starts_with("error: neither path is in a sandbox\nhint: ")
    );
}

#[test]
fn listings_show_what_is_there() {
    let pc = TestComputer::start();
    pc.exec("mkdir d; echo x > f; chmod 640 f");
    assert_eq!(pc.ok(&["ls"]), "d/\nf\n");
    assert!(pc.ok(&["ls", "-l", "f"]).contains("-rw-r-----  2 B"));
    assert_eq!(pc.json(&["ls", "--json"])[1]["mode"], 0o640);
}
