//! The processes of `nacre.toml`, with real ones.

#![allow(clippy::unwrap_used, reason = "the helpers here are tests too")]

mod support;

use std::os::unix::fs::symlink;

use nacre_wire::ErrorKind;
use nacre_wire::events::Event;
use nacre_wire::processes::{LogStream, ProcessState};
use rustix::process::{Pid, Signal, kill_process};
use support::desktop::free_port;
use support::story::Story;
use support::{PATIENCE, gone};

fn kill(pid: i32) {
    kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
}

#[tokio::test]
async fn one_that_keeps_ending_is_tried_less_and_less_until_its_file_is_right() {
    let mut story = Story::with("[runtime]\ncommand = \"echo boom >&2; exit 3\"\n").await;
    let first = story.until_state("runtime", ProcessState::BackingOff).await;
    assert_eq!((first.exit_code, first.restarts), (Some(3), 0));
    assert_eq!(first.reason.as_deref(), Some("ended with exit code 3"));
    assert!(first.next_try.unwrap() > first.since);
    let looping = story.until_state("runtime", ProcessState::CrashLooping).await;
    assert_eq!((looping.restarts, looping.run, looping.pid), (4, 5, None));
    assert!(looping.next_try.unwrap() > looping.since + 25_000, "{looping:?}");
    let log = story.log_until("runtime", 0, "boom").await;
    assert_eq!(log.last().unwrap().stream, LogStream::Stderr);
    assert_eq!(story.supervisor.stats().await.commands_running, 0);

    story.configure("[runtime]\ncommand = \"exec sleep 1000\"\n");
    let ready = story.ready("runtime").await;
    assert_eq!(ready.run, 6);
}

#[tokio::test]
async fn one_that_is_killed_comes_back_and_leaves_nobody_behind() {
    let mut story =
        Story::with("[process.a]\ncommand = \"sleep 1000 & echo child $!; wait\"\n").await;
    let before = story.ready("a").await;
    let log = story.log_until("a", 0, "child").await;
    let child: i32 = log.last().unwrap().text.split(' ').nth(1).unwrap().parse().unwrap();
    kill(before.pid.unwrap());
    let down = story.until_state("a", ProcessState::BackingOff).await;
    assert_eq!(down.reason.as_deref(), Some("ended by the signal KILL"));
    assert_eq!(down.exit_code, Some(137));
    gone(child).await;
    let after = story.ready("a").await;
    assert_eq!((after.restarts, after.run), (1, 2));
    assert_ne!(after.pid, before.pid);
}

#[tokio::test]
async fn a_changed_file_restarts_what_changed_and_only_that() {
    let both = |b: &str| {
        format!("[process.a]\ncommand = \"sleep 1000\"\n[process.b]\ncommand = \"sleep {b}\"\n")
    };
    let mut story = Story::with(&both("1001")).await;
    let ready = ProcessState::Ready;
    let [a, b] = story.all([("a", ready), ("b", ready)]).await;
    story.configure(&both("1002"));
    let changed = story.until_state("b", ProcessState::Starting).await;
    assert_eq!((changed.run, changed.restarts), (2, 0));
    gone(b.pid.unwrap()).await;
    story.ready("b").await;
    assert_eq!(story.now("a").await.pid, a.pid);

    // In place, by an editor that is not careful, and with another rule only.
    let file = story.supervisor.workspace().join("nacre.toml");
    let b = story.now("b").await;
    std::fs::write(&file, both("1002") + "restart = \"never\"\n").unwrap();
    assert_eq!(story.now("b").await.run, 2);
    kill(b.pid.unwrap());
    let failed = story.until_state("b", ProcessState::Failed).await;
    assert_eq!((failed.run, failed.next_try), (2, None));

    let client = story.supervisor.client();
    let mut log = client.process_log("b", 0, true).await.unwrap();
    story.configure("[process.a]\ncommand = \"sleep 1000\"\n");
    story
        .until(|event| matches!(event, Event::ProcessGone { name } if name == "b").then_some(()))
        .await;
    while log.next().await.unwrap().is_some() {}
    assert_eq!(story.now("a").await.pid, a.pid);
    assert_eq!(client.processes().await.unwrap().processes.len(), 1);
}

#[tokio::test]
async fn a_broken_file_is_explained_and_what_ran_runs_on() {
    let good = "[runtime]\ncommand = \"exec sleep 1000\"\n";
    let mut story = Story::with(good).await;
    let before = story.ready("runtime").await;
    story.configure("[runtime]\ncommand = \"exec sleep 1000\"\nport = \"many\"\n");
    let error = story.until(|event| match event {
        Event::Config { error } => error,
        _ => None,
    });
    let error = error.await;
    assert_eq!(error.line, Some(3), "{error:?}");
    let list = story.supervisor.client().processes().await.unwrap();
    assert_eq!(list.config_error, Some(error));
    assert_eq!(list.processes[0].pid, before.pid);
    story.configure(good);
    story.until(|event| matches!(event, Event::Config { error: None }).then_some(())).await;
    assert_eq!(story.now("runtime").await.run, 1);
}

#[tokio::test]
async fn a_hostile_file_is_a_state_and_not_an_accident() {
    let story = Story::begin().await;
    let workspace = story.supervisor.workspace();
    let file = workspace.join("nacre.toml");
    let client = story.supervisor.client();
    let check = async |what: &str| {
        let error = client.processes().await.unwrap().config_error;
        assert!(error.is_some(), "{what}");
        let _ = std::fs::remove_file(&file);
        assert_eq!(client.processes().await.unwrap().config_error, None, "{what} gone");
    };
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &file,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RWXU,
        0,
    )
    .unwrap();
    check("a fifo").await;
    symlink("/proc/self/environ", &file).unwrap();
    check("a file of the supervisor's own").await;
    symlink("nacre.toml", &file).unwrap();
    check("a loop").await;
    std::fs::File::create(&file).unwrap().set_len(1 << 40).unwrap();
    check("a file without end").await;
    std::fs::write(&file, [0xff, 0xfe]).unwrap();
    check("no text").await;
    std::fs::write(&file, "a = ".to_owned() + &"[".repeat(60_000)).unwrap();
    check("no bottom").await;
}

#[tokio::test]
async fn a_file_behind_a_link_is_looked_at_when_somebody_asks() {
    let story = Story::begin().await;
    let workspace = story.supervisor.workspace();
    std::fs::create_dir(workspace.join("app")).unwrap();
    std::fs::write(workspace.join("app/real.toml"), "").unwrap();
    symlink("app/real.toml", workspace.join("nacre.toml")).unwrap();
    assert_eq!(story.supervisor.client().processes().await.unwrap().processes, []);
    std::fs::write(workspace.join("app/real.toml"), "[process.x]\ncommand = \"sleep 9\"\n")
        .unwrap();
    assert_eq!(story.now("x").await.name, "x");
}

#[tokio::test]
async fn a_follower_gets_what_it_has_not_seen_and_then_what_comes() {
    let mut story = Story::with(
        "[process.a]\ncommand = \"echo one; echo two; cat fifo; echo -n end\"\nrestart = \"never\"\n",
    )
    .await;
    let fifo = story.supervisor.workspace().join("fifo");
    let first = story.log_until("a", 0, "two").await;
    let texts: Vec<_> = first.iter().map(|line| line.text.as_str()).collect();
    assert!(texts[0].starts_with("started as process"), "{texts:?}");
    let seen = first.iter().find(|line| line.text == "one").unwrap().seq;

    // No fifo: cat failed; the next run finds it.
    story.until_state("a", ProcessState::Stopped).await;
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &fifo,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RWXU,
        0,
    )
    .unwrap();
    let client = story.supervisor.client();
    let mut follower = client.process_log("a", seen, true).await.unwrap();
    let replayed = follower.next().await.unwrap().unwrap();
    assert_eq!((replayed.seq, replayed.text.as_str()), (seen + 1, "two"));
    client.start_process("a").await.unwrap();
    tokio::task::spawn_blocking(move || std::fs::write(fifo, "live\n").unwrap()).await.unwrap();
    let mut last = replayed.seq;
    let mut texts = Vec::new();
    while texts.last().is_none_or(|text| text != "ended with exit code 0") || texts.len() < 4 {
        let line = tokio::time::timeout(PATIENCE, follower.next()).await.unwrap().unwrap().unwrap();
        assert_eq!(line.seq, last + 1);
        last = line.seq;
        texts.push(line.text);
        if texts.iter().any(|text| text == "live") && texts.last().unwrap().starts_with("ended") {
            break;
        }
    }
    assert!(
        texts.ends_with(&["live".into(), "end".into(), "ended with exit code 0".into()]),
        "{texts:?}"
    );

    let (_, text) = story
        .supervisor
        .call("GET", &format!("/supervisor/processes/a/log?format=text&after={}", last - 2), "")
        .await;
    assert_eq!(text, "end\nended with exit code 0\n");
}

#[tokio::test]
async fn a_stop_ends_even_those_who_do_not_listen_and_is_final() {
    let mut story = Story::with(
        "[process.deaf]\ncommand = \"trap '' TERM; sh -c 'echo child $$; while :; do sleep 1; done' & wait; wait\"\n",
    )
    .await;
    let before = story.ready("deaf").await;
    let log = story.log_until("deaf", 0, "child").await;
    let child: i32 = log.last().unwrap().text.split(' ').nth(1).unwrap().parse().unwrap();
    let client = story.supervisor.client();
    let stopped = client.stop_process("deaf").await.unwrap();
    assert_eq!((stopped.state, stopped.pid), (ProcessState::Stopped, None));
    gone(before.pid.unwrap()).await;
    gone(child).await;
    story.configure("[process.deaf]\ncommand = \"exec sleep 5\"\n");
    assert_eq!(story.now("deaf").await.state, ProcessState::Stopped);
    client.start_process("deaf").await.unwrap();
    let again = story.until_state("deaf", ProcessState::Ready).await;
    assert_eq!(again.command, "exec sleep 5");
    let restarted = client.restart_process("deaf").await.unwrap();
    assert_eq!(restarted.state, ProcessState::Stopping);
    story.ready("deaf").await;
    let missing = client.stop_process("nobody").await.unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NotFound);
}

#[tokio::test]
async fn one_runs_where_and_with_what_its_file_says() {
    let story = Story::begin().await;
    std::fs::create_dir(story.supervisor.workspace().join("sub")).unwrap();
    story.configure(
        "[process.a]\ncommand = [\"sh\", \"-c\", \"echo $PWD $PORT $COLOUR; exec sleep 1000\"]\n\
         directory = \"sub\"\nport = 1\n[process.a.environment]\nCOLOUR = \"deep blue\"\n",
    );
    let mut story = story;
    let starting = story.until_state("a", ProcessState::Starting).await;
    assert_eq!(starting.reason.as_deref(), Some("nothing listens on port 1 yet"));
    let log = story.log_until("a", 0, "sub").await;
    let expected = format!("{}/sub 1 deep blue", story.supervisor.workspace().display());
    assert_eq!(log.last().unwrap().text, expected);
}

#[tokio::test]
async fn what_cannot_be_started_says_why() {
    let mut story = Story::with(
        "[process.a]\ncommand = [\"no-such-program\"]\n\
         [process.b]\ncommand = \"true\"\ndirectory = \"nowhere\"\nrestart = \"never\"\n",
    )
    .await;
    let ends = [("a", ProcessState::BackingOff), ("b", ProcessState::Failed)];
    let [a, b] = story.all(ends).await;
    assert!(a.reason.as_deref().unwrap().contains("no-such-program"), "{a:?}");
    assert!(b.reason.as_deref().unwrap().contains("nowhere"), "{b:?}");
}

#[tokio::test]
async fn a_supervisor_that_stops_takes_them_along() {
    let mut story = Story::with("[process.a]\ncommand = \"sleep 1000\"\n").await;
    let a = story.ready("a").await;
    story.supervisor.terminate();
    assert!(story.supervisor.wait().await.success());
    gone(a.pid.unwrap()).await;
}

#[tokio::test]
async fn a_start_that_takes_too_long_is_given_up_and_says_why() {
    let port = free_port();
    let late = |rest: &str| {
        format!(
            "[runtime]\ncommand = \"echo up; exec sleep 1000\"\nport = {port}\nstart_timeout = 1\n{rest}"
        )
    };
    let mut story = Story::with(&late("")).await;
    let first = story.until_state("runtime", ProcessState::BackingOff).await;
    let why = format!("was not ready within 1 s: nothing listens on port {port} yet");
    assert_eq!((first.reason.as_deref(), first.ends_in_a_row), (Some(why.as_str()), 1));
    let again = story.until_state("runtime", ProcessState::Starting).await;
    assert_eq!((again.run, again.restarts), (2, 1));
    story.log_until("runtime", 0, "was not ready within 1 s").await;

    story.configure(&late("restart = \"never\"\n"));
    let failed = story.until_state("runtime", ProcessState::Failed).await;
    assert_eq!(failed.reason.as_deref(), Some(why.as_str()));
    // One that somebody starts has nothing behind it.
    let asked = story.supervisor.client().start_process("runtime").await.unwrap();
    assert_eq!((asked.state, asked.ends_in_a_row), (ProcessState::Starting, 0));
}

/// Takes connections on a port, in a session of its own.
fn escaped(port: u16) -> String {
    let serve = format!(
        "import os, socket, time; s = socket.create_server((\\\"127.0.0.1\\\", {port})); \
         open(\\\"child\\\", \\\"w\\\").write(str(os.getpid())); time.sleep(1000)"
    );
    format!("setsid python3 -c '{serve}' >/dev/null 2>&1 & exec sleep 1000")
}

#[tokio::test]
async fn what_an_earlier_run_left_on_the_port_is_ended_before_a_start() {
    let port = free_port();
    let mut story =
        Story::with(&format!("[runtime]\ncommand = \"{}\"\nport = {port}\n", escaped(port))).await;
    let first = story.ready("runtime").await;
    let place = story.supervisor.workspace().join("child");
    let child = || -> i32 { std::fs::read_to_string(&place).unwrap().parse().unwrap() };
    story.log_until("runtime", 0, "started as process").await;
    while std::fs::read_to_string(&place).map_or(0, |text| text.len()) == 0 {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    let left = child();
    kill(first.pid.unwrap());
    let second = story.ready("runtime").await;
    assert_eq!(second.run, 2);
    gone(left).await;
    let said = format!("ends process {left} (python3), which an earlier run left on port {port}");
    story.log_until("runtime", 0, &said).await;
    story.supervisor.client().stop_process("runtime").await.unwrap();
    kill(child());
}

#[tokio::test]
async fn a_port_that_somebody_else_has_is_told_with_who_has_it() {
    let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = other.local_addr().unwrap().port();
    let mut story =
        Story::with(&format!("[runtime]\ncommand = \"sleep 0.1; exit 1\"\nport = {port}\n")).await;
    let down = story.until_state("runtime", ProcessState::BackingOff).await;
    let me = std::process::id();
    let why = down.reason.unwrap();
    assert!(why.contains(&format!("; port {port} is held by process {me} (")), "{why}");
    assert!(std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
}
