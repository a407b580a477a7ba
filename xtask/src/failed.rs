//! Which tests failed, by name, from the report that nextest leaves: the end of a long log is what people see.

use std::path::Path;
use std::process::Command;
use std::time::SystemTime;

use anyhow::{Result, bail};

use crate::{cargo, shell};

/// Shown by name; the log has the others.
const MOST: usize = 40;

/// Runs nextest. When tests fail, the error names them; otherwise those are given that passed at the second
/// try only, which is as good as a failure to whoever looks after them.
pub(crate) fn naming(command: &mut Command, profile: &str) -> Result<Option<String>> {
    let began = SystemTime::now();
    let ran = shell::run(command);
    let report = cargo::target_dir().join("nextest").join(profile).join("junit.xml");
    let report = of(&report, began);
    match ran {
        Ok(()) => Ok(list(
            "passed at the second try only",
            &with(&report, &["<flakyFailure", "<flakyError"]),
        )),
        Err(error) => match list("failed", &with(&report, &["<failure", "<error"])) {
            Some(failed) => bail!("{failed}"),
            None => Err(error),
        },
    }
}

fn list(what: &str, names: &[String]) -> Option<String> {
    let more = names.len().saturating_sub(MOST);
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    let shown = names[..names.len().min(MOST)].join(", ");
    (!names.is_empty()).then(|| format!("{} {what}: {shown}{more}", names.len()))
}

/// A report of an earlier run says nothing about this one.
fn of(report: &Path, since: SystemTime) -> String {
    let fresh = std::fs::metadata(report).and_then(|found| found.modified());
    match std::fs::read_to_string(report) {
        Ok(text) if fresh.is_ok_and(|modified| modified >= since) => text,
        _ => String::new(),
    }
}

/// Every `testcase` that begins with one of these.
fn with(report: &str, beginnings: &[&str]) -> Vec<String> {
    let cases = report.split("<testcase ").skip(1).map(|case| {
        let end = case.find("</testcase>").unwrap_or(case.len());
        &case[..end]
    });
    let failed = cases.filter(|case| {
        let inside = case.split_once('>').map_or("", |(_, inside)| inside.trim_start());
        beginnings.iter().any(|beginning| inside.starts_with(beginning))
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
            <testcase name="later" classname="a"><flakyFailure type="x"/></testcase>
            <testcase name="said" classname="a"><system-out>&lt;failure</system-out></testcase>"#;
        let failed = with(report, &["<failure", "<error"]);
        let said = list("failed", &failed);
        assert_eq!(said.as_deref(), Some("2 failed: a::b bad::one, a slow"));
        assert_eq!(with(report, &["<flakyFailure"]), ["a later"]);
        assert_eq!(list("failed", &with("", &["<failure"])), None);
    }
}
