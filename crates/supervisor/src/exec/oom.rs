//! How often the kernel ended something in this sandbox for want of memory.

use std::fs;

/// Where control groups of version 2 and 1 count it.
const PLACES: [&str; 2] =
    ["/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control"];

/// The counter of this sandbox, where the kernel shows one.
#[derive(Debug, Clone, Copy)]
pub(super) struct OomKills(Option<&'static str>);

impl OomKills {
    pub(super) fn find() -> Self {
        Self(
            PLACES
                .into_iter()
                .find(|place| fs::read_to_string(place).is_ok_and(|text| count(&text).is_some())),
        )
    }

    pub(super) fn count(self) -> u64 {
        self.0.and_then(|place| count(&fs::read_to_string(place).ok()?)).unwrap_or(0)
    }
}

fn count(events: &str) -> Option<u64> {
    events.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_of_control_group_are_understood() {
        assert_eq!(count("low 0\noom 3\noom_kill 2\noom_group_kill 0\n"), Some(2));
        assert_eq!(count("oom_kill_disable 0\nunder_oom 0\noom_kill 5\n"), Some(5));
        assert_eq!(count("under_oom 0\n"), None);
    }
}
