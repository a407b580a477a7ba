//! Documents that come, change and go are found as they are, by word and by meaning.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on has failed")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use nacre_knowledge::embed::{MODEL, Table};
use nacre_knowledge::{Hit, Library, Pending, Quantised, Query, prepare};
use proptest::prelude::*;

fn library(dir: &Path) -> Library {
    Library::open(&dir.join("knowledge.db"), MODEL).unwrap()
}

fn put(library: &mut Library, source: &str, path: &str, text: &str) {
    let document = prepare(path, text, Some(Table::builtin()));
    library.put(source, path, "signature", &document, 1).unwrap();
}

fn ask(library: &mut Library, text: &str) -> Vec<Hit> {
    let vector = Table::builtin().embed(text);
    let query = Query { text, vector: Some(&vector), sources: &[], limit: 10 };
    library.search(&query).unwrap()
}

fn places(hits: &[Hit]) -> Vec<String> {
    hits.iter().map(|hit| format!("{}:{}-{}", hit.path, hit.first_line, hit.last_line)).collect()
}

#[test]
fn a_passage_is_found_with_path_and_lines_by_word_and_by_meaning() {
    let dir = tempfile::tempdir().unwrap();
    let mut library = library(dir.path());
    put(&mut library, "live", "car.md", "# Garage\n\nRepairing an automobile engine at home.\n");
    put(&mut library, "live", "food.md", "A recipe for roasted chicken.\n\n# Dessert\nPancakes.\n");
    let hits = ask(&mut library, "pancake");
    assert_eq!(places(&hits)[0], "food.md:3-4");
    assert_eq!(
        (hits[0].headings.as_str(), hits[0].snippet.as_str()),
        ("Dessert", "# Dessert Pancakes.")
    );
    assert!(hits[0].found.by_word, "stemmed: {hits:?}");
    let hits = ask(&mut library, "how do I fix my car");
    assert_eq!(places(&hits)[0], "car.md:1-3");
    assert!(hits[0].found.by_meaning, "{hits:?}");
    assert_eq!(hits[0].title.as_deref(), Some("Garage"));
    // Neither the words nor anything like them.
    assert_eq!(ask(&mut library, "zxqv"), []);
}

#[test]
fn only_the_wanted_sources_are_searched() {
    let dir = tempfile::tempdir().unwrap();
    let mut library = library(dir.path());
    for source in ["a", "b"] {
        put(&mut library, source, "same.md", "the same words in both");
    }
    let sources = ["b".to_owned()];
    let query = Query { text: "words", sources: &sources, limit: 9, ..Query::default() };
    let found = library.search(&query).unwrap();
    assert_eq!(found.iter().map(|hit| hit.source.as_str()).collect::<Vec<_>>(), ["b"]);
    let unknown = ["c".to_owned()];
    assert_eq!(library.search(&Query { sources: &unknown, ..query }).unwrap(), []);
    library.remove_source("b").unwrap();
    assert_eq!(library.search(&Query { sources: &[], ..query }).unwrap().len(), 1);
    assert_eq!(library.sources().unwrap(), ["a"]);
}

#[test]
fn no_question_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let mut library = library(dir.path());
    put(&mut library, "live", "a.md", "needle and thread");
    let long = "needle ".repeat(150_000);
    let hostile = [
        "\"",
        "\"needle",
        "needle\"",
        "*",
        "needle*",
        "^needle",
        "needle:",
        "text:needle",
        "-needle",
        "NEAR(needle, 3)",
        "needle AND",
        "NOT",
        "(",
        ")",
        "{text}: needle",
        "needle\0thread",
        "''; DROP",
        "\u{202e}needle",
        "💥",
        "ﬀ",
        "İ",
        "",
        " ",
        "\0",
        &long,
    ];
    for question in hostile {
        let hits = ask(&mut library, question);
        let expected = usize::from(question.contains("needle"));
        let by_word = hits.iter().filter(|hit| hit.found.by_word).count();
        assert_eq!(by_word, expected, "{:?}", question.chars().take(40).collect::<String>());
    }
}

#[test]
fn words_that_are_everywhere_do_not_hide_the_rare_one() {
    let dir = tempfile::tempdir().unwrap();
    let mut library = library(dir.path());
    let common = (0..3000).map(|n| format!("# Part {n}\nthe common words\n")).collect::<String>();
    put(&mut library, "live", "common.md", &common);
    put(&mut library, "live", "rare.md", "the common words and one zyzzyva");
    assert_eq!(ask(&mut library, "the common zyzzyva words")[0].path, "rare.md");
    assert_eq!(ask(&mut library, "the common words").len(), 10);
}

#[test]
fn a_change_of_model_makes_every_vector_anew_and_words_go_on_meanwhile() {
    let dir = tempfile::tempdir().unwrap();
    let mut library = library(dir.path());
    put(&mut library, "live", "a.md", "apples\n\n# B\nbananas\n");
    drop(library);
    let mut library = Library::open(&dir.path().join("knowledge.db"), "p/other").unwrap();
    let status = library.status().unwrap();
    assert_eq!((status.chunks, status.waiting, status.model.as_str()), (2, 2, "p/other"));
    let vector = [1.0, 0.0];
    let query = |text| Query { text, vector: Some(&vector), sources: &[], limit: 9 };
    assert!(library.search(&query("bananas")).unwrap()[0].found.by_word);
    assert_eq!(library.search(&query("fruit")).unwrap(), []);
    let pending = library.pending(10).unwrap();
    let texts: Vec<_> = pending.iter().map(Pending::text).collect();
    assert_eq!(texts, [" apples", "B # B\nbananas"]);
    let near: [&[f32]; 2] = [&[0.1, 1.0], &[1.0, 0.1]];
    let made = pending.into_iter().zip(near).map(|(pending, near)| (pending, Quantised::of(near)));
    library.fill(&made.collect::<Vec<_>>()).unwrap();
    assert_eq!(library.status().unwrap().waiting, 0);
    assert_eq!(library.pending(10).unwrap(), []);
    let hits = library.search(&query("fruit")).unwrap();
    assert_eq!(places(&hits), ["a.md:3-4", "a.md:1-1"]);
    // What is new waits; what goes away meanwhile is no error.
    let document = prepare("c.md", "cherries", None);
    library.put("live", "c.md", "s", &document, 1).unwrap();
    let pending = library.pending(10).unwrap();
    library.remove("live", "c.md").unwrap();
    let made: Vec<_> = pending.into_iter().map(|one| (one, Quantised::of(&[1.0, 1.0]))).collect();
    library.fill(&made).unwrap();
    assert_eq!(library.search(&query("fruit")).unwrap().len(), 2);
}

#[derive(Debug, Clone)]
enum Step {
    Put(usize, Vec<Vec<usize>>),
    Remove(usize),
    RemoveFolder,
    Reopen,
}

const PATHS: [&str; 5] = ["a.md", "dir/b.md", "dir/c.md", "dir0.md", "dir-x/d.md"];

/// Words that no stemmer changes and that are alike in no language.
fn word(n: usize) -> String {
    format!("w{n}q")
}

fn step() -> impl Strategy<Value = Step> {
    let paragraph = prop::collection::vec(0usize..6, 1..4);
    let sections = prop::collection::vec(paragraph, 0..4);
    prop_oneof![
        6 => (0..PATHS.len(), sections).prop_map(|(path, sections)| Step::Put(path, sections)),
        2 => (0..PATHS.len()).prop_map(Step::Remove),
        1 => Just(Step::RemoveFolder),
        1 => Just(Step::Reopen),
    ]
}

/// For each word the places it stands at: what a plain index would answer.
fn naive(documents: &BTreeMap<&str, Vec<Vec<usize>>>, wanted: usize) -> BTreeSet<String> {
    let mut places = BTreeSet::new();
    for (path, sections) in documents {
        for (at, words) in sections.iter().enumerate() {
            if words.contains(&wanted) {
                places.insert(format!("{path}:{}-{}", at * 3 + 1, at * 3 + 2));
            }
        }
    }
    places
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn after_any_changes_every_word_is_where_a_plain_index_has_it(
        steps in prop::collection::vec(step(), 1..14),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let mut library = library(dir.path());
        let mut documents = BTreeMap::new();
        for step in steps {
            match step {
                Step::Put(path, sections) => {
                    let text: String = sections
                        .iter()
                        .map(|words| {
                            let words: Vec<_> = words.iter().map(|n| word(*n)).collect();
                            format!("# heading\n{}\n\n", words.join(" "))
                        })
                        .collect();
                    put(&mut library, "live", PATHS[path], &text);
                    documents.insert(PATHS[path], sections);
                }
                Step::Remove(path) => {
                    library.remove("live", PATHS[path]).unwrap();
                    documents.remove(PATHS[path]);
                }
                Step::RemoveFolder => {
                    library.remove("live", "dir").unwrap();
                    documents.retain(|path, _| !path.starts_with("dir/"));
                }
                Step::Reopen => {
                    drop(library);
                    library = self::library(dir.path());
                }
            }
            for n in 0..6 {
                let text = word(n);
                let query = Query { text: &text, limit: 100, ..Query::default() };
                let found: BTreeSet<_> =
                    places(&library.search(&query).unwrap()).into_iter().collect();
                prop_assert_eq!(found, naive(&documents, n));
            }
            let known: BTreeSet<_> = library.known("live").unwrap().into_keys().collect();
            prop_assert_eq!(known, documents.keys().map(|path| (*path).to_owned()).collect());
        }
    }
}
