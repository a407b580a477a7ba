//! Words as tokens: byte pair encoding over the vocabulary of the table.
//!
//! Pairs are joined in the order that their joint token has in the vocabulary, then that of their
//! parts; `data/make.py` checks that this is the order of the original's list of merges, for
//! everything but runs of spaces. Those do not occur here: space parts words and is otherwise nothing.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

static VOCABULARY: &str = include_str!("../../data/vocabulary.txt");
/// The first token that is not special and not a byte.
const FIRST: u16 = 259;
/// Bytes of characters that the vocabulary does not have.
const BYTES: u16 = 3;
/// Begins a word.
const SPACE: char = '▁';

#[derive(Debug)]
pub(super) struct Tokens {
    ids: HashMap<&'static str, u16>,
}

/// A part of a word: at first a character, then what characters were joined to.
#[derive(Debug, Clone, Copy)]
struct Part {
    start: usize,
    end: usize,
    /// Absent when the vocabulary does not have it, and after it was joined to the one before.
    token: Option<u16>,
    before: Option<usize>,
    after: Option<usize>,
}

/// The smallest is joined next: ids of the joint token and its parts, then the place.
type Pair = (u16, u16, u16, usize, usize);

impl Tokens {
    pub(super) fn new() -> Self {
        // Not `lines`: some tokens end with a carriage return.
        Self { ids: VOCABULARY.split_terminator('\n').zip(FIRST..).collect() }
    }

    pub(super) fn each(&self, text: &str, mut give: impl FnMut(u16)) {
        let mut word = String::new();
        let mut parts = Vec::new();
        let mut pairs = BinaryHeap::new();
        for plain in text.split(|c: char| c.is_whitespace() || c == SPACE) {
            if plain.is_empty() {
                continue;
            }
            word.clear();
            word.push(SPACE);
            word.push_str(plain);
            self.split(&word, &mut parts);
            self.join(&word, &mut parts, &mut pairs);
            let mut next = Some(0);
            while let Some(part) = next.and_then(|at| parts.get(at)) {
                match part.token {
                    Some(token) => give(token),
                    None => word.as_bytes()[part.start..part.end]
                        .iter()
                        .for_each(|byte| give(BYTES + u16::from(*byte))),
                }
                next = part.after;
            }
        }
    }

    fn split(&self, word: &str, parts: &mut Vec<Part>) {
        parts.clear();
        parts.extend(word.char_indices().enumerate().map(|(at, (start, character))| {
            let end = start + character.len_utf8();
            let token = self.ids.get(&word[start..end]).copied();
            Part { start, end, token, before: at.checked_sub(1), after: Some(at + 1) }
        }));
        if let Some(last) = parts.last_mut() {
            last.after = None;
        }
    }

    fn join(&self, word: &str, parts: &mut [Part], pairs: &mut BinaryHeap<Reverse<Pair>>) {
        pairs.clear();
        for at in 0..parts.len().saturating_sub(1) {
            pairs.extend(self.pair(word, parts, at).map(Reverse));
        }
        while let Some(Reverse((joint, _, _, at, end))) = pairs.pop() {
            // One of the two may have become part of something else since.
            let Some(after) = parts[at].after else { continue };
            if parts[at].token.is_none() || parts[after].end != end {
                continue;
            }
            let beyond = parts[after].after;
            parts[after].token = None;
            parts[after].after = None;
            parts[at].token = Some(joint);
            parts[at].end = end;
            parts[at].after = beyond;
            if let Some(beyond) = beyond {
                parts[beyond].before = Some(at);
            }
            pairs.extend(self.pair(word, parts, at).map(Reverse));
            if let Some(before) = parts[at].before {
                pairs.extend(self.pair(word, parts, before).map(Reverse));
            }
        }
    }

    /// The part at this place and the one after it, if together they are a token.
    fn pair(&self, word: &str, parts: &[Part], at: usize) -> Option<Pair> {
        let left = parts[at];
        let right = parts[left.after?];
        let joint = *self.ids.get(&word[left.start..right.end])?;
        Some((joint, left.token?, right.token?, at, right.end))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// As one would write it without care for time: join the first of the best pairs until none is left.
    fn naive(tokens: &Tokens, text: &str) -> Vec<u16> {
        let mut all = Vec::new();
        for plain in text.split_whitespace() {
            let word = format!("{SPACE}{plain}");
            let mut parts: Vec<String> = word.chars().map(String::from).collect();
            let id = |part: &str| tokens.ids.get(part).copied();
            while let Some((_, at)) = (1..parts.len())
                .filter_map(|at| {
                    let (left, right) = (&parts[at - 1], &parts[at]);
                    let rank = (id(&format!("{left}{right}"))?, id(left)?, id(right)?);
                    Some((rank, at - 1))
                })
                .min()
            {
                let right = parts.remove(at + 1);
                parts[at].push_str(&right);
            }
            for part in parts {
                match id(&part) {
                    Some(token) => all.push(token),
                    None => all.extend(part.bytes().map(|byte| BYTES + u16::from(byte))),
                }
            }
        }
        all
    }

    fn encode(tokens: &Tokens, text: &str) -> Vec<u16> {
        let mut ids = Vec::new();
        tokens.each(text, |token| ids.push(token));
        ids
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn tokens_are_those_of_the_plain_algorithm(
            text in "[a-e ]{0,30}|[ -~]{0,60}|\\PC{0,20}",
        ) {
            let tokens = Tokens::new();
            let text = text.replace(SPACE, " ");
            prop_assert_eq!(encode(&tokens, &text), naive(&tokens, &text));
        }
    }

    #[test]
    fn a_word_without_end_takes_no_time_without_end() {
        let tokens = Tokens::new();
        let ids = encode(&tokens, &"ab".repeat(1 << 17));
        assert!(ids.len() > 1 << 10, "{}", ids.len());
    }
}
