//! What the host sees of sandboxes: processes, memory, and what is left when they are gone.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Host pids of the processes in these pid namespaces (`pid:[4026531836]`).
pub(crate) fn processes_in(namespaces: &BTreeSet<String>) -> Vec<u32> {
    let inside = |pid: &u32| {
        fs::read_link(format!("/proc/{pid}/ns/pid"))
            .is_ok_and(|link| link.to_str().is_some_and(|name| namespaces.contains(name)))
    };
    pids().filter(inside).collect()
}

fn pids() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Children of `pid`, their children, and so on.
pub(crate) fn descendants(pid: u32) -> Vec<u32> {
    let parents: Vec<(u32, u32)> = pids().filter_map(|pid| Some((pid, parent(pid)?))).collect();
    let mut found = vec![pid];
    let mut next = 0;
    while let Some(&above) = found.get(next) {
        found
            .extend(parents.iter().filter(|(_, parent)| *parent == above).map(|(child, _)| *child));
        next += 1;
    }
    found.split_off(1)
}

fn parent(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may hold spaces and brackets; the rest does not.
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

/// Resident and proportional bytes. Shared pages count in full in the first and by share in the
/// second, so the second adds up across processes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Memory {
    pub(crate) rss: u64,
    pub(crate) pss: u64,
}

pub(crate) fn memory(pid: u32) -> Option<Memory> {
    let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    let bytes = |name: &str| {
        let line = rollup.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        Some(line.split_whitespace().next()?.parse::<u64>().ok()? * 1024)
    };
    Some(Memory { rss: bytes("Rss")?, pss: bytes("Pss")? })
}

pub(crate) fn total_memory(pids: &[u32]) -> Memory {
    let each = pids.iter().filter_map(|pid| memory(*pid));
    each.fold(Memory::default(), |sum, one| Memory {
        rss: sum.rss + one.rss,
        pss: sum.pss + one.pss,
    })
}

pub(crate) fn open_fds() -> usize {
    fs::read_dir("/proc/self/fd").map_or(0, Iterator::count)
}

pub(crate) fn mounts() -> usize {
    fs::read_to_string("/proc/self/mountinfo").map_or(0, |text| text.lines().count())
}

/// Folders below `root` whose path holds `part`, without following links.
pub(crate) fn folders_with(root: &Path, part: &str) -> Vec<PathBuf> {
    let mut waiting: Vec<PathBuf> = vec![root.to_owned()];
    let mut found = Vec::new();
    while let Some(folder) = waiting.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                found.extend(Some(entry.path()).filter(|p| p.to_string_lossy().contains(part)));
                waiting.push(entry.path());
            }
        }
    }
    found
}

/// How many processes are in these cgroups; one in several hierarchies counts once.
pub(crate) fn processes_of(cgroups: &[PathBuf]) -> usize {
    let lists =
        cgroups.iter().filter_map(|cgroup| fs::read_to_string(cgroup.join("cgroup.procs")).ok());
    let pids: BTreeSet<String> =
        lists.flat_map(|list| list.lines().map(str::to_owned).collect::<Vec<_>>()).collect();
    pids.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_finds_itself_by_its_namespace() {
        let own = fs::read_link("/proc/self/ns/pid").unwrap().to_str().unwrap().to_owned();
        assert!(processes_in(&BTreeSet::from([own])).contains(&std::process::id()));
        assert_eq!(processes_in(&BTreeSet::from(["pid:[1]".to_owned()])), Vec::<u32>::new());
    }

    #[test]
    fn memory_of_a_process_is_at_least_its_share() {
        let memory = memory(std::process::id()).unwrap();
        assert!(memory.pss > 0 && memory.pss <= memory.rss, "{memory:?}");
    }

    #[test]
    fn folders_are_found_by_a_part_of_their_path() {
        let temp = tempfile::tempdir().unwrap();
        fs::create_dir_all(temp.path().join("a/needle-1/b")).unwrap();
        assert_eq!(folders_with(temp.path(), "needle").len(), 2);
    }
}
