//! A library whose process is killed at any moment is whole when it is opened again.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on has failed")]

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use nacre_knowledge::embed::{MODEL, Table};
use nacre_knowledge::{Library, NewFact, Publish, Query, prepare};

const WRITER: &str = "NACRE_KNOWLEDGE_TEST_WRITER";

/// Not a test by itself: what the other one starts and kills. It says what is done when it is done.
#[test]
fn writer() {
    let Some(dir) = std::env::var_os(WRITER) else { return };
    let mut library = Library::open(&Path::new(&dir).join("knowledge.db"), MODEL).unwrap();
    for n in 0u32.. {
        let text = format!("# One\nround{n}q first\n\n# Two\nround{n}q second\n");
        let document = prepare("a.md", &text, Some(Table::builtin()));
        library.put("live", "a.md", &n.to_string(), &document, 1).unwrap();
        let fact = NewFact { text: format!("fact{n}q"), source: "x".to_owned(), tags: vec![] };
        library.add_fact(fact, 1).unwrap();
        let publish = Publish {
            author: "local".to_owned(),
            title: "T".to_owned(),
            document: "a.md".to_owned(),
            media_type: "text/plain".to_owned(),
            content: text.into_bytes(),
            citations: Vec::new(),
        };
        library.publish(publish, 1).unwrap();
        // The harness keeps what is printed by `println!`.
        writeln!(std::io::stdout(), "done {n}").unwrap();
        std::io::stdout().flush().unwrap();
    }
}

#[test]
fn after_a_kill_everything_that_was_done_is_there_and_nothing_is_half_done() {
    let dir = tempfile::tempdir().unwrap();
    for round in 1..6 {
        let done = run_and_kill(dir.path(), round);
        let mut library = Library::open(&dir.path().join("knowledge.db"), MODEL).unwrap();
        let verified = library.verify().unwrap();
        assert_eq!(verified.problems, [""; 0]);
        assert!(verified.editions > done, "{} {done}", verified.editions);
        let facts = library.facts(None, None, u32::MAX).unwrap();
        assert!(facts.len() as u64 > done);
        let known = library.known("live").unwrap();
        let last = &known["a.md"].signature;
        let text = format!("round{last}q");
        let query = Query { text: &text, limit: 9, ..Query::default() };
        let here = library.search(&query).unwrap().into_iter().filter(|hit| hit.source == "live");
        let lines: Vec<_> = here.map(|hit| hit.first_line).collect();
        assert_eq!(lines, [1, 4], "both passages of round {last}, and of no other");
        assert_eq!(library.status().unwrap().sources[0], ("live".to_owned(), 1));
    }
}

/// How many rounds it said were done.
fn run_and_kill(dir: &Path, after: u64) -> u64 {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "writer", "--nocapture", "--test-threads=1"])
        .env(WRITER, dir)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut done = lines.map(|line| line.unwrap()).filter_map(|line| {
        line.split_once("done ").and_then(|(_, n)| n.trim().parse::<u64>().ok())
    });
    let last = done.by_ref().nth(usize::try_from(after * 3).unwrap()).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    done.last().unwrap_or(last)
}
