//! Models that a body names besides its `model`: those that may answer in its place, and those that its tools
//! ask. Pure.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::top::Top;

/// Nobody means more.
const MOST: usize = 64;
/// In these lists a text is a model too.
const OF_MODELS: [&str; 2] = ["models", "fallbacks"];
const OF_PARTS: [&str; 2] = ["tools", "plugins"];

pub(super) fn others(top: &Top<'_>) -> Result<Vec<String>, String> {
    let mut names = Vec::new();
    for key in OF_MODELS.into_iter().chain(OF_PARTS) {
        let Some(list) = top.of(key) else { continue };
        let wrong = |error: serde_json::Error| format!("{key} of the body: {error}");
        let Listed { texts, named } = serde_json::from_str(list.get()).map_err(wrong)?;
        if OF_MODELS.contains(&key) {
            names.extend(texts);
        }
        names.extend(named);
    }
    if let Some(preset) = top.of("preset") {
        let preset: String =
            serde_json::from_str(preset.get()).map_err(|error| format!("preset: {error}"))?;
        // The name that it has where it stands in the place of a model.
        names.push(format!("@preset/{preset}"));
    }
    match names.len() > MOST {
        true => Err(format!("the body names more than {MOST} models")),
        false => Ok(names),
    }
}

#[derive(Default)]
struct Listed {
    texts: Vec<String>,
    /// In its objects.
    named: Vec<String>,
}

impl<'a> Deserialize<'a> for Listed {
    fn deserialize<D: Deserializer<'a>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(Reading)
    }
}

/// What is of interest in an object of such a list.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Part<'a> {
    #[serde(borrow)]
    model: Option<&'a RawValue>,
    models: Option<Vec<String>>,
}

struct Reading;

impl<'a> Visitor<'a> for Reading {
    type Value = Listed;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'a>>(self, mut seq: A) -> Result<Listed, A::Error> {
        let mut listed = Listed::default();
        while let Some(one) = seq.next_element::<&RawValue>()? {
            match one.get().as_bytes().first() {
                Some(b'"') if listed.texts.len() <= MOST => {
                    listed.texts.push(serde_json::from_str(one.get()).map_err(A::Error::custom)?);
                }
                Some(b'{') if listed.named.len() <= MOST => {
                    let part: Part<'_> =
                        serde_json::from_str(one.get()).map_err(A::Error::custom)?;
                    let model = part.model.and_then(|model| serde_json::from_str(model.get()).ok());
                    listed.named.extend(model.into_iter().chain(part.models.unwrap_or_default()));
                }
                Some(_) | None => {}
            }
        }
        Ok(listed)
    }
}
