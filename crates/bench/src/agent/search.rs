//! How long a question takes when there is a lot to look through.

use std::path::Path;
use std::time::Instant;

use anyhow::Result;
use nacre_knowledge::embed::{MODEL, Table};
use nacre_knowledge::{Library, Query, prepare};

use crate::report::Row;
use crate::samples::Samples;

const DOCUMENTS: usize = 1000;
const PASSAGES: usize = 100;
const WORDS: usize = 60;
const TARGET_MS: f64 = 150.0;

/// Rare words, common ones, and whole questions.
const QUESTIONS: &[&str] = &[
    "repairing an automobile engine at home",
    "the section about water",
    "the",
    "how do we bring everything back when the disk is gone",
    "what is the best way to make money in the world market today",
];

/// Hybrid search over a hundred thousand chunks, by word and by meaning, embedding included. The
/// median of the questions; the first one, which reads the vectors, is a row of its own.
pub(crate) fn rows(home: &Path, quick: bool) -> Result<Vec<Row>> {
    let documents = if quick { DOCUMENTS / 10 } else { DOCUMENTS };
    let file = home.join("knowledge.db");
    let mut library = Library::open(&file, MODEL)?;
    let mut draw = Draw(0x9e37_79b9_7f4a_7c15);
    for number in 0..documents {
        let path = format!("{number}.md");
        let document = prepare(&path, &draw.document(), Some(Table::builtin()));
        library.put("bench", &path, "", &document, 0)?;
    }
    let chunks = library.status()?.chunks;
    drop(library);
    let mut library = Library::open(&file, MODEL)?;
    let began = Instant::now();
    ask(&mut library, QUESTIONS[0])?;
    let mut first = Samples::default();
    first.push_ms(began.elapsed());
    let mut samples = Samples::default();
    for _ in 0..if quick { 5 } else { 40 } {
        for question in QUESTIONS {
            let began = Instant::now();
            ask(&mut library, question)?;
            samples.push_ms(began.elapsed());
        }
    }
    let metric = format!("search over {chunks} chunks");
    Ok(vec![
        Row::lower(metric.clone(), "ms", samples.median())
            .target(TARGET_MS)
            .samples(samples.count()),
        Row::lower(format!("{metric}, slowest in a hundred"), "ms", samples.percentile(99))
            .target(TARGET_MS)
            .samples(samples.count()),
        Row::lower(format!("{metric}, the first after a start"), "ms", first.median()),
    ])
}

fn ask(library: &mut Library, text: &str) -> Result<()> {
    let vector = Table::builtin().embed(text);
    let query = Query { text, vector: Some(&vector), sources: &[], limit: 10 };
    anyhow::ensure!(!library.search(&query)?.is_empty(), "nothing was found for {text}");
    Ok(())
}

/// The same documents every time.
struct Draw(u64);

/// What a document is made of: some in nearly all passages, most in few.
const VOCABULARY: &[&str] = &[
    "the", "section", "and", "water", "people", "house", "time", "market", "money", "world",
    "school", "engine", "disk", "music", "river", "garden", "letter", "winter", "machine",
    "forest", "doctor", "battle", "galaxy", "recipe", "contract", "network", "weather", "football",
    "backup", "history",
];

impl Draw {
    fn number(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Half of the words are common ones, the others are one of many thousand.
    fn word(&mut self) -> String {
        let number = self.number();
        let many = VOCABULARY.len() as u64;
        let (one, other) = ((number >> 8) % many, (number >> 24) % many);
        let common = usize::try_from(one.min(other)).unwrap_or(0);
        if number.is_multiple_of(2) {
            return VOCABULARY[common].to_owned();
        }
        format!("{}{}", VOCABULARY[common], (number >> 40) % 2000)
    }

    fn document(&mut self) -> String {
        let mut text = String::new();
        for passage in 0..PASSAGES {
            text.push_str(&format!("# Section {passage}\n"));
            for _ in 0..WORDS {
                text.push_str(&self.word());
                text.push(' ');
            }
            text.push_str("\n\n");
        }
        text
    }
}
