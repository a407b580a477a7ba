//! Control groups: version 2, version 1, or both at once.
//!
//! Each sandbox has one directory of the same name in every hierarchy that offers something: a
//! limit, the freezer, or the power to end everything in it. Which hierarchy has what is found out
//! once; after that nobody asks about versions.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use nacre_wire::control::{Limits, Reduction, Stats};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Ability {
    Memory,
    Cpu,
    CpuUsage,
    Pids,
    Freeze,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    V1,
    V2,
}

/// Where to find an ability: the directory that holds our sandboxes in that hierarchy.
#[derive(Debug, Clone)]
struct Place {
    version: Version,
    base: PathBuf,
}

/// What this machine offers.
#[derive(Debug, Clone, Default)]
pub(super) struct Hierarchies {
    places: BTreeMap<Ability, Place>,
    pub(super) reduced: Vec<Reduction>,
}

impl Hierarchies {
    /// Finds the hierarchies and makes `name` in each of them.
    pub(super) fn detect(name: &str) -> Self {
        let mountinfo = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let root = rustix::process::geteuid().is_root();
        let mut found = Self::default();
        let mut mounts = cgroup_mounts(&mountinfo);
        // Version 2 first: version 1 is for what it does not offer here.
        mounts.sort_by_key(|mount| mount.controllers.is_some());
        for mount in mounts {
            // Root may start at the top, and does, so that a gateway started from elsewhere finds
            // the same place. Others have only what was delegated to them.
            let parent =
                if root { mount.path.clone() } else { mount.path.join(own_path(&own, &mount)) };
            found.add(&mount, &parent, name);
        }
        found.reduced = found.missing();
        found
    }

    fn add(&mut self, mount: &Mount, parent: &Path, name: &str) {
        let base = parent.join(name);
        match &mount.controllers {
            Some(controllers) => {
                let abilities: Vec<Ability> = controllers
                    .iter()
                    .flat_map(|name| v1_abilities(name))
                    .copied()
                    .filter(|ability| !self.has(*ability))
                    .collect();
                if !abilities.is_empty() && make(&base).is_ok() && writable(&base) {
                    for ability in abilities {
                        self.places
                            .insert(ability, Place { version: Version::V1, base: base.clone() });
                    }
                }
            }
            None => {
                step_aside(parent);
                enable_controllers(parent);
                if make(&base).is_ok() && writable(&base) {
                    enable_controllers(&base);
                    let offered =
                        fs::read_to_string(base.join("cgroup.subtree_control")).unwrap_or_default();
                    let place = Place { version: Version::V2, base };
                    for ability in offered.split_whitespace().flat_map(v2_abilities) {
                        self.places.insert(*ability, place.clone());
                    }
                    self.places.insert(Ability::Freeze, place);
                }
            }
        }
    }

    pub(super) fn has(&self, ability: Ability) -> bool {
        self.places.contains_key(&ability)
    }

    fn missing(&self) -> Vec<Reduction> {
        [
            (Ability::Memory, "memory", "memory limits are not enforced"),
            (Ability::Cpu, "cpu", "cpu limits are not enforced"),
            (Ability::Pids, "pids", "the process limit holds per user, not per sandbox"),
            (Ability::Freeze, "pause", "sandboxes cannot be paused"),
        ]
        .into_iter()
        .filter(|(ability, _, _)| !self.has(*ability))
        .map(|(_, what, why)| Reduction {
            what: what.to_owned(),
            why: format!("no cgroup controller that we may use: {why}"),
            remedy: Some("systemd-run --user --scope -p Delegate=yes nacre up".to_owned()),
        })
        .collect()
    }

    /// The cgroups called `name`, made if they are not there.
    pub(super) fn open(&self, name: &str) -> io::Result<Cgroups> {
        let groups = self.named(name);
        for directory in groups.directories() {
            make(&directory)?;
            copy_cpuset(&directory);
        }
        Ok(groups)
    }

    /// The cgroups called `name`, which may be gone already.
    pub(super) fn named(&self, name: &str) -> Cgroups {
        let places = self
            .places
            .iter()
            .map(|(ability, place)| {
                (*ability, Place { version: place.version, base: place.base.join(name) })
            })
            .collect();
        Cgroups { name: name.to_owned(), places }
    }

    /// Every name that exists below us in some hierarchy.
    pub(super) fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self
            .places
            .values()
            .filter_map(|place| fs::read_dir(&place.base).ok())
            .flat_map(|entries| entries.flatten())
            .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
            .filter_map(|entry| entry.file_name().into_string().ok())
            .collect();
        names.sort();
        names.dedup();
        names
    }

    /// Removes our own directory from every hierarchy, when it is empty.
    pub(super) fn remove_base(&self) {
        for place in self.places.values() {
            let _ = fs::remove_dir(&place.base);
        }
    }
}

/// One sandbox's cgroups.
#[derive(Debug, Clone)]
pub(super) struct Cgroups {
    pub(super) name: String,
    places: BTreeMap<Ability, Place>,
}

impl Cgroups {
    pub(super) fn directories(&self) -> Vec<PathBuf> {
        let mut directories: Vec<PathBuf> =
            self.places.values().map(|place| place.base.clone()).collect();
        directories.sort();
        directories.dedup();
        directories
    }

    pub(super) fn limit(&self, limits: &Limits) -> io::Result<()> {
        if let (Some(bytes), Some(place)) = (limits.memory_bytes, self.places.get(&Ability::Memory))
        {
            match place.version {
                Version::V1 => {
                    write(place, "memory.limit_in_bytes", bytes)?;
                    // Only there when the kernel accounts for swap.
                    let _ = write(place, "memory.memsw.limit_in_bytes", bytes);
                }
                Version::V2 => {
                    write(place, "memory.max", bytes)?;
                    let _ = write(place, "memory.swap.max", 0);
                }
            }
        }
        if let (Some(millis), Some(place)) = (limits.cpu_millis, self.places.get(&Ability::Cpu)) {
            const PERIOD_US: u64 = 100_000;
            let quota = (millis * PERIOD_US / 1000).max(1000);
            match place.version {
                Version::V1 => {
                    write(place, "cpu.cfs_period_us", PERIOD_US)?;
                    write(place, "cpu.cfs_quota_us", quota)?;
                }
                Version::V2 => write(place, "cpu.max", format!("{quota} {PERIOD_US}"))?,
            }
        }
        if let (Some(pids), Some(place)) = (limits.pids, self.places.get(&Ability::Pids)) {
            write(place, "pids.max", pids)?;
        }
        Ok(())
    }

    pub(super) fn stats(&self) -> Stats {
        let mut stats = Stats::default();
        if let Some(place) = self.places.get(&Ability::Memory) {
            let (now, peak, limit, events) = match place.version {
                Version::V1 => (
                    "memory.usage_in_bytes",
                    "memory.max_usage_in_bytes",
                    "memory.limit_in_bytes",
                    "memory.oom_control",
                ),
                Version::V2 => ("memory.current", "memory.peak", "memory.max", "memory.events"),
            };
            stats.memory_bytes = number(place, now);
            stats.memory_peak_bytes = number(place, peak);
            // Version 1 says "no limit" with a number near the largest.
            stats.memory_limit_bytes = number(place, limit).filter(|bytes| *bytes < 1 << 60);
            stats.oom_kills = field(place, events, "oom_kill");
        }
        if let Some(place) = self.places.get(&Ability::CpuUsage) {
            stats.cpu_usage_us = match place.version {
                Version::V1 => number(place, "cpuacct.usage").map(|nanoseconds| nanoseconds / 1000),
                Version::V2 => field(place, "cpu.stat", "usage_usec"),
            };
        }
        if let Some(place) = self.places.get(&Ability::Pids) {
            stats.pids = number(place, "pids.current");
        }
        stats
    }

    pub(super) fn set_frozen(&self, frozen: bool) -> io::Result<()> {
        match self.places.get(&Ability::Freeze) {
            Some(place) if place.version == Version::V2 => {
                write(place, "cgroup.freeze", u8::from(frozen))
            }
            Some(place) => write(place, "freezer.state", if frozen { "FROZEN" } else { "THAWED" }),
            None => Err(io::Error::new(io::ErrorKind::Unsupported, "no freezer")),
        }
    }

    /// Whether every process is frozen, not just asked to.
    pub(super) fn is_frozen(&self) -> bool {
        self.places.get(&Ability::Freeze).is_some_and(|place| match place.version {
            Version::V2 => field(place, "cgroup.events", "frozen") == Some(1),
            Version::V1 => fs::read_to_string(place.base.join("freezer.state"))
                .is_ok_and(|state| state.trim() == "FROZEN"),
        })
    }

    /// Ends every process in it that the kernel still has.
    pub(super) fn kill(&self) {
        // A frozen process of version 1 ends only when it thaws.
        let _ = self.set_frozen(false);
        for directory in self.directories() {
            if fs::write(directory.join("cgroup.kill"), "1").is_ok() {
                continue;
            }
            let procs = fs::read_to_string(directory.join("cgroup.procs")).unwrap_or_default();
            for pid in procs
                .lines()
                .filter_map(|line| line.parse().ok())
                .filter_map(rustix::process::Pid::from_raw)
            {
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            }
        }
    }

    /// Removes the directories; an error names the first that is still in use.
    pub(super) fn remove(&self) -> io::Result<()> {
        for directory in self.directories() {
            match fs::remove_dir(&directory) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

struct Mount {
    path: PathBuf,
    /// The controllers of a version 1 hierarchy; `None` is version 2.
    controllers: Option<Vec<String>>,
}

fn cgroup_mounts(mountinfo: &str) -> Vec<Mount> {
    mountinfo
        .lines()
        .filter_map(|line| {
            let (before, after) = line.split_once(" - ")?;
            let path = PathBuf::from(before.split(' ').nth(4)?);
            let mut after = after.split(' ');
            match after.next()? {
                "cgroup2" => Some(Mount { path, controllers: None }),
                "cgroup" => {
                    let options = after.nth(1)?.split(',').map(str::to_owned).collect();
                    Some(Mount { path, controllers: Some(options) })
                }
                _ => None,
            }
        })
        .collect()
}

/// This process's place in a hierarchy, relative to its mount.
fn own_path(own: &str, mount: &Mount) -> PathBuf {
    own.lines()
        .find_map(|line| {
            let mut fields = line.splitn(3, ':');
            let (number, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
            let here = match &mount.controllers {
                None => number == "0" && controllers.is_empty(),
                Some(ours) => controllers
                    .split(',')
                    .any(|name| !name.is_empty() && ours.iter().any(|our| our == name)),
            };
            here.then(|| PathBuf::from(path.trim_start_matches('/')))
        })
        .unwrap_or_default()
}

fn v1_abilities(controller: &str) -> &'static [Ability] {
    match controller {
        "memory" => &[Ability::Memory],
        "cpu" => &[Ability::Cpu],
        "cpuacct" => &[Ability::CpuUsage],
        "pids" => &[Ability::Pids],
        "freezer" => &[Ability::Freeze],
        _ => &[],
    }
}

fn v2_abilities(controller: &str) -> &'static [Ability] {
    match controller {
        "memory" => &[Ability::Memory],
        "cpu" => &[Ability::Cpu, Ability::CpuUsage],
        "pids" => &[Ability::Pids],
        _ => &[],
    }
}

/// Version 2 gives controllers to the children of a cgroup only when it holds no process itself. In
/// a scope of our own, which holds nobody but us, we move into a child.
fn step_aside(own: &Path) {
    let procs = fs::read_to_string(own.join("cgroup.procs")).unwrap_or_default();
    if procs.trim() == std::process::id().to_string() {
        let leaf = own.join("gateway");
        if make(&leaf).is_ok() {
            let _ = fs::write(leaf.join("cgroup.procs"), "0");
        }
    }
}

/// One at a time: a controller that is not there must not keep the others away.
fn enable_controllers(directory: &Path) {
    for controller in ["+memory", "+cpu", "+pids"] {
        let _ = fs::write(directory.join("cgroup.subtree_control"), controller);
    }
}

/// A version 1 `cpuset` that shares a mount with what we use has to be filled before anything joins.
fn copy_cpuset(directory: &Path) {
    for file in ["cpuset.cpus", "cpuset.mems"] {
        let parent = directory.parent().map(|parent| parent.join(file));
        if let Some(value) = parent.and_then(|parent| fs::read(parent).ok()) {
            let _ = fs::write(directory.join(file), value);
        }
    }
}

fn make(directory: &Path) -> io::Result<()> {
    match fs::create_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    }
}

fn writable(directory: &Path) -> bool {
    rustix::fs::access(directory.join("cgroup.procs"), rustix::fs::Access::WRITE_OK).is_ok()
}

fn write(place: &Place, file: &str, value: impl ToString) -> io::Result<()> {
    let path = place.base.join(file);
    fs::write(&path, value.to_string())
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
}

fn number(place: &Place, file: &str) -> Option<u64> {
    fs::read_to_string(place.base.join(file)).ok()?.trim().parse().ok()
}

fn field(place: &Place, file: &str, name: &str) -> Option<u64> {
    let text = fs::read_to_string(place.base.join(file)).ok()?;
    text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    const HYBRID: &str = "\
40 24 0:36 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct
41 24 0:37 / /sys/fs/cgroup/unified rw,relatime shared:10 - cgroup2 cgroup2 rw
42 24 0:38 / / rw - ext4 /dev/vda rw
";

    #[test]
    fn both_versions_are_found_among_the_mounts() {
        let mounts = cgroup_mounts(HYBRID);
        assert_eq!(mounts.len(), 2);
        assert_eq!(mounts[0].path, Path::new("/sys/fs/cgroup/cpu,cpuacct"));
        assert!(mounts[0].controllers.as_ref().unwrap().contains(&"cpuacct".to_owned()));
        assert!(mounts[1].controllers.is_none());
    }

    #[test]
    fn our_own_place_is_read_per_hierarchy() {
        let own = "3:cpu,cpuacct:/user.slice\n1:name=systemd:/x\n0::/user.slice/session.scope\n";
        let mounts = cgroup_mounts(HYBRID);
        assert_eq!(own_path(own, &mounts[0]), Path::new("user.slice"));
        assert_eq!(own_path(own, &mounts[1]), Path::new("user.slice/session.scope"));
    }
}
