//! A report as a table: on the terminal, and between two markers of a Markdown page.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::report::{Better, Report, Row};

/// Header, then one line per row: metric, ours, target, verdict, peers with their ratio to ours.
fn cells(report: &Report) -> Vec<[String; 5]> {
    let header = ["metric", "ours", "target", "met", "peers (theirs / ours)"].map(str::to_owned);
    let rows = report.rows.iter().map(|row| {
        [
            row.metric.clone(),
            value(row.ours, row.unit),
            target(row),
            met(row).to_owned(),
            peers(row),
        ]
    });
    std::iter::once(header).chain(rows).collect()
}

fn number(value: f64) -> String {
    match value.abs() {
        v if v >= 100.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

fn value(value: Option<f64>, unit: &str) -> String {
    value.map_or_else(|| "not measured".to_owned(), |value| format!("{} {unit}", number(value)))
}

fn target(row: &Row) -> String {
    let sign = match row.better {
        Better::Lower => "<=",
        Better::Higher => ">=",
    };
    row.target.map_or_else(String::new, |target| format!("{sign} {target} {}", row.unit))
}

fn met(row: &Row) -> &'static str {
    match row.met {
        Some(true) => "yes",
        Some(false) => "MISSED",
        None => "",
    }
}

fn peers(row: &Row) -> String {
    let each = row.peers.iter().map(|(name, theirs)| {
        let ratio =
            row.ours.filter(|ours| *ours > 0.0).map(|ours| format!(" ({:.1}x)", theirs / ours));
        format!("{name} {}{}", number(*theirs), ratio.unwrap_or_default())
    });
    each.collect::<Vec<_>>().join(", ")
}

pub(crate) fn terminal(report: &Report) -> String {
    let cells = cells(report);
    let width =
        |column: usize| cells.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; 4] = std::array::from_fn(width);
    let mut text = String::new();
    for [metric, ours, target, met, peers] in &cells {
        let [w0, w1, w2, w3] = widths;
        let line = format!("{metric:<w0$}  {ours:>w1$}  {target:>w2$}  {met:<w3$}  {peers}");
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}", line.trim_end());
    }
    for note in &report.notes {
        let _ = writeln!(text, "note: {note}");
    }
    text
}

fn markdown(report: &Report) -> String {
    let machine = &report.machine;
    let mut text = format!(
        "Measured {} on Linux {}, {} ({} cores, {} MiB), cgroups {}, {} as uid {}.\n\n",
        machine.date,
        machine.kernel,
        machine.cpu,
        machine.cores,
        machine.memory_mib,
        machine.cgroups,
        machine.filesystem,
        machine.uid,
    );
    for (index, row) in cells(report).iter().enumerate() {
        let _ = writeln!(text, "| {} |", row.join(" | "));
        if index == 0 {
            text.push_str("|---|--:|--:|---|---|\n");
        }
    }
    for note in &report.notes {
        let _ = writeln!(text, "\n{note}");
    }
    text
}

/// Replaces what stands between `<!-- NAME -->` and `<!-- /NAME -->`.
pub(crate) fn put_into(page: &Path, report: &Report) -> Result<()> {
    let named = || format!("cannot update {}", page.display());
    let text = fs::read_to_string(page).with_context(named)?;
    let updated = replaced(&text, report.benchmark, &markdown(report)).with_context(named)?;
    fs::write(page, updated).with_context(named)
}

fn replaced(page: &str, name: &str, table: &str) -> Result<String> {
    let (open, close) = (format!("<!-- {name} -->"), format!("<!-- /{name} -->"));
    let (before, rest) = page.split_once(&open).with_context(|| format!("no marker {open}"))?;
    let (_, after) = rest.split_once(&close).with_context(|| format!("no marker {close}"))?;
    Ok(format!("{before}{open}\n{table}{close}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Machine;

    fn report() -> Report {
        let rows = vec![
            Row::lower("start", "ms", Some(10.0)).peer("bwrap", Some(5.0)).target(15.0),
            Row::higher("upload", "GB/s", None).target(1.0),
        ];
        Report { benchmark: "sandbox", machine: Machine::here(Path::new("/")), rows, notes: vec![] }
    }

    #[test]
    fn a_row_shows_ours_the_verdict_and_the_peers() {
        let lines: Vec<_> = cells(&report()).into_iter().map(|row| row.join("|")).collect();
        assert_eq!(lines[1], "start|10.0 ms|<= 15 ms|yes|bwrap 5.00 (0.5x)");
        assert_eq!(lines[2], "upload|not measured|>= 1 GB/s|MISSED|");
    }

    #[test]
    fn only_what_is_between_the_markers_changes() {
        let page = "a\n<!-- sandbox -->\nold\n<!-- /sandbox -->\nb\n";
        let expected = "a\n<!-- sandbox -->\nnew\n<!-- /sandbox -->\nb\n";
        assert_eq!(replaced(page, "sandbox", "new\n").unwrap(), expected);
        assert!(replaced(page, "other", "new\n").is_err());
    }
}
