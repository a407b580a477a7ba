//! Who exists in a sandbox.

use std::fs;
use std::path::Path;

use super::Owner;
use crate::layout::{USER, USER_ID};
use crate::{Result, Step, root};

/// Accounts of the system and one for the owner's work. People of the host stay unknown.
pub(super) fn write(etc: &Path, many_ids: bool, owner: Owner) -> Result<()> {
    let bash = Path::new("/bin/bash").exists();
    let shell = if bash { "/bin/bash" } else { "/bin/sh" };
    let mut passwd = system_lines("/etc/passwd", shell);
    let mut group = system_lines("/etc/group", shell);
    if many_ids {
        passwd.push_str(&format!("{USER}:x:{USER_ID}:{USER_ID}::/home/{USER}:{shell}\n"));
        group.push_str(&format!("{USER}:x:{USER_ID}:\n"));
    }
    let write = |name: &str, text: &str| {
        let path = etc.join(name);
        fs::write(&path, text).step(|| format!("write {}", path.display()))?;
        owner.own(&path, 0)
    };
    write("passwd", &passwd)?;
    write("group", &group)?;
    write("resolv.conf", &root::resolver())?;
    write("hostname", "nacre\n")?;
    write("hosts", "127.0.0.1 localhost\n::1 localhost ip6-localhost\n")
}

fn system_lines(file: &str, root_shell: &str) -> String {
    let text = fs::read_to_string(file).unwrap_or_default();
    let mut kept: String = text
        .lines()
        .filter(|line| {
            let id = line.split(':').nth(2).and_then(|id| id.parse::<u32>().ok());
            id.is_some_and(|id| id != 0 && (id < 1000 || id == 65534))
        })
        .map(|line| {
            // Members of a group are people of the host.
            let line = if file.ends_with("group") {
                &line[..=line.rfind(':').unwrap_or(line.len() - 1)]
            } else {
                line
            };
            format!("{line}\n")
        })
        .collect();
    let root = if file.ends_with("group") {
        "root:x:0:\n".to_owned()
    } else {
        format!("root:x:0:0:root:/root:{root_shell}\n")
    };
    kept.insert_str(0, &root);
    kept
}
