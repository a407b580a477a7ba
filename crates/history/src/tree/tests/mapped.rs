//! Stores through mappings, which the kernel does not stamp one by one.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use super::*;

/// A file mapped for writing.
struct Mapped(*mut u8);

impl Mapped {
    fn new(file: &Path) -> Self {
        let open = fs::OpenOptions::new().read(true).write(true).open(file).unwrap();
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let file = std::os::fd::AsRawFd::as_raw_fd(&open);
        // SAFETY: a new mapping at an address of the kernel's choice.
        let at = unsafe {
            libc::mmap(std::ptr::null_mut(), 4096, protection, libc::MAP_SHARED, file, 0)
        };
        assert_ne!(at, libc::MAP_FAILED);
        Self(at.cast())
    }

    fn store(&self, byte: u8) {
        // SAFETY: within the mapping, which is the file's length.
        unsafe { self.0.write_volatile(byte) };
    }
}

/// Stores through a mapping, captures, stores to the same page again: the next scan must know.
fn check_mapped(directory: &Path) -> Captured {
    let top = tempfile::tempdir_in(directory).unwrap();
    let file = top.path().join("file");
    fs::write(&file, [b'a'; 4096]).unwrap();
    let mapped = Mapped::new(&file);
    mapped.store(b'b');
    let mut kept = Kept::new(top.path());
    kept.checkpoint();
    // Until the store is long enough ago to trust the stamp, where it is trusted at all.
    while kept.root.mapped_writes_show()
        && kept.state[&path("file")].signature == Signature::UNKNOWN
    {
        kept.checkpoint();
    }
    let captured = kept.state[&path("file")].clone();
    assert!(captured.unsettled);
    let bytes = kept.contents.get(kept.entry("file").content().unwrap());
    assert_eq!(bytes[0], b'b');
    mapped.store(b'c');
    assert_eq!(kept.checkpoint(), [path("file")]);
    assert_eq!(kept.contents.get(kept.entry("file").content().unwrap())[0], b'c');
    captured
}

#[test]
fn a_store_through_a_mapping_is_not_missed() {
    check_mapped(&std::env::temp_dir());
}

#[test]
fn on_tmpfs_a_mapped_file_is_always_read_again() {
    assert_eq!(check_mapped(Path::new("/dev/shm")).signature, Signature::UNKNOWN);
}

#[test]
fn after_a_store_through_a_mapping_is_seen_the_signature_is_trusted() {
    let image = tempfile::NamedTempFile::new_in("/dev/shm").unwrap();
    image.as_file().set_len(16 << 20).unwrap();
    let run = |program: &str, arguments: &[&OsStr]| {
        let status = std::process::Command::new(program).args(arguments).status().unwrap();
        assert!(status.success(), "{program}");
    };
    run("mkfs.ext4", &["-q".as_ref(), image.path().as_ref()]);
    let top = tempfile::tempdir().unwrap();
    run("mount", &["-o".as_ref(), "loop".as_ref(), image.path().as_ref(), top.path().as_ref()]);
    let checked = std::panic::catch_unwind(|| check_mapped(top.path()));
    run("umount", &["-l".as_ref(), top.path().as_ref()]);
    assert_ne!(checked.unwrap().signature, Signature::UNKNOWN);
}
