//! Writing a user namespace's id maps.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::process::{Command, Stdio};

use crate::order::{IdRange, Ids, MapWriter};
use crate::{Result, Step};

/// Maps the ids of `pid`, which has just unshared its user namespace.
pub(crate) fn map(pid: i32, ids: &Ids) -> Result<()> {
    match ids.writer {
        MapWriter::Root => {
            write(pid, "uid_map", &lines(&ids.uids))?;
            write(pid, "gid_map", &lines(&ids.gids))
        }
        MapWriter::Single => {
            write(pid, "setgroups", "deny")?;
            write(pid, "uid_map", &lines(&ids.uids))?;
            write(pid, "gid_map", &lines(&ids.gids))
        }
        MapWriter::Helpers => {
            run_helper("newuidmap", pid, &ids.uids)?;
            run_helper("newgidmap", pid, &ids.gids)
        }
    }
}

fn write(pid: i32, file: &str, text: &str) -> Result<()> {
    fs::write(format!("/proc/{pid}/{file}"), text)
        .step(|| format!("write {file} ({})", text.trim()))
}

fn lines(ranges: &[IdRange]) -> String {
    ranges.iter().fold(String::new(), |mut text, IdRange { inside, outside, count }| {
        let _ = writeln!(text, "{inside} {outside} {count}");
        text
    })
}

fn run_helper(program: &str, pid: i32, ranges: &[IdRange]) -> Result<()> {
    let mut command = Command::new(program);
    command.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").arg(pid.to_string()).stdin(Stdio::null());
    for IdRange { inside, outside, count } in ranges {
        command.args([inside, outside, count].map(u32::to_string));
    }
    let output = command.output().step(|| format!("run {program}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(io::Error::other(said)).step(|| program.to_owned())
}
