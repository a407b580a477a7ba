//! What a call asks for: read from its body without changing it. Pure.

mod elsewhere;
mod named;
mod top;

use bytes::{Bytes, BytesMut};
use serde::Deserialize;
use serde_json::Number;
use serde_json::value::RawValue;

use super::bounds::Bounds;
use super::money::Amount;
use super::prices::Price;
use super::usage::{Api, Usage};
use top::Top;

/// A token of the usual languages is at least so many bytes of JSON, on average.
const BYTES_PER_TOKEN: u64 = 3;
const LONGEST_MODEL: usize = 200;
/// No provider gives more, whatever is asked for.
const MOST_OUTPUT: u64 = 10_000_000;
const WISH: &str = "\"include_usage\":true";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ask {
    pub(crate) model: String,
    /// Any of these may be asked too.
    others: Vec<String>,
    /// The most tokens that go in, roughly, and come out.
    most: Usage,
    wish: Option<Wish>,
}

/// Where it is written that usage is wanted: in the place of so many bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Wish {
    at: usize,
    instead_of: usize,
    text: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Generation {
    #[serde(rename = "maxOutputTokens", alias = "max_output_tokens")]
    max_output_tokens: Option<Number>,
    #[serde(rename = "candidateCount", alias = "candidate_count")]
    candidate_count: Option<Number>,
}

impl Ask {
    pub(crate) fn read(api: Api, path: &str, body: &[u8], bounds: &Bounds) -> Result<Self, String> {
        let in_path = model_in_path(path);
        if api == Api::Free {
            return Ok(Self {
                model: in_path.unwrap_or_default().to_owned(),
                others: Vec::new(),
                most: Usage::default(),
                wish: None,
            });
        }
        let top =
            Top::read(body).map_err(|error| format!("the body cannot be read as JSON: {error}"))?;
        let model = match in_path {
            Some(model) => model.to_owned(),
            None => value::<String>(&top, "model")?.unwrap_or_default(),
        };
        if model.is_empty() || model.len() > LONGEST_MODEL {
            return Err("the body names no model".to_owned());
        }
        if top.of("background").is_some_and(|background| background.get() == "true") {
            let why = "\"background\" is not passed on: the provider would go on with such a call when it is \
                       over here, and nobody could end it or count it; leave it out, and stream the answer";
            return Err(why.to_owned());
        }
        let wish = match (api, value::<bool>(&top, "stream")?) {
            (Api::Chat, Some(true)) => wish(body, top.written("stream_options")),
            _ => None,
        };
        let others = named::others(&top)?;
        let all = || others.iter().chain([&model]);
        let output = output(api, path, &top)?;
        let usual = match embeds(path) {
            true => 0,
            false => all().map(|model| bounds.output(model)).max().unwrap_or_default(),
        };
        let elsewhere = match names_elsewhere(&top) {
            true => all().map(|model| bounds.input(model)).max().unwrap_or_default(),
            false => 0,
        };
        let written = u64::try_from(body.len()).unwrap_or(u64::MAX).div_ceil(BYTES_PER_TOKEN);
        let most = Usage {
            input: written.saturating_add(elsewhere),
            output: output.each.unwrap_or(usual).saturating_mul(output.many).min(MOST_OUTPUT),
            ..Usage::default()
        };
        Ok(Self { model, others, most, wish })
    }

    /// All that may be asked.
    pub(crate) fn models(&self) -> impl Iterator<Item = &str> {
        [&self.model].into_iter().chain(&self.others).map(String::as_str)
    }

    /// What is put aside until it is known.
    pub(crate) fn reservation(&self, price: Price) -> Amount {
        price.at_most(&self.most)
    }

    pub(crate) fn most(&self) -> Usage {
        self.most
    }

    /// The body with the wish for usage in it, and every other byte as it was.
    pub(crate) fn wishing_usage(&self, body: Bytes) -> Bytes {
        let Some(Wish { at, instead_of, text }) = &self.wish else { return body };
        let mut wishing = BytesMut::with_capacity(body.len() + text.len());
        wishing.extend_from_slice(&body[..*at]);
        wishing.extend_from_slice(text.as_bytes());
        wishing.extend_from_slice(&body[at + instead_of..]);
        wishing.freeze()
    }
}

fn value<'a, T: Deserialize<'a>>(top: &Top<'a>, name: &str) -> Result<Option<T>, String> {
    let Some(value) = top.of(name) else { return Ok(None) };
    let read = serde_json::from_str(value.get());
    read.map(Some).map_err(|error| format!("{name} of the body: {error}"))
}

/// How much may come back, as far as the body says.
struct Output {
    each: Option<u64>,
    many: u64,
}

/// Only what this API reads: a field of another is ignored there, and would bound nothing.
fn output(api: Api, path: &str, top: &Top<'_>) -> Result<Output, String> {
    let number = |name| value::<Number>(top, name).map(|number| number.as_ref().and_then(bound));
    let of = |each, many: Option<u64>| Output { each, many: many.unwrap_or(1) };
    Ok(match api {
        Api::Chat if path.ends_with("chat/completions") => {
            // Which of the two is read depends on the model.
            of(number("max_completion_tokens")?.max(number("max_tokens")?), number("n")?)
        }
        Api::Chat => of(number("max_tokens")?, number("n")?.max(number("best_of")?)),
        Api::Responses => of(number("max_output_tokens")?, None),
        Api::Messages => of(number("max_tokens")?, None),
        Api::Gemini => {
            let (camel, snake) =
                (value(top, "generationConfig")?, value(top, "generation_config")?);
            let Generation { max_output_tokens, candidate_count } = match (camel, snake) {
                (Some(_), Some(_)) => return Err("generationConfig is there twice".to_owned()),
                (camel, snake) => camel.or(snake).unwrap_or_default(),
            };
            let read = |number: Option<Number>| number.as_ref().and_then(bound);
            of(read(max_output_tokens), read(candidate_count))
        }
        Api::Free => of(Some(0), None),
    })
}

/// 0 and what is below bound nothing, wherever they are taken at all: llama.cpp writes "unlimited" as -1.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it saturates")]
fn bound(number: &Number) -> Option<u64> {
    let whole = number.as_u64().or_else(|| number.as_f64().map(|number| number.ceil() as u64));
    whole.filter(|number| *number > 0)
}

/// Something is named of which the body does not show how long it is.
fn names_elsewhere(top: &Top<'_>) -> bool {
    let kept = ["previous_response_id", "conversation", "cachedContent", "cached_content"];
    let prompt = top.of("prompt").is_some_and(|prompt| prompt.get().starts_with('{'));
    top.elsewhere || prompt || kept.into_iter().any(|name| top.of(name).is_some())
}

/// What has no output is not charged for any.
fn embeds(path: &str) -> bool {
    path.ends_with("embeddings") || path.ends_with(":embedContent")
}

/// `v1beta/models/NAME:generateContent` and `models/NAME`.
fn model_in_path(path: &str) -> Option<&str> {
    let (before, name) = path.rsplit_once('/')?;
    let below = before == "models" || before.ends_with("/models");
    // In a name of a list there may be more of them.
    let name =
        if path.starts_with("v1beta/") { name.split(':').next().unwrap_or(name) } else { name };
    below.then_some(name)
}

/// Who says that they do not want it is not overruled: then the reservation counts.
fn wish(body: &[u8], options: Option<&RawValue>) -> Option<Wish> {
    let Some(options) = options else {
        // `"stream": true` is there, so the object is not empty.
        let brace = body.iter().position(|byte| *byte == b'{')?;
        let text = format!("\"stream_options\":{{{WISH}}},");
        return Some(Wish { at: brace + 1, instead_of: 0, text });
    };
    let text = options.get();
    let at = text.as_ptr() as usize - body.as_ptr() as usize;
    if text == "null" {
        return Some(Wish { at, instead_of: text.len(), text: format!("{{{WISH}}}") });
    }
    let fields: serde_json::Map<String, serde_json::Value> = serde_json::from_str(text).ok()?;
    if fields.contains_key("include_usage") {
        return None;
    }
    let comma = if fields.is_empty() { "" } else { "," };
    Some(Wish { at: at + 1, instead_of: 0, text: format!("{WISH}{comma}") })
}

#[cfg(test)]
mod tests;
