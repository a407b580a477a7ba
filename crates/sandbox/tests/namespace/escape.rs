//! Ways out that must be closed. Each test is one attempt, made from inside.

use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;

use nacre_wire::exec::ExecRequest;

use crate::machine::Sandbox;

/// Both users of a sandbox.
const EVERYBODY: [&str; 2] = ["root", "nacre"];

/// Runs `script` as each user; it must fail, and must not be merely broken: what it printed to
/// standard error has to contain one of `refusals`.
async fn refused(script: &str, refusals: &[&str]) {
    let sandbox = Sandbox::start().await;
    attempt(&sandbox, script, refusals).await;
    sandbox.restart().await;
    attempt(&sandbox, script, refusals).await;
    sandbox.destroy().await;
}

async fn attempt(sandbox: &Sandbox, script: &str, refusals: &[&str]) {
    for user in EVERYBODY {
        let finished = sandbox.sh(user, script).await;
        let errors = String::from_utf8_lossy(&finished.stderr).into_owned();
        assert_ne!(finished.exit.code, Some(0), "{user} succeeded with: {script}");
        assert!(
            refusals.iter().any(|refusal| errors.contains(refusal)),
            "{user}: {script}: {errors}"
        );
    }
}

/// Makes a system call through perl; it must fail with one of `errors`.
async fn call_refused(call: i64, arguments: &str, errors: &[&str]) {
    let script = format!(
        "perl -e 'my @a = (0{arguments}); shift @a; my $r = syscall({call}, @a); die \"$!\\n\" if $r < 0'"
    );
    refused(&script, errors).await;
}

const NOT_PERMITTED: &str = "Operation not permitted";
const NOT_THERE: &str = "Function not implemented";
const DENIED: &str = "Permission denied";

#[tokio::test]
async fn mounting_a_filesystem() {
    refused(
        "mount -t tmpfs none /mnt",
        &["permission denied", DENIED, NOT_PERMITTED, "must be superuser"],
    )
    .await;
}

#[tokio::test]
async fn mounting_with_the_new_calls() {
    call_refused(430, ", \"tmpfs\", 0", &[NOT_PERMITTED]).await;
}

#[tokio::test]
async fn cloning_a_mount() {
    call_refused(428, ", -100, \"/\", 1", &[NOT_PERMITTED]).await;
}

#[tokio::test]
async fn unmounting_what_hides_something() {
    call_refused(166, ", \"/proc/sys\", 0", &[NOT_PERMITTED]).await;
}

#[tokio::test]
async fn pivoting_the_root() {
    call_refused(155, ", \"/\", \"/mnt\"", &[NOT_PERMITTED]).await;
}

#[tokio::test]
async fn a_user_namespace_of_its_own() {
    refused("unshare --user --map-root-user true", &[NOT_PERMITTED]).await;
}

#[tokio::test]
async fn a_user_namespace_by_clone() {
    // CLONE_NEWUSER | SIGCHLD
    call_refused(56, ", 0x10000011, 0, 0, 0, 0", &[NOT_PERMITTED]).await;
}

#[tokio::test]
async fn a_user_namespace_by_clone3() {
    call_refused(435, ", \"\\0\" x 88, 88", &[NOT_THERE]).await;
}

#[tokio::test]
async fn joining_another_namespace() {
    refused("nsenter --target 1 --mount true", &[DENIED, NOT_PERMITTED]).await;
}

#[tokio::test]
async fn tracing_the_supervisor() {
    // PTRACE_ATTACH
    call_refused(101, ", 16, 1, 0, 0", &[NOT_PERMITTED]).await;
}

#[tokio::test]
async fn reading_the_supervisors_memory() {
    refused("head -c 1 /proc/1/mem", &[DENIED, NOT_PERMITTED]).await;
}

/// Until it runs its program a command borrows the supervisor's memory, as the user it will be.
#[tokio::test]
async fn the_memory_that_a_command_borrows_until_it_runs() {
    const ATTACK: &str = r#"
        until p=$(grep -lx tokio-rt-worker /proc/[0-9]*/comm 2>/dev/null) && p=${p%/comm} &&
            kill -STOP "${p#/proc/}" && grep -q '^State:.T' "$p/status"; do :; done
        for file in mem maps environ auxv; do head -c 1 "$p/$file" >&2 && exit 0; done
        kill -KILL "${p#/proc/}"; exit 1"#;
    let sandbox = Sandbox::start().await;
    for user in EVERYBODY {
        // It looks for its program in so many places that there is time to stop it.
        let victim = ExecRequest {
            argv: vec!["no-such-program".to_owned()],
            user: Some(user.to_owned()),
            env: [("PATH".to_owned(), Some("/-:".repeat(100_000)))].into(),
            ..ExecRequest::default()
        };
        let client = sandbox.client();
        let victims = async {
            loop {
                let _ = client.run(victim.clone()).await;
            }
        };
        let attacked = tokio::select! {
            attacked = sandbox.sh(user, ATTACK) => attacked,
            () = victims => unreachable!("it never ends"),
        };
        let errors = String::from_utf8_lossy(&attacked.stderr);
        assert_eq!(attacked.exit.code, Some(1), "{user}: {:?} {errors}", attacked.exit);
        assert!(errors.contains(DENIED) || errors.contains(NOT_PERMITTED), "{user}: {errors}");
    }
    sandbox.destroy().await;
}

#[tokio::test]
async fn reading_the_supervisors_environment() {
    refused("cat /proc/1/environ", &[DENIED, NOT_PERMITTED]).await;
}

#[tokio::test]
async fn the_supervisors_descriptors() {
    refused("ls /proc/1/fd/", &[DENIED]).await;
}

#[tokio::test]
async fn the_supervisors_root_directory() {
    refused("ls /proc/1/root/", &[DENIED]).await;
}

#[tokio::test]
async fn replacing_the_supervisors_binary() {
    refused("echo x > /proc/1/exe", &[DENIED]).await;
}

#[tokio::test]
async fn taking_a_descriptor_of_the_supervisor() {
    // pidfd_getfd(pidfd_open(1), 3)
    refused(
        "perl -e 'my $p = syscall(434, 1, 0); die \"$!\\n\" if $p < 0; my $r = syscall(438, $p, 3, 0); die \"$!\\n\" if $r < 0'",
        &[NOT_PERMITTED],
    )
    .await;
}

#[tokio::test]
async fn killing_the_supervisor() {
    let sandbox = Sandbox::start().await;
    sandbox.sh("root", "kill -KILL 1; kill -SEGV 1; kill -STOP 1").await;
    assert_eq!(sandbox.output("root", "echo alive").await, "alive");
    let finished = sandbox.sh("nacre", "kill -TERM 1").await;
    assert_ne!(finished.exit.code, Some(0));
    sandbox.destroy().await;
}

#[tokio::test]
async fn changing_a_kernel_setting() {
    refused("echo '|/bin/sh' > /proc/sys/kernel/core_pattern", &["Read-only file system", DENIED])
        .await;
}

#[tokio::test]
async fn rebooting_by_sysrq() {
    let sandbox = Sandbox::start().await;
    sandbox.sh("root", "echo b > /proc/sysrq-trigger").await;
    let what = "test ! -e /proc/sysrq-trigger && echo 1:3 || stat -c %t:%T /proc/sysrq-trigger";
    assert_eq!(sandbox.output("root", what).await, "1:3", "it is absent or /dev/null");
    sandbox.destroy().await;
}

#[tokio::test]
async fn reading_the_kernels_memory_and_log() {
    let sandbox = Sandbox::start().await;
    for file in ["kcore", "kallsyms", "keys", "timer_list", "kmsg", "slabinfo", "iomem"] {
        let script =
            format!("test ! -e /proc/{file} || test -z \"$(head -c 1 /proc/{file} | tr '\\0' x)\"");
        assert_eq!(
            sandbox.sh("root", &script).await.exit.code,
            Some(0),
            "/proc/{file} says something"
        );
    }
    assert_ne!(sandbox.sh("root", "dmesg").await.exit.code, Some(0));
    sandbox.destroy().await;
}

#[tokio::test]
async fn a_setuid_program() {
    let sandbox = Sandbox::start().await;
    let script = "cp /usr/bin/id /workspace/id && chmod 4755 /workspace/id && chown root /workspace/id && chmod 4755 /workspace/id";
    sandbox.output("root", script).await;
    assert_eq!(sandbox.output("nacre", "/workspace/id -u").await, "1000");
    sandbox.destroy().await;
}

#[tokio::test]
async fn file_capabilities() {
    let sandbox = Sandbox::start().await;
    let finished =
        sandbox.sh("nacre", "cp /bin/sh s && setcap cap_setuid+ep s && ./s -c 'id -u'").await;
    assert_ne!(finished.exit.code, Some(0));
    assert_eq!(sandbox.output("nacre", "grep NoNewPrivs /proc/self/status | cut -f2").await, "1");
    sandbox.destroy().await;
}

#[tokio::test]
async fn making_a_device_node() {
    for directory in ["/workspace", "/dev", "/tmp", "/root"] {
        let script = format!("mknod {directory}/disk b 254 0 && head -c 1 {directory}/disk");
        refused(&script, &[NOT_PERMITTED, DENIED]).await;
    }
}

#[tokio::test]
async fn the_hosts_disks() {
    let sandbox = Sandbox::start().await;
    let devices = sandbox.output("root", "ls /dev").await;
    for device in devices.lines() {
        let known = [
            "core", "fd", "full", "null", "ptmx", "pts", "random", "shm", "stderr", "stdin",
            "stdout", "tty", "urandom", "zero",
        ];
        assert!(known.contains(&device), "/dev/{device}");
    }
    sandbox.destroy().await;
}

#[tokio::test]
async fn the_kernels_keyrings() {
    call_refused(250, ", 0, -3, 0", &[NOT_PERMITTED]).await;
    call_refused(248, ", \"user\", \"a\", \"b\", 1, -3", &[NOT_PERMITTED]).await;
}

#[tokio::test]
async fn loading_a_kernel_module() {
    call_refused(175, ", \"x\", 1, \"\"", &[NOT_PERMITTED]).await;
    call_refused(313, ", 0, \"\", 0", &[NOT_PERMITTED]).await;
}

#[tokio::test]
async fn calls_that_have_let_others_out() {
    let bpf = (321, ", 0, 0, 0");
    let perf = (298, ", 0, 0, 0, 0, 0");
    let userfault = (323, ", 0");
    let uring = (425, ", 1, 0");
    let by_handle = (304, ", -100, 0, 0");
    let kexec = (246, ", 0, 0, 0, 0");
    let swap = (167, ", \"/x\", 0");
    for (call, arguments) in [bpf, perf, userfault, uring, by_handle, kexec, swap] {
        call_refused(call, arguments, &[NOT_PERMITTED]).await;
    }
}

#[tokio::test]
async fn thirty_two_bit_calls() {
    let sandbox = Sandbox::start().await;
    // x32: getpid with the bit that selects the other table.
    let finished =
        sandbox.sh("root", "perl -e 'my $r = syscall(0x40000027); die \"$!\\n\" if $r < 0'").await;
    assert!(String::from_utf8_lossy(&finished.stderr).contains(NOT_THERE), "{finished:?}");
    sandbox.destroy().await;
}

#[tokio::test]
async fn raw_and_odd_sockets() {
    // AF_INET SOCK_RAW ICMP; AF_PACKET; AF_VSOCK; AF_ALG
    for arguments in [", 2, 3, 1", ", 17, 3, 0", ", 40, 1, 0", ", 38, 5, 0"] {
        call_refused(41, arguments, &[NOT_PERMITTED, "Address family not supported"]).await;
    }
}

#[tokio::test]
async fn typing_into_a_terminal() {
    // TIOCSTI
    call_refused(16, ", 0, 0x5412, \"x\"", &[NOT_PERMITTED]).await;
}

#[tokio::test]
async fn the_hosts_loopback() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    refused(&format!("bash -c ': < /dev/tcp/127.0.0.1/{port}'"), &["Connection refused"]).await;
}

#[tokio::test]
async fn the_hosts_abstract_sockets() {
    let name = format!("nacre-test-{}", std::process::id());
    let address =
        <std::os::unix::net::SocketAddr as std::os::linux::net::SocketAddrExt>::from_abstract_name(
            &name,
        )
        .unwrap();
    let _listener = std::os::unix::net::UnixListener::bind_addr(&address).unwrap();
    let script = format!(
        "perl -MSocket -e 'socket(S, AF_UNIX, SOCK_STREAM, 0); connect(S, pack(\"S a*\", AF_UNIX, \"\\0{name}\")) or die \"$!\\n\"'"
    );
    refused(&script, &["Connection refused"]).await;
}

#[tokio::test]
async fn leaving_by_the_cgroup() {
    let sandbox = Sandbox::start().await;
    let script = "find / -xdev -name release_agent -o -name cgroup.procs 2>/dev/null | head -1; \
                  find /sys/fs/cgroup -type f -writable 2>/dev/null | head -1; mkdir /sys/fs/cgroup/x 2>&1 | grep -c x >&2; true";
    assert_eq!(sandbox.output("root", script).await, "");
    let own = sandbox.output("root", "cut -d: -f3 /proc/self/cgroup | sort -u").await;
    assert!(
        !own.contains("nacre"),
        "its place among the host's cgroups is its own business: {own}"
    );
    sandbox.destroy().await;
}

#[tokio::test]
async fn a_descriptor_that_the_host_forgot_to_close() {
    let secret = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(secret.path(), "a secret of the host").unwrap();
    let directory = std::fs::File::open("/").unwrap();
    for file in [secret.as_file(), &directory] {
        // Not close-on-exec: whatever this process spawns inherits it.
        let flags = rustix::io::FdFlags::empty();
        rustix::io::fcntl_setfd(file, flags).unwrap();
    }
    let sandbox = Sandbox::start().await;
    let supervisor = supervisor_pid(&sandbox);
    let identity = |metadata: std::fs::Metadata| (metadata.dev(), metadata.ino());
    let hosts = [secret.as_file(), &directory].map(|file| identity(file.metadata().unwrap()));
    let mut seen = 0;
    for entry in std::fs::read_dir(format!("/proc/{supervisor}/fd")).unwrap() {
        let entry = entry.unwrap().path();
        // It runs: what it closed since the listing is not among what it holds.
        let Ok(held) = std::fs::metadata(&entry).map(identity) else { continue };
        assert!(!hosts.contains(&held), "{}", std::fs::read_link(&entry).unwrap().display());
        seen += 1;
    }
    assert!(seen > 3, "{seen} descriptors: this looked at nothing");
    assert_eq!(
        sandbox.output("root", "ls /proc/self/fd | wc -l").await,
        "4",
        "three streams and the listing"
    );
    assert!(secret.as_raw_fd() > 2);
    sandbox.destroy().await;
}

fn supervisor_pid(sandbox: &Sandbox) -> i32 {
    let run = std::fs::read_to_string(sandbox.data.path().join("sandboxes/box/run.json")).unwrap();
    run.split("\"pid\":").nth(1).unwrap().split(',').next().unwrap().parse().unwrap()
}

#[tokio::test]
async fn the_hosts_environment() {
    let sandbox = Sandbox::start().await;
    let all =
        sandbox.output("root", "cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n'; env").await;
    // Every test process has these, and a sandbox has no business with them.
    for variable in ["CARGO", "NACRE_GUEST", "RUSTUP", "SSL_CERT"] {
        assert!(!all.contains(variable), "{variable} in {all}");
    }
    let outside = std::fs::read(format!("/proc/{}/environ", supervisor_pid(&sandbox))).unwrap();
    assert!(outside.is_empty(), "pid 1 itself has none");
    sandbox.destroy().await;
}

#[tokio::test]
async fn files_of_the_host() {
    let canary = format!("nacre-canary-{}", std::process::id());
    let places = ["/root", "/home", "/tmp", "/var/tmp", "/srv", "/var/lib", "/run", "/mnt"];
    for place in places {
        std::fs::write(format!("{place}/{canary}"), "secret").unwrap();
    }
    let sandbox = Sandbox::start().await;
    std::fs::write(sandbox.data.path().join(&canary), "secret").unwrap();
    let found = sandbox.output("root", &format!("find / -name '{canary}' 2>/dev/null; true")).await;
    for place in places {
        std::fs::remove_file(format!("{place}/{canary}")).unwrap();
    }
    assert_eq!(found, "");
    sandbox.destroy().await;
}

#[tokio::test]
async fn secrets_in_etc() {
    let sandbox = Sandbox::start().await;
    let hidden = "ls -d /etc/shadow /etc/gshadow /etc/ssh /etc/sudoers /etc/machine-id /etc/subuid 2>/dev/null; true";
    assert_eq!(sandbox.output("root", hidden).await, "");
    let people = sandbox.output("root", "cut -d: -f1,3 /etc/passwd").await;
    for line in people.lines() {
        let id: u32 = line.split(':').nth(1).unwrap().parse().unwrap();
        assert!(id < 1000 || id == 65534 || line == "nacre:1000", "{line}");
    }
    sandbox.destroy().await;
}

#[tokio::test]
async fn sockets_of_the_host() {
    let sandbox = Sandbox::start().await;
    let found = sandbox
        .output("root", "find / -xdev -type s 2>/dev/null; find /run /var/run /tmp -type s; true")
        .await;
    for socket in found.lines() {
        assert_eq!(socket, "/run/nacre/host/host.sock", "the only way up");
    }
    let finished = sandbox.sh("nacre", "ls /run/nacre").await;
    assert_ne!(finished.exit.code, Some(0), "and only for root");
    sandbox.destroy().await;
}

#[tokio::test]
async fn processes_of_the_host() {
    let sandbox = Sandbox::start().await;
    let own = std::process::id();
    let script =
        format!("kill -0 {own} 2>/dev/null && echo found; ls -d /proc/{own} 2>/dev/null; true");
    assert_eq!(sandbox.output("root", &script).await, "");
    let highest: u32 = sandbox
        .output("root", "ls /proc | grep -E '^[0-9]+$' | sort -n | tail -1")
        .await
        .parse()
        .unwrap();
    assert!(highest < 100, "its own numbers, from 1: {highest}");
    sandbox.destroy().await;
}

#[tokio::test]
async fn other_sandboxes() {
    let sandbox = Sandbox::start().await;
    let other: nacre_sandbox::SandboxId = "other".parse().unwrap();
    sandbox.driver.create(&other, &nacre_sandbox::SandboxSpec::default()).await.unwrap();
    sandbox.driver.start(&other).await.unwrap();
    let there = nacre_sandbox::conformance::client(&sandbox.driver, &other);
    let sleeping = nacre_wire::exec::ExecRequest {
        shell: Some("echo mine > /workspace/secret-of-other; echo mine > /tmp/secret-of-other; exec sleep 1000".to_owned()),
        detach: true,
        ..Default::default()
    };
    there.start_detached(&sleeping).await.unwrap();
    let found = sandbox
        .output(
            "root",
            "find / -name 'secret-of-other' 2>/dev/null; pgrep -x sleep; hostname; true",
        )
        .await;
    assert_eq!(found, "box");
    sandbox.driver.destroy(&other).await.unwrap();
    sandbox.destroy().await;
}

#[tokio::test]
async fn root_inside_is_nobody_outside() {
    let sandbox = Sandbox::start().await;
    sandbox.output("root", "touch /workspace/by-root").await;
    let file = sandbox.data.path().join("sandboxes/box/data/workspace/by-root");
    assert!(file.metadata().unwrap().uid() >= 100_000);
    let status =
        std::fs::read_to_string(format!("/proc/{}/status", supervisor_pid(&sandbox))).unwrap();
    let uid = status.lines().find(|line| line.starts_with("Uid:")).unwrap();
    assert!(!uid.contains("\t0"), "{uid}");
    sandbox.destroy().await;
}

#[tokio::test]
async fn a_chroot_that_climbs_out() {
    let sandbox = Sandbox::start().await;
    let script = "mkdir -p /tmp/j; perl -e 'chroot \"/tmp/j\"; chdir \"..\" for 1..50; chroot \".\"; opendir D, \"/\"; print join \" \", sort readdir D'";
    let listing = sandbox.output("root", script).await;
    assert!(listing.contains("workspace") && !listing.contains("boot"), "{listing}");
    sandbox.destroy().await;
}

#[tokio::test]
async fn file_calls_through_planted_links() {
    let sandbox = Sandbox::start().await;
    sandbox
        .output("nacre", "ln -s /proc/1/root/etc/passwd a; ln -s /proc/self/root b; ln -s ../../../../../../etc/shadow c; ln -s /root/.bashrc d; ln -s /proc/1/environ e")
        .await;
    for path in [
        "a",
        "b/etc/shadow",
        "c",
        "d",
        "e",
        "/proc/1/environ",
        "/proc/1/root/etc/passwd",
        "/proc/1/fd/3",
    ] {
        let read = sandbox.client().read(path).await;
        assert!(read.is_err(), "{path}");
    }
    sandbox.destroy().await;
}

#[tokio::test]
async fn core_dumps_to_a_handler_of_the_host() {
    let sandbox = Sandbox::start().await;
    assert_eq!(sandbox.output("root", "ulimit -Hc; ulimit -c unlimited 2>/dev/null; grep -i core /proc/self/limits | tr -s ' ' | cut -d' ' -f5,6").await.lines().last().unwrap(), "1 1");
    sandbox.destroy().await;
}
