//! Commands that outlive their clients, and clients that share a command.

#![allow(clippy::unwrap_used, reason = "the helpers here are tests too")]

mod support;

use http_body_util::BodyExt;
use hyper::StatusCode;
use hyper::body::Bytes;
use nacre_wire::error::ErrorBody;
use nacre_wire::exec::{ClientControl, CommandInfo, CommandList, ExecRequest};
use nacre_wire::{ApiError, ErrorKind};
use support::{Running, Supervisor, argv, gone, sh};

async fn start(supervisor: &Supervisor, request: &ExecRequest) -> CommandInfo {
    let body = serde_json::to_vec(request).unwrap();
    let (status, body) = supervisor.call("POST", "/supervisor/commands", body).await;
    assert_eq!(status, StatusCode::CREATED, "{body:?}");
    serde_json::from_slice(&body).unwrap()
}

async fn list(supervisor: &Supervisor) -> Vec<CommandInfo> {
    supervisor.get::<CommandList>("/supervisor/commands").await.commands
}

async fn error(supervisor: &Supervisor, method: &str, path: &str, body: &'static str) -> ApiError {
    let (status, body) = supervisor.call(method, path, body).await;
    assert!(!status.is_success(), "{path}: {status}");
    serde_json::from_slice::<ErrorBody>(&body).unwrap().error
}

#[tokio::test]
async fn a_detached_command_outlives_its_client_and_others_attach() {
    let supervisor = Supervisor::start().await;
    let request = ExecRequest {
        detach: true,
        stdin: true,
        label: Some("greeter".into()),
        ..sh("echo before; read name; echo hello $name; exit 4")
    };
    let Running { mut socket, id, .. } = supervisor.exec(request).await;
    socket.until("before\n").await;
    drop(socket);

    let mut guest = supervisor.attach(&id).await;
    guest.until("before\n").await;
    let info: CommandInfo = supervisor.get(&format!("/supervisor/commands/{id}")).await;
    assert_eq!((info.label.as_deref(), info.detached, info.exit), (Some("greeter"), true, None));
    guest.input("you\n").await;
    let heard = guest.finish().await;
    assert_eq!((heard.text().as_str(), heard.code()), ("hello you\n", Some(4)));

    let mut late = supervisor.attach(&id).await;
    let heard = late.finish().await;
    assert_eq!((heard.text().as_str(), heard.code()), ("before\nhello you\n", Some(4)));
    let info: CommandInfo = supervisor.get(&format!("/supervisor/commands/{id}")).await;
    assert_eq!((info.clients, info.output_bytes), (0, 17));
    assert!(info.ended_at >= Some(info.started_at));
}

#[tokio::test]
async fn a_command_can_be_driven_without_a_socket() {
    let supervisor = Supervisor::start().await;
    let info = start(&supervisor, &ExecRequest { stdin: true, ..argv(&["cat"]) }).await;
    let path = format!("/supervisor/commands/{}", info.id);
    let follow =
        supervisor.request("GET", &format!("{path}/output?follow=true"), Bytes::new()).await;
    let (status, _) = supervisor.call("POST", &format!("{path}/input"), "one ").await;
    assert_eq!(status, StatusCode::NO_CONTENT);
    supervisor.call("POST", &format!("{path}/input?eof=true"), "two").await;
    assert_eq!(follow.into_body().collect().await.unwrap().to_bytes(), "one two");
    let (_, output) = supervisor.call("GET", &format!("{path}/output"), "").await;
    assert_eq!(output, "one two");
    let late = error(&supervisor, "POST", &format!("{path}/signal"), r#"{"signal":"INT"}"#).await;
    assert_eq!(late.kind, ErrorKind::Unavailable);
    assert_eq!(
        error(&supervisor, "POST", &format!("{path}/input"), "x").await.kind,
        ErrorKind::Unavailable
    );
}

#[tokio::test]
async fn the_output_so_far_ends_even_when_the_command_does_not() {
    let supervisor = Supervisor::start().await;
    let info = start(&supervisor, &argv(&["yes"])).await;
    let path = format!("/supervisor/commands/{}", info.id);
    supervisor.attach(&info.id).await.until("y\ny\n").await;
    let (status, output) = supervisor.call("GET", &format!("{path}/output"), "").await;
    assert_eq!(status, StatusCode::OK);
    assert!(!output.is_empty());
    assert_eq!(supervisor.call("DELETE", &path, "").await.0, StatusCode::NO_CONTENT);
}

#[tokio::test]
async fn removing_a_command_ends_it_and_forgets_it() {
    let supervisor = Supervisor::start().await;
    let info = start(&supervisor, &argv(&["sleep", "1000"])).await;
    let path = format!("/supervisor/commands/{}", info.id);
    assert_eq!(list(&supervisor).await.len(), 1);
    assert_eq!(supervisor.call("DELETE", &path, "").await.0, StatusCode::NO_CONTENT);
    gone(info.pid).await;
    assert_eq!(list(&supervisor).await, []);
    assert_eq!(error(&supervisor, "GET", &path, "").await.kind, ErrorKind::NotFound);
}

#[tokio::test]
async fn a_signal_reaches_the_whole_group() {
    let supervisor = Supervisor::start().await;
    let mut running = supervisor.sh("sleep 1000 & echo $!; wait").await;
    let child: i32 = running.socket.until("\n").await.trim().parse().unwrap();
    let path = format!("/supervisor/commands/{}/signal", running.id);
    assert_eq!(
        error(&supervisor, "POST", &path, r#"{"signal":"NOPE"}"#).await.kind,
        ErrorKind::InvalidRequest
    );
    supervisor.call("POST", &path, r#"{"signal":"INT"}"#).await;
    assert_eq!(running.finish().await.exit.unwrap().signal.as_deref(), Some("INT"));
    // A shell without job control has its background children ignore INT, not KILL.
    supervisor.sh(&format!("kill -9 {child}")).await.finish().await;
    gone(child).await;
}

#[tokio::test]
async fn only_the_last_finished_commands_are_remembered() {
    let supervisor = Supervisor::start().await;
    for _ in 0..70 {
        supervisor.exec(argv(&["true"])).await.finish().await;
    }
    let known = list(&supervisor).await;
    assert_eq!(known.len(), 64);
    assert!(known.iter().all(|info| info.exit.is_some()));
    assert_eq!(supervisor.stats().await.commands_running, 0);
}

#[tokio::test]
async fn output_that_its_starter_has_not_read_yet_is_not_forgotten() {
    let supervisor = Supervisor::start().await;
    let mut unread = Vec::new();
    // Together more than finished commands may keep for those who come later.
    for _ in 0..24 {
        unread.push(supervisor.sh("head -c 400000 /dev/zero").await);
    }
    while list(&supervisor).await.iter().any(|info| info.exit.is_none()) {}
    for running in unread {
        let heard = running.finish().await;
        assert_eq!((heard.stdout.len(), heard.gaps), (400_000, 0));
    }
}

#[tokio::test]
async fn a_slow_follower_is_told_what_it_missed_and_holds_nobody_up() {
    let supervisor = Supervisor::start().await;
    let request = ExecRequest {
        stdin: true,
        ..sh("echo ready; read go; head -c 20000000 /dev/zero; echo; echo end")
    };
    let mut running = supervisor.exec(request).await;
    running.socket.until("ready\n").await;
    let mut slow = supervisor.attach(&running.id).await;
    slow.until("ready\n").await;
    running.socket.input("go\n").await;
    // The follower reads nothing until the command is over.
    let heard = running.finish().await;
    assert_eq!((heard.stdout.len(), heard.gaps), (20_000_005, 0));
    let heard = slow.finish().await;
    assert!(heard.gaps > 0);
    assert_eq!(heard.stdout.len() as u64 + heard.gaps, 20_000_005);
    assert!(heard.text().ends_with("\nend\n"));
}

#[tokio::test]
async fn what_a_command_leaves_behind_can_still_be_read() {
    let supervisor = Supervisor::start().await;
    let script = "(read go < go; echo late; echo done > done) & echo early";
    supervisor.sh("mkfifo go done").await.finish().await;
    let running = supervisor.exec(ExecRequest { detach: true, ..sh(script) }).await;
    let id = running.id.clone();
    assert_eq!(running.finish().await.text(), "early\n");
    supervisor.sh("echo > go; cat done").await.finish().await;
    let path = format!("/supervisor/commands/{id}/output");
    loop {
        let (_, output) = supervisor.call("GET", &path, "").await;
        if output == "early\nlate\n" {
            break;
        }
        assert!(output.starts_with(b"early\n"), "{output:?}");
    }
}

#[tokio::test]
async fn stdin_of_two_clients_arrives_message_by_message() {
    let supervisor = Supervisor::start().await;
    let request = ExecRequest { stdin: true, detach: true, ..argv(&["sort"]) };
    let mut first = supervisor.exec(request).await;
    let mut second = supervisor.attach(&first.id).await;
    let line = |letter: char| format!("{}\n", letter.to_string().repeat(5000));
    first.socket.input(line('a')).await;
    second.input(line('b')).await;
    // The second is counted a moment after it was let in.
    let path = format!("/supervisor/commands/{}", first.id);
    while supervisor.get::<CommandInfo>(&path).await.clients != 2 {
        tokio::task::yield_now().await;
    }
    second.control(&ClientControl::StdinEof).await;
    drop(second);
    // What the second client sent before the end is there whole, whatever the first one's fate.
    assert!(first.finish().await.text().contains(&line('b')));
}

#[tokio::test]
async fn a_client_that_does_not_read_cannot_keep_a_command_from_being_removed() {
    let supervisor = Supervisor::start().await;
    let running = supervisor.exec(argv(&["yes"])).await;
    let path = format!("/supervisor/commands/{}", running.id);
    let mut written = 0;
    loop {
        supervisor.exec(argv(&["true"])).await.finish().await;
        let info: CommandInfo = supervisor.get(&path).await;
        if info.output_bytes > 0 && info.output_bytes == written {
            break;
        }
        written = info.output_bytes;
    }
    assert_eq!(supervisor.call("DELETE", &path, "").await.0, StatusCode::NO_CONTENT);
    gone(running.pid).await;
    assert_eq!(supervisor.stats().await.commands_running, 0);
}
