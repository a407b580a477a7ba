//! The driver in the hands of an ordinary user, with and without subordinate ids.
//!
//! The user exists only in a mount namespace of the test's, where `/etc/passwd` and the id files are
//! replaced; nothing of the machine is changed.

use std::os::unix::fs::{PermissionsExt, chown};
use std::process::Command;

use crate::crash::cycle_binary;
use crate::machine::guest_path;

const UID: u32 = 54_321;

fn cycle_as_user(subordinate: &str) -> (bool, String) {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    std::fs::write(
        at("passwd"),
        format!("root:x:0:0::/root:/bin/sh\npearl:x:{UID}:{UID}::/tmp:/bin/sh\n"),
    )
    .unwrap();
    std::fs::write(at("ids"), subordinate).unwrap();
    // The build directory may be closed to others.
    std::fs::copy(cycle_binary(), at("cycle")).unwrap();
    std::fs::copy(guest_path(), at("guest")).unwrap();
    std::fs::create_dir(at("data")).unwrap();
    chown(at("data"), Some(UID), Some(UID)).unwrap();
    std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    for file in ["passwd", "ids"] {
        std::fs::set_permissions(at(file), std::fs::Permissions::from_mode(0o644)).unwrap();
    }
    let script = "cd \"$1\" && mount --bind passwd /etc/passwd && mount --bind ids /etc/subuid && mount --bind ids /etc/subgid && \
                  exec setpriv --reuid $2 --regid $2 --clear-groups ./cycle --blank --fork data guest";
    for file in ["/etc/subuid", "/etc/subgid"] {
        assert!(
            std::path::Path::new(file).exists(),
            "{file} is missing: install the package passwd"
        );
    }
    let output = Command::new("unshare")
        .args([
            "--mount",
            "sh",
            "-c",
            script,
            "sh",
            directory.path().to_str().unwrap(),
            &UID.to_string(),
        ])
        .output()
        .unwrap();
    let text = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    let mut left: Vec<_> = std::fs::read_dir(at("data/sandboxes"))
        .unwrap()
        .flatten()
        .map(|entry| entry.file_name())
        .collect();
    left.sort();
    assert_eq!(left, [".base", ".instance"], "{text}");
    (output.status.success(), text)
}

#[test]
fn a_user_with_subordinate_ids_has_all_users() {
    let (success, text) = cycle_as_user("pearl:700000:65536\n");
    assert!(success, "{text}");
    assert!(!text.contains("reduced: ids"), "{text}");
    assert!(text.contains("pearl\nroot\nwritable"), "{text}");
    assert!(text.contains("for all\nshared read-only"), "{text}");
    assert!(text.contains("forked pearl"), "{text}");
}

#[test]
fn a_user_without_them_has_one_and_is_told() {
    let (success, text) = cycle_as_user("");
    assert!(success, "{text}");
    assert!(text.contains("reduced: ids"), "{text}");
    assert!(text.contains("pearl\nroot\n"), "{text}");
    assert!(text.contains("for all\nshared read-only"), "{text}");
    assert!(text.contains("forked pearl"), "{text}");
}
