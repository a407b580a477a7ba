//! What a command gets differently from the supervisor: fewer open files, and the first turn
//! when the kernel has to end something for want of memory.

use std::fs::{self, OpenOptions};
use std::io::Write;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Enough for every client and pipe the supervisor allows itself.
const WANTED_FILES: u64 = 65_536;
const OOM_SCORE: &str = "/proc/self/oom_score_adj";
/// A fifth of all memory: no supervisor uses as much more than a command.
const OOM_PREFERENCE: i32 = 200;
const OOM_MOST: i32 = 1000;

/// The limits commands start with.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// As it was when the supervisor started: programs that use `select` break on a high one.
    open_files: libc::rlimit,
    /// Raising it is open to everybody, so this works where protecting pid 1 is not allowed.
    oom_score: i32,
}

impl Limits {
    /// Takes note of the limits, and raises the supervisor's own.
    pub fn take() -> Self {
        let before = getrlimit(Resource::Nofile);
        let most = before.maximum.unwrap_or(WANTED_FILES).min(WANTED_FILES);
        if before.current.is_some_and(|current| current < most) {
            let raised = Rlimit { current: Some(most), maximum: before.maximum };
            // Works without it, only with fewer clients at a time.
            let _ = setrlimit(Resource::Nofile, raised);
        }
        let open_files = libc::rlimit {
            rlim_cur: before.current.unwrap_or(libc::RLIM_INFINITY),
            rlim_max: before.maximum.unwrap_or(libc::RLIM_INFINITY),
        };
        let score = fs::read_to_string(OOM_SCORE).ok().and_then(|text| text.trim().parse().ok());
        Self { open_files, oom_score: oom_score(score.unwrap_or(0)) }
    }

    /// Applies what it can, in the child before the exec. What is refused stays as it is.
    pub(crate) fn apply(&self) {
        // SAFETY: a plain system call on memory that outlives it.
        unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const self.open_files) };
    }

    /// Applies the rest, to a process that runs its program: until then it shares the supervisor's
    /// protection from others, which closes these files to the process itself too.
    pub(crate) fn apply_to(&self, pid: i32) {
        // Not there when it has ended already.
        if let Ok(mut file) = OpenOptions::new().write(true).open(oom_score_file(pid)) {
            let _ = file.write_all(self.oom_score.to_string().as_bytes());
        }
    }
}

fn oom_score_file(pid: i32) -> String {
    format!("/proc/{pid}/oom_score_adj")
}

fn oom_score(own: i32) -> i32 {
    (own.max(0) + OOM_PREFERENCE).min(OOM_MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_always_comes_before_its_supervisor() {
        for (own, expected) in [(-900, 200), (0, 200), (500, 700), (1000, 1000)] {
            assert_eq!(oom_score(own), expected, "{own}");
        }
    }
}
