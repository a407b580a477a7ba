//! Which cgroups there are. Which of them we may use is the driver's to say.

use std::collections::BTreeSet;
use std::fs;

use nacre_wire::control::Check;

use super::{ok, reduced};

#[derive(Debug, PartialEq, Eq)]
struct Hierarchies {
    unified: bool,
    /// Controllers of version 1 hierarchies.
    legacy: BTreeSet<String>,
}

pub(super) fn check() -> Check {
    let found = parse(&fs::read_to_string("/proc/self/mountinfo").unwrap_or_default());
    let unified = fs::read_to_string("/sys/fs/cgroup/cgroup.controllers")
        .or_else(|_| fs::read_to_string("/sys/fs/cgroup/unified/cgroup.controllers"))
        .unwrap_or_default();
    describe(&found, unified.trim())
}

fn describe(found: &Hierarchies, unified: &str) -> Check {
    let legacy = || found.legacy.iter().cloned().collect::<Vec<_>>().join(" ");
    let or_none = |text: &str| if text.is_empty() { "none".to_owned() } else { text.to_owned() };
    match (found.unified, found.legacy.is_empty()) {
        (true, true) => ok("cgroups", format!("version 2, controllers: {}", or_none(unified))),
        (true, false) => ok(
            "cgroups",
            format!("hybrid, version 2: {}; version 1: {}", or_none(unified), legacy()),
        ),
        (false, false) => ok("cgroups", format!("version 1, controllers: {}", legacy())),
        (false, true) => reduced(
            "cgroups",
            "none are mounted: no limits, and no pause",
            "sudo mount -t cgroup2 none /sys/fs/cgroup",
        ),
    }
}

/// The filesystem type follows the lone dash of a line, the super options come last.
fn parse(mountinfo: &str) -> Hierarchies {
    const CONTROLLERS: &[&str] = &["memory", "cpu", "cpuacct", "pids", "freezer"];
    let mut found = Hierarchies { unified: false, legacy: BTreeSet::new() };
    for line in mountinfo.lines() {
        let Some((_, rest)) = line.split_once(" - ") else { continue };
        let mut fields = rest.split(' ');
        match fields.next() {
            Some("cgroup2") => found.unified = true,
            Some("cgroup") => {
                let options = fields.nth(1).unwrap_or_default();
                let known = options.split(',').filter(|option| CONTROLLERS.contains(option));
                found.legacy.extend(known.map(str::to_owned));
            }
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const V2: &str = "31 24 0:27 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n";
    const V1: &str = "33 32 0:29 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
                      34 32 0:30 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n";

    #[test]
    fn each_arrangement_is_told_apart() {
        let detail = |mountinfo: &str| describe(&parse(mountinfo), "cpu memory pids").detail;
        assert_eq!(detail(V2), "version 2, controllers: cpu memory pids");
        assert_eq!(detail(V1), "version 1, controllers: cpu cpuacct memory");
        let hybrid = detail(&format!("{V1}{V2}"));
        assert_eq!(hybrid, "hybrid, version 2: cpu memory pids; version 1: cpu cpuacct memory");
        assert_eq!(detail(""), "none are mounted: no limits, and no pause");
    }
}
