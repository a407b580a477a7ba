//! What tokens cost: tables of the usual providers with their date, and the owner's own.
//!
//! Prices change, and what a call really cost is on the provider's bill. These are for budgets, so
//! a model that no table knows counts like the dearest one that its table knows.

use super::config::Kind;
use super::money::{Amount, Dollars};
use super::usage::Usage;

/// What the tables below are meant to be of. They were not compared with the providers' pages since:
/// whoever relies on a budget in dollars sets the prices of their models.
pub const AS_OF: &str = "2025-10";

/// Billionths of a dollar for one token, which is thousandths of a dollar for a million.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Price {
    pub(crate) input: u64,
    pub(crate) output: u64,
    /// Input that the provider had in its cache.
    pub(crate) cached: u64,
    /// Input that it puts there.
    pub(crate) cache_write: u64,
}

/// A name (the beginning of a model's name) and dollars per million tokens: input, output, cached.
type Table = &'static [(&'static str, f64, f64, f64)];

const OPENAI: Table = &[
    ("gpt-5", 1.25, 10.0, 0.125),
    ("gpt-5-mini", 0.25, 2.0, 0.025),
    ("gpt-5-nano", 0.05, 0.4, 0.005),
    ("gpt-5-pro", 15.0, 120.0, 15.0),
    ("gpt-4.1", 2.0, 8.0, 0.5),
    ("gpt-4.1-mini", 0.4, 1.6, 0.1),
    ("gpt-4.1-nano", 0.1, 0.4, 0.025),
    ("gpt-4o", 2.5, 10.0, 1.25),
    ("gpt-4o-mini", 0.15, 0.6, 0.075),
    ("o3", 2.0, 8.0, 0.5),
    ("o3-mini", 1.1, 4.4, 0.55),
    ("o3-pro", 20.0, 80.0, 20.0),
    ("o4-mini", 1.1, 4.4, 0.275),
    ("codex-mini", 1.5, 6.0, 0.375),
    ("text-embedding-3-small", 0.02, 0.0, 0.02),
    ("text-embedding-3-large", 0.13, 0.0, 0.13),
];

const ANTHROPIC: Table = &[
    ("claude-opus-4", 15.0, 75.0, 1.5),
    ("claude-sonnet-4", 3.0, 15.0, 0.3),
    ("claude-haiku-4-5", 1.0, 5.0, 0.1),
    ("claude-3-7-sonnet", 3.0, 15.0, 0.3),
    ("claude-3-5-sonnet", 3.0, 15.0, 0.3),
    ("claude-3-5-haiku", 0.8, 4.0, 0.08),
    ("claude-3-haiku", 0.25, 1.25, 0.03),
    ("claude-3-opus", 15.0, 75.0, 1.5),
];

const GOOGLE: Table = &[
    ("gemini-2.5-pro", 2.5, 15.0, 0.25),
    ("gemini-2.5-flash", 0.3, 2.5, 0.03),
    ("gemini-2.5-flash-lite", 0.1, 0.4, 0.01),
    ("gemini-2.0-flash", 0.1, 0.4, 0.025),
    ("gemini-2.0-flash-lite", 0.075, 0.3, 0.075),
];

/// Of one provider: the owner's first, then the table of its kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Prices {
    own: Vec<(String, Price)>,
    known: Vec<(&'static str, Price)>,
    /// Of what nobody knows.
    other: Price,
}

impl Prices {
    pub(super) fn new(kind: Kind, own: Vec<(String, Price)>) -> Self {
        let tables: &[Table] = match kind {
            Kind::Openai => &[OPENAI],
            Kind::Anthropic => &[ANTHROPIC],
            Kind::Google => &[GOOGLE],
            Kind::Openrouter => &[OPENAI, ANTHROPIC, GOOGLE],
            // A model of one's own costs nothing unless one says so.
            Kind::OpenaiCompatible => &[],
        };
        let known: Vec<_> =
            tables.iter().flat_map(|table| table.iter()).map(|row| (row.0, price(row))).collect();
        let all = own.iter().map(|(_, price)| *price).chain(known.iter().map(|(_, price)| *price));
        let other = match kind {
            Kind::OpenaiCompatible => Price::default(),
            _ => all.fold(Price::default(), dearest),
        };
        Self { own, known, other }
    }

    /// The longest name that the model's begins with; `*` in the owner's own stands for anything.
    pub(super) fn of(&self, model: &str) -> Price {
        let own = self.own.iter().find(|(name, _)| super::paths::glob(name, model));
        if let Some((_, price)) = own {
            return *price;
        }
        // OpenRouter puts the maker before the name.
        let name = model.rsplit('/').next().unwrap_or(model);
        let begins = self.known.iter().filter(|(known, _)| name.starts_with(known));
        begins.max_by_key(|(known, _)| known.len()).map_or(self.other, |(_, price)| *price)
    }

    /// Of a call that any of these may answer.
    pub(super) fn of_any<'a>(&self, models: impl Iterator<Item = &'a str>) -> Price {
        models.map(|model| self.of(model)).fold(Price::default(), dearest)
    }

    /// Whole names that the owner has given a price.
    pub(super) fn named(&self) -> Vec<String> {
        let names = self.own.iter().map(|(name, _)| name);
        names.filter(|name| !name.contains('*')).cloned().collect()
    }
}

impl Price {
    pub(crate) fn amount(self, usage: &Usage) -> Amount {
        let parts = [
            (usage.input, self.input),
            (usage.cached, self.cached),
            (usage.cache_write, self.cache_write),
            (usage.output, self.output),
        ];
        let nanos = parts
            .iter()
            .fold(0u64, |sum, (count, each)| sum.saturating_add(count.saturating_mul(*each)));
        let dollars = usage.dollars.unwrap_or(Dollars(nanos));
        Amount { tokens: usage.tokens(), dollars }
    }

    /// When it is not known what of the input the provider puts into its cache, which may cost more.
    pub(crate) fn at_most(self, usage: &Usage) -> Amount {
        Self { input: self.input.max(self.cache_write), ..self }.amount(usage)
    }

    /// From dollars for a million tokens.
    pub(super) fn per_million(input: Dollars, output: Dollars) -> Self {
        let each = |million: Dollars| million.0.div_ceil(1_000_000);
        let input = each(input);
        Self { input, output: each(output), cached: input, cache_write: input + input.div_ceil(4) }
    }

    pub(super) fn cached(self, cached: Dollars) -> Self {
        Self { cached: cached.0.div_ceil(1_000_000), ..self }
    }

    pub(super) fn cache_write(self, write: Dollars) -> Self {
        Self { cache_write: write.0.div_ceil(1_000_000), ..self }
    }
}

fn price(row: &(&str, f64, f64, f64)) -> Price {
    let dollars = |amount| Dollars::new(amount).unwrap_or_default();
    Price::per_million(dollars(row.1), dollars(row.2)).cached(dollars(row.3))
}

fn dearest(a: Price, b: Price) -> Price {
    Price {
        input: a.input.max(b.input),
        output: a.output.max(b.output),
        cached: a.cached.max(b.cached),
        cache_write: a.cache_write.max(b.cache_write),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_name_decides_and_the_owner_before_it() {
        let own = Price { input: 1, output: 2, cached: 3, cache_write: 4 };
        let prices = Prices::new(Kind::Openai, vec![("gpt-4o-2024*".to_owned(), own)]);
        assert_eq!(prices.of("gpt-4o-2024-08-06"), own);
        assert_eq!(prices.of("gpt-4o").input, 2500);
        assert_eq!(prices.of("gpt-4o-mini").input, 150);
        assert_eq!(prices.of("gpt-5-nano-x").cached, 5);
        // The dearest there is.
        assert_eq!(prices.of("something-new").output, 120_000);
        let routed = Prices::new(Kind::Openrouter, Vec::new());
        assert_eq!(routed.of_any(["gpt-4o-mini", "claude-opus-4"].into_iter()).output, 75_000);
        assert_eq!(routed.of("anthropic/claude-sonnet-4.5").output, 15_000);
        assert_eq!(Prices::new(Kind::OpenaiCompatible, Vec::new()).of("llama").output, 0);
    }

    #[test]
    fn every_part_has_its_price() {
        let price = Price { input: 10, output: 100, cached: 1, cache_write: 12 };
        let usage = Usage { input: 5, cached: 7, cache_write: 1, output: 3, dollars: None };
        assert_eq!(price.amount(&usage), Amount { tokens: 16, dollars: Dollars(369) });
        let told = Usage { dollars: Some(Dollars(42)), ..usage };
        assert_eq!(price.amount(&told).dollars, Dollars(42));
        assert_eq!(price.at_most(&usage).dollars, Dollars(379), "all of it may go to the cache");
    }
}
