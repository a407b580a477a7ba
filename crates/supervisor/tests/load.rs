//! Much output, many commands, bad clients: the supervisor stays up and stays small.

mod support;

use std::time::Duration;

use futures_util::SinkExt;
use nacre_wire::exec::{ClientControl, ExecRequest, ServerControl};
use nacre_wire::status::Health;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use support::{Said, Supervisor, argv, gone, limit_open_files, sh};
use tokio_tungstenite::tungstenite::Message;

const MIB: u64 = 1024 * 1024;

async fn healthy(supervisor: &Supervisor) {
    let health: Health = supervisor.get("/supervisor/health").await;
    assert_eq!(health.contained_panics, 0);
}

#[tokio::test]
async fn outputs_small_and_large_arrive_whole_in_constant_memory() {
    let supervisor = Supervisor::start().await;
    let small = supervisor.sh("yes 0123456789 | head -c 512000").await.finish().await;
    assert_eq!(small.stdout.len(), 512_000);
    let before = supervisor.stats().await.rss_bytes;
    let mut large = supervisor.sh("seq 1 8000000").await;
    let mut expected = 1_u64;
    let mut line = Vec::new();
    let mut highest = 0;
    while let Some(said) = large.socket.next().await {
        match said {
            Said::Output(_, bytes) => {
                for byte in bytes {
                    if byte == b'\n' {
                        assert_eq!(std::str::from_utf8(&line).unwrap(), expected.to_string());
                        expected += 1;
                        line.clear();
                    } else {
                        line.push(byte);
                    }
                }
                if expected.is_multiple_of(1000) {
                    highest = highest.max(supervisor.stats().await.rss_bytes);
                }
            }
            Said::Control(ServerControl::Exit(exit)) => {
                assert_eq!(exit.code, Some(0));
                break;
            }
            Said::Control(other) => panic!("{other:?}"),
        }
    }
    assert_eq!(expected, 8_000_001);
    highest = highest.max(supervisor.stats().await.rss_bytes);
    assert!(highest < before + 3 * MIB, "grew from {before} to {highest}");
}

#[tokio::test]
async fn a_client_that_does_not_read_makes_its_command_wait() {
    let supervisor = Supervisor::start().await;
    let request = sh("head -c 50000000 /dev/zero; echo over > over");
    let mut running = supervisor.exec(request).await;
    let before = supervisor.stats().await.rss_bytes;
    let over = supervisor.workspace().join("over");
    for _ in 0..50 {
        supervisor.exec(argv(&["true"])).await.finish().await;
    }
    assert!(!over.exists(), "the command did not wait");
    assert!(supervisor.stats().await.rss_bytes < before + 3 * MIB);
    assert_eq!(running.socket.finish().await.stdout.len(), 50_000_000);
    assert!(over.exists());
}

#[tokio::test]
async fn a_command_that_does_not_read_makes_its_client_wait() {
    let supervisor = Supervisor::start().await;
    let request = ExecRequest { stdin: true, ..sh("read go < go; wc -c") };
    supervisor.sh("mkfifo go").await.finish().await;
    let mut running = supervisor.exec(request).await;
    let before = supervisor.stats().await.rss_bytes;
    let mut sent = 0_usize;
    let piece = vec![b'x'; 64 * 1024];
    // Stops being taken once the pipe and the socket are full.
    while let Ok(result) = tokio::time::timeout(
        Duration::from_millis(300),
        running.socket.0.send(Message::Binary(piece.clone().into())),
    )
    .await
    {
        result.unwrap();
        sent += piece.len();
        assert!(sent < 16 * MIB as usize, "the supervisor takes input without end");
    }
    // The message that did not go out whole is still queued in the client and goes first.
    sent += piece.len();
    assert!(supervisor.stats().await.rss_bytes < before + 3 * MIB);
    supervisor.sh("echo > go").await.finish().await;
    running.socket.control(&ClientControl::StdinEof).await;
    assert_eq!(running.finish().await.text().trim(), sent.to_string());
}

#[tokio::test]
async fn killing_processes_never_matters() {
    let supervisor = Supervisor::start().await;
    let mut running = supervisor.sh("(sleep 1000 & echo $!); exec sleep 1000").await;
    let orphan: i32 = running.socket.until("\n").await.trim().parse().unwrap();
    supervisor.sh(&format!("kill -9 {orphan} {}", running.pid)).await.finish().await;
    assert_eq!(running.finish().await.exit.unwrap().signal.as_deref(), Some("KILL"));
    gone(orphan).await;
    healthy(&supervisor).await;
}

#[tokio::test]
async fn many_commands_leave_nothing_behind() {
    let supervisor = Supervisor::start().await;
    let some = async |count: usize| {
        for _ in 0..count / 10 {
            let batch = (0..10).map(|_| async {
                supervisor.sh("echo hello; (true &) ; true").await.finish().await.code()
            });
            let codes = futures_util::future::join_all(batch).await;
            assert!(codes.iter().all(|code| *code == Some(0)), "{codes:?}");
        }
    };
    let idle = supervisor.stats().await.open_fds;
    some(100).await;
    let before = supervisor.stats().await;
    some(300).await;
    let after = supervisor.stats().await;
    assert!(after.rss_bytes <= before.rss_bytes + MIB, "{before:?} {after:?}");
    assert_eq!(after.commands_running, 0);
    supervisor.open_files_back_to(idle).await;
}

#[tokio::test]
async fn running_out_of_descriptors_passes() {
    let supervisor = Supervisor::start_with(|command| limit_open_files(command, 40)).await;
    let mut held = Vec::new();
    for _ in 0..60 {
        held.push(supervisor.connect().await);
    }
    drop(held);
    healthy(&supervisor).await;
    assert_eq!(supervisor.exec(argv(&["true"])).await.finish().await.code(), Some(0));
}

#[tokio::test]
async fn too_few_descriptors_for_a_command_is_an_error_and_passes() {
    let supervisor = Supervisor::start_with(|command| limit_open_files(command, 40)).await;
    let mut running = Vec::new();
    let error = loop {
        let mut socket = supervisor.socket("/supervisor/exec").await;
        socket.control(&ClientControl::Start(Box::new(argv(&["sleep", "1000"])))).await;
        match socket.next().await {
            Some(Said::Control(ServerControl::Started { .. })) => running.push(socket),
            Some(Said::Control(ServerControl::Error(error))) => break error,
            other => panic!("{other:?}"),
        }
        assert!(running.len() < 40);
    };
    assert!(error.message.starts_with("cannot start sleep"), "{error:?}");
    drop(running);
    healthy(&supervisor).await;
}

#[tokio::test]
async fn asked_to_stop_it_ends_its_commands_first() {
    let mut supervisor = Supervisor::start().await;
    let mut obeys = supervisor
        .exec(sh("trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.1; done"))
        .await;
    obeys.socket.until("ready").await;
    let pid = obeys.pid;
    supervisor.terminate();
    assert_eq!(obeys.finish().await.text(), "bye\n");
    assert!(supervisor.wait().await.success());
    gone(pid).await;
}

/// Anything a client may say: nonsense, halves of sense, and sense at the wrong time.
fn message() -> impl Strategy<Value = Message> {
    let known = prop::sample::select(vec![
        r#"{"type":"start","argv":["cat"],"stdin":true}"#,
        r#"{"type":"start","shell":"echo hi","tty":{"cols":80,"rows":24}}"#,
        r#"{"type":"start","argv":["cat"],"tty":{"cols":0,"rows":70000}}"#,
        r#"{"type":"start","argv":[]}"#,
        r#"{"type":"start"}"#,
        r#"{"type":"stdin_eof"}"#,
        r#"{"type":"resize","cols":0,"rows":0}"#,
        r#"{"type":"resize","cols":20,"rows":5}"#,
        r#"{"type":"signal","signal":"INT"}"#,
        r#"{"type":"signal","signal":"NOPE"}"#,
        r#"{"type":"signal","signal":"0"}"#,
        r#"{"type":"dance"}"#,
    ]);
    prop_oneof![
        4 => known.prop_map(|text| Message::Text(text.into())),
        1 => ".{0,40}".prop_map(|text: String| Message::Text(text.into())),
        2 => prop::collection::vec(any::<u8>(), 0..200).prop_map(|b| Message::Binary(b.into())),
        1 => Just(Message::Ping(Vec::new().into())),
        1 => Just(Message::Close(None)),
    ]
}

#[test]
fn whatever_clients_say_they_get_an_answer_and_nothing_breaks() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let supervisor = runtime.block_on(Supervisor::start());
    let mut runner = TestRunner::new(Config { cases: 150, ..Config::default() });
    let said = prop::collection::vec(message(), 0..6);
    let result = runner.run(&said, |messages| {
        runtime.block_on(async {
            let mut socket = supervisor.socket("/supervisor/exec").await;
            for message in messages {
                // The supervisor may have closed already.
                let _ = socket.0.send(message).await;
            }
            let _ = socket.0.send(Message::Close(None)).await;
            // Ends with a close, whatever was said before.
            while socket.next().await.is_some() {}
            healthy(&supervisor).await;
        });
        Ok(())
    });
    result.unwrap();
    runtime.block_on(async {
        while supervisor.stats().await.commands_running > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
}

#[tokio::test]
async fn raw_bytes_instead_of_http_are_survived() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let supervisor = Supervisor::start().await;
    for bytes in [&b"\x16\x03\x01\x02\x00"[..], b"GET", b"GET / HTTP/9.9\r\n\r\n", &[0; 4096]] {
        let mut stream = supervisor.connect().await;
        let _ = stream.write_all(bytes).await;
        let _ = stream.shutdown().await;
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
    }
    healthy(&supervisor).await;
}
