//! The table: what was measured, and what it has to be.

use super::{Comparison, FEW, Measured, Plan};
use crate::report::{Row, ratio};
use crate::samples::Samples;

/// One thing that all of them do: ours beside theirs, and how many times git's.
fn beside(
    comparison: &Comparison,
    metric: &str,
    unit: &'static str,
    of: fn(&Measured) -> &Samples,
) -> (Row, Option<f64>) {
    let ours = of(&comparison.ours);
    let theirs = comparison.others.iter().map(|(name, measured)| (*name, of(measured).median()));
    let row = Row::lower(metric, unit, ours.median()).samples(ours.count());
    let row = theirs.fold(row, |row, (name, value)| row.peer(name, value));
    let git = comparison.others.get("git").and_then(|git| of(git).median());
    (row, ratio(git, ours.median()))
}

fn times_git(metric: &str, times: Option<f64>, target: f64) -> Row {
    Row::higher(format!("{metric}: git's time over ours"), "x", times).target(target)
}

pub(super) fn all(found: &Comparison, plan: Plan) -> Vec<Row> {
    let mut rows = Vec::new();
    let files = plan.files;
    let many = plan.many;
    let (row, times) = beside(found, "first snapshot", "s", |of| &of.first);
    rows.extend([row, times_git("first snapshot", times, 6.0)]);
    let what = format!("checkpoint, {FEW} of {files} changed, durable, p50");
    let (row, times) = beside(found, &what, "ms", |of| &of.few);
    rows.extend([row.target(5.0), times_git(&format!("checkpoint of {FEW}"), times, 90.0)]);
    let what = format!("undo of {FEW} files, durable, p50");
    let (row, times) = beside(found, &what, "ms", |of| &of.few_undone);
    rows.extend([row.target(8.0), times_git(&format!("undo of {FEW}"), times, 25.0)]);
    let what = format!("checkpoint, {many} of {files} changed, durable, p50");
    let (row, times) = beside(found, &what, "ms", |of| &of.many);
    rows.extend([row, times_git(&format!("checkpoint of {many}"), times, 7.0)]);
    let what = format!("undo of {many} files, durable, p50 (git: not synced)");
    let (row, times) = beside(found, &what, "ms", |of| &of.many_undone);
    rows.extend([row, times_git(&format!("undo of {many}"), times, 2.0)]);
    rows.extend(scan_rows(found));
    rows.extend(store_rows(found));
    let reopen = format!("open again with {files} files until ready, p50");
    let reopen = Row::lower(reopen, "s", found.reopen.median()).target(0.5);
    rows.push(reopen.samples(found.reopen.count()));
    rows
}

fn scan_rows(found: &Comparison) -> [Row; 2] {
    let (row, _) = beside(found, "full scan, nothing changed, p50", "ms", |of| &of.scan);
    let multiple = ratio(found.ours.scan.median(), found.walk.median());
    let multiple = Row::lower("full scan, as a multiple of a statx walk", "x", multiple);
    let samples = found.walk.count();
    [row.peer("statx walk", found.walk.median()), multiple.target(1.5).samples(samples)]
}

fn store_rows(found: &Comparison) -> Vec<Row> {
    let git = found.others.get("git").map(|git| git.store.apparent as f64);
    let at_once = found.tidied.before.apparent as f64;
    let what = "store at once after the first snapshot, bytes in files";
    let at_once =
        Row::lower(format!("{what}, as a multiple of git's"), "x", ratio(Some(at_once), git));
    let took = found.tidied.took.map(|took| took.as_secs_f64());
    let took = Row::lower("idle time used to press it", "s", took);
    let what = "store after the first snapshot and idle time";
    let bytes = store(found, &format!("{what}, bytes in files"), |of| of.store.apparent);
    let blocks = store(found, &format!("{what}, blocks on disk"), |of| of.store.disk);
    let [(bytes, of_bytes), (blocks, of_blocks)] = [bytes, blocks];
    vec![at_once, took, bytes, of_bytes.target(0.75), blocks, of_blocks.target(0.4)]
}

fn store(found: &Comparison, metric: &str, of: fn(&Measured) -> u64) -> (Row, Row) {
    let megabytes = |measured: &Measured| Some(of(measured) as f64 / 1e6);
    let ours = megabytes(&found.ours);
    let row = Row::lower(metric, "MB", ours);
    let row = found.others.iter().fold(row, |row, (name, other)| row.peer(name, megabytes(other)));
    let multiple = ratio(ours, found.others.get("git").and_then(megabytes));
    (row, Row::lower(format!("{metric}, as a multiple of git's"), "x", multiple))
}
