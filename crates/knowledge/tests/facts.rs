//! Facts are recalled by word and by meaning, and gone when they are deleted.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on has failed")]

use std::path::Path;

use nacre_knowledge::embed::{MODEL, Table};
use nacre_knowledge::{ChangeFact, Library, NewFact, Query};

fn library(dir: &Path) -> Library {
    Library::open(&dir.join("knowledge.db"), MODEL).unwrap()
}

fn fact(text: &str, tags: &[&str]) -> NewFact {
    let tags = tags.iter().map(|tag| (*tag).to_owned()).collect();
    NewFact { text: text.to_owned(), source: "conversation:1#2".to_owned(), tags }
}

fn recall(library: &mut Library, text: &str) -> Vec<String> {
    let vector = Table::builtin().embed(text);
    let query = Query { text, vector: Some(&vector), sources: &[], limit: 5 };
    library.recall(&query).unwrap().into_iter().map(|found| found.fact.text).collect()
}

#[test]
fn what_was_told_is_recalled_with_source_and_date() {
    let dir = tempfile::tempdir().unwrap();
    let mut library = library(dir.path());
    let car = "The owner drives an old automobile.";
    let told = library.add_fact(fact(car, &["Travel", "travel "]), 5).unwrap();
    library.add_fact(fact("Tests run with `cargo xtask test`.", &["build"]), 6).unwrap();
    assert_eq!((told.source.as_str(), told.created_at), ("conversation:1#2", 5));
    assert_eq!(told.tags, ["travel"]);
    assert_eq!(recall(&mut library, "which car do they have")[0], car);
    assert_eq!(recall(&mut library, "xtask")[0], "Tests run with `cargo xtask test`.");
    assert_eq!(recall(&mut library, "travel")[0], car);
    drop(library);
    let mut library = self::library(dir.path());
    assert_eq!(recall(&mut library, "automobile")[0], car);
    let listed = library.facts(None, None, 10).unwrap();
    assert_eq!(listed.iter().map(|fact| fact.id).collect::<Vec<_>>(), [2, 1]);
    assert_eq!(library.facts(None, Some("build"), 10).unwrap().len(), 1);
    assert_eq!(library.facts(Some(2), None, 10).unwrap(), [told]);
}

#[test]
fn what_is_known_is_not_kept_twice() {
    let dir = tempfile::tempdir().unwrap();
    let mut library = library(dir.path());
    let first = library.add_fact(fact("Water is wet.", &["a"]), 1).unwrap();
    let second = library.add_fact(fact("  Water is wet. ", &["b"]), 2).unwrap();
    assert_eq!((second.id, second.created_at), (first.id, 1));
    assert_eq!(second.tags, ["a", "b"]);
}

#[test]
fn a_changed_fact_is_recalled_as_it_is_now() {
    let dir = tempfile::tempdir().unwrap();
    let mut library = library(dir.path());
    let told = library.add_fact(fact("The cat is called Kiwi.", &[]), 1).unwrap();
    assert_eq!(recall(&mut library, "kiwi").len(), 1);
    let change =
        ChangeFact { text: Some("The dog is called Mango.".to_owned()), ..ChangeFact::default() };
    let changed = library.change_fact(told.id, change, 9).unwrap();
    assert_eq!((changed.created_at, changed.changed_at), (1, 9));
    assert_eq!(recall(&mut library, "mango"), ["The dog is called Mango."]);
    let by_word = Query { text: "kiwi", limit: 5, ..Query::default() };
    assert_eq!(library.recall(&by_word).unwrap(), []);
    let nothing = library.change_fact(99, ChangeFact::default(), 9).unwrap_err();
    assert_eq!(nothing.to_string(), "there is no fact 99");
}

#[test]
fn what_cannot_be_a_fact_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let mut library = library(dir.path());
    for text in ["", "  \n", &"x".repeat(5000)] {
        assert!(library.add_fact(fact(text, &[]), 1).is_err());
    }
    let many: Vec<_> = (0..20).map(|n| format!("t{n}")).collect();
    let many: Vec<_> = many.iter().map(String::as_str).collect();
    assert!(library.add_fact(fact("x", &many), 1).is_err());
    assert_eq!(library.facts(None, None, 9).unwrap(), []);
}

/// Everything of the database that is on disk.
fn on_disk(dir: &Path) -> Vec<u8> {
    let files = std::fs::read_dir(dir).unwrap();
    files.flat_map(|file| std::fs::read(file.unwrap().path()).unwrap()).collect()
}

fn holds(bytes: &[u8], word: &str) -> bool {
    bytes.windows(word.len()).any(|window| window.eq_ignore_ascii_case(word.as_bytes()))
}

#[test]
fn a_deleted_fact_is_gone_from_the_disk() {
    let dir = tempfile::tempdir().unwrap();
    let mut library = library(dir.path());
    for n in 0..200 {
        library.add_fact(fact(&format!("filler number {n} about nothing"), &["noise"]), 1).unwrap();
    }
    let secret = fact("The passphrase is zanzibarquux tambourinex.", &["hushhushtag"]);
    let told = library.add_fact(secret, 1).unwrap();
    assert_eq!(recall(&mut library, "zanzibarquux").len(), 1);
    assert!(holds(&on_disk(dir.path()), "zanzibarquux"));
    library.delete_fact(told.id).unwrap();
    let left = on_disk(dir.path());
    for word in ["zanzibarquux", "tambourinex", "hushhushtag", "zanzibar", "tambour"] {
        assert!(!holds(&left, word), "{word} is still there");
    }
    let by_word = Query { text: "zanzibarquux", limit: 5, ..Query::default() };
    assert_eq!(library.recall(&by_word).unwrap(), []);
    assert!(library.delete_fact(told.id).is_err());
    let next = library.add_fact(fact("another", &[]), 2).unwrap();
    assert!(next.id > told.id, "its number is not given again");
}
