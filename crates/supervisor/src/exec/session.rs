//! The processes of one command. Each command leads a session of its own, so whatever it starts
//! and whichever job-control group that moves to, it can be found.

use std::fs;

use super::reaper::Reaper;

/// A session, by the process that leads it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Session {
    pub(super) leader: i32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Member {
    pid: i32,
    group: i32,
}

impl Session {
    /// To the leader's process group; `false` when the leader has ended.
    pub(super) fn signal_group(self, reaper: &Reaper, signal: i32) -> bool {
        reaper.while_alive(self.leader, || kill(-self.leader, signal)).is_some()
    }

    /// To every process of the session.
    pub(super) fn signal_all(self, reaper: &Reaper, signal: i32) {
        let group_reached = self.signal_group(reaper, signal);
        for member in self.members() {
            if !(group_reached && member.group == self.leader) {
                kill(member.pid, signal);
            }
        }
    }

    pub(super) fn is_empty(self) -> bool {
        self.members().is_empty()
    }

    fn members(self) -> Vec<Member> {
        let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
        entries
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok())
            .filter_map(|pid| {
                member(pid, self.leader, &fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
            })
            .collect()
    }
}

/// Reads `/proc/PID/stat`. The name in it is in parentheses and may hold any character.
fn member(pid: i32, session: i32, stat: &str) -> Option<Member> {
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    let state = fields.next()?;
    let group = fields.nth(1)?.parse().ok()?;
    let in_session = fields.next()?.parse() == Ok(session);
    (in_session && !matches!(state, "Z" | "X")).then_some(Member { pid, group })
}

fn kill(pid: i32, signal: i32) {
    // SAFETY: a plain system call on numbers. A process that is gone already is fine.
    unsafe { libc::kill(pid, signal) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_is_read_from_proc_whatever_its_name() {
        let stat = "77 (a) R 1 (b)) S 70 71 72 34816 77 4194560";
        assert_eq!(member(77, 72, stat), Some(Member { pid: 77, group: 71 }));
        assert_eq!(member(77, 70, stat), None);
        assert_eq!(member(77, 72, "77 (a) Z 70 71 72 0"), None);
    }
}
