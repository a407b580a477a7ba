//! The whole computer in the hands of an ordinary user.
//!
//! The user exists only in a mount namespace of the test's, where `/etc/passwd` and the id files are
//! replaced; nothing of the machine is changed.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::process::Command;

const UID: u32 = 54_322;

const BECOME_PEARL: &str = "\
    cd \"$1\" && mount --bind passwd /etc/passwd && \
    mount --bind ids /etc/subuid && mount --bind ids /etc/subgid && \
    exec setpriv --reuid $2 --regid $2 --clear-groups --inh-caps=-all sh -c \"$3\"";

/// Stops at the first command that fails, and always stops the gateway.
const STORY: &str = "\
    set -e; cd home; export HOME=$PWD NACRE_DATA=$PWD/data NACRE_DESKTOP_SEED=false; \
    nacre=../nacre; \
    trap '$nacre down >/dev/null' EXIT; \
    $nacre up --detach --listen 127.0.0.1:0 >/dev/null; \
    $nacre exec -- sh -c 'id -un; echo from inside > out'; \
    $nacre cp :out . && cat out; \
    echo from outside > in; $nacre cp in : && $nacre exec -- cat in; \
    $nacre exec -u root -- id -un; \
    $nacre down; $nacre up --detach --listen 127.0.0.1:0 >/dev/null; \
    $nacre exec -- cat in; \
    $nacre exec -- rm in out; $nacre undo >/dev/null; $nacre exec -- cat in out";

fn story_of_a_user(subordinate: &str) -> String {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let users = format!("root:x:0:0::/root:/bin/sh\npearl:x:{UID}:{UID}::/tmp:/bin/sh\n");
    for (file, content) in [("passwd", users.as_str()), ("ids", subordinate)] {
        fs::write(at(file), content).unwrap();
        fs::set_permissions(at(file), fs::Permissions::from_mode(0o644)).unwrap();
    }
    // The build directory may be closed to others.
    fs::copy(env!("CARGO_BIN_EXE_nacre"), at("nacre")).unwrap();
    fs::create_dir(at("home")).unwrap();
    chown(at("home"), Some(UID), Some(UID)).unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let output = Command::new("unshare")
        .args(["--mount", "sh", "-c", BECOME_PEARL, "sh"])
        .args([directory.path().to_str().unwrap(), &UID.to_string(), STORY])
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    let log = fs::read_to_string(at("home/data/gateway.log")).unwrap_or_default();
    assert!(output.status.success(), "{}: {stderr}\n{log}", output.status);
    String::from_utf8(output.stdout).unwrap()
}

fn check(subordinate: &str, user: &str) {
    let story = ["from inside", "from outside", "root", "Nacre has stopped.", "from outside"];
    let undone = ["from outside", "from inside"];
    let expected = format!("{user}\n{}\n{}\n", story.join("\n"), undone.join("\n"));
    assert_eq!(story_of_a_user(subordinate), expected);
}

#[test]
fn a_user_needs_no_privileges() {
    check("pearl:800000:65536\n", "nacre");
}

#[test]
fn a_user_without_subordinate_ids_has_one_user_inside() {
    check("", "root");
}
