//! The network of a sandbox, as root in it finds it: loopback, and a device that ends in a process of
//! the sandbox which has nothing of the host.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use nacre_sandbox::BoxStream;
use nacre_wire::error::ErrorBody;
use nacre_wire::{ApiError, ErrorKind};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;

use crate::machine::Sandbox;

const EVERYBODY: [&str; 2] = ["root", "nacre"];
/// Sooner than what nobody comes for is given up.
const SOON: Duration = Duration::from_secs(8);
/// Nobody is there (RFC 5737), and nobody is asked for it but the host of these tests.
const ELSEWHERE: &str = "bash -c ': < /dev/tcp/192.0.2.1/80'";

/// A host that answers every wish like this.
fn refusing(sandbox: &Sandbox, kind: ErrorKind) -> AbortOnDropHandle<()> {
    let (driver, id) = (Arc::clone(&sandbox.driver), sandbox.id.clone());
    let error = ErrorBody { error: ApiError::new(kind, "this is a test") };
    let body = serde_json::to_string(&error).unwrap();
    let answer = format!(
        "HTTP/1.1 {} X\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        kind.status().as_u16(),
        body.len()
    );
    AbortOnDropHandle::new(tokio::spawn(async move {
        while let Ok(stream) = driver.accept(&id).await {
            tokio::spawn(refuse(stream, answer.clone()));
        }
    }))
}

async fn refuse(mut stream: BoxStream, answer: String) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n")
        && stream.read_buf(&mut head).await.is_ok_and(|read| read > 0)
    {}
    assert!(head.starts_with(b"GET /host/egress?host=192%2E0%2E2%2E1&port=80 "), "{head:?}");
    let _ = stream.write_all(answer.as_bytes()).await;
}

async fn fails(sandbox: &Sandbox, user: &str, script: &str, how: &str) {
    let finished = sandbox.sh(user, script).await;
    let errors = String::from_utf8_lossy(&finished.stderr).into_owned();
    assert_ne!(finished.exit.code, Some(0), "{user} succeeded with: {script}");
    assert!(errors.contains(how), "{user}: {script}: {errors}");
}

#[tokio::test]
async fn any_other_address_is_the_hosts_to_decide() {
    let sandbox = Sandbox::start().await;
    let there = "tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' ' | sort | tr '\\n' ' '";
    assert_eq!(sandbox.output("root", there).await, "lo tun0");
    let host = refusing(&sandbox, ErrorKind::Permission);
    for user in EVERYBODY {
        fails(&sandbox, user, ELSEWHERE, "No route to host").await;
    }
    drop(host);
    let _host = refusing(&sandbox, ErrorKind::Unreachable);
    fails(&sandbox, "nacre", ELSEWHERE, "Connection refused").await;
    sandbox.destroy().await;
}

#[tokio::test]
async fn nobody_inside_changes_the_network() {
    let sandbox = Sandbox::start().await;
    // ip speaks netlink, ifconfig's calls are ioctls; perl makes the latter by hand.
    let down = "perl -MSocket -e 'socket(S,AF_INET,SOCK_DGRAM,0); \
                my $r = pack(\"a16sx22\",\"tun0\",0); ioctl(S,0x8914,$r) or die \"$!\\n\"'";
    let attempts = [
        "ip link set tun0 down",
        "ip addr add 10.0.0.1/8 dev tun0",
        "ip route add 10.0.0.0/8 dev lo",
        "ip link add veth0 type veth peer name veth1",
        "ip tuntap add mode tun name tun1",
        down,
    ];
    for user in EVERYBODY {
        for attempt in attempts {
            let finished = sandbox.sh(user, attempt).await;
            let errors = String::from_utf8_lossy(&finished.stderr).into_owned();
            assert_ne!(finished.exit.code, Some(0), "{user} succeeded with: {attempt}");
            let refusals = ["not permitted", "No such file or directory"];
            assert!(refusals.iter().any(|said| errors.contains(said)), "{attempt}: {errors}");
        }
        fails(&sandbox, user, "head -c 1 /dev/net/tun", "No such file").await;
    }
    sandbox.destroy().await;
}

#[tokio::test]
async fn what_reads_packets_comes_with_the_first_and_has_nothing_of_the_host() {
    let sandbox = Sandbox::start().await;
    let count = "grep -lx nacre-net /proc/[0-9]*/comm 2>/dev/null | wc -l";
    assert_eq!(sandbox.output("root", count).await, "0", "nothing has gone out");
    let _host = refusing(&sandbox, ErrorKind::Permission);
    fails(&sandbox, "nacre", ELSEWHERE, "No route to host").await;
    let reader = reader_pid(&sandbox);
    let status = fs::read_to_string(format!("/proc/{reader}/status")).unwrap();
    let field = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().last().unwrap().to_owned()
    };
    assert_eq!((field("CapEff:"), field("NoNewPrivs:")), ("0000000000000000".into(), "1".into()));
    assert_eq!(field("Seccomp:"), "2");
    assert!(field("NSpid:").parse::<i32>().is_ok());
    // It has made its sockets itself: none of them is one of pid 1, which alone speaks to the host.
    let supervisor = held_by(&supervisor_pid(&sandbox));
    assert!(supervisor.iter().any(|held| held.starts_with("socket:")), "{supervisor:?}");
    for held in held_by(&reader.to_string()) {
        if held.starts_with("socket:") {
            assert!(!supervisor.contains(&held), "{held}");
        } else {
            let known = ["/dev/net/tun", "/dev/null", "pipe:", "anon_inode:"];
            assert!(known.iter().any(|start| held.starts_with(start)), "{held}");
        }
    }
    // Nobody inside looks into it or takes what it has, root neither.
    for user in EVERYBODY {
        for look in ["head -c 1 $p/mem", "head -c 1 $p/fd/0", "head -c 1 $p/environ"] {
            let find = "p=$(grep -lx nacre-net /proc/[0-9]*/comm); p=${p%/comm}";
            fails(&sandbox, user, &format!("{find}; {look}"), "Permission denied").await;
        }
    }
    sandbox.destroy().await;
}

#[tokio::test]
async fn what_reads_packets_is_back_after_it_died() {
    let sandbox = Sandbox::start().await;
    let _host = refusing(&sandbox, ErrorKind::Permission);
    fails(&sandbox, "nacre", ELSEWHERE, "No route to host").await;
    let before = reader_pid(&sandbox);
    let ask = |name: &str| format!("getent ahostsv4 {name} | head -1 | cut -d' ' -f1");
    let old = sandbox.output("nacre", &ask("one.example.com")).await;
    sandbox
        .output(
            "root",
            "p=$(grep -lx nacre-net /proc/[0-9]*/comm); p=${p%/comm}; kill -9 ${p#/proc/}",
        )
        .await;
    fails(&sandbox, "nacre", ELSEWHERE, "No route to host").await;
    assert_ne!(reader_pid(&sandbox), before);
    // An address that a program remembers is nobody else's now.
    let fresh = sandbox.output("nacre", &ask("other.example.com")).await;
    assert!(fresh.starts_with("198.18.") && fresh != old, "{fresh}");
    sandbox.destroy().await;
}

#[tokio::test]
async fn a_connect_that_was_given_up_is_let_go_of() {
    let sandbox = Sandbox::start().await;
    let (driver, id) = (Arc::clone(&sandbox.driver), sandbox.id.clone());
    let (asked, mut asking) = mpsc::unbounded_channel();
    let _host = AbortOnDropHandle::new(tokio::spawn(async move {
        while let Ok(mut stream) = driver.accept(&id).await {
            let asked = asked.clone();
            tokio::spawn(async move {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n")
                    && stream.read_buf(&mut head).await.is_ok_and(|read| read > 0)
                {}
                if head.starts_with(b"GET /host/egress?") {
                    let _ = asked.send(stream);
                }
            });
        }
    }));
    sandbox.sh("nacre", &format!("timeout -s KILL 1 {ELSEWHERE}; true")).await;
    // The host has a connection only after the program has gone.
    let mut stream = timeout(SOON, asking.recv()).await.unwrap().unwrap();
    let answer = "HTTP/1.1 101 X\r\nconnection: upgrade\r\nupgrade: nacre-egress\r\n\r\n";
    stream.write_all(answer.as_bytes()).await.unwrap();
    // Nobody will come for it: it does not stay open until the sandbox stops.
    let mut rest = Vec::new();
    timeout(SOON, stream.read_to_end(&mut rest)).await.unwrap().unwrap();
    assert_eq!(rest, b"");
    sandbox.destroy().await;
}

#[tokio::test]
async fn names_are_answered_inside_and_say_nothing() {
    let sandbox = Sandbox::start().await;
    let ask = |name: &str| format!("getent ahostsv4 {name} | head -1 | cut -d' ' -f1");
    let first = sandbox.output("nacre", &ask("any.example.com")).await;
    assert!(first.starts_with("198.18.1."), "{first}");
    assert_eq!(sandbox.output("root", &ask("any.example.com")).await, first);
    assert_ne!(sandbox.output("nacre", &ask("other.example.com")).await, first);
    assert_eq!(sandbox.output("nacre", &ask("localhost")).await, "127.0.0.1");
    let own = sandbox.sh("nacre", "getent ahostsv6 any.example.com | grep -v ::ffff:").await;
    assert_ne!(own.exit.code, Some(0), "there is no such address inside");
    sandbox.destroy().await;
}

fn supervisor_pid(sandbox: &Sandbox) -> String {
    let run = fs::read_to_string(sandbox.data.path().join("sandboxes/box/run.json")).unwrap();
    run.split("\"pid\":").nth(1).unwrap().split(',').next().unwrap().to_owned()
}

/// What a process has open.
fn held_by(pid: &str) -> Vec<String> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
    let held = entries.filter_map(|entry| fs::read_link(entry.unwrap().path()).ok());
    held.map(|path| path.display().to_string()).collect()
}

/// The process that reads packets, as the host sees it.
fn reader_pid(sandbox: &Sandbox) -> i32 {
    let pid = supervisor_pid(sandbox);
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let children = tasks.flat_map(|task| {
        let children = fs::read_to_string(task.unwrap().path().join("children")).unwrap();
        children.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    });
    let is_reader = |pid: &String| {
        fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name == "nacre-net\n")
    };
    children.into_iter().find(is_reader).expect("the reader").parse().unwrap()
}
