//! From clone to exec, in the child.
//!
//! The child borrows the parent's memory, and the thread that started it stands still until it runs
//! the program or ends (`vfork`). Nothing is copied, so it costs the same however much memory the
//! supervisor uses, and the kernel's out-of-memory killer leaves such a child alone. In return
//! nothing here may allocate, take a lock, panic or run a signal handler: everything is laid out
//! before, and the child makes plain system calls on what it finds. It says what failed as a
//! [`Stage`] and an errno.
//!
//! The supervisor is not dumpable, and who may not look into it may not look into a child that
//! borrows its memory either, whatever user the child has become.

use std::cell::Cell;
use std::ffi::{CStr, CString, c_void};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::ptr;
use std::sync::atomic::AtomicI32;

use super::program::Program;
use crate::limits::Limits;

/// What the child was doing when it failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// Nothing: there is no child.
    Birth,
    Session,
    Streams,
    User,
    Directory,
    Program,
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
    switch: Switch,
    limits: Limits,
    /// Written by the child, read by the parent when the child has let go of its memory.
    failure: Cell<Option<(Stage, i32)>>,
}

/// Where the child runs until it has memory of its own. Its calls are few and shallow.
#[repr(C, align(16))]
struct Stack([MaybeUninit<u8>; 32 * 1024]);

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
    pub(super) fn new(program: &'a Program, streams: &ChildStreams, limits: Limits) -> Self {
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
            switch: switch(program),
            limits,
            failure: Cell::new(None),
        }
    }

    /// Returns once the child runs the program, has failed to, or was killed before it could. The
    /// kernel writes the child's number before the child runs.
    pub(super) fn start(&self, number: &AtomicI32) -> Result<(), (Stage, io::Error)> {
        let mut stack = Box::<Stack>::new_uninit();
        // SAFETY: one past the end of the allocation, which outlives the child's use of it.
        let top = unsafe { stack.as_mut_ptr().add(1) };
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_PARENT_SETTID | libc::SIGCHLD;
        // A handler of ours that ran in the child would run on the parent's memory.
        let before = block_signals();
        // SAFETY: `enter` gets the pointer it expects, makes only plain system calls and does not
        // return. This thread stands still meanwhile, so `self` and the stack are the child's.
        let pid = unsafe {
            let this = ptr::from_ref(self).cast_mut().cast::<c_void>();
            libc::clone(enter, top.cast(), flags, this, number.as_ptr())
        };
        let error = io::Error::last_os_error();
        set_signal_mask(before);
        match self.failure.get() {
            _ if pid < 0 => Err((Stage::Birth, error)),
            Some((stage, errno)) => Err((stage, io::Error::from_raw_os_error(errno))),
            None => Ok(()),
        }
    }

    fn become_program(&self) -> ! {
        let stage = self.steps();
        self.failure.set(Some((stage, errno())));
        // SAFETY: ends the child without running what is registered to run when the parent exits.
        unsafe { libc::_exit(127) }
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
                // As the kernel does by default; a host may have set `fs.suid_dumpable` otherwise.
                && libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0) == 0
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

extern "C" fn enter(child: *mut c_void) -> i32 {
    // SAFETY: `Child::start` passes itself and stands still until we are done.
    unsafe { &*child.cast_const().cast::<Child<'_>>() }.become_program()
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
    // SAFETY: the kernel reads at most these 32 bytes and an 8-byte mask; SIGKILL and SIGSTOP
    // are refused, which is harmless.
    unsafe {
        for number in 1..=64 {
            let old = ptr::null_mut::<u64>();
            libc::syscall(libc::SYS_rt_sigaction, number, default.as_ptr(), old, 8_usize);
        }
    }
    set_signal_mask(0);
}

/// Blocks all signals of this thread, those that the C library keeps to itself included, and returns
/// what was blocked before.
fn block_signals() -> u64 {
    let (all, mut before) = (u64::MAX, 0_u64);
    let (how, size) = (libc::SIG_SETMASK, size_of::<u64>());
    // SAFETY: the kernel's own mask has 64 bits; both outlive the call.
    unsafe {
        libc::syscall(libc::SYS_rt_sigprocmask, how, &raw const all, &raw mut before, size);
    }
    before
}

fn set_signal_mask(mask: u64) {
    let (how, size, old) = (libc::SIG_SETMASK, size_of::<u64>(), ptr::null_mut::<u64>());
    // SAFETY: the kernel's own mask has 64 bits and outlives the call.
    unsafe { libc::syscall(libc::SYS_rt_sigprocmask, how, &raw const mask, old, size) };
}

fn errno() -> i32 {
    // SAFETY: the pointer to this thread's errno is always valid.
    unsafe { *libc::__errno_location() }
}

fn set_errno(value: i32) {
    // SAFETY: the pointer to this thread's errno is always valid.
    unsafe { *libc::__errno_location() = value }
}
