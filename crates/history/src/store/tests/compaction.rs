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

fn tidy(place: &mut Place) -> usize {
    let mut steps = 0;
    while place.store.tidy(&mut place.db, &mut || true).unwrap() {
        steps += 1;
    }
    steps
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
    // Compaction, which somebody may wait for, leaves that to idle time.
    assert_eq!(place.store.compact(&mut place.db, &|_| true).unwrap(), Freed::default());
    assert!(tidy(&mut place) > 0);
    assert!(place.stored() < before / 5, "{} of {before}", place.stored());
    check(&mut place, &kept, &kept.keys().copied().collect());
}

/// Half of it is digits, the rest is what other texts have too: it can be compressed.
fn text(seed: u64, length: usize) -> Vec<u8> {
    let mut bytes = noise(seed, length);
    let (digits, shared) = bytes.split_at_mut(length / 2);
    digits.iter_mut().for_each(|byte| *byte = b'0' + *byte % 10);
    shared.copy_from_slice(&noise(seed % 50, shared.len()));
    bytes
}

#[test]
fn what_was_written_in_haste_is_pressed_once() {
    let mut place = Place::new();
    let contents: Vec<_> = (0..8000).map(|seed| text(seed, 3000)).collect();
    let ids = place.keep(&contents);
    let kept: Kept = ids.into_iter().zip(contents).collect();
    let all = kept.keys().copied().collect();
    let (before, packs) = (place.stored(), place.pack_files().len());
    assert!(packs >= 3);

    // Given up at any time, it changes nothing that counts.
    for patience in [0, 1, 20] {
        let mut asked = 0;
        let mut go_on = || {
            asked += 1;
            asked <= patience
        };
        assert!(place.store.tidy(&mut place.db, &mut go_on).unwrap());
        assert_eq!(place.stored(), before);
    }
    // All but the pack that is still being filled, each once.
    assert_eq!(tidy(&mut place), packs - 1);
    assert!(place.stored() < before, "{} of {before}", place.stored());
    check(&mut place, &kept, &all);
    place.reopen();
    let pressed = place.pack_files();
    assert_eq!((tidy(&mut place), place.pack_files()), (0, pressed));

    // What is written next does not go where the pressed is, and is pressed in its turn.
    let more: Vec<_> = (20_000..28_000).map(|seed| text(seed, 3000)).collect();
    place.keep(&more);
    assert!(tidy(&mut place) >= packs - 1);
    check(&mut place, &kept, &all);
}

#[test]
fn what_cannot_be_pressed_is_left_where_it_is() {
    let mut place = Place::new();
    place.keep(&(0..150).map(|seed| noise(seed, 60_000)).collect::<Vec<_>>());
    let packs = place.pack_files();
    assert!(packs.len() >= 2);
    assert_eq!(tidy(&mut place), packs.len() - 1);
    assert_eq!(place.pack_files(), packs);
}

#[test]
fn damage_is_not_pressed_and_not_come_back_to() {
    let mut place = Place::new();
    let contents: Vec<_> = (0..6000).map(|seed| text(seed, 3000)).collect();
    place.keep(&contents);
    let damaged = place.pack_files()[0].clone();
    let mut bytes = fs::read(&damaged).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&damaged, &bytes).unwrap();
    let steps = tidy(&mut place);
    assert_eq!(steps, place.pack_files().len() - 1);
    assert!(fs::read(&damaged).unwrap() == bytes);
    let found = place.store.verify(&mut place.db, &mut |_, _| {}).unwrap();
    assert!((1..20).contains(&found.len()), "{} damaged", found.len());
}

#[test]
fn a_store_from_before_pressing_is_taken_over() {
    let mut place = Place::new();
    let ids = place.keep(&[b"old"]);
    place.db.execute_batch("alter table pack drop column pressed").unwrap();
    place.reopen();
    place.keep(&[b"new"]);
    assert_eq!(place.fetch(ids[0]).unwrap(), b"old");
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
        place.store.rewrite(&mut place.db, pack, &mut || true).unwrap();
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
            tidy(&mut place);
            check(&mut place, &kept, &live);
        }
    }
}
