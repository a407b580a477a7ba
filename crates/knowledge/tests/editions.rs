//! Editions never change unnoticed, and citations hold.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on has failed")]

use std::path::Path;

use nacre_knowledge::edition::{CitationOf, Lines};
use nacre_knowledge::embed::MODEL;
use nacre_knowledge::{Error, Library, Publish, Published, Query, Way};
use rusqlite::Connection;

const NOW: u64 = 1_794_940_200_000;

fn library(dir: &Path) -> Library {
    Library::open(&dir.join("knowledge.db"), MODEL).unwrap()
}

fn paper(document: &str, content: &str) -> Publish {
    Publish {
        author: "did:web:alice.net".to_owned(),
        title: format!("About {document}"),
        document: document.to_owned(),
        media_type: "text/markdown".to_owned(),
        content: content.as_bytes().to_vec(),
        citations: Vec::new(),
    }
}

fn publish(library: &mut Library, document: &str, content: &str) -> Published {
    library.publish(paper(document, content), NOW).unwrap()
}

fn citation(of: &Published, quote: Option<&str>) -> CitationOf {
    let quote = quote.map(str::to_owned);
    CitationOf { edition: of.info.address.clone(), lines: None, quote }
}

#[test]
fn an_edition_is_named_by_what_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let mut library = library(dir.path());
    let first = publish(&mut library, "a.md", "one\n");
    assert!(first.new);
    // Whoever computes the same with other tools comes to the same name.
    let manifest = r#"{"author":"did:web:alice.net","bytes":4,"citations":[],"content":"CONTENT","date":"2026-11-17T18:30:00Z","document":"a.md","media_type":"text/markdown","previous":null,"title":"About a.md","version":1}"#;
    let content = blake3::hash(b"one\n").to_hex();
    let manifest = manifest.replace("CONTENT", &content);
    let edition = library.edition(&first.info.address).unwrap();
    assert_eq!(String::from_utf8(edition.manifest).unwrap(), manifest);
    assert_eq!(first.info.address.hash(), blake3::hash(manifest.as_bytes()).to_hex().as_str());
    assert_eq!(edition.content, b"one\n");

    let again = library.publish(paper("a.md", "one\n"), NOW + 5000).unwrap();
    assert_eq!((again.new, &again.info), (false, &first.info));
    let second = publish(&mut library, "a.md", "two\n");
    assert_eq!(second.info.manifest.previous.as_ref(), Some(&first.info.address));
    let back = publish(&mut library, "a.md", "one\n");
    assert!(back.new, "going back is an edition of its own");
    let all = library.editions(None, None, 9).unwrap();
    assert_eq!(all.iter().map(|info| info.number).collect::<Vec<_>>(), [3, 2, 1]);
    assert_eq!(library.find_edition("a.md").unwrap().info, back.info);
    assert_eq!(library.find_edition(&first.info.address.hash()[..12]).unwrap().info, first.info);
    let missing = library.find_edition("nothing.md").unwrap_err();
    assert_eq!(missing.to_string(), "there is no edition \"nothing.md\"");
    let found = library.search(&Query { text: "two", limit: 3, ..Query::default() }).unwrap();
    assert_eq!(found[0].path, second.info.address.to_string());
}

#[test]
fn an_edition_and_what_it_is_found_by_are_there_together_or_not_at_all() {
    let dir = tempfile::tempdir().unwrap();
    let mut library = library(dir.path());
    // Whatever comes between the two, such as a power cut.
    let other = Connection::open(dir.path().join("knowledge.db")).unwrap();
    other
        .execute_batch(
            "CREATE TRIGGER power_cut BEFORE INSERT ON documents BEGIN SELECT RAISE(ABORT, 'cut'); END",
        )
        .unwrap();
    library.publish(paper("a.md", "one\n"), NOW).unwrap_err();
    assert_eq!(library.editions(None, None, 9).unwrap(), []);
    other.execute_batch("DROP TRIGGER power_cut").unwrap();
    let published = publish(&mut library, "a.md", "one\n");
    assert!(published.new);
    let found = library.search(&Query { text: "one", limit: 3, ..Query::default() }).unwrap();
    assert_eq!(found[0].path, published.info.address.to_string());
}

#[test]
fn a_citation_must_hold() {
    let dir = tempfile::tempdir().unwrap();
    let mut library = library(dir.path());
    let source =
        publish(&mut library, "source.md", "# On shells\n\nA shell grows\nlayer by layer.\n");
    let cited = library.cite(&citation(&source, Some("grows  layer by"))).unwrap();
    assert_eq!(cited.of.lines, Some(Lines { first: 3, last: 4 }));
    let address = &source.info.address;
    let reference =
        format!("About source.md. did:web:alice.net, 2026-11-17. {address}#L3-L4 “grows layer by”");
    assert_eq!(cited.reference, reference);
    assert_eq!(cited.note, format!("[^{}-3-4]: {reference}", address.short()));

    let wrong = library.cite(&citation(&source, Some("layer upon layer"))).unwrap_err();
    assert_eq!(wrong.to_string(), format!("\"layer upon layer\" does not stand in {address}"));
    let outside = CitationOf {
        lines: Some(Lines { first: 1, last: 2 }),
        ..citation(&source, Some("layer by layer"))
    };
    assert!(library.cite(&outside).is_err(), "not in these lines");
    let beyond = CitationOf { lines: Some(Lines { first: 4, last: 5 }), ..citation(&source, None) };
    assert!(library.cite(&beyond).is_err());
    let unknown =
        CitationOf { edition: "ab".repeat(32).parse().unwrap(), lines: None, quote: None };
    assert!(matches!(library.cite(&unknown), Err(Error::NotFound { .. })));

    for bad in [
        format!("see nacre:edition:{}", "ab".repeat(32)),
        format!("see {address}#L9"),
        format!("see {address} “layer upon layer”"),
    ] {
        assert!(library.publish(paper("bad.md", &bad), NOW).is_err(), "{bad}");
    }
    let text = format!("As is known{}:\n\n{}\n", cited.mark, cited.note);
    let citing = publish(&mut library, "citing.md", &text);
    assert_eq!(citing.info.manifest.citations, std::slice::from_ref(&cited.of));
    let edition = library.edition(&citing.info.address).unwrap();
    assert_eq!(library.references(&edition).unwrap(), [cited]);
    let neighbours = |address, way| library.neighbours(address, way).unwrap();
    assert_eq!(neighbours(&citing.info.address, Way::Cites), std::slice::from_ref(&source.info));
    assert_eq!(neighbours(address, Way::CitedBy), std::slice::from_ref(&citing.info));
    assert_eq!(neighbours(address, Way::Cites), []);
    let graph = library.graph(10).unwrap();
    assert_eq!((&graph[0].citing, &graph[0].cited), (&citing.info.address, address));
}

#[test]
fn what_is_no_text_can_be_published_and_cited_as_a_whole() {
    let dir = tempfile::tempdir().unwrap();
    let mut library = library(dir.path());
    let mut image = paper("a.png", "");
    image.content = vec![0x89, b'P', 0xff, 0];
    let image = library.publish(image, NOW).unwrap();
    assert!(library.cite(&citation(&image, None)).is_ok());
    assert!(library.cite(&citation(&image, Some("P"))).is_err());
    for bad in [
        Publish { title: " ".to_owned(), ..paper("a.md", "x") },
        Publish { title: "x".repeat(301), ..paper("a.md", "x") },
        Publish { document: String::new(), ..paper("a.md", "x") },
        Publish { document: "a\nb".to_owned(), ..paper("a.md", "x") },
        paper("a.md", ""),
        paper("a.md", &"x".repeat((4 << 20) + 1)),
    ] {
        assert!(matches!(library.publish(bad, NOW), Err(Error::Refused { .. })));
    }
}

/// Three editions, of which the last cites the first.
fn published(dir: &Path) -> Library {
    let mut library = library(dir);
    let first = publish(&mut library, "a.md", "one two three\n");
    publish(&mut library, "b.md", "four\n");
    let note = library.cite(&citation(&first, Some("two"))).unwrap().note;
    publish(&mut library, "c.md", &note);
    library
}

#[test]
fn what_is_whole_verifies_and_the_head_says_what_there_is() {
    let dir = tempfile::tempdir().unwrap();
    let mut library = published(dir.path());
    let before = library.verify().unwrap();
    assert_eq!((before.editions, before.problems.as_slice()), (3, &[][..]));
    publish(&mut library, "d.md", "five\n");
    let after = library.verify().unwrap();
    assert_ne!(after.head, before.head);
    assert_eq!(library.verify().unwrap(), after);
    let untouched = Connection::open(dir.path().join("knowledge.db")).unwrap();
    for change in ["UPDATE editions SET document = 'x'", "DELETE FROM editions"] {
        let refused = untouched.execute(change, []).unwrap_err().to_string();
        assert!(refused.starts_with("an edition is never"), "{refused}");
    }
}

#[test]
fn every_flipped_byte_of_an_edition_is_noticed() {
    let dir = tempfile::tempdir().unwrap();
    let library = published(dir.path());
    let all = library.editions(None, None, 9).unwrap();
    let db = Connection::open(dir.path().join("knowledge.db")).unwrap();
    db.execute_batch("DROP TRIGGER edition_stays; DROP TRIGGER edition_remains").unwrap();
    for column in ["manifest", "content"] {
        for info in &all {
            let name = info.address.hash();
            let read = format!("SELECT {column} FROM editions WHERE hash = ?");
            let bytes: Vec<u8> = db.query_row(&read, [name], |row| row.get(0)).unwrap();
            let write = format!("UPDATE editions SET {column} = ? WHERE hash = ?");
            for at in 0..bytes.len() {
                let mut flipped = bytes.clone();
                flipped[at] ^= 1 << (at % 8);
                db.execute(&write, (&flipped, name)).unwrap();
                let read = library.edition(&info.address);
                assert!(matches!(read, Err(Error::Damaged(_))), "{column} {at}");
                assert_ne!(library.verify().unwrap().problems, [""; 0], "{column} {at}");
            }
            db.execute(&write, (&bytes, name)).unwrap();
        }
    }
    assert_eq!(library.verify().unwrap().problems, [""; 0]);
}

#[test]
fn every_other_change_is_noticed() {
    let changes = [
        "UPDATE editions SET document = 'z.md' WHERE number = 2",
        "UPDATE editions SET link = 'x' WHERE number = 2",
        "UPDATE editions SET number = 9 WHERE number = 2",
        "DELETE FROM editions WHERE number = 2",
        "DELETE FROM editions WHERE number = 1",
        "DELETE FROM citations",
        "UPDATE citations SET cited = citing",
        "INSERT INTO citations VALUES ('x', 0, 'y')",
        "INSERT INTO citations SELECT hash, 0, hash FROM editions WHERE number = 2",
        "INSERT INTO editions SELECT 4, 'x', 'x', 'x', x'00', x'00'",
    ];
    for change in changes {
        let dir = tempfile::tempdir().unwrap();
        let library = published(dir.path());
        let db = Connection::open(dir.path().join("knowledge.db")).unwrap();
        db.execute_batch("DROP TRIGGER edition_stays; DROP TRIGGER edition_remains").unwrap();
        assert!(db.execute(change, []).unwrap() > 0, "{change}");
        assert_ne!(library.verify().unwrap().problems, [""; 0], "{change}");
    }
    // The last of all is missed by whoever knows the head.
    let dir = tempfile::tempdir().unwrap();
    let library = published(dir.path());
    let head = library.verify().unwrap().head;
    let db = Connection::open(dir.path().join("knowledge.db")).unwrap();
    db.execute_batch(
        "DROP TRIGGER edition_remains; DELETE FROM editions WHERE number = 3; DELETE FROM citations",
    )
    .unwrap();
    assert_ne!(library.verify().unwrap().head, head);
}
