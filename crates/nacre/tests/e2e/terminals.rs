//! What a person in front of a terminal sees and does.

use crate::computer::TestComputer;
use crate::pty::Pty;

const CTRL_C: &str = "\x03";

#[test]
fn a_shell_prompts_answers_and_leaves_the_terminal_as_it_was() {
    let pc = TestComputer::start();
    let mut terminal = Pty::open(100, 40);
    let before = terminal.settings();
    let mut shell = terminal.start(pc.command(&["shell"]));
    terminal.until("$ ");
    assert!(!terminal.settings().echo, "the sandbox's terminal echoes, not this one");
    terminal.type_in("stty size\r");
    terminal.until("40 100\r\n");
    terminal.type_in("echo $((6 * 7)); exit 3\r");
    terminal.until("42\r\n");
    assert_eq!(shell.wait().unwrap().code(), Some(3));
    assert_eq!(terminal.settings(), before);
}

#[test]
fn a_terminal_that_grows_tells_the_command() {
    let pc = TestComputer::start();
    let mut terminal = Pty::open(80, 24);
    let before = terminal.settings();
    let script = "trap 'stty size' WINCH; echo ready; while :; do sleep 0.02; done";
    let mut exec = terminal.start(pc.command(&["exec", "-t", "--", "sh", "-c", script]));
    terminal.until("ready\r\n");
    for (cols, rows) in [(120, 50), (40, 10)] {
        terminal.resize(cols, rows);
        terminal.until(&format!("{rows} {cols}\r\n"));
    }
    // A key press like any other: the sandbox's terminal makes the signal.
    terminal.type_in(CTRL_C);
    assert_eq!(exec.wait().unwrap().code(), Some(130));
    assert_eq!(terminal.settings(), before);
}

#[test]
fn leaving_a_shell_lets_it_run_on() {
    let pc = TestComputer::start();
    let mut terminal = Pty::open(80, 24);
    let before = terminal.settings();
    let mut shell = terminal.start(pc.command(&["shell"]));
    terminal.until("$ ");
    terminal.type_in("\x1d");
    assert_eq!(shell.wait().unwrap().code(), Some(0));
    assert_eq!(terminal.settings(), before);
    let commands = pc.json(&["ps", "--json"]);
    assert_eq!(commands[0]["label"], "shell");
    assert!(commands[0]["exit"].is_null(), "{commands}");
}

#[test]
fn ctrl_c_stops_the_gateway_with_its_sandboxes() {
    let pc = TestComputer::switched_off();
    let mut terminal = Pty::open(80, 24);
    let mut up = terminal.start(pc.command(&["up", "--listen", "127.0.0.1:0"]));
    terminal.until("/login?token=");
    let id = pc.ok(&["exec", "--detach", "--", "sleep", "600"]);
    terminal.type_in(CTRL_C);
    assert_eq!(up.wait().unwrap().code(), Some(0));
    assert_eq!(pc.run(&["status"]).status.code(), Some(3));
    pc.up();
    let commands = pc.ok(&["ps", "--all", "--json"]);
    assert!(!commands.contains(id.trim()), "{commands}");
}
