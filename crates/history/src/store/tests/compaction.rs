use std::collections::{HashMap, HashSet};
use std::fs;

use super::*;
use crate::store::compact::Freed;
use crate::store::verify::Usage;

type Kept = HashMap<ContentId, Vec<u8>>;

fn check(place: &mut Place, kept: &Kept, live: &HashSet<ContentId>) {
    for (id, bytes) in kept {
        match (place.fetch(*id), live.contains(id)) {
            (Ok(fetched), true) => assert!(fetched == *bytes),
            (Err(Error::Missing(_)), false) => {}
            (other, live) => panic!("{id}, live: {live}: {:?}", other.map(|bytes| bytes.len())),
        }
    }
    assert_eq!(place.store.verify(&mut place.db, &mut |_, _| {}).unwrap(), []);
}

/// Several packs with many contents each, and one large content that shares parts with another.
fn filled() -> (Place, Kept) {
    let mut place = Place::new();
    let mut kept = Kept::new();
    let mut contents: Vec<_> = (0..150).map(|seed| noise(seed, 60_000)).collect();
    let mut large = noise(1000, 5 << 20);
    contents.push(large.clone());
    large.extend_from_slice(b"and more");
    contents.push(large);
    for batch in contents.chunks(40) {
        let ids = place.keep(batch);
        kept.extend(ids.into_iter().zip(batch.to_vec()));
    }
    assert!(place.pack_files().len() >= 3);
    (place, kept)
}

/// Every third of the small ones, and one of the large.
fn some(kept: &Kept) -> HashSet<ContentId> {
    let mut ids: Vec<_> = kept.iter().filter(|(_, bytes)| bytes.len() < 1 << 20).collect();
    ids.sort();
    let small = ids.into_iter().step_by(3).map(|(id, _)| *id);
    let large = kept.iter().filter(|(_, bytes)| bytes.len() == 5 << 20).map(|(id, _)| *id);
    small.chain(large).collect()
}

#[test]
fn exactly_the_live_stays() {
    let (mut place, kept) = filled();
    let live = some(&kept);
    let before = place.stored();
    let freed = place.store.compact(&mut place.db, &|id| live.contains(id)).unwrap();
    assert_eq!(before - place.stored(), freed.bytes);
    assert_eq!(freed.damaged, 0);
    check(&mut place, &kept, &live);
    place.reopen();
    check(&mut place, &kept, &live);
    let usage = place.store.usage(&place.db).unwrap();
    assert_eq!(usage.bytes, place.stored());
    assert!(usage.dead * 100 <= usage.bytes * 40);

    let again = place.store.compact(&mut place.db, &|id| live.contains(id)).unwrap();
    assert_eq!(again, Freed::default());

    place.store.compact(&mut place.db, &|_| false).unwrap();
    check(&mut place, &kept, &HashSet::new());
    assert_eq!(place.store.usage(&place.db).unwrap(), Usage::default());
    assert_eq!(place.pack_files(), [] as [std::path::PathBuf; 0]);

    // Numbers are given again, and nothing of the old packs is remembered.
    let ids = place.keep(&kept.values().take(20).collect::<Vec<_>>());
    check(&mut place, &kept, &ids.into_iter().collect());
}

#[test]
fn small_frames_are_joined() {
    let mut place = Place::new();
    let mut kept = Kept::new();
    for checkpoint in 0..300_u64 {
        let text = noise(checkpoint / 30, 14_000);
        let bytes = [text.as_slice(), &checkpoint.to_le_bytes()].concat();
        kept.insert(place.keep(&[&bytes])[0], bytes);
    }
    assert_eq!(place.pack_files().len(), 2);
    let before = place.stored();
    let freed = place.store.compact(&mut place.db, &|_| true).unwrap();
    assert_eq!((freed.packs, freed.contents), (1, 0));
    assert!(place.stored() < before / 5);
    check(&mut place, &kept, &kept.keys().copied().collect());
}

/// Small files in one go, as a first checkpoint keeps them: there is nothing to gain, and to rewrite
/// all of it would keep whoever comes next waiting.
#[test]
fn frames_that_were_filled_are_left_alone() {
    let mut place = Place::new();
    let contents: Vec<_> = (0..6000).map(|seed| noise(seed, 2000)).collect();
    place.keep(&contents);
    let before = place.pack_files();
    assert!(before.len() >= 2);
    let freed = place.store.compact(&mut place.db, &|_| true).unwrap();
    assert_eq!((freed, place.pack_files()), (Freed::default(), before));
}

#[test]
fn damage_keeps_its_pack_and_stops_no_other() {
    let (mut place, kept) = filled();
    let live = some(&kept);
    let damaged = place.pack_files()[0].clone();
    let mut bytes = fs::read(&damaged).unwrap();
    for byte in bytes.iter_mut().step_by(50_000) {
        *byte ^= 1;
    }
    fs::write(&damaged, bytes).unwrap();
    let freed = place.store.compact(&mut place.db, &|id| live.contains(id)).unwrap();
    assert_eq!(freed.damaged, 1);
    assert!(freed.packs > 0 && damaged.exists());
    for id in &live {
        match place.fetch(*id) {
            Ok(bytes) => assert!(bytes == kept[id]),
            Err(error) => assert!(matches!(error, Error::Damaged { .. }), "{error}"),
        }
    }
}

/// The store as a crash leaves it: files of before and after one step, and one of the databases.
fn crashed(before: &Path, after: &Path, database: &Path) -> Place {
    let directory = TempDir::new().unwrap();
    let packs = directory.path().join("packs");
    fs::create_dir(&packs).unwrap();
    for from in [before, after] {
        for entry in fs::read_dir(from.join("packs")).unwrap() {
            let entry = entry.unwrap();
            fs::copy(entry.path(), packs.join(entry.file_name())).unwrap();
        }
    }
    fs::copy(database.join("log.db"), directory.path().join("log.db")).unwrap();
    let db = super::database(directory.path());
    let store = Store::open(directory.path(), &db).unwrap();
    Place { directory, db, store }
}

fn copied(place: &Place) -> TempDir {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("log.db");
    place.db.execute("vacuum into ?1", [file.to_str().unwrap()]).unwrap();
    fs::create_dir(directory.path().join("packs")).unwrap();
    for file in place.pack_files() {
        fs::copy(&file, directory.path().join("packs").join(file.file_name().unwrap())).unwrap();
    }
    directory
}

#[test]
fn a_crash_at_any_step_loses_nothing() {
    let (mut place, kept) = filled();
    let all = kept.keys().copied().collect();
    let live = some(&kept);
    let mut states = vec![copied(&place)];
    let swept = place.store.sweep(&mut place.db, &|id| live.contains(id)).unwrap();
    states.push(copied(&place));
    assert!(swept.worth.len() > 1);
    for pack in swept.worth {
        place.store.rewrite(&mut place.db, pack).unwrap();
        states.push(copied(&place));
    }
    for (step, pair) in states.windows(2).enumerate() {
        let (before, after) = (pair[0].path(), pair[1].path());
        let there = if step == 0 { &all } else { &live };
        check(&mut crashed(before, after, before), &kept, there);
        check(&mut crashed(before, after, after), &kept, &live);
        // What is left over is gone, to the byte.
        let expected: u64 = fs::read_dir(after.join("packs"))
            .unwrap()
            .map(|entry| entry.unwrap().metadata().unwrap().len())
            .sum();
        assert_eq!(crashed(before, after, after).stored(), expected);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn any_mix_of_batches_and_compactions(
        steps in proptest::collection::vec(
            (proptest::collection::vec((0..60_u64, 1..90_000_usize), 0..30), any::<u8>(), any::<bool>()),
            1..8,
        ),
    ) {
        let mut place = Place::new();
        let mut kept = Kept::new();
        let mut live = HashSet::new();
        for (contents, keep, reopen) in steps {
            let contents: Vec<_> =
                contents.into_iter().map(|(seed, length)| noise(seed, length)).collect();
            for (id, bytes) in place.keep(&contents).into_iter().zip(contents) {
                kept.insert(id, bytes);
                live.insert(id);
            }
            if reopen {
                place.reopen();
            }
            live.retain(|id| id.0[0] <= keep);
            place.store.compact(&mut place.db, &|id| live.contains(id)).unwrap();
            check(&mut place, &kept, &live);
        }
    }
}
