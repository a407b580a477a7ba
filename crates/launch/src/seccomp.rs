//! The system calls a sandbox may make: one filter, from a table.
//!
//! What the table does not name answers `ENOSYS`, so that programs fall back as they would on an
//! older kernel; what programs expect to be refused answers `EPERM`. The numbers fall into few
//! ranges, so the filter is a short binary search: the kernel compiles it at every start of a
//! sandbox, and runs it at every call.

use std::io;

use libc::sock_filter;

use crate::{Result, Step};

#[cfg(target_arch = "x86_64")]
const ARCH: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const ARCH: u32 = 0xc000_00b7;

// Offsets in `struct seccomp_data`, and the low half of an argument on a little-endian machine.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
const fn argument(index: u32) -> u32 {
    16 + 8 * index
}

/// What happens to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Allow,
    Refuse,
    Unknown,
    /// Depends on an argument.
    Clone,
    Socket,
    Ioctl,
    Personality,
}

pub(crate) fn install() -> Result<()> {
    let mut program = program();
    let length = u16::try_from(program.len())
        .map_err(io::Error::other)
        .step(|| "build the seccomp filter".to_owned())?;
    let filter = libc::sock_fprog { len: length, filter: program.as_mut_ptr() };
    // SAFETY: the program outlives the call, and the kernel checks every instruction of it.
    let result = unsafe {
        libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &raw const filter)
    };
    if result == 0 {
        return Ok(());
    }
    Err(io::Error::last_os_error()).step(|| "install the seccomp filter".to_owned())
}

fn program() -> Vec<sock_filter> {
    let mut program = vec![
        load(ARCHITECTURE),
        jump(libc::BPF_JEQ, ARCH, 1, 0),
        give(libc::SECCOMP_RET_KILL_PROCESS),
        load(NUMBER),
    ];
    program.extend(search(&ranges()));
    program
}

/// A binary search that ends in what happens to the call.
fn search(ranges: &[(u32, Verdict)]) -> Vec<sock_filter> {
    if let [(_, verdict)] = ranges {
        return consequence(*verdict);
    }
    let (lower, upper) = ranges.split_at(ranges.len() / 2);
    let (below, above) = (search(lower), search(upper));
    // A conditional jump reaches 255 instructions, an unconditional one any number.
    let mut code = vec![jump(libc::BPF_JGE, upper[0].0, 0, 1), skip(below.len())];
    code.extend(below);
    code.extend(above);
    code
}

fn consequence(verdict: Verdict) -> Vec<sock_filter> {
    let allow = libc::SECCOMP_RET_ALLOW;
    let refuse = error(libc::EPERM);
    match verdict {
        Verdict::Allow => vec![give(allow)],
        Verdict::Refuse => vec![give(refuse)],
        Verdict::Unknown => vec![give(error(libc::ENOSYS))],
        Verdict::Clone => {
            vec![
                load(argument(0)),
                jump(libc::BPF_JSET, NAMESPACES, 0, 1),
                give(refuse),
                give(allow),
            ]
        }
        Verdict::Socket => one_of(argument(0), FAMILIES, allow, error(libc::EAFNOSUPPORT)),
        Verdict::Ioctl => one_of(argument(1), TERMINAL_INJECTION, refuse, allow),
        Verdict::Personality => one_of(argument(0), PERSONALITIES, allow, refuse),
    }
}

/// `yes` when the value at `offset` is one of `values`.
fn one_of(offset: u32, values: &[u32], yes: u32, no: u32) -> Vec<sock_filter> {
    let mut code = vec![load(offset)];
    for value in values {
        code.extend([jump(libc::BPF_JEQ, *value, 0, 1), give(yes)]);
    }
    code.push(give(no));
    code
}

/// The first number of each range of calls with the same verdict, in order, from 0.
fn ranges() -> Vec<(u32, Verdict)> {
    let listed =
        |calls: &'static [i64], verdict| calls.iter().map(move |call| (*call as u32, verdict));
    let mut table: Vec<(u32, Verdict)> = listed(ALLOWED, Verdict::Allow)
        .chain(listed(ALLOWED_NEWER, Verdict::Allow))
        .chain(listed(ALLOWED_HERE, Verdict::Allow))
        .chain(listed(REFUSED, Verdict::Refuse))
        .chain(listed(&[libc::SYS_clone], Verdict::Clone))
        .chain(listed(&[libc::SYS_socket, libc::SYS_socketpair], Verdict::Socket))
        .chain(listed(&[libc::SYS_ioctl], Verdict::Ioctl))
        .chain(listed(&[libc::SYS_personality], Verdict::Personality))
        .collect();
    table.sort_by_key(|(call, _)| *call);
    let mut ranges = vec![(0, Verdict::Unknown)];
    let mut next = 0;
    let mut begin = |at: u32, verdict: Verdict| {
        if ranges.last().is_some_and(|(start, _)| *start == at) {
            ranges.pop();
        }
        if ranges.last().is_none_or(|(_, last)| *last != verdict) {
            ranges.push((at, verdict));
        }
    };
    for (call, verdict) in table {
        if call > next {
            begin(next, Verdict::Unknown);
        }
        begin(call, verdict);
        next = call + 1;
    }
    begin(next, Verdict::Unknown);
    ranges
}

fn error(number: i32) -> u32 {
    libc::SECCOMP_RET_ERRNO | number as u32
}

fn instruction(code: u32, yes: u8, no: u8, value: u32) -> sock_filter {
    sock_filter { code: code as u16, jt: yes, jf: no, k: value }
}

fn load(offset: u32) -> sock_filter {
    instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, offset)
}

fn jump(condition: u32, value: u32, yes: u8, no: u8) -> sock_filter {
    instruction(libc::BPF_JMP | condition | libc::BPF_K, yes, no, value)
}

fn skip(instructions: usize) -> sock_filter {
    instruction(libc::BPF_JMP | libc::BPF_JA, 0, 0, instructions as u32)
}

fn give(verdict: u32) -> sock_filter {
    instruction(libc::BPF_RET | libc::BPF_K, 0, 0, verdict)
}

/// `clone3` hides its flags behind a pointer, so it is left out and answers `ENOSYS`; the C library
/// then uses `clone`.
const NAMESPACES: u32 = (libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET) as u32;

/// Others, such as vsock, are not confined by a network namespace, or have been a way into the
/// kernel too often.
const FAMILIES: &[u32] =
    &[libc::AF_UNIX as u32, libc::AF_INET as u32, libc::AF_INET6 as u32, libc::AF_NETLINK as u32];

/// Typing into a terminal that somebody else reads.
const TERMINAL_INJECTION: &[u32] = &[libc::TIOCSTI as u32, libc::TIOCLINUX as u32];

/// Asking for the current one, and those that change only what `uname` says.
const PERSONALITIES: &[u32] = &[0, 0x0008, 0x2_0000, 0x2_0008, 0xffff_ffff];

/// What programs probe for and expect to be refused.
const REFUSED: &[i64] = &[
    libc::SYS_acct,
    libc::SYS_add_key,
    libc::SYS_bpf,
    libc::SYS_clock_adjtime,
    libc::SYS_clock_settime,
    libc::SYS_delete_module,
    libc::SYS_fanotify_init,
    libc::SYS_finit_module,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fsopen,
    libc::SYS_fspick,
    libc::SYS_init_module,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_io_uring_setup,
    libc::SYS_kexec_load,
    libc::SYS_keyctl,
    libc::SYS_lookup_dcookie,
    libc::SYS_mount,
    libc::SYS_mount_setattr,
    libc::SYS_move_mount,
    libc::SYS_name_to_handle_at,
    libc::SYS_open_by_handle_at,
    libc::SYS_open_tree,
    libc::SYS_perf_event_open,
    libc::SYS_pivot_root,
    libc::SYS_quotactl,
    libc::SYS_reboot,
    libc::SYS_request_key,
    libc::SYS_setdomainname,
    libc::SYS_sethostname,
    libc::SYS_setns,
    libc::SYS_settimeofday,
    libc::SYS_swapoff,
    libc::SYS_swapon,
    libc::SYS_syslog,
    libc::SYS_umount2,
    libc::SYS_unshare,
    libc::SYS_userfaultfd,
    libc::SYS_vhangup,
];

macro_rules! calls {
    ($($name:ident)*) => { &[$(libc::$name),*] };
}

const ALLOWED: &[i64] = calls! {
    SYS_accept SYS_accept4 SYS_bind SYS_brk SYS_capget SYS_capset SYS_chdir SYS_chroot
    SYS_clock_getres SYS_clock_gettime SYS_clock_nanosleep SYS_close SYS_close_range SYS_connect
    SYS_copy_file_range SYS_dup SYS_dup3 SYS_epoll_create1 SYS_epoll_ctl SYS_epoll_pwait
    SYS_epoll_pwait2 SYS_eventfd2 SYS_execve SYS_execveat SYS_exit SYS_exit_group SYS_faccessat
    SYS_faccessat2 SYS_fadvise64 SYS_fallocate SYS_fchdir SYS_fchmod SYS_fchmodat SYS_fchown
    SYS_fchownat SYS_fcntl SYS_fdatasync SYS_fgetxattr SYS_flistxattr SYS_flock SYS_fremovexattr
    SYS_fsetxattr SYS_fstat SYS_fstatfs SYS_fsync SYS_ftruncate SYS_futex SYS_get_mempolicy
    SYS_get_robust_list SYS_getcpu SYS_getcwd SYS_getdents64 SYS_getegid SYS_geteuid SYS_getgid
    SYS_getgroups SYS_getitimer SYS_getpeername SYS_getpgid SYS_getpid SYS_getppid
    SYS_getpriority SYS_getrandom SYS_getresgid SYS_getresuid SYS_getrlimit SYS_getrusage
    SYS_getsid SYS_getsockname SYS_getsockopt SYS_gettid SYS_gettimeofday SYS_getuid
    SYS_getxattr SYS_inotify_add_watch SYS_inotify_init1 SYS_inotify_rm_watch SYS_io_cancel
    SYS_io_destroy SYS_io_getevents SYS_io_setup SYS_io_submit SYS_ioprio_get SYS_ioprio_set
    SYS_kill SYS_landlock_add_rule SYS_landlock_create_ruleset SYS_landlock_restrict_self
    SYS_lgetxattr SYS_linkat SYS_listen SYS_listxattr SYS_llistxattr SYS_lremovexattr SYS_lseek
    SYS_lsetxattr SYS_madvise SYS_mbind SYS_membarrier SYS_memfd_create SYS_mincore SYS_mkdirat
    SYS_mknodat SYS_mlock SYS_mlock2 SYS_mlockall SYS_mmap SYS_mprotect SYS_mq_getsetattr
    SYS_mq_notify SYS_mq_open SYS_mq_timedreceive SYS_mq_timedsend SYS_mq_unlink SYS_mremap
    SYS_msgctl SYS_msgget SYS_msgrcv SYS_msgsnd SYS_msync SYS_munlock SYS_munlockall SYS_munmap
    SYS_nanosleep SYS_newfstatat SYS_openat SYS_openat2 SYS_pidfd_getfd SYS_pidfd_open
    SYS_pidfd_send_signal SYS_pipe2 SYS_pkey_alloc SYS_pkey_free SYS_pkey_mprotect SYS_ppoll
    SYS_prctl SYS_pread64 SYS_preadv SYS_preadv2 SYS_prlimit64 SYS_process_madvise
    SYS_process_mrelease SYS_process_vm_readv SYS_process_vm_writev SYS_pselect6 SYS_ptrace
    SYS_pwrite64 SYS_pwritev SYS_pwritev2 SYS_read SYS_readahead SYS_readlinkat SYS_readv
    SYS_recvfrom SYS_recvmmsg SYS_recvmsg SYS_remap_file_pages SYS_removexattr SYS_renameat
    SYS_renameat2 SYS_restart_syscall SYS_rseq SYS_rt_sigaction SYS_rt_sigpending
    SYS_rt_sigprocmask SYS_rt_sigqueueinfo SYS_rt_sigreturn SYS_rt_sigsuspend
    SYS_rt_sigtimedwait SYS_rt_tgsigqueueinfo SYS_sched_get_priority_max
    SYS_sched_get_priority_min SYS_sched_getaffinity SYS_sched_getattr SYS_sched_getparam
    SYS_sched_getscheduler SYS_sched_rr_get_interval SYS_sched_setaffinity SYS_sched_setattr
    SYS_sched_setparam SYS_sched_setscheduler SYS_sched_yield SYS_seccomp SYS_semctl SYS_semget
    SYS_semop SYS_semtimedop SYS_sendfile SYS_sendmmsg SYS_sendmsg SYS_sendto SYS_set_mempolicy
    SYS_set_robust_list SYS_set_tid_address SYS_setfsgid SYS_setfsuid SYS_setgid SYS_setgroups
    SYS_setitimer SYS_setpgid SYS_setpriority SYS_setregid SYS_setresgid SYS_setresuid
    SYS_setreuid SYS_setrlimit SYS_setsid SYS_setsockopt SYS_setuid SYS_setxattr SYS_shmat
    SYS_shmctl SYS_shmdt SYS_shmget SYS_shutdown SYS_sigaltstack SYS_signalfd4 SYS_splice
    SYS_statfs SYS_statx SYS_symlinkat SYS_sync SYS_sync_file_range SYS_syncfs SYS_sysinfo
    SYS_tee SYS_tgkill SYS_timer_create SYS_timer_delete SYS_timer_getoverrun SYS_timer_gettime
    SYS_timer_settime SYS_timerfd_create SYS_timerfd_gettime SYS_timerfd_settime SYS_times
    SYS_tkill SYS_truncate SYS_umask SYS_uname SYS_unlinkat SYS_utimensat SYS_vmsplice
    SYS_wait4 SYS_waitid SYS_write SYS_writev
};

/// Not in the C library's list on every version we build with.
const ALLOWED_NEWER: &[i64] = &[
    449, // futex_waitv
    450, // set_mempolicy_home_node
    451, // cachestat
    452, // fchmodat2
    453, // map_shadow_stack
    454, // futex_wake
    455, // futex_wait
    456, // futex_requeue
    462, // mseal
];

#[cfg(target_arch = "x86_64")]
const ALLOWED_HERE: &[i64] = calls! {
    SYS_access SYS_alarm SYS_arch_prctl SYS_chmod SYS_chown SYS_creat SYS_dup2 SYS_epoll_create
    SYS_epoll_wait SYS_eventfd SYS_fork SYS_futimesat SYS_getdents SYS_getpgrp SYS_inotify_init
    SYS_lchown SYS_link SYS_lstat SYS_mkdir SYS_mknod SYS_modify_ldt SYS_open SYS_pause SYS_pipe
    SYS_poll SYS_readlink SYS_rename SYS_rmdir SYS_select SYS_signalfd SYS_stat SYS_symlink
    SYS_time SYS_unlink SYS_utime SYS_utimes SYS_vfork
};
#[cfg(not(target_arch = "x86_64"))]
const ALLOWED_HERE: &[i64] = &[];

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(call: u32) -> Verdict {
        ranges().into_iter().rev().find(|(start, _)| *start <= call).unwrap().1
    }

    /// Runs the filter as the kernel would.
    fn run(number: u32, arguments: [u32; 2]) -> u32 {
        let program = program();
        let (mut at, mut value) = (0, 0);
        loop {
            let sock_filter { code, jt, jf, k } = program[at];
            at += 1;
            match u32::from(code) {
                code if code == libc::BPF_RET | libc::BPF_K => return k,
                code if code == libc::BPF_JMP | libc::BPF_JA => at += k as usize,
                code if code & 7 == libc::BPF_LD => {
                    value = match k {
                        NUMBER => number,
                        ARCHITECTURE => ARCH,
                        16 => arguments[0],
                        24 => arguments[1],
                        other => panic!("offset {other}"),
                    };
                }
                code => {
                    let taken = match code & 0xf0 {
                        libc::BPF_JEQ => value == k,
                        libc::BPF_JGE => value >= k,
                        libc::BPF_JSET => value & k != 0,
                        other => panic!("condition {other}"),
                    };
                    at += usize::from(if taken { jt } else { jf });
                }
            }
        }
    }

    #[test]
    fn every_number_ends_where_the_table_says() {
        for number in (0..600).chain([0x4000_0027, u32::MAX]) {
            let expected = match verdict(number) {
                Verdict::Allow => libc::SECCOMP_RET_ALLOW,
                Verdict::Refuse => error(libc::EPERM),
                Verdict::Unknown => error(libc::ENOSYS),
                _ => continue,
            };
            assert_eq!(run(number, [0, 0]), expected, "{number}");
        }
        assert_eq!(verdict(libc::SYS_read as u32), Verdict::Allow);
        assert_eq!(verdict(libc::SYS_mount as u32), Verdict::Refuse);
        assert_eq!(verdict(libc::SYS_clone3 as u32), Verdict::Unknown);
    }

    #[test]
    fn arguments_decide_where_they_should() {
        let (clone, socket, ioctl) =
            (libc::SYS_clone as u32, libc::SYS_socket as u32, libc::SYS_ioctl as u32);
        assert_eq!(run(clone, [libc::SIGCHLD as u32, 0]), libc::SECCOMP_RET_ALLOW);
        assert_eq!(run(clone, [libc::CLONE_NEWUSER as u32, 0]), error(libc::EPERM));
        assert_eq!(run(socket, [libc::AF_INET as u32, 0]), libc::SECCOMP_RET_ALLOW);
        assert_eq!(run(socket, [libc::AF_VSOCK as u32, 0]), error(libc::EAFNOSUPPORT));
        assert_eq!(run(ioctl, [0, libc::TIOCGWINSZ as u32]), libc::SECCOMP_RET_ALLOW);
        assert_eq!(run(ioctl, [0, libc::TIOCSTI as u32]), error(libc::EPERM));
    }

    #[test]
    fn nothing_is_both_allowed_and_refused() {
        for call in ALLOWED.iter().chain(ALLOWED_NEWER).chain(ALLOWED_HERE) {
            assert!(!REFUSED.contains(call), "{call}");
        }
    }

    #[test]
    fn it_is_short() {
        assert!(program().len() < 500, "{} instructions", program().len());
    }
}
