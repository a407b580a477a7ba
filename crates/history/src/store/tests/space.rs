use std::path::PathBuf;

use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

use super::*;

/// A filesystem of a few megabytes.
struct Small(PathBuf);

impl Small {
    fn mount(directory: &Path) -> Self {
        let at = directory.join("packs");
        std::fs::create_dir(&at).unwrap();
        mount("tmpfs", &at, "tmpfs", MountFlags::empty(), c"size=4m").unwrap();
        Self(at)
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        unmount(&self.0, UnmountFlags::DETACH).unwrap();
    }
}

#[test]
fn a_full_disk_harms_nothing_and_is_said() {
    let directory = TempDir::new().unwrap();
    let small = Small::mount(directory.path());
    let db = database(directory.path());
    let store = Store::open(directory.path(), &db).unwrap();
    let mut place = Place { directory, db, store };
    let old = place.keep(&[noise(1, 1 << 20)])[0];
    let stored = place.stored();

    let writer = place.store.writer(&mut place.db).unwrap();
    let failed = (10..20).find_map(|seed| writer.keep(&noise(seed, 1 << 20)).err());
    assert!(matches!(failed, Some(Error::NoSpace { .. })), "{failed:?}");
    // Whoever ignores the error does not get a batch that lacks a content.
    assert!(writer.finish().is_err());
    assert_eq!(place.stored(), stored);

    let new = place.keep(&[noise(2, 2 << 20)])[0];
    assert!(place.fetch(old).unwrap() == noise(1, 1 << 20));
    assert!(place.fetch(new).unwrap() == noise(2, 2 << 20));

    // No room to copy: all stays as it is, and what is dead can still be dropped.
    let swept = place.store.sweep(&mut place.db, &|id| *id == new).unwrap();
    for pack in swept.worth {
        let error = place.store.rewrite(&mut place.db, pack, &mut || true).unwrap_err();
        assert!(matches!(error, Error::NoSpace { .. }), "{error}");
    }
    assert!(place.fetch(new).unwrap() == noise(2, 2 << 20));
    place.store.compact(&mut place.db, &|_| false).unwrap();
    assert_eq!(place.stored(), 0);
    drop(place);
    drop(small);
}
