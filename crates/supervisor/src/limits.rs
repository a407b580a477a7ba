//! What a command gets differently from the supervisor: fewer open files, and the first turn
//! when the kernel has to end something for want of memory.

use std::ffi::CString;
use std::fs;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Enough for every client and pipe the supervisor allows itself.
const WANTED_FILES: u64 = 65_536;
const OOM_SCORE: &str = "/proc/self/oom_score_adj";
const OOM_SCORE_C: &std::ffi::CStr = c"/proc/self/oom_score_adj";
/// A fifth of all memory: no supervisor uses as much more than a command.
const OOM_PREFERENCE: i32 = 200;
const OOM_MOST: i32 = 1000;

/// The limits commands start with.
#[derive(Debug, Clone)]
pub struct Limits {
    /// As it was when the supervisor started: programs that use `select` break on a high one.
    open_files: libc::rlimit,
    /// Raising it is open to everybody, so this works where protecting pid 1 is not allowed.
    oom_score: CString,
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

    /// Applies them, in the child between fork and exec. What is refused stays as it is.
    pub(crate) fn apply(&self) {
        let score = self.oom_score.as_bytes();
        // SAFETY: plain system calls on memory that outlives them.
        unsafe {
            libc::setrlimit(libc::RLIMIT_NOFILE, &raw const self.open_files);
            let file = libc::open(OOM_SCORE_C.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
            if file >= 0 {
                libc::write(file, score.as_ptr().cast(), score.len());
                libc::close(file);
            }
        }
    }
}

fn oom_score(own: i32) -> CString {
    let score = (own.max(0) + OOM_PREFERENCE).min(OOM_MOST);
    // A number holds no zero byte.
    CString::new(score.to_string()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_always_comes_before_its_supervisor() {
        for (own, expected) in [(-900, c"200"), (0, c"200"), (500, c"700"), (1000, c"1000")] {
            assert_eq!(oom_score(own).as_c_str(), expected, "{own}");
        }
    }
}
