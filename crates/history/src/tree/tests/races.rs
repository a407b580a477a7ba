//! Others that write while we read.

use super::*;

/// Ends a thread's loop when it is dropped, also when the test fails.
struct Stop<'a>(&'a std::sync::atomic::AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, std::sync::atomic::Ordering::Relaxed);
    }
}

#[test]
fn nothing_outside_is_read_whatever_is_swapped() {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    let around = tempfile::tempdir().unwrap();
    let top = around.path().join("top");
    let outside = around.path().join("outside");
    fs::create_dir_all(&outside).unwrap();
    fs::create_dir_all(top.join("a/b/c")).unwrap();
    for name in ["file", "only outside"] {
        fs::write(outside.join(name), "canary").unwrap();
        fs::create_dir_all(outside.join("c")).unwrap();
        fs::write(outside.join("c").join(name), "canary").unwrap();
    }
    fs::write(top.join("a/b/file"), "inside").unwrap();
    fs::write(top.join("a/b/c/file"), "inside").unwrap();
    // Each leads outside from the place it is swapped into, and the last from where it is.
    symlink("../../outside", top.join("for b")).unwrap();
    symlink("../../../outside", top.join("for c")).unwrap();
    symlink("../../../outside/file", top.join("for file")).unwrap();
    symlink("../outside", top.join("out")).unwrap();
    let over = std::sync::atomic::AtomicBool::new(false);
    let swaps = std::sync::atomic::AtomicUsize::new(0);
    let outside_names = ["a/b/only outside", "a/b/c/only outside"].map(path);
    std::thread::scope(|scope| {
        let _stop = Stop(&over);
        scope.spawn(|| {
            while !over.load(std::sync::atomic::Ordering::Relaxed) {
                for (one, other) in [("a/b", "for b"), ("a/b/c", "for c"), ("a/b/file", "for file")]
                {
                    let (one, other) = (top.join(one), top.join(other));
                    // Twice, so that things are in place again; fails while a parent is elsewhere.
                    for _ in 0..2 {
                        let _ = renameat_with(CWD, &one, CWD, &other, RenameFlags::EXCHANGE);
                        swaps.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    }
                }
            }
        });
        let mut kept = Kept::new(&top);
        let mut rounds = 0;
        while rounds < 300 || swaps.load(std::sync::atomic::Ordering::Relaxed) < 1000 {
            rounds += 1;
            kept.checkpoint();
            let names: Vec<TreePath> =
                ["a/b/c/file", "a/b/file", "a/b/only outside", "out/file"].map(path).into();
            for captured in kept.capture(&names) {
                if let Now::There(entry) = captured.now
                    && let Some(id) = entry.content()
                {
                    assert_eq!(kept.contents.get(id), b"inside");
                }
            }
            assert!(!kept.contents.0.lock().unwrap().contains_key(&ContentId::of(b"canary")));
            for name in &outside_names {
                assert!(!kept.state.contains_key(name), "{name}");
            }
        }
    });
}

/// Whole generations only: each byte of a file says which write it comes from.
fn one_generation(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| *byte == bytes[0])
}

fn never_mixed(length: usize, rewrite: impl Fn(&Path, &[u8]) + Sync) {
    let top = tempfile::tempdir().unwrap();
    let file = top.path().join("file");
    fs::write(&file, vec![0; length]).unwrap();
    let over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _stop = Stop(&over);
        scope.spawn(|| {
            for generation in (0..=255_u8).cycle() {
                if over.load(std::sync::atomic::Ordering::Relaxed) {
                    return;
                }
                rewrite(&file, &vec![generation; length]);
            }
        });
        let kept = Kept::new(top.path());
        for _ in 0..60 {
            let captured = &kept.capture(&[path("file")])[0];
            let Now::There(entry) = &captured.now else { continue };
            let Kind::File { size, content } = entry.kind else { panic!("{entry:?}") };
            let bytes = content.id().map(|id| kept.contents.get(id)).unwrap();
            assert_eq!(size, bytes.len() as u64);
            match content {
                Content::Kept(_) => assert!(one_generation(&bytes), "a mix was kept"),
                Content::Torn(_) => {
                    assert_eq!(captured.note, Some(Note::Torn));
                    assert_eq!(captured.signature, Signature::UNKNOWN);
                }
                other => panic!("{other:?}"),
            }
        }
    });
}

#[test]
fn a_writer_in_place_never_makes_a_silent_mix() {
    // One call for all bytes: the filesystem makes readers of a page wait, but not of a file.
    for length in [5000, 300_000, 2 << 20] {
        never_mixed(length, |file, bytes| {
            let mut file = fs::OpenOptions::new().write(true).open(file).unwrap();
            file.write_all(bytes).unwrap();
        });
    }
}

#[test]
fn a_writer_that_stays_never_makes_a_silent_mix() {
    let open: Mutex<Option<fs::File>> = Mutex::default();
    never_mixed(300_000, |file, bytes| {
        use std::os::unix::fs::FileExt;
        let mut open = open.lock().unwrap();
        let file =
            open.get_or_insert_with(|| fs::OpenOptions::new().write(true).open(file).unwrap());
        file.write_all_at(bytes, 0).unwrap();
    });
}

#[test]
fn who_writes_is_noticed() {
    let top = tempfile::tempdir().unwrap();
    let file = top.path().join("file");
    let writer = fs::File::create(&file).unwrap();
    fs::write(top.path().join("quiet"), "x").unwrap();
    let kept = Kept::new(top.path());
    let names = ["file", "quiet"].map(path);
    let unsettled = |kept: &Kept| -> Vec<bool> {
        kept.capture(&names).iter().map(|captured| captured.unsettled).collect()
    };
    assert_eq!(unsettled(&kept), [true, false]);
    drop(writer);
    assert_eq!(unsettled(&kept), [false, false]);
    // Also of another user's file, for a root that may not lease it as such: that of a sandbox.
    rustix::fs::chown(&file, Some(rustix::fs::Uid::from_raw(4321)), None).unwrap();
    let _writer = fs::OpenOptions::new().append(true).open(&file).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
            let mut sets = capabilities(None).unwrap();
            sets.effective.remove(CapabilitySet::LEASE);
            set_capabilities(None, sets).unwrap();
            assert_eq!(unsettled(&kept), [true, false]);
            // And it is itself again.
            // SAFETY: asks for the present one by giving none.
            assert_eq!(unsafe { libc::setfsuid(u32::MAX) }, 0);
        });
    });
}
