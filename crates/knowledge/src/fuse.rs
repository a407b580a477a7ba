//! One ranking of two.
//!
//! Ranks are joined, not scores: how well words match and how near vectors are cannot be compared.
//! Cormack, Clarke and Büttcher, "Reciprocal rank fusion", SIGIR 2009.

use std::collections::HashMap;

/// The constant of the paper: how little the first places differ.
const K: f64 = 60.0;

#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Joined {
    pub(crate) id: i64,
    pub(crate) score: f64,
    pub(crate) by_word: bool,
    pub(crate) by_meaning: bool,
}

/// Best first; equal ones by id, so that the same question has the same answer.
pub(crate) fn fuse(words: &[i64], meaning: &[i64], most: usize) -> Vec<Joined> {
    let mut joined: HashMap<i64, Joined> = HashMap::new();
    let mut add = |ids: &[i64], mark: fn(&mut Joined)| {
        for (rank, id) in (1u32..).zip(ids) {
            let entry = joined.entry(*id).or_insert(Joined { id: *id, ..Joined::default() });
            entry.score += 1.0 / (K + f64::from(rank));
            mark(entry);
        }
    };
    add(words, |entry| entry.by_word = true);
    add(meaning, |entry| entry.by_meaning = true);
    let mut all: Vec<_> = joined.into_values().collect();
    all.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.id.cmp(&b.id)));
    all.truncate(most);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_both_found_comes_first() {
        let ids = |words: &[i64], meaning: &[i64]| -> Vec<_> {
            fuse(words, meaning, 9).iter().map(|found| found.id).collect()
        };
        assert_eq!(ids(&[1, 2, 3], &[4, 3]), [3, 1, 4, 2]);
        assert_eq!(ids(&[], &[7]), [7]);
        assert_eq!(ids(&[], &[]), [0i64; 0]);
        let both = fuse(&[5], &[5], 1)[0];
        assert!(both.by_word && both.by_meaning);
    }
}
