//! Ports of a sandbox: listed, made ports of this machine, and opened in a browser.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::process::Command;
use std::time::{Duration, Instant};

use http::StatusCode;
use rustix::process::Signal;

use crate::browser::Browser;
use crate::computer::{Running, TestComputer};

/// Tells how it was asked, and gives back the rest of what comes when all has come.
const SERVER: &str = r#"
import socket, threading

def serve(connection):
    with connection:
        said = connection.recv(65536)
        if said.startswith(b"GET "):
            path = said.split(b" ")[1]
            prefix = [line for line in said.split(b"\r\n") if line.lower().startswith(b"x-forwarded-prefix")]
            body = b" ".join([path] + prefix)
            head = b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: %d\r\n\r\n" % len(body)
            connection.sendall(head + body)
            return
        while piece := connection.recv(65536):
            said += piece
        connection.sendall(said[::-1])

listener = socket.create_server(("127.0.0.1", 4711))
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
"#;

fn start_server(computer: &TestComputer, sandbox: &str) {
    computer.ok(&["exec", "-s", sandbox, "--detach", "--", "/usr/bin/python3", "-c", SERVER]);
    let deadline = Instant::now() + Duration::from_secs(60);
    while ports(computer, sandbox).is_empty() {
        assert!(Instant::now() < deadline, "the server never listens");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn ports(computer: &TestComputer, sandbox: &str) -> Vec<serde_json::Value> {
    let list = computer.json(&["ports", sandbox, "--json"]);
    let all = list["ports"].as_array().unwrap().clone();
    all.into_iter().filter(|found| found["port"] == 4711).collect()
}

/// Says something, ends, and reads what comes back.
fn talk(address: &str, said: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(said.as_bytes()).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn forward(command: Command) -> (Running, String) {
    let (running, line) = Running::start(command);
    let address = line.split(" -> ").next().unwrap().to_owned();
    assert!(line.ends_with(" -> live port 4711"), "{line}");
    (running, address)
}

#[test]
fn a_port_of_a_sandbox_is_a_port_of_this_machine() {
    let computer = TestComputer::start();
    start_server(&computer, "live");
    let found = &ports(&computer, "live")[0];
    assert_eq!(
        (&found["address"], &found["process"]["name"]),
        (&"127.0.0.1".into(), &"python3".into())
    );
    assert!(computer.ok(&["ports"]).contains("python3"));

    let (running, here) = forward(computer.command(&["forward", "live", "4711:0"]));
    let many: Vec<_> = (0..20)
        .map(|index| {
            let here = here.clone();
            std::thread::spawn(move || assert_eq!(talk(&here, &format!("ab{index:02}")).len(), 4))
        })
        .collect();
    many.into_iter().for_each(|one| one.join().unwrap());
    assert_eq!(talk(&here, "there"), "ereht");

    let port = here.rsplit(':').next().unwrap();
    let taken = computer.run(&["forward", "live", &format!("4711:{port}")]);
    let said = String::from_utf8_lossy(&taken.stderr).into_owned();
    assert!(!taken.status.success() && said.contains("4711:LOCAL"), "{said}");
    running.signal(Signal::INT);
    assert_eq!(running.code(), Some(0));

    let token = computer.ok(&["token", "create", "--name", "laptop", "--scope", "admin"]);
    let url = computer.json(&["status", "--json"])["url"].as_str().unwrap().to_owned();
    let other = TestComputer::elsewhere();
    let mut command = other.command(&["forward", "live", "4711:0"]);
    command.env("NACRE_URL", url).env("NACRE_TOKEN", token.trim_end());
    let (running, afar) = forward(command);
    assert_eq!(talk(&afar, "from afar"), "rafa morf");
    // What goes away inside is gone here too.
    computer.ok(&["sandbox", "stop", "live"]);
    let mut broken = TcpStream::connect(&afar).unwrap();
    assert!(matches!(broken.read(&mut [0]), Ok(0) | Err(_)));
    running.signal(Signal::TERM);
    assert_eq!(running.code(), Some(0));
    let nowhere = computer.run(&["forward", "nothing", "80"]);
    assert!(String::from_utf8_lossy(&nowhere.stderr).contains("nothing"));
}

#[tokio::test]
async fn a_browser_opens_ports_of_both_roles() {
    let computer = TestComputer::start();
    computer.ok(&["sandbox", "create", "dev", "--start"]);
    start_server(&computer, "dev");
    let browser = Browser::of_the_owner(&computer).await;
    let answer = browser.get("/dev/ports/4711/a?b=c", &[]).await;
    assert_eq!(answer.body, "/a?b=c x-forwarded-prefix: /dev/ports/4711");
    let slash = browser.get("/dev/ports/4711", &[]).await;
    assert_eq!(slash.headers["location"], "/dev/ports/4711/");
    let live = browser.get("/ports/4711/", &[]).await;
    assert_eq!(live.status, StatusCode::NOT_FOUND, "live is another sandbox");
    let stranger = Browser::stranger(&computer);
    assert_eq!(stranger.get("/dev/ports/4711/", &[]).await.status, StatusCode::UNAUTHORIZED);
    assert!(stranger.socket("/dev/ports/4711/").await.is_err());
}
