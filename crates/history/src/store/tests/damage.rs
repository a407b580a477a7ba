use std::os::unix::fs::FileExt;

use super::*;

fn verified(place: &mut Place) -> Vec<ContentId> {
    let mut last = (0, 0);
    let found = place.store.verify(&mut place.db, &mut |done, total| last = (done, total)).unwrap();
    assert!(last.0 <= last.1);
    let mut ids: Vec<_> = found.into_iter().map(|damaged| damaged.id).collect();
    ids.sort();
    ids
}

/// The ids that are reported, after a check that all others are right.
fn damaged(place: &mut Place, contents: &[(ContentId, Vec<u8>)]) -> Vec<ContentId> {
    // A new store has no frames in memory.
    place.store = Store::open(place.directory.path(), &place.db).unwrap();
    let mut wrong = Vec::new();
    for (id, bytes) in contents {
        match place.fetch(*id) {
            Ok(fetched) => assert!(fetched == *bytes, "wrong bytes for {id}"),
            Err(Error::Damaged { what }) => {
                assert!(what.contains("pack ") || what.contains("part "), "{what}");
                wrong.push(*id);
            }
            Err(other) => panic!("{id}: {other}"),
        }
    }
    wrong.sort();
    wrong
}

#[test]
fn a_damaged_byte_anywhere_is_reported_and_harms_one_frame() {
    let mut place = Place::new();
    let mut frames = Vec::new();
    for frame in 0..3 {
        let texts: Vec<_> =
            (0..4).map(|at| format!("{frame} {at} some text\n").repeat(9)).collect();
        let ids = place.keep(&texts);
        frames
            .push((place.stored(), ids.into_iter().zip(texts.into_iter().map(String::into_bytes))));
    }
    let mut ends = Vec::new();
    let mut contents = Vec::new();
    for (end, kept) in frames {
        ends.push(end);
        contents.push(kept.collect::<Vec<_>>());
    }
    let all = contents.concat();
    let file =
        std::fs::File::options().read(true).write(true).open(&place.pack_files()[0]).unwrap();
    let mut whole = vec![0; ends[2] as usize];
    file.read_exact_at(&mut whole, 0).unwrap();
    for (at, byte) in whole.iter().enumerate() {
        for flip in [0x01, 0x80] {
            file.write_all_at(&[byte ^ flip], at as u64).unwrap();
            let frame = ends.iter().position(|end| (at as u64) < *end).unwrap();
            let mut expected: Vec<_> = contents[frame].iter().map(|(id, _)| *id).collect();
            expected.sort();
            assert_eq!(damaged(&mut place, &all), expected, "byte {at}");
            assert_eq!(verified(&mut place), expected, "byte {at}");
        }
        file.write_all_at(&[*byte], at as u64).unwrap();
    }
    assert_eq!(damaged(&mut place, &all), []);
    assert_eq!(verified(&mut place), []);
}

#[test]
fn a_damaged_part_is_reported_with_the_content() {
    let mut place = Place::new();
    let bytes = noise(1, 5 << 20);
    let large = place.keep(&[&bytes])[0];
    let small = place.keep(&[b"small"])[0];
    let file = std::fs::File::options().write(true).open(&place.pack_files()[0]).unwrap();
    file.write_all_at(b"damage", 3 << 20).unwrap();
    let contents = [(large, bytes), (small, b"small".to_vec())];
    assert_eq!(damaged(&mut place, &contents), [large]);
    let reported = verified(&mut place);
    assert_eq!(reported.len(), 2);
    assert!(reported.contains(&large));
}

#[test]
fn a_short_or_missing_pack_is_reported_and_the_store_goes_on() {
    let mut place = Place::new();
    let first = (place.keep(&[noise(1, 5000)])[0], noise(1, 5000));
    let second = (place.keep(&[noise(2, 5000)])[0], noise(2, 5000));
    let pack = place.pack_files()[0].clone();
    let file = std::fs::File::options().write(true).open(&pack).unwrap();
    file.set_len(7000).unwrap();
    assert_eq!(damaged(&mut place, &[first.clone(), second.clone()]), [second.0]);

    let third = (place.keep(&[noise(3, 5000)])[0], noise(3, 5000));
    let all = [first.clone(), second.clone(), third];
    assert_eq!(damaged(&mut place, &all), [second.0]);
    std::fs::remove_file(pack).unwrap();
    let mut lost = [first.0, second.0];
    lost.sort();
    assert_eq!(damaged(&mut place, &all), lost);
    assert_eq!(verified(&mut place), lost);
}

#[test]
fn a_wrong_row_is_reported() {
    for wrong in [
        "frame = 9223372036854775807",
        "frame = 1",
        "start = 4294967295, length = 4294967295",
        "length = length - 1",
        "pack = 77",
    ] {
        let mut place = Place::new();
        let id = place.keep(&[noise(1, 5000)])[0];
        place.db.execute(&format!("update object set {wrong}"), []).unwrap();
        assert!(matches!(place.fetch(id), Err(Error::Damaged { .. })), "{wrong}");
        assert_eq!(verified(&mut place), [id], "{wrong}");
    }
    let mut place = Place::new();
    let id = place.keep(&[noise(1, 3 << 20)])[0];
    for wrong in ["substr(parts, 1, 35)", "x'00'", "x''"] {
        place.db.execute(&format!("update recipe set parts = {wrong}"), []).unwrap();
        assert!(matches!(place.fetch(id), Err(Error::Damaged { .. })), "{wrong}");
        assert_eq!(verified(&mut place), [id], "{wrong}");
    }
}
