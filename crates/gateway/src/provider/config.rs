//! `[provider.NAME]` and `[models]`, as written and as resolved.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::base::Base;
use super::bounds::Bounds;
use super::key::{Key, KeyFrom};
use super::money::{Dollars, Limits};
use super::paths::PathRule;
use super::prices::{Price, Prices};

const LONGEST_NAME: usize = 32;
/// A runaway is noticed before it is dear; `[models] dollars_per_day` raises it.
const DEFAULT_DOLLARS_PER_DAY: Dollars = Dollars(20_000_000_000);
const DEFAULT_LARGEST_BODY: u64 = 32 * 1024 * 1024;

/// Which API somebody speaks, and how they want their key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    Openai,
    Anthropic,
    Google,
    Openrouter,
    OpenaiCompatible,
}

impl Kind {
    pub const ALL: [Self; 5] =
        [Self::Openai, Self::Anthropic, Self::Google, Self::Openrouter, Self::OpenaiCompatible];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Openai => "openai",
            Self::Anthropic => "anthropic",
            Self::Google => "google",
            Self::Openrouter => "openrouter",
            Self::OpenaiCompatible => "openai-compatible",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }

    fn base_url(self) -> Option<&'static str> {
        match self {
            Self::Openai => Some("https://api.openai.com/v1"),
            Self::Anthropic => Some("https://api.anthropic.com"),
            Self::Google => Some("https://generativelanguage.googleapis.com"),
            Self::Openrouter => Some("https://openrouter.ai/api/v1"),
            Self::OpenaiCompatible => None,
        }
    }

    /// Asking models, and asking which there are. Nothing that stores, lists or manages.
    fn paths(self) -> &'static [&'static str] {
        const OPENAI: &[&str] = &[
            "POST chat/completions",
            "POST completions",
            "POST responses",
            "POST responses/compact",
            "POST embeddings",
            "GET models",
            "GET models/*",
        ];
        match self {
            Self::Openai | Self::OpenaiCompatible => OPENAI,
            Self::Anthropic => &[
                "POST v1/messages",
                "POST v1/messages/count_tokens",
                "GET v1/models",
                "GET v1/models/*",
            ],
            Self::Google => &[
                "POST v1beta/models/*:generateContent",
                "POST v1beta/models/*:streamGenerateContent",
                "POST v1beta/models/*:countTokens",
                "POST v1beta/models/*:embedContent",
                "GET v1beta/models",
                "GET v1beta/models/*",
            ],
            Self::Openrouter => &[
                "POST chat/completions",
                "POST completions",
                "POST responses",
                "POST messages",
                "POST embeddings",
                "GET models",
                "GET models/*",
            ],
        }
    }
}

/// One `[provider.NAME]` table.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub struct RawProvider {
    /// Which API; the name says it when absent.
    pub kind: Option<Kind>,
    pub base_url: Option<String>,
    /// The environment variable of the gateway that holds the key.
    pub key_env: Option<String>,
    /// A file that only its owner can read.
    pub key_file: Option<PathBuf>,
    /// Certificates that are believed besides the usual ones, as a PEM file.
    pub ca_file: Option<PathBuf>,
    pub paths: Option<Vec<String>>,
    pub models: Vec<String>,
    pub prices: BTreeMap<String, RawPrice>,
    /// How many tokens a model can hear and say at once; `*` stands for anything.
    pub windows: BTreeMap<String, u64>,
    /// By model: the tokens that are put aside for an answer when a call sets no end to it.
    pub max_output: BTreeMap<String, u64>,
    pub dollars_per_day: Option<Dollars>,
    pub tokens_per_day: Option<u64>,
}

/// Dollars for a million tokens.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawPrice {
    pub input: Dollars,
    pub output: Dollars,
    pub cached: Option<Dollars>,
    pub cache_write: Option<Dollars>,
}

/// The `[models]` table: what holds for all providers.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub struct RawModelsConfig {
    /// All providers together; 0 means no limit.
    pub dollars_per_day: Option<Dollars>,
    pub tokens_per_day: Option<u64>,
    pub largest_body_bytes: Option<u64>,
    /// Whether the record holds what was asked and answered, not only hashes.
    pub keep_bodies: bool,
    pub sandbox: RawSandboxLimits,
}

/// What the commands of each sandbox may use, unless they have a token of their own.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub struct RawSandboxLimits {
    pub providers: Vec<String>,
    pub models: Vec<String>,
    pub dollars_per_day: Option<Dollars>,
    pub tokens_per_day: Option<u64>,
    pub requests_per_minute: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelsConfig {
    pub providers: Vec<Provider>,
    pub day: Limits,
    pub largest_body: u64,
    pub keep_bodies: bool,
    pub sandbox: SandboxScope,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SandboxScope {
    pub(crate) providers: Vec<String>,
    pub(crate) models: Vec<String>,
    pub(crate) day: Limits,
    pub(crate) requests_per_minute: Option<u32>,
}

/// Somebody who answers model calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Provider {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) base: Base,
    /// Why it cannot be used, when that is so.
    pub(crate) key: Result<Option<Key>, String>,
    pub(crate) key_from: KeyFrom,
    pub(crate) ca_file: Option<PathBuf>,
    pub(crate) paths: Vec<PathRule>,
    pub(crate) models: Vec<String>,
    pub(crate) prices: Prices,
    pub(crate) bounds: Bounds,
    pub(crate) day: Limits,
}

impl Default for ModelsConfig {
    fn default() -> Self {
        RawModelsConfig::default().resolve(Vec::new())
    }
}

impl RawModelsConfig {
    pub fn resolve(self, providers: Vec<Provider>) -> ModelsConfig {
        let day = self.dollars_per_day.unwrap_or(DEFAULT_DOLLARS_PER_DAY);
        ModelsConfig {
            providers,
            day: limits(self.tokens_per_day, Some(day)),
            largest_body: self.largest_body_bytes.unwrap_or(DEFAULT_LARGEST_BODY),
            keep_bodies: self.keep_bodies,
            sandbox: SandboxScope {
                providers: self.sandbox.providers,
                models: self.sandbox.models,
                day: limits(self.sandbox.tokens_per_day, self.sandbox.dollars_per_day),
                requests_per_minute: self.sandbox.requests_per_minute.filter(|most| *most > 0),
            },
        }
    }
}

/// Nobody means a computer that may use nothing; `provider stop` is for that.
fn limits(tokens: Option<u64>, dollars: Option<Dollars>) -> Limits {
    Limits { tokens: tokens.filter(|most| *most > 0), dollars: dollars.filter(|most| most.0 > 0) }
}

impl RawProvider {
    /// `variable` gives the value of an environment variable. A key that cannot be had is told when
    /// the provider is used, so that the others work.
    pub fn resolve(
        self,
        name: &str,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Provider, String> {
        let wrong = |why: String| format!("provider \"{}\": {why}", name.escape_debug());
        check_name(name).map_err(wrong)?;
        let kind = self.kind.or(Kind::parse(name));
        let kind = kind.ok_or_else(|| {
            wrong(
                "its kind is missing: openai, anthropic, google, openrouter or openai-compatible"
                    .to_owned(),
            )
        })?;
        let url = self.base_url.as_deref().or(kind.base_url());
        let url = url.ok_or_else(|| wrong("its base_url is missing".to_owned()))?;
        let base = Base::parse(url).map_err(wrong)?;
        let (key_from, key) = match (self.key_env, self.key_file) {
            (Some(_), Some(_)) => {
                return Err(wrong("key_env and key_file are both set; choose one".to_owned()));
            }
            (Some(name), None) => {
                let key = variable(&name).ok_or(format!("{name} is not set"));
                (KeyFrom::Environment(name), key.and_then(|text| Key::parse(&text)).map(Some))
            }
            (None, Some(path)) => (KeyFrom::File(path.clone()), Key::read(&path).map(Some)),
            (None, None) if kind == Kind::OpenaiCompatible => (KeyFrom::Nowhere, Ok(None)),
            (None, None) => (KeyFrom::Nowhere, Err("it has no key".to_owned())),
        };
        let paths: Result<Vec<_>, _> = match &self.paths {
            Some(paths) => paths.iter().map(|path| PathRule::parse(path)).collect(),
            None => kind.paths().iter().map(|path| PathRule::parse(path)).collect(),
        };
        let own = self.prices.into_iter().map(|(model, raw)| (model, raw.resolve())).collect();
        Ok(Provider {
            name: name.to_owned(),
            kind,
            base,
            key,
            key_from,
            ca_file: self.ca_file,
            paths: paths.map_err(wrong)?,
            models: self.models,
            prices: Prices::new(kind, own),
            bounds: Bounds { output: self.max_output, windows: self.windows },
            day: limits(self.tokens_per_day, self.dollars_per_day),
        })
    }

    /// Files are named from where the configuration is.
    pub fn files_below(&mut self, folder: &Path) {
        for file in [&mut self.key_file, &mut self.ca_file].into_iter().flatten() {
            *file = folder.join(&*file);
        }
    }
}

impl RawPrice {
    fn resolve(self) -> Price {
        let mut price = Price::per_million(self.input, self.output);
        if let Some(cached) = self.cached {
            price = price.cached(cached);
        }
        match self.cache_write {
            Some(write) => price.cache_write(write),
            None => price,
        }
    }
}

/// It is a part of addresses.
pub fn check_name(name: &str) -> Result<(), String> {
    let good = (1..=LONGEST_NAME).contains(&name.len())
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    match good {
        true => Ok(()),
        false => Err("a name has 1 to 32 lower case letters, digits and dashes".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(name: &str, raw: RawProvider) -> Result<Provider, String> {
        raw.resolve(name, |name| (name == "KEY").then(|| "sk-1".to_owned()))
    }

    #[test]
    fn a_name_is_enough_for_the_usual_ones() {
        let raw = RawProvider { key_env: Some("KEY".to_owned()), ..RawProvider::default() };
        for kind in Kind::ALL.into_iter().filter(|kind| kind.base_url().is_some()) {
            let provider = resolve(kind.as_str(), raw.clone()).unwrap();
            assert!(provider.key.is_ok() && !provider.paths.is_empty(), "{kind:?}");
        }
    }

    #[test]
    fn the_longest_name_says_which_window() {
        let windows = [("gpt-5*", 400_000), ("gpt-5-chat*", 128_000)];
        let windows = windows.map(|(name, tokens)| (name.to_owned(), tokens)).into();
        let provider =
            resolve("openai", RawProvider { windows, ..RawProvider::default() }).unwrap();
        let window = |model| provider.bounds.window(model);
        assert_eq!((window("gpt-5"), window("gpt-5-chat-latest")), (Some(400_000), Some(128_000)));
        assert_eq!(window("o3"), None);
    }

    #[test]
    fn what_cannot_be_meant_is_named() {
        let raw = RawProvider::default;
        let both = RawProvider { key_env: Some("KEY".into()), key_file: Some("k".into()), ..raw() };
        let own = RawProvider { kind: Some(Kind::OpenaiCompatible), ..raw() };
        let bad_url = RawProvider { base_url: Some("ftp://x".into()), ..own.clone() };
        let bad_path = RawProvider { paths: Some(vec!["../x".into()]), ..raw() };
        let cases = [
            ("openai", both, "choose one"),
            ("mine", raw(), "kind is missing"),
            ("mine", own, "base_url is missing"),
            ("mine", bad_url, "ftp://x"),
            ("openai", bad_path, "../x"),
            ("../x", raw(), "a name has"),
        ];
        for (name, raw, why) in cases {
            let said = resolve(name, raw).unwrap_err();
            assert!(said.contains(why), "{said}");
        }
    }

    #[test]
    fn a_key_that_is_missing_leaves_the_others_working() {
        let raw = RawProvider { key_env: Some("NOT_SET".into()), ..RawProvider::default() };
        assert_eq!(resolve("openai", raw).unwrap().key, Err("NOT_SET is not set".to_owned()));
        let none = resolve("openai", RawProvider::default()).unwrap();
        assert_eq!(none.key, Err("it has no key".to_owned()));
    }
}
