//! From fork to exec, in the child.
//!
//! Only async-signal-safe calls are allowed here: another thread of the parent may have held any
//! lock, the allocator's included, at the moment of the fork. So everything is laid out before,
//! and the child makes plain system calls on what it finds. It reports a failure as a [`Stage`]
//! and an errno.

use std::cell::Cell;
use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::ptr;

use super::program::Program;
use crate::limits::Limits;

/// What the child was doing when it failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Stage {
    Session = 1,
    Streams,
    User,
    Directory,
    Program,
}

impl Stage {
    pub(super) fn from_byte(byte: u8) -> Self {
        [Self::Session, Self::Streams, Self::User, Self::Directory]
            .into_iter()
            .find(|known| *known as u8 == byte)
            .unwrap_or(Self::Program)
    }
}

/// The child's ends of its three streams.
pub(super) struct ChildStreams {
    pub(super) stdin: OwnedFd,
    pub(super) stdout: OwnedFd,
    pub(super) stderr: OwnedFd,
}

/// Everything the child needs, laid out so that it only has to pass pointers on.
pub(super) struct Child<'a> {
    program: &'a Program,
    argv: Vec<*const libc::c_char>,
    /// How `/bin/sh` is asked to run a script that lacks `#!`; the second is the script.
    script_argv: Vec<Cell<*const libc::c_char>>,
    envp: Vec<*const libc::c_char>,
    streams: [RawFd; 3],
    report: RawFd,
    switch: Switch,
    limits: &'a Limits,
}

/// Whether the child has to become somebody else.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Switch {
    Needed,
    /// It is that user already; other groups are dropped where the kernel lets it.
    OnlyGroups,
    No,
}

const SHELL: &CStr = c"/bin/sh";

impl<'a> Child<'a> {
    pub(super) fn new(
        program: &'a Program,
        streams: &ChildStreams,
        report: &OwnedFd,
        limits: &'a Limits,
    ) -> Self {
        let argv = pointers(&program.argv);
        let script_argv = [SHELL.as_ptr(), ptr::null()]
            .into_iter()
            .chain(argv.iter().copied().skip(1))
            .map(Cell::new)
            .collect();
        let raw = |fd: &OwnedFd| fd.as_raw_fd();
        Self {
            program,
            argv,
            script_argv,
            envp: pointers(&program.env),
            streams: [raw(&streams.stdin), raw(&streams.stdout), raw(&streams.stderr)],
            report: raw(report),
            switch: switch(program),
            limits,
        }
    }

    /// Returns the child's number in the parent and does not return in the child.
    pub(super) fn fork(&self) -> io::Result<i32> {
        let mut all = empty_set();
        let mut before = empty_set();
        // Blocked across the fork so that no handler of ours runs in the child.
        // SAFETY: both sets are initialised and outlive the calls.
        unsafe {
            libc::sigfillset(&raw mut all);
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const all, &raw mut before);
        }
        // SAFETY: the child calls `become_program`, which makes only async-signal-safe calls
        // and never returns.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            self.become_program();
        }
        let error = io::Error::last_os_error();
        // SAFETY: `before` was filled by the first call.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, ptr::null_mut()) };
        if pid < 0 { Err(error) } else { Ok(pid) }
    }

    fn become_program(&self) -> ! {
        let stage = self.steps();
        let errno = errno();
        let mut message = [stage as u8, 0, 0, 0, 0];
        for (to, from) in message[1..].iter_mut().zip(errno.to_ne_bytes()) {
            *to = from;
        }
        // SAFETY: the buffer is valid for its length; _exit ends the child without running
        // handlers that belong to the parent.
        unsafe {
            libc::write(self.report, message.as_ptr().cast(), message.len());
            libc::_exit(127)
        }
    }

    /// Runs until something fails; errno says why.
    fn steps(&self) -> Stage {
        reset_signals();
        // SAFETY: plain system calls on numbers.
        let in_session = unsafe { libc::setsid() } >= 0;
        if !in_session {
            return Stage::Session;
        }
        if !self.connect_streams() {
            return Stage::Streams;
        }
        self.limits.apply();
        if !self.become_user() {
            return Stage::User;
        }
        // SAFETY: the path is a C string that lives as long as the program.
        if unsafe { libc::chdir(self.program.cwd_c.as_ptr()) } != 0 {
            return Stage::Directory;
        }
        self.exec();
        Stage::Program
    }

    fn connect_streams(&self) -> bool {
        // SAFETY: plain system calls on descriptors the parent keeps open until the exec; none
        // of them is 0, 1 or 2, which Rust's start-up code makes sure are open.
        unsafe {
            let connected = (0..3).all(|n| libc::dup2(self.streams[n], n as RawFd) >= 0);
            if !connected {
                return false;
            }
            // Whatever the supervisor was given without close-on-exec stays here. An old kernel
            // does not know the call; our own descriptors have the flag anyway.
            libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC);
            libc::umask(0o022);
            self.program.tty.is_none() || libc::ioctl(0, libc::TIOCSCTTY, 0) == 0
        }
    }

    fn become_user(&self) -> bool {
        let user = &self.program.user;
        if self.switch == Switch::No {
            return true;
        }
        // SAFETY: raw calls, because the C library's own would try to stop the parent's threads,
        // which do not exist in the child; the group list outlives the call.
        unsafe {
            let groups =
                libc::syscall(libc::SYS_setgroups, user.groups.len(), user.groups.as_ptr());
            if self.switch == Switch::OnlyGroups {
                return true;
            }
            groups == 0
                && libc::syscall(libc::SYS_setresgid, user.gid, user.gid, user.gid) == 0
                && libc::syscall(libc::SYS_setresuid, user.uid, user.uid, user.uid) == 0
        }
    }

    /// Like `execvpe`: returns when no candidate could be run, with the errno that says most.
    fn exec(&self) {
        let mut worst = libc::ENOENT;
        for candidate in &self.program.candidates {
            // SAFETY: null-terminated arrays of C strings that live as long as `self`.
            unsafe { libc::execve(candidate.as_ptr(), self.argv.as_ptr(), self.envp.as_ptr()) };
            match errno() {
                libc::ENOENT | libc::ENOTDIR => {}
                libc::EACCES => worst = libc::EACCES,
                libc::ENOEXEC => {
                    self.exec_script(candidate);
                    return;
                }
                _ => return,
            }
        }
        set_errno(worst);
    }

    fn exec_script(&self, script: &CStr) {
        let Some(second) = self.script_argv.get(1) else { return };
        second.set(script.as_ptr());
        // SAFETY: a null-terminated array of C strings; a `Cell` is laid out as what it holds.
        unsafe {
            libc::execve(SHELL.as_ptr(), self.script_argv.as_ptr().cast(), self.envp.as_ptr())
        };
    }
}

fn pointers(strings: &[CString]) -> Vec<*const libc::c_char> {
    strings.iter().map(|text| text.as_ptr()).chain([ptr::null()]).collect()
}

fn switch(program: &Program) -> Switch {
    let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    match ((uid, gid) == (program.user.uid, program.user.gid), uid) {
        (false, _) => Switch::Needed,
        (true, 0) => Switch::OnlyGroups,
        (true, _) => Switch::No,
    }
}

/// Handlers are ours and ignored signals are Rust's; a program expects neither.
fn reset_signals() {
    // The kernel's own struct, all zero: the default action, no flags, an empty mask. The C
    // library's call refuses the two numbers it uses itself, which a parent may have ignored.
    let default = [0_u64; 4];
    let none = empty_set();
    // SAFETY: the kernel reads at most these 32 bytes and an 8-byte mask; SIGKILL and SIGSTOP
    // are refused, which is harmless.
    unsafe {
        for number in 1..=64 {
            let old = ptr::null_mut::<u64>();
            libc::syscall(libc::SYS_rt_sigaction, number, default.as_ptr(), old, 8_usize);
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const none, ptr::null_mut());
    }
}

fn empty_set() -> libc::sigset_t {
    // SAFETY: sigset_t is plain bits, and sigemptyset initialises all of them.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        set
    }
}

fn errno() -> i32 {
    // SAFETY: the pointer to this thread's errno is always valid.
    unsafe { *libc::__errno_location() }
}

fn set_errno(value: i32) {
    // SAFETY: the pointer to this thread's errno is always valid.
    unsafe { *libc::__errno_location() = value }
}
