//! Live and dev with real sandboxes: copied, swapped, killed in between.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::Signal;

use crate::computer::TestComputer;

/// The ids of live and dev.
fn roles(pc: &TestComputer) -> (String, String) {
    let list = pc.json(&["sandbox", "list", "--json"]);
    let of = |role: &str| {
        let all = list["sandboxes"].as_array().unwrap();
        let found: Vec<_> = all.iter().filter(|sandbox| sandbox["role"] == role).collect();
        assert_eq!(found.len(), 1, "{role} has one owner: {list}");
        assert_eq!(found[0]["name"], role, "{list}");
        found[0]["id"].as_str().unwrap().to_owned()
    };
    (of("live"), of("dev"))
}

#[test]
fn dev_is_made_changed_promoted_and_taken_back() {
    let pc = TestComputer::start();
    pc.exec("echo one > who");
    pc.ok(&["exec", "--user", "root", "--", "sh", "-c", "echo x > /usr/bin/installed"]);
    let made = pc.ok(&["dev", "create"]);
    assert!(made.starts_with("dev is a copy of live: "), "{made}");
    let dev = |script: &str| pc.ok(&["exec", "-s", "dev", "--", "sh", "-c", script]);
    assert_eq!(dev("cat who /usr/bin/installed"), "one\nx\n");
    dev("echo two > who");
    assert_eq!(pc.exec("cat who"), "one\n");

    let swapped = pc.ok(&["swap"]);
    assert!(swapped.contains("ok      assets"), "{swapped}");
    assert!(swapped.contains("dev is live, in "), "{swapped}");
    assert_eq!((pc.exec("cat who"), dev("cat who")), ("two\n".to_owned(), "one\n".to_owned()));
    // What live did before it was copied can still be undone: history went along.
    pc.ok(&["undo"]);
    assert_eq!(pc.exec("cat who"), "one\n");

    let back = pc.json(&["swap", "--rollback", "--json"]);
    assert_eq!(back["live"]["name"], "live");
    assert_eq!(pc.exec("cat who"), "one\n");
    let refused = pc.run(&["dev", "delete"]);
    assert_eq!(refused.status.code(), Some(1), "not without --yes");
    pc.ok(&["dev", "reset", "--yes"]);
    pc.ok(&["dev", "delete", "--yes"]);
    let refused = pc.run(&["swap"]);
    assert_eq!(refused.status.code(), Some(1));
    let complaint = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(complaint, "error: there is no dev sandbox\nhint: make one: nacre dev create\n");
}

#[test]
fn a_swap_to_a_broken_app_is_refused_with_evidence() {
    let pc = TestComputer::start();
    pc.ok(&["dev", "create"]);
    let before = roles(&pc);
    let config = "[runtime]\ncommand = [\"sh\", \"-c\", \"echo no >&2; exit 3\"]\nport = 5173\n";
    let write = format!("printf '%s' '{config}' > nacre.toml");
    pc.ok(&["exec", "-s", "dev", "--", "sh", "-c", &write]);
    // Whether it ends or is started again at this moment, it is never ready.
    let refused = pc.run(&["swap"]);
    let shown = String::from_utf8(refused.stdout).unwrap();
    assert_eq!(refused.status.code(), Some(1), "{shown}");
    assert!(shown.contains("FAILED  runtime"), "{shown}");
    let complaint = String::from_utf8(refused.stderr).unwrap();
    assert!(complaint.starts_with("error: dev is not fit to be live: its app is"), "{complaint}");
    assert_eq!(roles(&pc), before);
}

/// The process of the gateway is killed around the move, at a different moment each time.
#[test]
fn kill_9_around_a_swap_leaves_one_of_the_two_states() {
    let pc = TestComputer::start();
    pc.ok(&["dev", "create"]);
    let (one, two) = roles(&pc);
    let (mut moved, mut stayed) = (0, 0);
    for round in 0..16_u64 {
        let before = roles(&pc);
        let mut command = pc.command(&["swap"]);
        let mut swapping = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(round * 12));
        pc.signal_gateway(Signal::KILL);
        swapping.wait().unwrap();
        pc.up();
        let now = roles(&pc);
        assert!(now == (one.clone(), two.clone()) || now == (two.clone(), one.clone()), "{now:?}");
        *if now == before { &mut stayed } else { &mut moved } += 1;
        assert_eq!(pc.exec("echo alive"), "alive\n");
    }
    assert!(moved + stayed == 16 && moved > 0, "moved {moved}, stayed {stayed}");
}

/// A browser's socket, by hand.
struct Socket(TcpStream);

impl Socket {
    fn open(pc: &TestComputer, path: &str) -> Self {
        let link = pc.json(&["login", "--json"])["url"].as_str().unwrap().to_owned();
        let (host, sign_in) = link.strip_prefix("http://").unwrap().split_once('/').unwrap();
        let mut stream = TcpStream::connect(host).unwrap();
        write!(stream, "GET /{sign_in} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")
            .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let cookie = answer.split("set-cookie: ").nth(1).unwrap().split(';').next().unwrap();
        let mut stream = TcpStream::connect(host).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        write!(
            stream,
            "GET {path} HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{host}\r\nCookie: {cookie}\r\n\
             Connection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
             Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        )
        .unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            head.push(byte[0]);
        }
        let head = String::from_utf8(head).unwrap();
        assert!(head.starts_with("HTTP/1.1 101"), "{head}");
        Self(stream)
    }

    fn rest(mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.0.read_to_end(&mut bytes).unwrap();
        bytes
    }
}

#[test]
fn desktop_sockets_of_both_roles_end_with_role_moved() {
    let pc = TestComputer::start();
    pc.ok(&["dev", "create"]);
    let sockets = ["/ws", "/dev/ws"].map(|path| Socket::open(&pc, path));
    pc.ok(&["swap"]);
    let close = [&[0x88, 12, 0x0f, 0xa1][..], b"role moved"].concat();
    for socket in sockets {
        let rest = socket.rest();
        assert!(rest.ends_with(&close), "{rest:?}");
    }
    Socket::open(&pc, "/ws");
}
