//! Which tests failed, by name, from the report that nextest leaves: the end of a long log is what people see.

use std::path::Path;
use std::process::Command;
use std::time::SystemTime;

use anyhow::{Result, bail};

use crate::{cargo, shell};

/// Shown by name; the log has the others.
const MOST: usize = 40;

/// Runs nextest. When tests fail, the error names them.
pub(crate) fn naming(command: &mut Command, profile: &str) -> Result<()> {
    let began = SystemTime::now();
    let Err(error) = shell::run(command) else { return Ok(()) };
    let report = cargo::target_dir().join("nextest").join(profile).join("junit.xml");
    let names = of(&report, began);
    if names.is_empty() {
        return Err(error);
    }
    let more = names.len().saturating_sub(MOST);
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    bail!("{} failed: {}{more}", names.len(), names[..names.len().min(MOST)].join(", "));
}

/// A report of an earlier run says nothing about this one.
fn of(report: &Path, since: SystemTime) -> Vec<String> {
    let fresh = std::fs::metadata(report).and_then(|found| found.modified());
    match std::fs::read_to_string(report) {
        Ok(text) if fresh.is_ok_and(|modified| modified >= since) => failures(&text),
        _ => Vec::new(),
    }
}

/// A `testcase` with a `failure` or an `error` in it.
fn failures(report: &str) -> Vec<String> {
    let cases = report.split("<testcase ").skip(1).map(|case| {
        let end = case.find("</testcase>").unwrap_or(case.len());
        &case[..end]
    });
    let failed = cases.filter(|case| {
        let inside = case.split_once('>').map_or("", |(_, inside)| inside.trim_start());
        inside.starts_with("<failure") || inside.starts_with("<error")
    });
    failed
        .filter_map(|case| Some(format!("{} {}", value(case, "classname")?, value(case, "name")?)))
        .collect()
}

fn value<'a>(case: &'a str, attribute: &str) -> Option<&'a str> {
    let start = format!("{attribute}=\"");
    let at =
        case.match_indices(&start).find(|(at, _)| *at == 0 || case.as_bytes()[at - 1] == b' ')?.0;
    case[at + start.len()..].split('"').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_failed_ones_are_named() {
        let report = r#"<testsuite name="a::b" tests="3">
            <testcase name="fine" classname="a::b" time="0.1">
            </testcase>
            <testcase name="bad::one" classname="a::b" time="0.1">
                <failure message="no" type="test failure">x</failure>
            </testcase>
            <testcase name="slow" classname="a" time="9">
                <error type="test timeout"/>
            </testcase>
            <testcase name="said" classname="a"><system-out>&lt;failure</system-out></testcase>"#;
        assert_eq!(failures(report), ["a::b bad::one", "a slow"]);
        assert_eq!(failures(""), Vec::<String>::new());
    }
}
