//! What is done to the files, and with which history.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use nacre_history::Options;

pub(crate) fn options(home: &Path) -> Options {
    // One thread, so that the nth call is the same one each time.
    Options { threads: 1, ..Options::new(home.join("work"), home.join("store")) }
}

/// Numbers that do not compress.
fn noise(length: usize) -> Vec<u8> {
    let mut state = 1_u64;
    let mut next = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as u8
    };
    (0..length).map(|_| next()).collect()
}

fn write(path: &Path, bytes: impl AsRef<[u8]>) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

fn chmod(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[allow(dead_code, reason = "the program finds it begun")]
pub(crate) fn begin(work: &Path) {
    fs::create_dir_all(work).unwrap();
    let at = |name: &str| work.join(name);
    write(&at("still/kept"), "nobody touches this");
    write(&at("still/deep/kept"), "nor this");
    chmod(&at("still/kept"), 0o640);
    write(&at("a.txt"), "as begun");
    write(&at("dir/one"), "one");
    write(&at("dir/two"), "two");
    write(&at("dir/sub/three"), "three");
    symlink("a.txt", at("link")).unwrap();
    write(&at("x"), "twins");
    fs::hard_link(at("x"), at("y")).unwrap();
    write(&at("script"), "#!/bin/sh");
    write(&at("large"), noise(300_000));
}

pub(crate) fn morning(work: &Path) {
    let at = |name: &str| work.join(name);
    write(&at("a.txt"), "after the morning");
    fs::remove_file(at("dir/two")).unwrap();
    fs::rename(at("dir/sub"), at("moved")).unwrap();
    chmod(&at("script"), 0o755);
    write(&at("new/in/here"), "new");
    fs::remove_file(at("y")).unwrap();
    fs::remove_file(at("link")).unwrap();
    symlink("new", at("link")).unwrap();
}

pub(crate) fn afternoon(work: &Path) {
    let at = |name: &str| work.join(name);
    fs::remove_dir_all(at("dir")).unwrap();
    write(&at("dir"), "a file where a directory was");
    fs::remove_file(at("a.txt")).unwrap();
    write(&at("a.txt/inner"), "a directory where a file was");
    let mut large = noise(300_000);
    large[100_000] ^= 1;
    large.extend(b"and more");
    fs::write(at("large"), large).unwrap();
    fs::hard_link(at("x"), at("z")).unwrap();
    chmod(&at("new/in"), 0o700);
    let flags = rustix::fs::XattrFlags::empty();
    rustix::fs::setxattr(at("script"), "user.note", b"noted", flags).unwrap();
}
