//! A document as passages that can be found.
//!
//! A passage ends before a heading, and after a paragraph once it is long enough; a block of code stays
//! together while it fits. What is too long to stay together is cut between lines, and the next passage
//! begins with the last of them again, so that no sentence is lost in the cut. Only a line that is too
//! long by itself is cut within.

use std::ops::Range;

/// A passage ends with its paragraph when it has so many bytes.
const ENOUGH: usize = 700;
const LARGEST: usize = 1400;
/// How much of a passage may be repeated in the next.
const OVERLAP: usize = 200;
/// Headings above a passage that are remembered with it.
const LEVELS: usize = 6;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// Of the text, in bytes.
    pub range: Range<usize>,
    /// From 1, and both within.
    pub first_line: u32,
    pub last_line: u32,
    /// The headings it stands under, outermost first.
    pub headings: Vec<String>,
}

#[derive(Debug, Clone, Copy)]
struct Line {
    number: u32,
    start: usize,
    /// Without the line's end.
    end: usize,
}

#[derive(Debug)]
struct Chunker<'t> {
    text: &'t str,
    chunks: Vec<Chunk>,
    headings: Vec<(usize, String)>,
    /// What will be the next passage; none of it is blank at its beginning.
    lines: Vec<Line>,
    /// Where in `lines` a paragraph ended last.
    paragraph: usize,
    /// What closes the block of code that we are in.
    fence: Option<&'t str>,
}

/// Every byte that is not white space is in at least one of them, and they are in order.
pub fn chunks(text: &str) -> Vec<Chunk> {
    let mut chunker = Chunker {
        text,
        chunks: Vec::new(),
        headings: Vec::new(),
        lines: Vec::new(),
        paragraph: 0,
        fence: None,
    };
    let mut start = 0;
    for (number, line) in (1..).zip(text.split_inclusive('\n')) {
        let end = start + line.trim_end_matches(['\n', '\r']).len();
        chunker.take(Line { number, start, end });
        start += line.len();
    }
    chunker.close(None);
    chunker.chunks
}

/// The first heading, or the first line that says something.
pub fn title(text: &str) -> Option<String> {
    let mut lines = text.lines().take(200);
    let heading = lines.clone().find_map(heading).map(|(_, title)| title);
    heading.or_else(|| lines.find(|line| !line.trim().is_empty()).map(|line| short(line.trim())))
}

impl<'t> Chunker<'t> {
    fn take(&mut self, line: Line) {
        let content = &self.text[line.start..line.end];
        if let Some(fence) = self.fence {
            if content.trim_start().starts_with(fence) {
                self.fence = None;
            }
            return self.push(line);
        }
        if content.trim().is_empty() {
            return self.end_paragraph();
        }
        if let Some(fence) = opens(content) {
            self.fence = Some(fence);
        } else if let Some((level, title)) = heading(content) {
            self.close(None);
            self.headings.retain(|(above, _)| *above < level);
            self.headings.push((level, title));
            self.headings.truncate(LEVELS);
        }
        self.push(line);
    }

    fn end_paragraph(&mut self) {
        if self.size() >= ENOUGH {
            self.close(None);
        }
        self.paragraph = self.lines.len();
    }

    fn push(&mut self, line: Line) {
        if line.end - line.start > LARGEST {
            self.close(None);
            return self.cut(line);
        }
        if self.reaches(line) > LARGEST {
            // Between paragraphs when there is such a place, with a repetition when there is none.
            match self.paragraph {
                0 => {
                    self.close(Some(OVERLAP));
                    if self.reaches(line) > LARGEST {
                        self.lines.clear();
                    }
                }
                at => {
                    let rest = self.lines.split_off(at);
                    self.close(None);
                    self.lines = rest;
                    if self.reaches(line) > LARGEST {
                        self.close(None);
                    }
                }
            }
        }
        if !self.lines.is_empty() || !self.text[line.start..line.end].trim().is_empty() {
            self.lines.push(line);
        }
    }

    /// How long the passage would be with this line.
    fn reaches(&self, line: Line) -> usize {
        line.end - self.lines.first().map_or(line.start, |first| first.start)
    }

    fn size(&self) -> usize {
        match (self.lines.first(), self.lines.last()) {
            (Some(first), Some(last)) => last.end - first.start,
            (None, _) | (_, None) => 0,
        }
    }

    /// What there is becomes a passage; the end of it begins the next, when that is wanted.
    fn close(&mut self, overlap: Option<usize>) {
        let lines = std::mem::take(&mut self.lines);
        self.paragraph = 0;
        let (Some(first), Some(last)) = (lines.first(), lines.last()) else { return };
        self.add(*first, last.number, first.start..last.end);
        if let Some(most) = overlap {
            let kept = lines.iter().rev().take_while(|line| last.end - line.start <= most).count();
            // All of it again would be no progress.
            let from = (lines.len() - kept).max(1);
            let blank = |line: &&Line| self.text[line.start..line.end].trim().is_empty();
            self.lines = lines[from..].iter().skip_while(blank).copied().collect();
        }
    }

    fn cut(&mut self, line: Line) {
        let mut start = line.start;
        while start < line.end {
            let mut end = (start + LARGEST).min(line.end);
            while !self.text.is_char_boundary(end) {
                end -= 1;
            }
            if end < line.end {
                // Not within a word, if there is a space near enough.
                let space = self.text[start..end].rfind(char::is_whitespace);
                end = space.filter(|at| *at > LARGEST / 2).map_or(end, |at| start + at);
            }
            self.add(line, line.number, start..end);
            start = end;
        }
    }

    fn add(&mut self, first: Line, last_line: u32, range: Range<usize>) {
        if self.text[range.clone()].trim().is_empty() {
            return;
        }
        let headings = self.headings.iter().map(|(_, title)| title.clone()).collect();
        self.chunks.push(Chunk { range, first_line: first.number, last_line, headings });
    }
}

/// A heading of Markdown (`## x`) or Org (`** x`), and how deep it is. `* x` alone is mostly an item of
/// a list, so Org headings count from the second level.
fn heading(line: &str) -> Option<(usize, String)> {
    let mark = line.chars().next().filter(|mark| matches!(mark, '#' | '*'))?;
    let rest = line.trim_start_matches(mark);
    let level = line.len() - rest.len();
    let title = rest.strip_prefix(' ')?.trim().trim_end_matches('#').trim_end();
    let fits = level <= LEVELS && (mark == '#' || level > 1);
    (fits && !title.is_empty()).then(|| (level, short(title)))
}

/// What will close the block of code that this line opens.
fn opens(line: &str) -> Option<&'static str> {
    let line = line.trim_start();
    ["```", "~~~"].into_iter().find(|fence| line.starts_with(fence))
}

fn short(title: &str) -> String {
    title.chars().take(120).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(text: &str, expected: &[(u32, u32, &str)]) {
        let found: Vec<_> = chunks(text)
            .into_iter()
            .map(|chunk| (chunk.first_line, chunk.last_line, chunk.headings.join(" > ")))
            .collect();
        let expected: Vec<_> = expected
            .iter()
            .map(|(first, last, under)| (*first, *last, (*under).to_owned()))
            .collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn passages_end_at_headings() {
        check("", &[]);
        check("\n \n", &[]);
        check("one\n\ntwo\n", &[(1, 3, "")]);
        check("# A\nx\n\n## B\ny\n# C\n", &[(1, 2, "A"), (4, 5, "A > B"), (6, 6, "C")]);
        check("* item\n** Org\ntext\n", &[(1, 1, ""), (2, 3, "Org")]);
    }

    #[test]
    fn a_heading_in_code_is_code() {
        check("# A\n```sh\n# not a heading\n\nls\n```\n", &[(1, 6, "A")]);
        check("~~~\n# x\n", &[(1, 2, "")]);
    }

    #[test]
    fn a_long_paragraph_is_cut_between_lines_and_goes_on_with_the_last() {
        let line = format!("{}\n", "x".repeat(99));
        check(&line.repeat(20), &[(1, 14, ""), (13, 20, "")]);
    }

    #[test]
    fn paragraphs_stay_whole_when_they_can() {
        let paragraph = |n| format!("{}\n\n", "word ".repeat(n));
        let text = [paragraph(100), paragraph(80), paragraph(100)].concat();
        check(&text, &[(1, 3, ""), (5, 5, "")]);
    }

    #[test]
    fn titles() {
        let check = |text: &str, expected: Option<&str>| {
            assert_eq!(title(text).as_deref(), expected, "{text}");
        };
        check("intro\n# The title #\n", Some("The title"));
        check("\n first words\nmore", Some("first words"));
        check(" \n", None);
    }

    fn text() -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            3 => "[a-zäß日 ]{0,80}",
            1 => Just(String::new()),
            1 => "#{1,3} [a-z]{1,9}",
            1 => Just("```".to_owned()),
            1 => (0usize..4000).prop_map(|n| "wörd ".repeat(n / 5)),
            1 => (0usize..4000).prop_map(|n| "ß".repeat(n / 2)),
        ];
        let line = (piece, prop_oneof![5 => Just("\n"), 1 => Just("\r\n"), 1 => Just("\r")]);
        prop::collection::vec(line, 0..60)
            .prop_map(|lines| lines.into_iter().map(|(text, end)| text + end).collect())
    }

    proptest! {
        #[test]
        fn all_of_the_text_is_covered_in_order_with_the_right_lines(text in text()) {
            let found = chunks(&text);
            let mut covered = 0;
            for chunk in &found {
                let Range { start, end } = chunk.range.clone();
                let own = text.get(start..end);
                prop_assert!(own.is_some_and(|own| !own.trim().is_empty() && own.len() <= LARGEST));
                if start > covered {
                    prop_assert_eq!(text[covered..start].trim(), "");
                }
                prop_assert!(end > covered, "no progress");
                covered = end;
                let line_at = |at: usize| 1 + text[..at].matches('\n').count();
                prop_assert_eq!(chunk.first_line as usize, line_at(start));
                prop_assert_eq!(chunk.last_line as usize, line_at(end));
            }
            prop_assert_eq!(text[covered..].trim(), "");
        }
    }
}
