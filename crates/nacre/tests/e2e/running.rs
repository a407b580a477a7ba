//! Commands: their output, their codes, their signals.

use rustix::process::Signal;

use crate::computer::{Running, TestComputer};

#[test]
fn the_exit_code_is_the_commands() {
    let pc = TestComputer::start();
    let code = |args: &[&str]| pc.run(args).status.code();
    assert_eq!(code(&["exec", "--", "true"]), Some(0));
    assert_eq!(code(&["exec", "--", "sh", "-c", "exit 7"]), Some(7));
    assert_eq!(code(&["exec", "--", "sh", "-c", "kill -9 $$"]), Some(137));
    assert_eq!(code(&["exec", "--timeout", "100ms", "--", "sleep", "60"]), Some(124));
    assert_eq!(code(&["exec", "--", "no-such-program"]), Some(125));
    assert_eq!(code(&["exec", "-s", "nowhere", "--", "true"]), Some(125));
}

#[test]
fn both_streams_arrive_apart_and_whole() {
    let pc = TestComputer::start();
    let output = pc.run(&["exec", "--", "sh", "-c", "echo out; echo err >&2"]);
    assert_eq!((output.stdout, output.stderr), (b"out\n".to_vec(), b"err\n".to_vec()));

    let input: Vec<u8> = (0..20_000_000u32).map(|n| (n % 251) as u8).collect();
    let output = pc.pipe(&["exec", "--", "cat"], input.clone());
    assert!(output.stdout == input, "{} of {} bytes", output.stdout.len(), input.len());
}

#[test]
fn settings_reach_the_command() {
    let pc = TestComputer::start();
    let args = ["exec", "--env", "A=b c", "--cwd", "/tmp", "--", "sh", "-c", "echo \"$A\"; pwd"];
    assert_eq!(pc.ok(&args), "b c\n/tmp\n");
    assert_eq!(pc.exec("pwd; id -u"), "/workspace\n1000\n");
}

#[test]
fn a_reader_that_leaves_is_no_error() {
    let pc = TestComputer::start();
    let mut command = pc.command(&["exec", "--", "yes"]);
    command.stderr(std::process::Stdio::piped());
    let (running, line) = Running::start(command);
    assert_eq!(line, "y");
    assert_eq!(running.close_and_wait(), (Some(141), String::new()));
}

#[test]
fn signals_are_the_commands() {
    let pc = TestComputer::start();
    let start = |script: &str| {
        let (running, line) = Running::start(pc.command(&["exec", "--", "sh", "-c", script]));
        assert_eq!(line, "ready");
        running
    };
    let mut trapped =
        start("trap 'echo trapped; exit 9' INT; echo ready; while :; do sleep 0.02; done");
    trapped.signal(Signal::INT);
    assert_eq!(trapped.line(), "trapped");
    assert_eq!(trapped.code(), Some(9));

    let stubborn = start("trap '' INT; echo ready; while :; do sleep 0.02; done");
    stubborn.signal(Signal::INT);
    // Two pending signals of a kind are one, so the second waits until the first was taken.
    std::thread::sleep(std::time::Duration::from_millis(200));
    stubborn.signal(Signal::INT);
    assert_eq!(stubborn.code(), Some(137));

    let plain = start("echo ready; sleep 60");
    plain.signal(Signal::TERM);
    assert_eq!(plain.code(), Some(143));
}

#[test]
fn detached_commands_run_on_and_can_be_followed() {
    let pc = TestComputer::start();
    let id = pc.ok(&["exec", "--detach", "--", "sh", "-c", "echo one; exec sleep 60"]);
    let id = id.trim();
    let (mut attached, line) = Running::start(pc.command(&["attach", id]));
    assert_eq!(line, "one");
    assert_eq!(pc.ok(&["logs", id]), "one\n");
    let listed = pc.json(&["ps", "--json"]);
    assert_eq!(listed[0]["id"], id);
    pc.ok(&["kill", id]);
    assert_eq!(attached.line(), "");
    assert_eq!(attached.code(), Some(143));
    assert_eq!(pc.json(&["ps", "--json"]), serde_json::json!([]));
}
