//! `nacre-bench desktop`: what a person in front of the desktop waits for.
//!
//! A browser is driven by `tests/e2e/desktop.bench.mjs`, which prints what it measured as one JSON object.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use crate::machine::Machine;
use crate::report::{Report, Row};
use crate::samples::Samples;

const SCRIPT: &str = "desktop.bench.mjs";
const FOLDER: &str = "tests/e2e";
const WRITE_TO_PIXEL_MS: f64 = 300.0;
const UNDO_MS: f64 = 2000.0;
const FIRST_LOAD_KB: f64 = 250.0;

/// Milliseconds, but for the bytes.
#[derive(Debug, Deserialize)]
struct Measured {
    /// From the write of a file in the sandbox to the frame that shows it.
    write_to_pixel: Vec<f64>,
    /// The same with the same source under Vite on the host, without sandbox and gateway.
    bare_vite: Vec<f64>,
    /// From a way to break it to an Undo in front of the owner.
    undo_offered: BTreeMap<String, f64>,
    /// From the click on it to a desktop that works.
    undo_done: BTreeMap<String, f64>,
    first_load_bytes: f64,
    /// From the start of a new computer to a page of its desktop, and to the one from its source.
    first_page: f64,
    first_source: f64,
}

pub(crate) fn measure(home: &Path, nacre: &Path, quick: bool) -> Result<Report> {
    let output = Command::new("node")
        .arg(SCRIPT)
        .args(quick.then_some("--quick"))
        .current_dir(FOLDER)
        .env("NACRE_BIN", nacre)
        .stderr(Stdio::inherit())
        .output()
        .context("cannot run node")?;
    ensure!(output.status.success(), "{SCRIPT} failed");
    let measured: Measured = serde_json::from_slice(&output.stdout)
        .with_context(|| format!("{SCRIPT} printed something else"))?;
    let machine = Machine::here(home);
    Ok(Report { benchmark: "desktop", machine, rows: rows(&measured), notes: Vec::new() })
}

fn rows(measured: &Measured) -> Vec<Row> {
    let [ours, bare] = [&measured.write_to_pixel, &measured.bare_vite].map(|values| {
        let mut samples = Samples::default();
        values.iter().for_each(|value| samples.push(*value));
        samples
    });
    let worst = |times: &BTreeMap<String, f64>| times.values().copied().reduce(f64::max);
    let mut rows = vec![
        Row::lower("a file is written to the changed pixel, p50", "ms", ours.median())
            .peer("vite on the host", bare.median())
            .target(WRITE_TO_PIXEL_MS)
            .samples(ours.count()),
        Row::lower("a file is written to the changed pixel, p95", "ms", ours.percentile(95))
            .peer("vite on the host", bare.percentile(95))
            .samples(ours.count()),
        Row::lower(
            "broken until Undo is offered, the slowest way",
            "ms",
            worst(&measured.undo_offered),
        )
        .target(UNDO_MS)
        .samples(measured.undo_offered.len()),
    ];
    for (way, took) in &measured.undo_offered {
        rows.push(Row::lower(format!("broken until Undo is offered: {way}"), "ms", Some(*took)));
    }
    rows.push(
        Row::lower(
            "from Undo to a desktop that works, the slowest way",
            "ms",
            worst(&measured.undo_done),
        )
        .samples(measured.undo_done.len()),
    );
    let kilobytes = measured.first_load_bytes / 1e3;
    rows.push(
        Row::lower("first load of the built desktop, JavaScript, gzipped", "KB", Some(kilobytes))
            .target(FIRST_LOAD_KB),
    );
    rows.push(Row::lower(
        "nacre up on a new computer to a desktop",
        "ms",
        Some(measured.first_page),
    ));
    let source = Some(measured.first_source);
    rows.push(Row::lower("nacre up on a new computer to the one from its source", "ms", source));
    rows
}
