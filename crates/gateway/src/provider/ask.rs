//! What a call asks for: read from its body without changing it. Pure.

use bytes::{Bytes, BytesMut};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::money::Amount;
use super::prices::Price;
use super::usage::{Api, Usage};

/// When a call does not say how much may come back.
pub(crate) const USUAL_OUTPUT: u64 = 4096;
/// A token of the usual languages is at least so many bytes of JSON, on average.
const BYTES_PER_TOKEN: u64 = 3;
const LONGEST_MODEL: usize = 200;
/// No provider gives more, whatever is asked for.
const MOST_OUTPUT: u64 = 10_000_000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ask {
    pub(crate) model: String,
    /// The most tokens that go in, roughly, and come out.
    most: Usage,
    /// Where to write that usage is wanted, and what.
    insertion: Option<(usize, &'static str)>,
}

/// The fields that matter. One that is there twice is read by everybody as they like, and refused.
#[derive(Deserialize)]
struct Fields<'a> {
    model: Option<String>,
    stream: Option<bool>,
    #[serde(borrow)]
    stream_options: Option<&'a RawValue>,
    max_tokens: Option<u64>,
    max_completion_tokens: Option<u64>,
    max_output_tokens: Option<u64>,
    n: Option<u64>,
    #[serde(rename = "generationConfig", alias = "generation_config")]
    generation_config: Option<Generation>,
}

#[derive(Deserialize)]
struct Generation {
    #[serde(rename = "maxOutputTokens", alias = "max_output_tokens")]
    max_output_tokens: Option<u64>,
    #[serde(rename = "candidateCount", alias = "candidate_count")]
    candidate_count: Option<u64>,
}

impl Ask {
    pub(crate) fn read(api: Api, path: &str, body: &[u8]) -> Result<Self, String> {
        let in_path = model_in_path(path);
        if api == Api::Free {
            return Ok(Self {
                model: in_path.unwrap_or_default().to_owned(),
                most: Usage::default(),
                insertion: None,
            });
        }
        let fields: Fields<'_> = serde_json::from_slice(body)
            .map_err(|error| format!("the body cannot be read as JSON: {error}"))?;
        let model = in_path.map(str::to_owned).or(fields.model).unwrap_or_default();
        if model.is_empty() || model.len() > LONGEST_MODEL {
            return Err("the body names no model".to_owned());
        }
        let insertion = match (api, fields.stream) {
            (Api::Chat, Some(true)) => insertion(body, fields.stream_options),
            _ => None,
        };
        let gemini = fields.generation_config;
        let each = [fields.max_completion_tokens, fields.max_output_tokens, fields.max_tokens]
            .into_iter()
            .chain([gemini.as_ref().and_then(|gemini| gemini.max_output_tokens)])
            .flatten()
            .max();
        let many = fields.n.or(gemini.and_then(|gemini| gemini.candidate_count)).unwrap_or(1);
        let most = Usage {
            input: u64::try_from(body.len()).unwrap_or(u64::MAX).div_ceil(BYTES_PER_TOKEN),
            output: each
                .unwrap_or(default_output(path))
                .saturating_mul(many.max(1))
                .min(MOST_OUTPUT),
            ..Usage::default()
        };
        Ok(Self { model, most, insertion })
    }

    /// What is put aside until it is known.
    pub(crate) fn reservation(&self, price: Price) -> Amount {
        price.amount(&self.most)
    }

    pub(crate) fn most(&self) -> Usage {
        self.most
    }

    /// The body with the wish for usage in it, and every other byte as it was.
    pub(crate) fn wishing_usage(&self, body: Bytes) -> Bytes {
        let Some((at, text)) = self.insertion else { return body };
        let mut wishing = BytesMut::with_capacity(body.len() + text.len());
        wishing.extend_from_slice(&body[..at]);
        wishing.extend_from_slice(text.as_bytes());
        wishing.extend_from_slice(&body[at..]);
        wishing.freeze()
    }
}

/// What has no output is not charged for any.
fn default_output(path: &str) -> u64 {
    let embeds = path.ends_with("embeddings") || path.ends_with(":embedContent");
    if embeds { 0 } else { USUAL_OUTPUT }
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
fn insertion(body: &[u8], options: Option<&RawValue>) -> Option<(usize, &'static str)> {
    let Some(options) = options else {
        // `"stream": true` is there, so the object is not empty.
        let brace = body.iter().position(|byte| *byte == b'{')?;
        return Some((brace + 1, "\"stream_options\":{\"include_usage\":true},"));
    };
    let text = options.get();
    let fields: serde_json::Map<String, serde_json::Value> = serde_json::from_str(text).ok()?;
    if fields.contains_key("include_usage") {
        return None;
    }
    let inside = text.as_ptr() as usize - body.as_ptr() as usize + 1;
    let comma =
        if fields.is_empty() { "\"include_usage\":true" } else { "\"include_usage\":true," };
    Some((inside, comma))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chat(body: &str) -> Result<Ask, String> {
        Ask::read(Api::Chat, "chat/completions", body.as_bytes())
    }

    #[test]
    fn the_one_edit_leaves_every_other_byte_alone() {
        let check = |body: &str, expected: &str| {
            let edited = chat(body).unwrap().wishing_usage(Bytes::from(body.to_owned()));
            assert_eq!(edited, expected, "{body}");
            serde_json::from_slice::<serde_json::Value>(&edited).unwrap();
        };
        let same = |body: &str| check(body, body);
        check(
            " {\n \"stream\":true, \"model\":\"m\",\"x\":\"\u{e9}\\u00e9\" }",
            " {\"stream_options\":{\"include_usage\":true},\n \"stream\":true, \"model\":\"m\",\"x\":\"\u{e9}\\u00e9\" }",
        );
        check(
            r#"{"model":"m","stream":true,"stream_options":{}}"#,
            r#"{"model":"m","stream":true,"stream_options":{"include_usage":true}}"#,
        );
        check(
            r#"{"model":"m","stream":true,"stream_options": { "x" : 1 }}"#,
            r#"{"model":"m","stream":true,"stream_options": {"include_usage":true, "x" : 1 }}"#,
        );
        same(r#"{"model":"m","stream":true,"stream_options":{"include_usage":true}}"#);
        same(r#"{"model":"m","stream":true,"stream_options":{"include_usage":false}}"#);
        same(r#"{"model":"m","stream":false}"#);
        same(r#"{"model":"m"}"#);
        let messages = r#"{"model":"m","stream":true,"max_tokens":5}"#;
        let ask = Ask::read(Api::Messages, "v1/messages", messages.as_bytes()).unwrap();
        assert_eq!(ask.wishing_usage(Bytes::from(messages)), messages);
    }

    #[test]
    fn as_much_is_put_aside_as_may_come() {
        let output = |body: &str| chat(body).unwrap().most.output;
        assert_eq!(output(r#"{"model":"m"}"#), USUAL_OUTPUT);
        assert_eq!(output(r#"{"model":"m","max_tokens":10}"#), 10);
        assert_eq!(output(r#"{"model":"m","max_tokens":10,"max_completion_tokens":30,"n":2}"#), 60);
        assert_eq!(output(r#"{"model":"m","max_tokens":18446744073709551615,"n":9}"#), MOST_OUTPUT);
        let path = "v1beta/models/g-1:generateContent";
        let body = br#"{"generationConfig":{"maxOutputTokens":7,"candidateCount":3}}"#;
        let ask = Ask::read(Api::Gemini, path, body).unwrap();
        assert_eq!((ask.model.as_str(), ask.most.output), ("g-1", 21));
        let embedded = Ask::read(Api::Chat, "embeddings", br#"{"model":"m","input":"x"}"#).unwrap();
        assert_eq!(embedded.most.output, 0);
    }

    #[test]
    fn what_can_be_read_in_two_ways_is_refused() {
        let bad = [
            r#"{"model":"cheap","model":"dear"}"#,
            r#"{"model":"m","max_tokens":1,"max_tokens":9}"#,
            r#"{"model":"m","\u006dodel":"dear"}"#,
            r#"{"messages":[]}"#,
            r#"{"model":""}"#,
            r#"{"model":"m"} {}"#,
            r#"{"model":"m","max_tokens":-1}"#,
            "[]",
            "",
            "\u{feff}{}",
        ];
        for body in bad {
            assert!(chat(body).is_err(), "{body}");
        }
    }
}
