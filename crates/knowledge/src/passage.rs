//! Quotes and references: where a quote stands, what a text cites, and how that is written.
//!
//! A reference is one line, and what it says can be read back out of it:
//!
//! ```text
//! On shells. did:web:alice.net, 2026-11-17. nacre:edition:HASH#L3-L5 “layer by layer”
//! ```

use crate::edition::{Address, CitationOf, Lines, Manifest, Place, parse_lines};

const SCHEME: &str = "nacre:edition:";
const DIGITS: usize = 64;
const OPEN: char = '“';
const CLOSE: char = '”';
/// What may stand between an address and its quote: the end of a link, or of a code span.
const BETWEEN: [char; 5] = [' ', '>', ')', '`', '\t'];

/// The lines that a quote stands in. White space, of whatever kind and length, is one space; all else
/// has to be the same.
pub fn find(text: &str, quote: &str) -> Option<Lines> {
    let quote = plain(quote);
    if quote.is_empty() {
        return None;
    }
    // Each byte of the plain text, with where it came from.
    let mut joined = String::with_capacity(text.len());
    let mut origin = Vec::with_capacity(text.len());
    for (start, word) in words(text) {
        if !joined.is_empty() {
            joined.push(' ');
            origin.push(start);
        }
        joined.push_str(word);
        origin.extend(start..start + word.len());
    }
    let at = joined.find(&quote)?;
    let (first, last) = (*origin.get(at)?, *origin.get(at + quote.len() - 1)?);
    let before = text[..first].matches('\n').count();
    // The last byte may be the end of a character: only newlines are looked for.
    let within = text.as_bytes()[first..last].iter().filter(|byte| **byte == b'\n').count();
    let number = |lines: usize| u32::try_from(lines + 1).ok();
    Some(Lines { first: number(before)?, last: number(before + within)? })
}

/// A text with single spaces.
pub fn plain(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let base = text.as_ptr() as usize;
    text.split_whitespace().map(move |word| (word.as_ptr() as usize - base, word))
}

/// The lines of a text; fewer when it has not so many, and `None` when it has none of them.
pub fn lines(text: &str, wanted: Lines) -> Option<&str> {
    let skip = usize::try_from(wanted.first).ok()?.checked_sub(1)?;
    let many = usize::try_from(wanted.last - wanted.first + 1).ok()?;
    let start = match skip {
        0 => 0,
        skip => text.match_indices('\n').nth(skip - 1)?.0 + 1,
    };
    let rest = &text[start..];
    let end = rest.match_indices('\n').nth(many - 1).map_or(rest.len(), |(at, _)| at);
    let wanted = &rest[..end];
    (start < text.len()).then(|| wanted.strip_suffix('\n').unwrap_or(wanted))
}

/// What a text cites: every address in it, with the quote that follows it.
pub fn extract(text: &str) -> Vec<CitationOf> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices(SCHEME) {
        let rest = &text[at + SCHEME.len()..];
        let Some(edition) = rest.get(..DIGITS).and_then(|hash| hash.parse::<Address>().ok()) else {
            continue;
        };
        let rest = &rest[DIGITS..];
        if rest.starts_with(|c: char| c.is_ascii_hexdigit()) {
            continue;
        }
        let (lines, rest) = lines_after(rest);
        let line = rest.lines().next().unwrap_or("").trim_start_matches(BETWEEN);
        let quote = line.strip_prefix(OPEN).and_then(|line| line.split_once(CLOSE));
        let quote = quote.map(|(quote, _)| plain(quote)).filter(|quote| !quote.is_empty());
        let citation = CitationOf { edition, lines, quote };
        if !found.contains(&citation) {
            found.push(citation);
        }
    }
    found
}

fn lines_after(text: &str) -> (Option<Lines>, &str) {
    let Some(fragment) = text.strip_prefix('#') else { return (None, text) };
    let end = fragment.find(|c: char| !matches!(c, 'L' | '-' | '0'..='9'));
    let (fragment, rest) = fragment.split_at(end.unwrap_or(fragment.len()));
    match parse_lines(fragment.trim_end_matches('-')) {
        Some(lines) => (Some(lines), rest),
        None => (None, text),
    }
}

/// The one line that tells a reader what is cited.
pub fn reference(citation: &CitationOf, cited: &Manifest) -> String {
    let day = cited.date.get(..10).unwrap_or(&cited.date);
    let place = Place { edition: citation.edition.clone(), lines: citation.lines };
    let title = plain(&cited.title);
    let stop = if title.ends_with(['.', '!', '?']) { "" } else { "." };
    let quote = citation
        .quote
        .as_ref()
        .map_or(String::new(), |quote| format!(" {OPEN}{}{CLOSE}", plain(quote)));
    format!("{title}{stop} {}, {day}. {place}{quote}", cited.author)
}

/// A footnote of Markdown; its name is the same whenever the same place is cited.
pub fn footnote(citation: &CitationOf, cited: &Manifest) -> (String, String) {
    let lines =
        citation.lines.map_or(String::new(), |lines| format!("-{}-{}", lines.first, lines.last));
    let mark = format!("[^{}{lines}]", citation.edition.short());
    let note = format!("{mark}: {}", reference(citation, cited));
    (mark, note)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_quote_is_found_with_its_lines() {
        let text = "One line.\nA sentence that\n  goes on\there.\n\nEnd – ß.";
        let check = |quote: &str, expected: Option<(u32, u32)>| {
            let expected = expected.map(|(first, last)| Lines { first, last });
            assert_eq!(find(text, quote), expected, "{quote}");
        };
        check("One line.", Some((1, 1)));
        check("sentence that goes on here", Some((2, 3)));
        check("  that\n\n\tgoes ", Some((2, 3)));
        check("here. End", Some((3, 5)));
        check("– ß.", Some((5, 5)));
        check("Sentence", None);
        check("line. B", None);
        check("", None);
        check(" \n", None);
    }

    #[test]
    fn lines_of_a_text() {
        let check = |text: &str, first: u32, last: u32, expected: Option<&str>| {
            assert_eq!(lines(text, Lines { first, last }), expected, "{text:?} {first} {last}");
        };
        check("a\nb\nc\n", 1, 1, Some("a"));
        check("a\nb\nc\n", 2, 3, Some("b\nc"));
        check("a\nb\nc\n", 3, 9, Some("c"));
        check("a\nb\nc\n", 4, 4, None);
        check("a", 2, 2, None);
        check("", 1, 1, None);
    }

    fn manifest() -> Manifest {
        Manifest {
            author: "did:web:alice.net".to_owned(),
            bytes: 0,
            citations: Vec::new(),
            content: String::new(),
            date: "2026-11-17T18:30:00Z".to_owned(),
            document: "a.md".to_owned(),
            media_type: "text/markdown".to_owned(),
            previous: None,
            title: "On  shells".to_owned(),
            version: 1,
        }
    }

    #[test]
    fn a_reference_can_be_read_back() {
        let edition: Address = "0123456789abcdef".repeat(4).parse().unwrap();
        for lines in [None, Some(Lines { first: 3, last: 5 }), Some(Lines { first: 2, last: 2 })] {
            for quote in [None, Some("layer by layer".to_owned())] {
                let citation = CitationOf { edition: edition.clone(), lines, quote };
                let (mark, note) = footnote(&citation, &manifest());
                let text = format!("See{mark}, and:\n\n{note}\nmore text “not this”\n");
                assert_eq!(extract(&text), [citation], "{text}");
            }
        }
    }

    #[test]
    fn what_is_cited_in_prose_is_found_too() {
        let hash = "ab".repeat(32);
        let place = format!("nacre:edition:{hash}");
        let one = |lines, quote: Option<&str>| {
            let quote = quote.map(str::to_owned);
            vec![CitationOf { edition: hash.parse().unwrap(), lines, quote }]
        };
        assert_eq!(
            extract(&format!("([x]({place}#L2), and {place}#L2.)")),
            one(Some(Lines { first: 2, last: 2 }), None)
        );
        assert_eq!(extract(&format!("<{place}> “a  b”")), one(None, Some("a b")));
        assert_eq!(extract(&format!("{place}#section")), one(None, None));
        assert_eq!(extract(&format!("{place}0 nacre:edition:abc")), []);
    }

    proptest! {
        #[test]
        fn what_stands_in_a_text_is_found_in_its_lines(
            text in "[a-cß]{1,4}([ \n\t]{1,3}[a-cß]{1,4}){0,12}", from in 0usize..12, many in 1usize..5,
        ) {
            let all: Vec<_> = text.split_whitespace().collect();
            let from = from.min(all.len() - 1);
            let quote = all[from..(from + many).min(all.len())].join("\n ");
            let found = find(&text, &quote);
            prop_assert!(found.is_some());
            let within = found.and_then(|found| lines(&text, found)).unwrap_or_default();
            prop_assert!(plain(within).contains(&plain(&quote)), "{:?} {:?}", within, quote);
            let _ = extract(&text);
        }
    }
}
