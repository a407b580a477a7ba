//! How often the kernel ended something where we run, for want of memory.

/// Where control groups of version 2 and 1 count it; nowhere, where a sandbox is shown neither.
const PLACES: [&str; 2] =
    ["/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control"];

pub(super) fn kills() -> u64 {
    let read = PLACES.iter().filter_map(|place| std::fs::read_to_string(place).ok());
    read.filter_map(|text| count(&text)).next().unwrap_or(0)
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
