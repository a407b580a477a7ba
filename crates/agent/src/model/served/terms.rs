//! What a service is asked with, and what is left to try when it refuses that. Pure.

use super::{Format, Service};
use crate::model::Error;

/// A reply that may not even be so long is not worth asking for.
const SHORTEST: u32 = 1024;
/// As much is set aside where nobody says how long it may be.
const USUAL: u32 = 16_384;

/// These only ever give way, so that asking again comes to an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Terms {
    pub(super) thoughts: Thoughts,
    /// The most it may say at once; its own limit when absent.
    pub(super) longest: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Thoughts {
    /// It is asked what it thinks, and shown again what it thought.
    Asked,
    /// It is only shown.
    Shown,
    /// It is told nothing but the sense of what was said.
    Untold,
}

impl Terms {
    pub(super) fn of(service: &Service) -> Self {
        let thoughts = match thinks(service.format, &service.model) {
            true => Thoughts::Asked,
            false => Thoughts::Shown,
        };
        let longest = service.longest.map(|longest| match most(service) {
            Some(most) => longest.min(most),
            None => longest,
        });
        Self { thoughts, longest }
    }

    /// What may be taken where this was not. A refusal comes before anything was said.
    pub(super) fn after(self, format: Format, error: &Error) -> Option<Self> {
        match error {
            Error::Refused(why) if is_about_thoughts(why) => {
                let thoughts = self.thoughts.less(format)?;
                Some(Self { thoughts, ..self })
            }
            // As much is set aside as may be said: near the end of a budget less of it still fits.
            Error::Spent(_) => {
                let longest = self.longest.unwrap_or(USUAL);
                (longest > SHORTEST)
                    .then_some(Self { longest: Some((longest / 4).max(SHORTEST)), ..self })
            }
            Error::Refused(_)
            | Error::Busy { .. }
            | Error::TooLong(_)
            | Error::Broken(_)
            | Error::Garbled(_) => None,
        }
    }
}

impl Thoughts {
    fn less(self, format: Format) -> Option<Self> {
        match (self, format) {
            (Self::Asked, Format::Responses | Format::Gemini) => Some(Self::Shown),
            // There, nothing in what is sent asks for them.
            (Self::Asked, Format::Chat | Format::Messages) | (Self::Shown, _) => Some(Self::Untold),
            (Self::Untold, _) => None,
        }
    }
}

/// Not of those that are known to have no thoughts, which refuse to be asked for them.
fn thinks(format: Format, model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or(model);
    let name = name.strip_prefix("ft:").unwrap_or(name);
    let without: &[&str] = match format {
        Format::Responses => &["gpt-3", "gpt-4", "chatgpt-"],
        Format::Gemini => &["gemini-1", "gemini-2.0", "gemma-2", "gemma-3"],
        Format::Chat | Format::Messages => &[],
    };
    !without.iter().any(|beginning| name.starts_with(beginning))
}

/// What the oldest models there still are may say; more is refused.
fn most(service: &Service) -> Option<u32> {
    let model = &service.model;
    match service.format {
        Format::Messages if model.contains("claude-3-5") => Some(8192),
        Format::Messages if model.contains("claude-3-7") => None,
        Format::Messages if model.contains("claude-3-") => Some(4096),
        Format::Messages | Format::Chat | Format::Responses | Format::Gemini => None,
    }
}

/// OpenAI's "Encrypted content is not supported with this model", "organization must be verified to generate
/// reasoning summaries" and "encrypted content could not be verified"; Google's "Thinking is not enabled" and
/// "include_thoughts"; Anthropic's "Invalid `signature` in `thinking` block".
fn is_about_thoughts(why: &str) -> bool {
    let why = why.to_ascii_lowercase();
    ["encrypted content", "reasoning", "thinking", "thought", "signature"]
        .iter()
        .any(|word| why.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_that_have_no_thoughts_are_not_asked_for_them() {
        let check = |format, model: &str, expected| {
            assert_eq!(thinks(format, model), expected, "{format:?} {model}");
        };
        for model in ["gpt-4o-mini", "gpt-4.1-mini", "gpt-3.5-turbo", "chatgpt-4o-latest"] {
            check(Format::Responses, model, false);
        }
        check(Format::Responses, "ft:gpt-4o-mini-2024-07-18:me::x", false);
        check(Format::Responses, "openai/gpt-4o", false);
        for model in ["gpt-5", "o4-mini", "codex-mini-latest", "gpt-next"] {
            check(Format::Responses, model, true);
        }
        check(Format::Gemini, "gemini-2.0-flash", false);
        check(Format::Gemini, "gemini-2.5-flash", true);
        check(Format::Chat, "gpt-4o", true);
    }

    #[test]
    fn what_is_refused_gives_way_and_comes_to_an_end() {
        use Thoughts::{Asked, Shown, Untold};
        let refused = |why: &str| Error::Refused(why.to_owned());
        let about = refused("Encrypted content is not supported with this model.");
        let start = Terms { thoughts: Asked, longest: None };
        let steps = |format, error: &Error| {
            let next = |terms: &Terms| terms.after(format, error);
            std::iter::successors(Some(start), next).map(|terms| terms.thoughts).collect::<Vec<_>>()
        };
        assert_eq!(steps(Format::Responses, &about), [Asked, Shown, Untold]);
        assert_eq!(
            steps(Format::Gemini, &refused("Thinking is not enabled")),
            [Asked, Shown, Untold]
        );
        assert_eq!(steps(Format::Messages, &refused("Invalid `signature`")), [Asked, Untold]);
        assert_eq!(steps(Format::Responses, &refused("no such model")), [Asked]);

        let spent = Error::Spent("nothing left".to_owned());
        let rich = Terms { longest: Some(11_111), ..start };
        let lengths: Vec<_> =
            std::iter::successors(Some(rich), |t| t.after(Format::Messages, &spent))
                .filter_map(|terms| terms.longest)
                .collect();
        assert_eq!(lengths, [11_111, 2777, 1024]);
        let unsaid = start.after(Format::Chat, &spent).unwrap();
        assert_eq!(unsaid.longest, Some(4096), "a quarter of what is set aside by itself");
    }

    #[test]
    fn nobody_is_asked_for_more_than_they_can_say() {
        let longest = |model: &str| {
            let service = Service {
                format: Format::Messages,
                base: String::new(),
                token: String::new(),
                model: model.to_owned(),
                longest: Some(32_000),
            };
            Terms::of(&service).longest
        };
        assert_eq!(longest("claude-sonnet-4-5"), Some(32_000));
        assert_eq!(longest("claude-3-7-sonnet-latest"), Some(32_000));
        assert_eq!(longest("claude-3-5-haiku-latest"), Some(8192));
        assert_eq!(longest("claude-3-haiku-20240307"), Some(4096));
    }
}
