//! Damages a small store and asks it for everything: it may refuse, but it never panics and never gives
//! out bytes that are not those that were kept.
//!
//! An input is a list of edits to the store's files. Each is a file, a kind, an offset and a length,
//! with as many bytes after them as the kind needs; whatever is missing is zero. The store is the one
//! that the tests of damage have, as a good end leaves it or as a crash does.

#![no_main]

#[path = "../crates/history/tests/damaged/mod.rs"]
mod damaged;
#[path = "../crates/history/tests/day/mod.rs"]
mod day;
#[path = "../crates/history/tests/tree/mod.rs"]
mod tree;

use std::fs;
use std::path::Path;

use damaged::{copy, files, template, use_it};
use libfuzzer_sys::{Corpus, fuzz_target};

/// More edits make it no likelier that anything is read at all.
const MOST_EDITS: usize = 8;

struct Edit<'a> {
    file: usize,
    kind: Kind,
    offset: usize,
    length: usize,
    bytes: &'a [u8],
}

#[derive(Clone, Copy)]
enum Kind {
    Overwrite,
    Flip,
    Blank,
    Cut,
    Remove,
}

/// Gives an edit and what follows it.
fn next(input: &[u8]) -> Option<(Edit<'_>, &[u8])> {
    let (head, rest) = input.split_first_chunk::<6>()?;
    let [file, kind, low, middle, high, length] = *head;
    let kind = match kind % 8 {
        0..=2 => Kind::Overwrite,
        3 | 4 => Kind::Flip,
        5 => Kind::Blank,
        6 => Kind::Cut,
        _ => Kind::Remove,
    };
    let offset = u32::from_le_bytes([low, middle, high, 0]) as usize;
    let length = usize::from(length) + 1;
    let (bytes, rest) = match kind {
        Kind::Overwrite | Kind::Flip => rest.split_at(length.min(rest.len())),
        Kind::Blank | Kind::Cut | Kind::Remove => (&[][..], rest),
    };
    Some((Edit { file: file.into(), kind, offset, length, bytes }, rest))
}

fn inflict(store: &Path, edit: &Edit<'_>) {
    let files = files(store);
    let Some(file) = edit.file.checked_rem(files.len()).map(|at| &files[at]) else { return };
    let mut bytes = fs::read(file).unwrap();
    let at = edit.offset % bytes.len();
    let end = bytes.len().min(at + edit.length);
    let hit = &mut bytes[at..end];
    match edit.kind {
        Kind::Overwrite => hit.iter_mut().zip(edit.bytes).for_each(|(old, new)| *old = *new),
        Kind::Flip => hit.iter_mut().zip(edit.bytes).for_each(|(old, mask)| *old ^= mask),
        Kind::Blank => hit.fill(0),
        Kind::Cut => bytes.truncate(at),
        Kind::Remove => return fs::remove_file(file).unwrap(),
    }
    fs::write(file, bytes).unwrap();
}

fn damage(input: &[u8]) -> Corpus {
    let Some((which, mut rest)) = input.split_first() else { return Corpus::Reject };
    let template = template(which & 1 == 1);
    let home = tempfile::tempdir_in("/dev/shm").unwrap();
    copy(template.home.path(), home.path());
    for _ in 0..MOST_EDITS {
        let Some((edit, after)) = next(rest) else { break };
        inflict(&home.path().join("store"), &edit);
        rest = after;
    }
    // What is refused is fine; what is given out is held to what was kept.
    let _ = use_it(home.path(), &template.past);
    Corpus::Keep
}

fuzz_target!(|input: &[u8]| -> Corpus { damage(input) });
