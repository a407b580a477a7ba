//! The outermost keys of a body, read once and in one way only. Pure.
//!
//! Servers differ in what they make of a key that is there twice, or in other letters: those in Go take
//! `Model` for `model`. What could be read in two ways is refused, or somebody checks one and asks another.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::elsewhere::Search;

/// Those that decide something here.
const KNOWN: [&str; 21] = [
    "model",
    "models",
    "fallbacks",
    "preset",
    "tools",
    "plugins",
    "stream",
    "stream_options",
    "max_tokens",
    "max_completion_tokens",
    "max_output_tokens",
    "n",
    "best_of",
    "background",
    "previous_response_id",
    "conversation",
    "prompt",
    "cachedContent",
    "cached_content",
    "generationConfig",
    "generation_config",
];

pub(super) struct Top<'a> {
    found: [Option<&'a RawValue>; KNOWN.len()],
    /// Somewhere in it, something is named that is not in it.
    pub(super) elsewhere: bool,
}

impl<'a> Top<'a> {
    pub(super) fn read(body: &'a [u8]) -> serde_json::Result<Self> {
        let mut reader = serde_json::Deserializer::from_slice(body);
        let mut top = Self { found: [None; KNOWN.len()], elsewhere: false };
        reader.deserialize_map(Reading(&mut top))?;
        reader.end()?;
        Ok(top)
    }

    /// Also when it is `null`.
    pub(super) fn written(&self, name: &str) -> Option<&'a RawValue> {
        let place = KNOWN.iter().position(|known| *known == name)?;
        self.found[place]
    }

    /// What is `null` is not there.
    pub(super) fn of(&self, name: &str) -> Option<&'a RawValue> {
        self.written(name).filter(|value| value.get() != "null")
    }
}

struct Reading<'t, 'a>(&'t mut Top<'a>);

impl<'a> Visitor<'a> for Reading<'_, 'a> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key_seed(Key)? {
            let Some(place) = key else {
                map.next_value_seed(Search(&mut self.0.elsewhere))?;
                continue;
            };
            if self.0.found[place].is_some() {
                return Err(A::Error::custom(format_args!("duplicate key \"{}\"", KNOWN[place])));
            }
            self.0.found[place] = Some(map.next_value()?);
        }
        Ok(())
    }
}

/// Which of those that are known.
struct Key;

impl<'a> DeserializeSeed<'a> for Key {
    type Value = Option<usize>;

    fn deserialize<D: Deserializer<'a>>(self, key: D) -> Result<Option<usize>, D::Error> {
        key.deserialize_str(self)
    }
}

impl Visitor<'_> for Key {
    type Value = Option<usize>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<Option<usize>, E> {
        match KNOWN.iter().position(|known| is_same(known, key)) {
            Some(place) if KNOWN[place] != key => Err(E::custom(format_args!(
                "the key \"{}\" could be taken for \"{}\"",
                key.escape_debug(),
                KNOWN[place]
            ))),
            place => Ok(place),
        }
    }
}

/// As the most generous of servers compares keys: Go also takes two letters beyond ASCII for `s` and `k`.
fn is_same(known: &str, key: &str) -> bool {
    let plain = |letter: char| match letter {
        '\u{17f}' => 's',
        '\u{212a}' => 'k',
        letter => letter.to_ascii_lowercase(),
    };
    known.len() <= key.len() && known.chars().map(plain).eq(key.chars().map(plain))
}
