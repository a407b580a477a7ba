//! Users of the sandbox, read from its own `/etc/passwd` and `/etc/group`.
//!
//! The guest binary is static, so the C library's name service is not there to ask.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use nacre_wire::{ApiError, ErrorKind};
use rustix::fs::{Mode, OFlags};

/// More accounts than a sandbox has.
const LARGEST_FILE: u64 = 1024 * 1024;

/// Somebody on whose behalf the supervisor acts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    pub name: String,
    pub uid: u32,
    pub gid: u32,
    /// Supplementary groups.
    pub groups: Vec<u32>,
    pub home: PathBuf,
    pub shell: PathBuf,
}

/// A user by name or number. A number without an entry is accepted, with itself as group.
pub fn lookup(who: &str) -> Result<User, ApiError> {
    let passwd = read(Path::new("/etc/passwd")).unwrap_or_default();
    let group = read(Path::new("/etc/group")).unwrap_or_default();
    find(who, &passwd, &group).ok_or_else(|| {
        ApiError::new(ErrorKind::NotFound, format!("no user \"{who}\" in this sandbox"))
            .hint("use a name from /etc/passwd, or a number")
    })
}

/// Root of the sandbox may put anything there: neither a pipe nor a file without end may hold us up.
fn read(path: &Path) -> io::Result<String> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    if !file.metadata()?.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut text = String::new();
    file.take(LARGEST_FILE).read_to_string(&mut text)?;
    Ok(text)
}

fn find(who: &str, passwd: &str, group: &str) -> Option<User> {
    let number = who.parse::<u32>().ok();
    let named = passwd.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        let &[name, _, uid, gid, _, home, shell] = fields.as_slice() else { return None };
        let (uid, gid) = (uid.parse().ok()?, gid.parse().ok()?);
        (name == who || number == Some(uid)).then(|| User {
            name: name.to_owned(),
            uid,
            gid,
            groups: groups_of(name, group),
            home: PathBuf::from(home),
            shell: PathBuf::from(if shell.is_empty() { "/bin/sh" } else { shell }),
        })
    });
    named.or_else(|| {
        // An image without accounts still has root.
        let id = if who == "root" { 0 } else { number.filter(|id| *id != u32::MAX)? };
        Some(User {
            name: who.to_owned(),
            uid: id,
            gid: id,
            groups: Vec::new(),
            home: PathBuf::from("/"),
            shell: PathBuf::from("/bin/sh"),
        })
    })
}

fn groups_of(name: &str, group: &str) -> Vec<u32> {
    group
        .lines()
        .filter_map(|line| {
            let mut fields = line.split(':');
            let (gid, members) = (fields.nth(2)?, fields.next()?);
            members.split(',').any(|member| member == name).then(|| gid.parse().ok())?
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWD: &str =
        "root:x:0:0:root:/root:/bin/bash\nnacre:x:1000:1000::/home/nacre:\nbad line\n";
    const GROUP: &str = "audio:x:29:nacre,other\nnacre:x:1000:\n";

    #[test]
    fn by_name_and_by_number_are_the_same_user() {
        let user = find("nacre", PASSWD, GROUP).unwrap();
        assert_eq!(find("1000", PASSWD, GROUP).as_ref(), Some(&user));
        assert_eq!((user.uid, user.groups, user.shell), (1000, vec![29], PathBuf::from("/bin/sh")));
    }

    #[test]
    fn what_is_no_file_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("passwd");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &pipe,
            rustix::fs::FileType::Fifo,
            Mode::from_raw_mode(0o600),
            0,
        )
        .unwrap();
        assert!(read(&pipe).is_err());
        assert!(read(folder.path()).is_err());
        let file = folder.path().join("group");
        std::fs::write(&file, GROUP).unwrap();
        assert_eq!(read(&file).unwrap(), GROUP);
    }

    #[test]
    fn an_unknown_number_is_itself_and_an_unknown_name_is_nobody() {
        assert_eq!(find("77", PASSWD, GROUP).unwrap().gid, 77);
        assert_eq!(find("nobody-here", PASSWD, GROUP), None);
        assert_eq!(find("root", "", "").unwrap().uid, 0);
    }
}
