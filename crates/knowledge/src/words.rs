//! What somebody typed, as an expression that FTS5 can only read in one way.

use std::collections::HashSet;

/// Of a longer question the beginning is enough.
const LONGEST: usize = 4096;
const MOST: usize = 32;

/// The words of a question: what is not a letter or a digit parts them. None of them means anything to
/// FTS5 once it is quoted.
pub(crate) fn terms(question: &str) -> Vec<String> {
    let mut seen = HashSet::new();
    beginning(question)
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .filter(|word| seen.insert(word.clone()))
        .take(MOST)
        .collect()
}

/// At most so many bytes, and no half character.
pub(crate) fn beginning(text: &str) -> &str {
    let mut end = LONGEST.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

pub(crate) fn quoted(term: &str) -> String {
    format!("\"{}\"", term.replace('"', "\"\""))
}

/// Whatever has one of them.
pub(crate) fn any(terms: &[&str]) -> String {
    terms.iter().map(|term| quoted(term)).collect::<Vec<_>>().join(" OR ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn syntax_of_fts_is_not_syntax_here() {
        let check = |question: &str, expected: &[&str]| assert_eq!(terms(question), expected);
        check("NEAR(a b, 5) OR NOT c*", &["near", "a", "b", "5", "or", "not", "c"]);
        check("\"unbalanced ' text:\0x^2", &["unbalanced", "text", "x", "2"]);
        check("Über-Größe über", &["über", "größe"]);
        check("  ?!  ", &[]);
        assert_eq!(any(&["a", "b\"c"]), "\"a\" OR \"b\"\"c\"");
    }

    #[test]
    fn an_endless_question_is_cut() {
        let long = "wörd ".repeat(1 << 18);
        assert!(beginning(&long).len() <= LONGEST);
        let many: String = (0..100).map(|n| format!("w{n} ")).collect();
        assert_eq!(terms(&many).len(), MOST);
    }
}
