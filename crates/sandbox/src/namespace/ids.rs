//! Which ids of the host a sandbox's ids become.

use std::fs;
use std::io;
use std::path::Path;

use nacre_launch::order::{IdRange, Ids, MapWriter};
use nacre_wire::control::Reduction;

/// Enough for every user a distribution makes, `nobody` (65534) included.
const WANTED: u32 = 65_536;
/// With fewer there would be no room for the user at 1000.
const ENOUGH: u32 = 2_000;
/// Where root maps sandboxes when `/etc/subuid` does not say: inside the range that systemd keeps
/// for containers, far above people and services.
const ROOT_BASE: u32 = 0x6000_0000;

/// What this process may map.
#[derive(Debug, Clone)]
pub(super) struct IdPlan {
    /// For a sandbox.
    pub(super) sandbox: Ids,
    /// For jobs on a sandbox's files: 0 is this process's own user and 1 is root of the sandbox.
    pub(super) admin: Ids,
    /// Root of the sandbox as the host sees it, when this process may give files to it.
    pub(super) chown_to: Option<(u32, u32)>,
    pub(super) many: bool,
    pub(super) reduced: Vec<Reduction>,
}

impl IdPlan {
    pub(super) fn detect() -> io::Result<Self> {
        let uid = rustix::process::geteuid().as_raw();
        let gid = rustix::process::getegid().as_raw();
        if uid == 0 {
            let own = fs::read_to_string("/proc/self/uid_map")?;
            if let Some((start, count)) = pick_for_root(&own) {
                return Ok(Self::ranges(MapWriter::Root, (start, start), count, (uid, gid)));
            }
            return Ok(Self::single(
                uid,
                gid,
                "this process is root of a user namespace with too few ids",
            ));
        }
        let user = user_name(uid);
        let read = |file| fs::read_to_string(file).unwrap_or_default();
        let uids = subordinate(&read("/etc/subuid"), &user, uid);
        let gids = subordinate(&read("/etc/subgid"), &user, uid);
        let helpers = ["newuidmap", "newgidmap"].iter().all(|name| on_path(name));
        match (uids, gids, helpers) {
            (Some(uids), Some(gids), true) => {
                let count = uids.1.min(gids.1).min(WANTED);
                Ok(Self::ranges(MapWriter::Helpers, (uids.0, gids.0), count, (uid, gid)))
            }
            (_, _, false) => {
                Ok(Self::single(uid, gid, "newuidmap and newgidmap are not installed"))
            }
            _ => Ok(Self::single(
                uid,
                gid,
                "you have no subordinate ids in /etc/subuid and /etc/subgid",
            )),
        }
    }

    fn ranges(writer: MapWriter, start: (u32, u32), count: u32, own: (u32, u32)) -> Self {
        let map = |outside, count| vec![IdRange { inside: 0, outside, count }];
        let admin = |own, outside| {
            vec![
                IdRange { inside: 0, outside: own, count: 1 },
                IdRange { inside: 1, outside, count },
            ]
        };
        Self {
            sandbox: Ids { uids: map(start.0, count), gids: map(start.1, count), writer },
            admin: Ids { uids: admin(own.0, start.0), gids: admin(own.1, start.1), writer },
            chown_to: (writer == MapWriter::Root).then_some(start),
            many: true,
            reduced: Vec::new(),
        }
    }

    fn single(uid: u32, gid: u32, why: &str) -> Self {
        let map = |outside| vec![IdRange { inside: 0, outside, count: 1 }];
        let ids = Ids { uids: map(uid), gids: map(gid), writer: MapWriter::Single };
        let user = user_name(uid);
        Self {
            sandbox: ids.clone(),
            admin: ids,
            chown_to: None,
            many: false,
            reduced: vec![Reduction {
                what: "ids".to_owned(),
                why: format!(
                    "{why}: everything in a sandbox runs as one user, which is you outside of it"
                ),
                remedy: (uid != 0).then(|| {
                    format!(
                        "sudo apt-get install uidmap && sudo usermod --add-subuids 100000-165535 \
                         --add-subgids 100000-165535 {user}"
                    )
                }),
            }],
        }
    }
}

/// The preferred range when it is ours to map, otherwise what lies above the low ids.
fn pick_for_root(own_map: &str) -> Option<(u32, u32)> {
    let ranges: Vec<(u32, u32)> = own_map
        .lines()
        .filter_map(|line| {
            let mut fields = line.split_whitespace();
            let inside = fields.next()?.parse().ok()?;
            Some((inside, fields.nth(1)?.parse().ok()?))
        })
        .collect();
    let preferred = ranges.iter().any(|(inside, count)| {
        *inside <= ROOT_BASE
            && u64::from(*inside) + u64::from(*count) >= u64::from(ROOT_BASE + WANTED)
    });
    if preferred {
        return Some((ROOT_BASE, WANTED));
    }
    const LOW: u32 = 10_000;
    ranges.iter().find_map(|(inside, count)| {
        let start = (*inside).max(LOW);
        let room = inside.saturating_add(*count).saturating_sub(start).min(WANTED);
        (room >= ENOUGH).then_some((start, room))
    })
}

/// The first range of `user` that is large enough: its start and length.
fn subordinate(file: &str, user: &str, uid: u32) -> Option<(u32, u32)> {
    file.lines().find_map(|line| {
        let mut fields = line.split(':');
        let who = fields.next()?;
        let (start, count) = (fields.next()?.parse().ok()?, fields.next()?.trim().parse().ok()?);
        ((who == user || who == uid.to_string()) && count >= ENOUGH).then_some((start, count))
    })
}

fn user_name(uid: u32) -> String {
    fs::read_to_string("/etc/passwd")
        .unwrap_or_default()
        .lines()
        .find_map(|line| {
            let mut fields = line.split(':');
            let name = fields.next()?;
            (fields.nth(1)? == uid.to_string()).then(|| name.to_owned())
        })
        .unwrap_or_else(|| uid.to_string())
}

fn on_path(program: &str) -> bool {
    ["/usr/bin", "/bin", "/usr/sbin", "/sbin"]
        .iter()
        .any(|directory| Path::new(directory).join(program).exists())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_of_the_host_gets_the_range_for_containers() {
        assert_eq!(pick_for_root("         0          0 4294967295\n"), Some((ROOT_BASE, WANTED)));
    }

    #[test]
    fn root_of_a_container_gets_what_it_has() {
        assert_eq!(pick_for_root("0 100000 65536\n"), Some((10_000, 55_536)));
        assert_eq!(pick_for_root("0 1000 1\n1 100000 65536\n"), Some((10_000, 55_537)));
        assert_eq!(pick_for_root("0 1000 1\n"), None);
    }

    #[test]
    fn subordinate_ids_are_found_by_name_or_number() {
        let file = "bob:100000:65536\nann:5:10\n1001:300000:65536\n";
        assert_eq!(subordinate(file, "bob", 1000), Some((100_000, 65_536)));
        assert_eq!(subordinate(file, "ann", 1001), Some((300_000, 65_536)));
        assert_eq!(subordinate(file, "eve", 1002), None);
    }
}
