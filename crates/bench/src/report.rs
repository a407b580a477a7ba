//! What a benchmark found, as it is written to `bench/results`.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::machine::Machine;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Report {
    pub(crate) benchmark: &'static str,
    pub(crate) machine: Machine,
    pub(crate) rows: Vec<Row>,
    /// What could not be measured here, and why.
    pub(crate) notes: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Row {
    pub(crate) metric: String,
    pub(crate) unit: &'static str,
    /// Absent when it could not be measured; that is not `met`.
    pub(crate) ours: Option<f64>,
    pub(crate) peers: BTreeMap<&'static str, f64>,
    pub(crate) target: Option<f64>,
    pub(crate) better: Better,
    /// Absent without a target.
    pub(crate) met: Option<bool>,
    pub(crate) samples: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Better {
    Lower,
    Higher,
}

impl Row {
    pub(crate) fn lower(metric: impl Into<String>, unit: &'static str, ours: Option<f64>) -> Self {
        Self::new(metric.into(), unit, ours, Better::Lower)
    }

    pub(crate) fn higher(metric: impl Into<String>, unit: &'static str, ours: Option<f64>) -> Self {
        Self::new(metric.into(), unit, ours, Better::Higher)
    }

    fn new(metric: String, unit: &'static str, ours: Option<f64>, better: Better) -> Self {
        let peers = BTreeMap::new();
        Self { metric, unit, ours, peers, target: None, better, met: None, samples: 1 }
    }

    pub(crate) fn target(mut self, target: f64) -> Self {
        self.target = Some(target);
        self.met = Some(self.ours.is_some_and(|ours| match self.better {
            Better::Lower => ours <= target,
            Better::Higher => ours >= target,
        }));
        self
    }

    /// A peer that was not measured leaves no entry.
    pub(crate) fn peer(mut self, name: &'static str, value: Option<f64>) -> Self {
        self.peers.extend(value.map(|value| (name, value)));
        self
    }

    pub(crate) fn samples(mut self, samples: usize) -> Self {
        self.samples = samples;
        self
    }
}

/// How many times `peer` ours is.
pub(crate) fn ratio(ours: Option<f64>, peer: Option<f64>) -> Option<f64> {
    Some(ours? / peer.filter(|value| *value > 0.0)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_met_on_its_own_side_only() {
        let check = |row: Row, target, met| assert_eq!(row.target(target).met, Some(met));
        check(Row::lower("start", "ms", Some(15.0)), 15.0, true);
        check(Row::lower("start", "ms", Some(15.1)), 15.0, false);
        check(Row::higher("upload", "GB/s", Some(0.9)), 1.0, false);
        check(Row::higher("upload", "GB/s", Some(1.0)), 1.0, true);
    }

    #[test]
    fn what_was_not_measured_is_not_met() {
        assert_eq!(Row::lower("start", "ms", None).target(15.0).met, Some(false));
    }

    #[test]
    fn rows_are_written_with_the_agreed_names() {
        let row = Row::lower("start", "ms", Some(9.5))
            .peer("bwrap", Some(5.0))
            .peer("runc", None)
            .target(15.0);
        let expected = serde_json::json!({
            "metric": "start", "unit": "ms", "ours": 9.5, "peers": { "bwrap": 5.0 },
            "target": 15.0, "better": "lower", "met": true, "samples": 1,
        });
        assert_eq!(serde_json::to_value(row).unwrap(), expected);
    }
}
