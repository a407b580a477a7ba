//! What a call used, read off its answer while that passes: piece by piece, in constant memory.
//!
//! ```text
//! bytes ─▶ Events (lines of a stream) ─▶ Fields (values at known places) ─▶ Usage
//!      └───────────────────────────────▶ Fields                  (one JSON document)
//! ```
//! The answer itself is never touched.

mod events;
mod fields;

use serde::Deserialize;

use super::money::Dollars;
use events::Events;
use fields::Fields;

/// Tokens, and dollars when the provider tells them. `input` is without what was cached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Usage {
    pub(crate) input: u64,
    pub(crate) cached: u64,
    pub(crate) cache_write: u64,
    pub(crate) output: u64,
    pub(crate) dollars: Option<Dollars>,
}

impl Usage {
    pub(crate) fn tokens(&self) -> u64 {
        [self.input, self.cached, self.cache_write, self.output]
            .iter()
            .fold(0, |a, b| a.saturating_add(*b))
    }

    /// Of each kind of tokens the larger number.
    pub(crate) fn most(self, other: Self) -> Self {
        Self {
            input: self.input.max(other.input),
            cached: self.cached.max(other.cached),
            cache_write: self.cache_write.max(other.cache_write),
            output: self.output.max(other.output),
            dollars: self.dollars.max(other.dollars),
        }
    }
}

/// Which API a call speaks, as far as its usage goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Api {
    Chat,
    Responses,
    Messages,
    Gemini,
    /// Something that is not paid for, such as a list.
    Free,
}

impl Api {
    pub(crate) fn of(method: &http::Method, path: &str) -> Self {
        let last = path.rsplit('/').next().unwrap_or(path);
        match last {
            _ if method == http::Method::GET => Self::Free,
            "responses" | "compact" => Self::Responses,
            "messages" => Self::Messages,
            "count_tokens" => Self::Free,
            _ if last.ends_with(":countTokens") => Self::Free,
            _ if last.contains(':') => Self::Gemini,
            // Embeddings and whatever else the owner allows tell usage like chat completions do.
            _ => Self::Chat,
        }
    }

    fn places(self) -> &'static [&'static [&'static str]] {
        match self {
            Self::Chat => &[&["usage"]],
            Self::Responses => &[&["usage"], &["response", "usage"]],
            Self::Messages => &[&["usage"], &["message", "usage"]],
            Self::Gemini => &[&["usageMetadata"]],
            Self::Free => &[],
        }
    }
}

/// Follows one answer.
pub(crate) struct Watch {
    api: Api,
    fields: Fields,
    /// Absent when the answer is one document.
    events: Option<Events>,
    seen: Usage,
    /// The last word on it has come.
    complete: bool,
    pieces: u64,
}

impl Watch {
    pub(crate) fn new(api: Api, streamed: bool) -> Self {
        Self {
            api,
            fields: Fields::new(api.places()),
            events: streamed.then(Events::default),
            seen: Usage::default(),
            complete: api == Api::Free,
            pieces: 0,
        }
    }

    pub(crate) fn read(&mut self, bytes: &[u8]) {
        if self.api == Api::Free {
            return;
        }
        let Self { api, fields, events, seen, complete, pieces } = self;
        let mut found = |place: usize, value: &[u8]| note(*api, place, value, seen, complete);
        match events {
            Some(events) => events.read(bytes, |piece| match piece {
                events::Piece::Begin => {
                    *pieces += 1;
                    fields.restart();
                }
                events::Piece::Data(data) => fields.read(data, &mut found),
            }),
            None => fields.read(bytes, &mut found),
        }
    }

    /// Events of a stream so far. Models send about one for each token.
    pub(crate) fn pieces(&self) -> u64 {
        self.pieces
    }

    /// What was told so far, whatever came of it.
    pub(crate) fn seen(&self) -> Usage {
        self.seen
    }

    /// All that is known, when everything is. `ended` says that the answer came to its end.
    pub(crate) fn outcome(&self, ended: bool) -> Option<Usage> {
        // Every piece of a stream of Gemini tells the sum so far, and none says that it is the last.
        let last_word = self.complete && (ended || self.api != Api::Gemini);
        last_word.then_some(self.seen)
    }
}

/// What providers say, in all the ways that they say it.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Told {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    prompt_tokens_details: Option<Details>,
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    input_tokens_details: Option<Details>,
    cache_read_input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    /// OpenRouter's own.
    cost: Option<f64>,
    #[serde(rename = "promptTokenCount")]
    prompt_token_count: Option<u64>,
    #[serde(rename = "candidatesTokenCount")]
    candidates_token_count: Option<u64>,
    #[serde(rename = "thoughtsTokenCount")]
    thoughts_token_count: Option<u64>,
    #[serde(rename = "toolUsePromptTokenCount")]
    tool_use_prompt_token_count: Option<u64>,
    #[serde(rename = "cachedContentTokenCount")]
    cached_content_token_count: Option<u64>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Details {
    cached_tokens: Option<u64>,
}

fn note(api: Api, place: usize, value: &[u8], seen: &mut Usage, complete: &mut bool) {
    let Ok(Some(told)) = serde_json::from_slice::<Option<Told>>(value) else { return };
    let cached = |details: &Option<Details>| {
        details.as_ref().and_then(|details| details.cached_tokens).unwrap_or(0)
    };
    let whole = |all: Option<u64>, cached: u64, output: Option<u64>| Usage {
        input: all.unwrap_or(0).saturating_sub(cached),
        cached,
        cache_write: 0,
        output: output.unwrap_or(0),
        dollars: told.cost.and_then(Dollars::new),
    };
    match api {
        Api::Chat => {
            *seen = whole(
                told.prompt_tokens,
                cached(&told.prompt_tokens_details),
                told.completion_tokens,
            );
            *complete = told.prompt_tokens.is_some();
        }
        Api::Responses => {
            *seen =
                whole(told.input_tokens, cached(&told.input_tokens_details), told.output_tokens);
            *complete = told.input_tokens.is_some();
        }
        Api::Messages => {
            // The beginning tells what went in, the end what came out, and may correct the former.
            seen.input = told.input_tokens.unwrap_or(seen.input);
            seen.cached = told.cache_read_input_tokens.unwrap_or(seen.cached);
            seen.cache_write = told.cache_creation_input_tokens.unwrap_or(seen.cache_write);
            seen.output = told.output_tokens.unwrap_or(seen.output);
            seen.dollars = told.cost.and_then(Dollars::new).or(seen.dollars);
            *complete = place == 0 && told.output_tokens.is_some();
        }
        Api::Gemini => {
            let all = told.prompt_token_count.unwrap_or(0)
                + told.tool_use_prompt_token_count.unwrap_or(0);
            let out =
                told.candidates_token_count.unwrap_or(0) + told.thoughts_token_count.unwrap_or(0);
            *seen = whole(Some(all), told.cached_content_token_count.unwrap_or(0), Some(out));
            *complete = true;
        }
        Api::Free => {}
    }
}

#[cfg(test)]
mod tests;
