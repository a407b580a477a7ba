//! Whether the desktop can be served from its source.

use std::path::{Path, PathBuf};
use std::process::Command;

use nacre_wire::control::Check;

use super::{ok, reduced};

/// What sandboxes see of this machine, as their `PATH` has it.
const FOLDERS: [&str; 4] = ["/usr/local/bin", "/usr/bin", "/usr/local/sbin", "/usr/sbin"];
/// What Vite needs.
const OLDEST: (u32, u32) = (20, 19);
const INSTALL: &str = "apt-get install -y nodejs npm";
const WITHOUT: &str = "the built desktop is served, and what the agent changes of it is not shown until Node is there";

pub(super) fn check() -> Check {
    let version = find("node").and_then(|node| version_of(&node));
    describe(version.as_deref(), find("npm").is_some())
}

fn find(program: &str) -> Option<PathBuf> {
    FOLDERS.iter().map(|folder| Path::new(folder).join(program)).find(|path| path.exists())
}

/// Such as `v20.19.2`.
fn version_of(node: &Path) -> Option<String> {
    let output = Command::new(node).arg("--version").output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn describe(version: Option<&str>, npm: bool) -> Check {
    let name = "node";
    let Some(version) = version else {
        return reduced(name, format!("there is none in /usr: {WITHOUT}"), INSTALL);
    };
    if !npm {
        return reduced(name, format!("{version}, but no npm in /usr: {WITHOUT}"), INSTALL);
    }
    if parse(version).is_some_and(|found| found < OLDEST) {
        let (major, minor) = OLDEST;
        let detail = format!("{version} is older than {major}.{minor}: {WITHOUT}");
        return reduced(name, detail, "install a newer one in /usr/local: https://nodejs.org");
    }
    ok(name, format!("{version}: the desktop is served from its source"))
}

fn parse(version: &str) -> Option<(u32, u32)> {
    let mut numbers = version.trim_start_matches('v').split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nacre_wire::control::CheckStatus;

    #[test]
    fn what_is_missing_is_named_with_the_command_that_brings_it() {
        let check = |version, npm, expected: CheckStatus, remedy: Option<&str>| {
            let check = describe(version, npm);
            assert_eq!((check.status, check.remedy.as_deref()), (expected, remedy), "{version:?}");
        };
        check(Some("v20.19.2"), true, CheckStatus::Ok, None);
        check(Some("v22.1.0"), true, CheckStatus::Ok, None);
        check(None, true, CheckStatus::Reduced, Some(INSTALL));
        check(Some("v20.19.2"), false, CheckStatus::Reduced, Some(INSTALL));
        let newer = "install a newer one in /usr/local: https://nodejs.org";
        check(Some("v18.19.0"), true, CheckStatus::Reduced, Some(newer));
    }
}
