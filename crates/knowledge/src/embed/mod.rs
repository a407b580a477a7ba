//! Text as a vector, by a table that rides in the program.
//!
//! Every token has a row; a text is the mean of the rows of its tokens. No network is asked and no
//! model is run, so a page is a matter of microseconds. Where the table comes from, and how it was
//! made, is in `data/README.md`.

mod tokens;

use std::sync::OnceLock;

use tokens::Tokens;

/// What vectors of the table are marked with.
pub const MODEL: &str = "builtin/wordllama-l2-128";
pub const DIMENSIONS: usize = 128;
/// Two texts that have nothing to do with each other are less alike than this.
pub const UNRELATED: f32 = 0.2;

const ROWS: usize = 32_000;
static TABLE: &[u8] = include_bytes!("../../data/table.bin");
const SCALES: usize = ROWS * DIMENSIONS;
const _: () = assert!(TABLE.len() == SCALES + ROWS * 4, "table.bin is not what make.py makes");

/// The table, and the words that lead to its rows.
#[derive(Debug)]
pub struct Table {
    tokens: Tokens,
}

impl Table {
    /// Made when it is first asked for.
    pub fn builtin() -> &'static Self {
        static BUILTIN: OnceLock<Table> = OnceLock::new();
        BUILTIN.get_or_init(|| Self { tokens: Tokens::new() })
    }

    /// All zeros for a text without words. Not of length one: only its direction means anything.
    pub fn embed(&self, text: &str) -> [f32; DIMENSIONS] {
        let mut sum = [0.0; DIMENSIONS];
        self.tokens.each(text, |token| add_row(&mut sum, token));
        sum
    }
}

fn add_row(sum: &mut [f32; DIMENSIONS], token: u16) {
    let at = usize::from(token).min(ROWS - 1);
    let row = &TABLE[at * DIMENSIONS..][..DIMENSIONS];
    let Some(scale) = TABLE[SCALES + at * 4..].first_chunk() else { return };
    let scale = f32::from_le_bytes(*scale);
    for (sum, value) in sum.iter_mut().zip(row) {
        *sum += f32::from(i8::from_le_bytes([*value])) * scale;
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Deserialize)]
    struct Expected {
        tokens: Vec<(String, Vec<u16>)>,
        pairs: Vec<(String, String)>,
        similarity: Vec<Vec<f32>>,
        cut: Vec<Vec<f32>>,
    }

    fn expected() -> Expected {
        serde_json::from_str(include_str!("../../data/expected.json")).unwrap()
    }

    #[test]
    fn tokens_are_those_of_the_original() {
        for (text, ids) in expected().tokens {
            let mut ours = Vec::new();
            Table::builtin().tokens.each(&text, |token| ours.push(token));
            assert_eq!(ours, ids, "{text:?}");
        }
    }

    fn unit(text: &str) -> Vec<f32> {
        let vector = Table::builtin().embed(text);
        let norm = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
        vector.iter().map(|x| x / norm).collect()
    }

    fn similarities() -> Vec<Vec<f32>> {
        let pairs = expected().pairs;
        let others: Vec<_> = pairs.iter().map(|(_, other)| unit(other)).collect();
        let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
        let row = |(one, _): &(String, String)| {
            let one = unit(one);
            others.iter().map(|other| dot(&one, other)).collect()
        };
        pairs.iter().map(row).collect()
    }

    #[test]
    fn similarity_is_what_the_table_gave_where_it_was_made() {
        for (ours, theirs) in similarities().iter().flatten().zip(expected().cut.iter().flatten()) {
            assert!((ours - theirs).abs() < 0.001, "{ours} {theirs}");
        }
    }

    #[test]
    fn the_smaller_table_means_what_the_original_means() {
        let (ours, original) = (similarities(), expected().similarity);
        let found = |table: &[Vec<f32>]| {
            let best =
                |row: &Vec<f32>| (0..row.len()).max_by(|a, b| row[*a].total_cmp(&row[*b])).unwrap();
            table.iter().enumerate().filter(|(at, row)| best(row) == *at).count()
        };
        assert!(found(&ours) >= found(&original), "{} {}", found(&ours), found(&original));
        assert!(found(&ours) * 10 >= ours.len() * 9, "{} of {}", found(&ours), ours.len());
        let correlation = correlation(&ours.concat(), &original.concat());
        assert!(correlation > 0.9, "{correlation}");
    }

    #[test]
    fn what_is_not_related_is_below_the_line() {
        let table = similarities();
        let (mut above, mut all) = (0, 0);
        for (at, row) in table.iter().enumerate() {
            for (other, similarity) in row.iter().enumerate().filter(|(other, _)| *other != at) {
                all += 1;
                above += usize::from(*similarity >= UNRELATED);
                assert!(*similarity < 0.5, "{at} {other} {similarity}");
            }
        }
        assert!(above * 10 < all, "{above} of {all}");
    }

    fn correlation(a: &[f32], b: &[f32]) -> f32 {
        let mean = |x: &[f32]| x.iter().sum::<f32>() / x.len() as f32;
        let (mean_a, mean_b) = (mean(a), mean(b));
        let sum = |f: &dyn Fn(f32, f32) -> f32| {
            a.iter().zip(b).map(|(a, b)| f(a - mean_a, b - mean_b)).sum::<f32>()
        };
        sum(&|a, b| a * b) / (sum(&|a, _| a * a) * sum(&|_, b| b * b)).sqrt()
    }

    #[test]
    fn what_says_nothing_has_no_direction() {
        for text in ["", "  \n\t", "▁▁"] {
            assert!(Table::builtin().embed(text).iter().all(|x| *x == 0.0), "{text:?}");
        }
    }
}
