//! `nacre run` against a gateway that says what the test wants.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

fn ended() -> Value {
    json!({
        "id": "run-1", "state": "ended", "title": "t", "agent": "nacre", "detached": false,
        "limits": {"max_steps": 5, "timeout_ms": 1000}, "created_at": 1, "started_at": 1, "ended_at": 2,
        "used": {"steps": 1, "tool_calls": 0, "tokens": 0, "dollars": 0.0},
        "outcome": {"how": "done", "exit_code": 0},
        "changes": {"added": 1, "changed": 0, "removed": 0, "bytes": 1, "paths": []},
    })
}

/// Answers one call. Files are begun and never come to an end; then it says so.
fn serve(stream: TcpStream, asked_for_files: &Sender<TcpStream>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let (mut first, mut length) = (String::new(), 0);
    reader.read_line(&mut first).unwrap();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if line.trim().is_empty() {
            break;
        }
        let line = line.to_ascii_lowercase();
        if let Some(number) = line.strip_prefix("content-length: ") {
            length = number.trim().parse().unwrap();
        }
    }
    reader.read_exact(&mut vec![0; length]).unwrap();
    let mut stream = stream;
    let path = first.split(' ').nth(1).unwrap_or_default();
    let body = match path.rsplit('/').next().unwrap() {
        "gateway" => json!({
            "version": "0", "pid": 1, "uptime_ms": 1, "url": "http://localhost", "data_dir": "/",
            "driver": "fake", "reduced": [], "sandboxes": [],
        })
        .to_string(),
        "events" => {
            let event = json!({"seq": 1, "at": 1, "type": "ended", "run": ended()});
            format!("{event}\n")
        }
        "files" => {
            let head =
                "HTTP/1.1 200 OK\r\ncontent-type: application/x-tar\r\nconnection: close\r\n\r\n";
            stream.write_all(head.as_bytes()).unwrap();
            asked_for_files.send(stream).unwrap();
            return;
        }
        _ => ended().to_string(),
    };
    let length = body.len();
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\
         content-length: {length}\r\n\r\n{body}"
    );
    stream.write_all(head.as_bytes()).unwrap();
}

#[test]
fn ctrl_c_stops_the_writing_of_files() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let sender = sender.clone();
            std::thread::spawn(move || serve(stream, &sender));
        }
    });
    let folder = tempfile::tempdir().unwrap();
    let spec = folder.path().join("spec.txt");
    std::fs::write(&spec, "do it").unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_nacre"))
        .env("NACRE_URL", format!("http://{address}"))
        .env("NACRE_TOKEN", "token")
        .args(["run", spec.to_str().unwrap(), "--out"])
        .arg(folder.path().join("out"))
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let open = receiver.recv_timeout(Duration::from_secs(60)).expect("it asks for the files");
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(pid, Signal::INT).unwrap();
    // The stream is open until the command has ended by itself.
    let code = child.wait().unwrap().code();
    drop(open);
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(code, Some(130), "{said}");
    assert!(said.contains("nacre runs get run-1"), "{said}");
}
