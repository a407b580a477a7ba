//! Whose a socket is. The kernel says so to whoever may look into a process, which root of a sandbox may
//! not: it has no right to trace. So every user's processes are looked into as that user.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use nacre_wire::ports::PortProcess;

use super::table::{self, Listening};
use crate::files::identity::act_as;
use crate::users;

/// By the inode of the socket. One that several processes share is the first's.
pub(super) fn find(sockets: &[Listening]) -> HashMap<u64, PortProcess> {
    let uids: BTreeSet<u32> = sockets.iter().map(|socket| socket.uid).collect();
    let mut wanted: BTreeSet<u64> = sockets.iter().map(|socket| socket.inode).collect();
    let mut found = HashMap::new();
    for uid in uids {
        let Ok(user) = users::lookup(&uid.to_string()) else { continue };
        let Ok(_acting) = act_as(&user) else { continue };
        for pid in processes() {
            for inode in sockets_of(pid) {
                if wanted.remove(&inode) {
                    found.insert(inode, PortProcess { pid, name: name_of(pid) });
                }
            }
            if wanted.is_empty() {
                return found;
            }
        }
    }
    found
}

/// Who takes connections on a port, with the user of each. One that cannot be known is left out.
pub(crate) fn holders(port: u16) -> Vec<(u32, PortProcess)> {
    let sockets: Vec<_> = table::read().into_iter().filter(|socket| socket.port == port).collect();
    let mut owners = find(&sockets);
    sockets.iter().filter_map(|socket| Some((socket.uid, owners.remove(&socket.inode)?))).collect()
}

fn processes() -> Vec<i32> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let pid = |name: &std::ffi::OsStr| name.to_str()?.parse().ok();
    let mut pids: Vec<i32> =
        entries.flatten().filter_map(|entry| pid(&entry.file_name())).collect();
    pids.sort_unstable();
    pids
}

/// None when it may not be looked into, or is gone.
fn sockets_of(pid: i32) -> Vec<u64> {
    let Ok(entries) = fs::read_dir(format!("/proc/{pid}/fd")) else { return Vec::new() };
    entries.flatten().filter_map(|entry| inode(&fs::read_link(entry.path()).ok()?)).collect()
}

/// `socket:[4711]`
fn inode(link: &Path) -> Option<u64> {
    let text = std::str::from_utf8(link.as_os_str().as_bytes()).ok()?;
    text.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

/// Processes name themselves, with any bytes.
fn name_of(pid: i32) -> String {
    let name = fs::read(format!("/proc/{pid}/comm")).unwrap_or_default();
    String::from_utf8_lossy(&name).trim_end().chars().filter(|c| !c.is_control()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_process_that_listens_is_named() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let sockets: Vec<_> =
            table::read().into_iter().filter(|socket| socket.port == port).collect();
        let found = find(&sockets);
        let process = &found[&sockets[0].inode];
        assert_eq!(process.pid, i32::try_from(std::process::id()).unwrap());
        assert!(!process.name.is_empty());
        assert_eq!(holders(port), [(sockets[0].uid, process.clone())]);
        drop(listener);
        assert_eq!(holders(port), []);
    }
}
