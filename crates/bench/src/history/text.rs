//! Bytes that compress as source code does: few words that come often and many that come seldom,
//! indentation, the licences that everybody pastes on top.

use super::random::Random;

const WORDS: usize = 6000;
const LICENCES: usize = 5;
/// How many words of the vocabulary one package, and one file in it, use besides the common ones.
const PACKAGE_WORDS: usize = 300;
const OWN_WORDS: usize = 60;
/// How much of a file are lines that the package has elsewhere too, and how many of them there are.
const STOCK: f64 = 0.3;
const STOCK_LINES: usize = 150;
const SYLLABLES: &[&str] = &[
    "al", "bo", "con", "data", "der", "ex", "fi", "get", "han", "in", "key", "lo", "map", "node",
    "on", "pa", "query", "re", "set", "ti", "up", "val", "with", "x", "state", "er", "ion", "or",
    "Path", "List", "Index", "Event", "Type", "Ref", "Id", "Str",
];
const COMMON: &[&str] = &[
    "const",
    "return",
    "function",
    "if",
    "this",
    "=",
    "=>",
    "(",
    ")",
    "{",
    "}",
    "import",
    "from",
    "export",
    "let",
    "new",
    "await",
    "async",
    "null",
    "true",
    "length",
    "string",
    "number",
    "else",
    "for",
    "of",
    "===",
    "&&",
    "||",
    "interface",
    "type",
    "undefined",
];
const ENDS: &[&str] = &[";", ";", ";", " {", "}", ",", ");", "});", ""];

pub(super) struct Writer {
    words: Vec<String>,
    licences: Vec<String>,
}

impl Writer {
    pub(super) fn new() -> Self {
        let mut random = Random::new(0x6e61_6372_6500);
        let words: Vec<String> = (0..WORDS).map(|_| word(&mut random)).collect();
        let licences = (0..LICENCES).map(|_| licence(&words, &mut random)).collect();
        Self { words, licences }
    }

    pub(super) fn licence(&self, number: usize) -> &str {
        &self.licences[number % LICENCES]
    }

    /// `size` bytes of source, the same for the same seed. Files of one `package` share words and
    /// whole lines.
    pub(super) fn source(&self, package: u64, seed: u64, size: usize, into: &mut Vec<u8>) {
        let mut random = Random::new(seed);
        if size > 2000 && random.chance(0.2) {
            into.extend_from_slice(self.licence(random.below(LICENCES)).as_bytes());
        }
        let theirs = Self::vocabulary(&mut Random::new(package), PACKAGE_WORDS, WORDS);
        let ranks = Self::vocabulary(&mut random, OWN_WORDS, PACKAGE_WORDS);
        let own: Vec<usize> = ranks.into_iter().map(|rank| theirs[rank]).collect();
        let mut depth = 0;
        while into.len() < size {
            for _ in 0..depth {
                into.extend_from_slice(b"  ");
            }
            let end = if random.chance(STOCK) {
                let stock = zipf(STOCK_LINES, &mut random) as u64;
                let mut fixed = Random::new(package.wrapping_mul(31).wrapping_add(stock));
                self.line(&theirs, &mut fixed, into)
            } else {
                self.line(&own, &mut random, into)
            };
            depth = match end {
                " {" => (depth + 1).min(6),
                "}" | "});" => (depth - 1).max(0),
                _ => depth,
            };
        }
        into.truncate(size);
    }

    /// Numbers below `end`, small ones more often.
    fn vocabulary(random: &mut Random, count: usize, end: usize) -> Vec<usize> {
        (0..count).map(|_| zipf(end, random)).collect()
    }

    /// Returns how it ends.
    fn line(&self, words: &[usize], random: &mut Random, into: &mut Vec<u8>) -> &'static str {
        for _ in 0..2 + random.below(8) {
            let word = if random.chance(0.45) {
                COMMON[zipf(COMMON.len(), random)]
            } else if random.chance(0.93) {
                self.words[words[zipf(words.len(), random)]].as_str()
            } else {
                self.words[random.below(WORDS)].as_str()
            };
            into.extend_from_slice(word.as_bytes());
            into.push(*random.pick(b"    .,"));
        }
        let end = random.pick(ENDS);
        into.extend_from_slice(end.as_bytes());
        into.push(b'\n');
        end
    }

    /// What a compressor can do nothing about.
    pub(super) fn noise(seed: u64, size: usize, into: &mut Vec<u8>) {
        let mut random = Random::new(seed);
        while into.len() < size {
            into.extend_from_slice(&random.next().to_le_bytes());
        }
        into.truncate(size);
    }
}

/// A rank below `count`; rank n comes about 1/n as often as the first.
fn zipf(count: usize, random: &mut Random) -> usize {
    let rank = (random.unit() * ((count + 1) as f64).ln()).exp();
    (rank as usize).clamp(1, count) - 1
}

fn word(random: &mut Random) -> String {
    (0..1 + random.below(4)).map(|_| *random.pick(SYLLABLES)).collect()
}

fn licence(words: &[String], random: &mut Random) -> String {
    let mut text = String::from("/*\n");
    for _ in 0..14 {
        text.push_str(" *");
        for _ in 0..9 {
            text.push(' ');
            text.push_str(&words[zipf(WORDS, random)]);
        }
        text.push('\n');
    }
    text + " */\n"
}
