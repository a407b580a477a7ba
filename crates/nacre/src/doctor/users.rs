//! Whether an ordinary user may map more ids than their own.

use std::fs;
use std::path::{Path, PathBuf};

use nacre_wire::control::Check;

use super::{ok, reduced};

/// Enough for every id that a system's packages use.
const ENOUGH: u64 = 65_536;

pub(super) fn check() -> Vec<Check> {
    let uid = rustix::process::getuid();
    if uid.is_root() {
        return vec![ok("user ids", "running as root: any range can be mapped")];
    }
    let uid = uid.as_raw();
    let passwd = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let user = user_name(&passwd, uid).unwrap_or_else(|| uid.to_string());
    let count = |file: &str| granted(&fs::read_to_string(file).unwrap_or_default(), &user, uid);
    vec![
        describe_ranges(&user, count("/etc/subuid"), count("/etc/subgid")),
        describe_helpers(in_path("newuidmap").is_some() && in_path("newgidmap").is_some()),
    ]
}

fn describe_ranges(user: &str, uids: u64, gids: u64) -> Check {
    let name = "user ids";
    if uids >= ENOUGH && gids >= ENOUGH {
        return ok(name, format!("{uids} user and {gids} group ids are granted to {user}"));
    }
    reduced(
        name,
        format!("{uids} user and {gids} group ids are granted to {user}: a sandbox has one user"),
        format!("sudo usermod --add-subuids 100000-165535 --add-subgids 100000-165535 {user}"),
    )
}

fn describe_helpers(found: bool) -> Check {
    if found {
        return ok("id mapping", "newuidmap and newgidmap are installed");
    }
    let detail = "newuidmap and newgidmap are missing: a sandbox has one user";
    reduced("id mapping", detail, "sudo apt install uidmap")
}

fn user_name(passwd: &str, uid: u32) -> Option<String> {
    passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(uid)).then(|| name.to_owned())
    })
}

/// The size of the largest range that `/etc/subuid` grants, by name or by number.
fn granted(file: &str, user: &str, uid: u32) -> u64 {
    let ours = |line: &&str| {
        line.split(':').next().is_some_and(|owner| owner == user || owner.parse() == Ok(uid))
    };
    file.lines()
        .filter(ours)
        .filter_map(|line| line.split(':').nth(2)?.trim().parse().ok())
        .max()
        .unwrap_or(0)
}

fn in_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain([Path::new("/usr/bin").to_owned(), Path::new("/usr/sbin").to_owned()])
        .map(|folder| folder.join(program))
        .find(|candidate| candidate.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;
    use nacre_wire::control::CheckStatus;

    #[test]
    fn a_range_counts_by_name_or_number() {
        let file = "root:1:10\nme:100000:65536\n1000:200000:10\nmeow:300000:99999\n";
        assert_eq!(granted(file, "me", 7), 65_536);
        assert_eq!(granted(file, "other", 1000), 10);
        assert_eq!(granted(file, "nobody", 3), 0);
        assert_eq!(
            user_name("root:x:0:0::/:/bin/sh\nme:x:7:7::/:/bin/sh", 7).as_deref(),
            Some("me")
        );
    }

    #[test]
    fn a_single_id_is_reduced_with_the_command_that_changes_it() {
        let check = describe_ranges("me", 0, 65_536);
        assert_eq!(check.status, CheckStatus::Reduced);
        assert!(check.remedy.unwrap().ends_with("100000-165535 me"));
    }
}
