//! What sandboxes weigh when nothing happens in them.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};

use super::Rounds;
use crate::census;
use crate::computer::Computer;
use crate::report::Row;
use crate::samples::Samples;

const MB: f64 = 1e6;
const GB: f64 = 1e9;

/// Every sandbox ran one command before, so that none is counted before it did any work.
pub(super) async fn idle(computer: &Computer, rounds: Rounds) -> Result<Vec<Row>> {
    let before = census::descendants(std::process::id());
    let mut sandboxes = Vec::new();
    let mut namespaces = BTreeSet::new();
    for _ in 0..rounds.idle {
        let sandbox = computer.sandbox().await?;
        namespaces.insert(sandbox.pid_namespace().await?);
        sandboxes.push(sandbox);
    }
    let mut supervisors = Samples::default();
    for sandbox in &sandboxes {
        supervisors.push(sandbox.client.stats().await?.rss_bytes as f64 / MB);
    }
    // Helpers that the driver keeps beside a sandbox belong to what it costs.
    let helpers =
        census::descendants(std::process::id()).into_iter().filter(|pid| !before.contains(pid));
    let all: BTreeSet<u32> = census::processes_in(&namespaces).into_iter().chain(helpers).collect();
    let all: Vec<u32> = all.into_iter().collect();
    ensure!(all.len() >= rounds.idle, "{} processes in {} sandboxes", all.len(), rounds.idle);
    let total = census::total_memory(&all);
    for sandbox in sandboxes {
        sandbox.destroy().await?;
    }
    let target = 1.2 * rounds.idle as f64 / 100.0;
    let whole = |kind: &str, bytes: u64| {
        let metric = format!("{} idle sandboxes in all, {kind}", rounds.idle);
        Row::lower(metric, "GB", Some(bytes as f64 / GB)).target(target).samples(all.len())
    };
    let one = Row::lower("supervisor, resident, worst of all", "MB", supervisors.percentile(100));
    Ok(vec![
        one.target(8.0).samples(supervisors.count()),
        whole("resident", total.rss),
        whole("by share of shared pages", total.pss),
    ])
}
