//! A terminal with a person in front of it.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Termios, Winsize, tcgetattr, tcsetwinsize};

/// Nothing that these tests wait for takes longer.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct Pty {
    person: File,
    /// The end that programs have; held open so that its settings can be looked at afterwards.
    program: OwnedFd,
    /// What appeared and was not yet waited for.
    seen: Vec<u8>,
}

impl Pty {
    pub(crate) fn open(cols: u16, rows: u16) -> Self {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let person = openpt(flags).unwrap();
        grantpt(&person).unwrap();
        unlockpt(&person).unwrap();
        let name = ptsname(&person, Vec::new()).unwrap();
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let program = rustix::fs::open(name, flags, Mode::empty()).unwrap();
        let pty = Self { person: File::from(person), program, seen: Vec::new() };
        pty.resize(cols, rows);
        pty
    }

    /// The kernel tells the programs in the foreground.
    pub(crate) fn resize(&self, cols: u16, rows: u16) {
        let size = Winsize { ws_col: cols, ws_row: rows, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&self.person, size).unwrap();
    }

    /// Starts a command in the foreground of this terminal.
    pub(crate) fn start(&self, mut command: Command) -> Child {
        let end = || self.program.try_clone().unwrap();
        let terminal = self.program.as_raw_fd();
        let take_terminal = move || {
            rustix::process::setsid()?;
            // SAFETY: the parent keeps this descriptor open for as long as `self` lives, which is
            // beyond the fork.
            let terminal = unsafe { std::os::fd::BorrowedFd::borrow_raw(terminal) };
            rustix::process::ioctl_tiocsctty(terminal)?;
            Ok(())
        };
        command.stdin(end()).stdout(end()).stderr(end()).env("TERM", "xterm");
        // SAFETY: two system calls and nothing else happen between fork and exec.
        unsafe { command.pre_exec(take_terminal) };
        command.spawn().unwrap()
    }

    pub(crate) fn type_in(&mut self, keys: &str) {
        self.person.write_all(keys.as_bytes()).unwrap();
    }

    /// Returns what appeared up to and with `text`.
    pub(crate) fn until(&mut self, text: &str) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let found = self.seen.windows(text.len()).position(|part| part == text.as_bytes());
            if let Some(at) = found {
                let part: Vec<u8> = self.seen.drain(..at + text.len()).collect();
                return String::from_utf8_lossy(&part).into_owned();
            }
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(self.more(left), "no {text:?} in {:?}", String::from_utf8_lossy(&self.seen));
        }
    }

    fn more(&mut self, patience: Duration) -> bool {
        let timeout = Timespec::try_from(patience).unwrap();
        let mut ready = [PollFd::from_borrowed_fd(self.person.as_fd(), PollFlags::IN)];
        if poll(&mut ready, Some(&timeout)).unwrap() == 0 {
            return false;
        }
        let mut buffer = [0; 4096];
        let count = self.person.read(&mut buffer).unwrap();
        self.seen.extend_from_slice(&buffer[..count]);
        true
    }

    pub(crate) fn settings(&self) -> Settings {
        Settings::of(&tcgetattr(&self.program).unwrap())
    }
}

/// How a terminal treats what is typed and shown.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    modes: [u32; 4],
    pub(crate) echo: bool,
}

impl Settings {
    fn of(termios: &Termios) -> Self {
        let modes = [
            termios.input_modes.bits(),
            termios.output_modes.bits(),
            termios.control_modes.bits(),
            termios.local_modes.bits(),
        ];
        Self { modes, echo: termios.local_modes.contains(LocalModes::ECHO) }
    }
}
