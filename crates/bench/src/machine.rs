//! Facts about the machine that a number is worth nothing without.

use std::fs;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Machine {
    /// Day of the run, `YYYY-MM-DD` in UTC.
    pub(crate) date: String,
    pub(crate) kernel: String,
    pub(crate) cpu: String,
    pub(crate) cores: usize,
    pub(crate) memory_mib: u64,
    /// `v2`, `hybrid`, `v1` or `none`.
    pub(crate) cgroups: &'static str,
    pub(crate) uid: u32,
    /// Of the folder that holds the sandboxes.
    pub(crate) filesystem: String,
}

impl Machine {
    pub(crate) fn here(data: &Path) -> Self {
        Self {
            date: today(),
            kernel: text("/proc/sys/kernel/osrelease"),
            cpu: field("/proc/cpuinfo", "model name"),
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            memory_mib: kib(&field("/proc/meminfo", "MemTotal")) / 1024,
            cgroups: cgroups(Path::new("/sys/fs/cgroup")),
            uid: rustix::process::getuid().as_raw(),
            filesystem: filesystem_of(data),
        }
    }
}

fn text(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default().trim().to_owned()
}

fn field(path: &str, name: &str) -> String {
    let text = fs::read_to_string(path).unwrap_or_default();
    let value =
        text.lines().find_map(|line| line.strip_prefix(name)?.trim_start().strip_prefix(':'));
    value.unwrap_or_default().trim().to_owned()
}

fn kib(value: &str) -> u64 {
    value.split_whitespace().next().and_then(|number| number.parse().ok()).unwrap_or(0)
}

fn cgroups(root: &Path) -> &'static str {
    if root.join("cgroup.controllers").exists() {
        "v2"
    } else if root.join("unified/cgroup.controllers").exists() {
        "hybrid"
    } else if root.join("memory").exists() {
        "v1"
    } else {
        "none"
    }
}

/// The type of the mount with the longest path above `place`.
fn filesystem_of(place: &Path) -> String {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let above = mounts.lines().filter_map(|line| {
        let mut words = line.split(' ').skip(1);
        let (point, kind) = (words.next()?, words.next()?);
        place.starts_with(point).then_some((point.len(), kind))
    });
    above.max_by_key(|(length, _)| *length).map_or_else(String::new, |(_, kind)| kind.to_owned())
}

fn today() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let (year, month, day) = civil(since.as_secs() / 86_400);
    format!("{year:04}-{month:02}-{day:02}")
}

/// Days since 1970 as a date, by Howard Hinnant's `civil_from_days`.
fn civil(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (year_of_era + era * 400 + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_become_dates() {
        assert_eq!(civil(0), (1970, 1, 1));
        assert_eq!(civil(11_016), (2000, 2, 29));
        assert_eq!(civil(20_454), (2026, 1, 1));
    }

    #[test]
    fn sizes_are_read_with_their_unit() {
        assert_eq!(kib("16384 kB"), 16_384);
        assert_eq!(kib(""), 0);
    }
}
