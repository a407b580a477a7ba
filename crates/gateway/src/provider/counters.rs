//! Counters for Prometheus. Every label comes from a list that is known at compile time.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};

use super::format::Reason;
use super::ledger::Outcome;

#[derive(Default)]
pub(crate) struct Counters {
    settled: AtomicU64,
    kept: AtomicU64,
    failed: AtomicU64,
    refused: [AtomicU64; Reason::ALL.len()],
    input: AtomicU64,
    cached: AtomicU64,
    output: AtomicU64,
    nanodollars: AtomicU64,
}

impl Counters {
    pub(crate) fn refused(&self, reason: Reason) {
        add(&self.refused[reason as usize], 1);
    }

    pub(crate) fn settled(&self, outcome: Outcome) {
        let (usage, dollars) = match outcome {
            Outcome::Failed => return add(&self.failed, 1),
            Outcome::Kept(usage, dollars) => {
                add(&self.kept, 1);
                (usage, dollars)
            }
            Outcome::Settled(usage, dollars) => {
                add(&self.settled, 1);
                (usage, dollars)
            }
        };
        add(&self.input, usage.input + usage.cache_write);
        add(&self.cached, usage.cached);
        add(&self.output, usage.output);
        add(&self.nanodollars, dollars.0);
    }

    /// In the text format, to go below what else there is.
    pub(crate) fn prometheus(&self, under_way: u64) -> String {
        let mut page = String::new();
        let mut family = |name: &str, kind: &str, help: &str, samples: &[(String, String)]| {
            // Writing to a string cannot fail.
            let _ = writeln!(page, "# HELP {name} {help}\n# TYPE {name} {kind}");
            for (labels, value) in samples {
                let _ = writeln!(page, "{name}{labels} {value}");
            }
        };
        let of = |label: &str, name: &str, counter: &AtomicU64| {
            (format!("{{{label}=\"{name}\"}}"), read(counter).to_string())
        };
        let ends = [("settled", &self.settled), ("kept", &self.kept), ("failed", &self.failed)];
        let ends = ends.map(|(name, counter)| of("outcome", name, counter));
        family(
            "nacre_model_calls_total",
            "counter",
            "Model calls that went out, by how they ended.",
            &ends,
        );
        let reasons: Vec<_> = Reason::ALL
            .iter()
            .map(|reason| of("reason", reason.as_str(), &self.refused[*reason as usize]))
            .collect();
        family(
            "nacre_model_refusals_total",
            "counter",
            "Model calls that were not made, or ended.",
            &reasons,
        );
        let kinds = [("input", &self.input), ("cached", &self.cached), ("output", &self.output)];
        let kinds = kinds.map(|(name, counter)| of("kind", name, counter));
        family("nacre_model_tokens_total", "counter", "Tokens of model calls.", &kinds);
        let dollars = super::money::Dollars(read(&self.nanodollars)).as_f64();
        family(
            "nacre_model_dollars_total",
            "counter",
            "What model calls cost, by our prices.",
            &[(String::new(), dollars.to_string())],
        );
        family(
            "nacre_model_calls_under_way",
            "gauge",
            "Model calls under way.",
            &[(String::new(), under_way.to_string())],
        );
        page
    }
}

fn add(counter: &AtomicU64, amount: u64) {
    counter.fetch_add(amount, Ordering::Relaxed);
}

fn read(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}
