//! A computer of one's own for each test.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};

/// A gateway on a free port with its own data, stopped with its sandboxes at the end.
pub(crate) struct TestComputer {
    data: tempfile::TempDir,
    /// There is nothing here to stop.
    empty: bool,
}

impl TestComputer {
    pub(crate) fn start() -> Self {
        let computer = Self::switched_off();
        computer.up();
        computer
    }

    pub(crate) fn switched_off() -> Self {
        Self { data: tempfile::tempdir().unwrap(), empty: false }
    }

    /// A machine on which nothing is ever started.
    pub(crate) fn elsewhere() -> Self {
        Self { data: tempfile::tempdir().unwrap(), empty: true }
    }

    pub(crate) fn up(&self) -> String {
        self.ok(&["up", "--detach", "--listen", "127.0.0.1:0"])
    }

    pub(crate) fn data(&self) -> &Path {
        self.data.path()
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nacre"));
        command.args(args).env("NACRE_DATA", self.data.path()).stdin(Stdio::null());
        // Most tests begin with an empty workspace.
        command.env("NACRE_DESKTOP_SEED", "false");
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// Its standard output; anything but success fails the test.
    pub(crate) fn ok(&self, args: &[&str]) -> String {
        let output = self.run(args);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "nacre {args:?}: {}: {stderr}", output.status);
        String::from_utf8(output.stdout).unwrap()
    }

    pub(crate) fn exec(&self, script: &str) -> String {
        self.ok(&["exec", "--", "sh", "-c", script])
    }

    pub(crate) fn pipe(&self, args: &[&str], input: Vec<u8>) -> Output {
        let mut child = self
            .command(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let writer = std::thread::spawn(move || {
            let _ = stdin.write_all(&input);
        });
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap();
        output
    }

    pub(crate) fn json(&self, args: &[&str]) -> serde_json::Value {
        serde_json::from_str(&self.ok(args)).unwrap()
    }

    pub(crate) fn gateway_pid(&self) -> Pid {
        let pid = self.json(&["status", "--json"])["pid"].as_i64().unwrap();
        Pid::from_raw(i32::try_from(pid).unwrap()).unwrap()
    }

    /// Signals the gateway and waits until it is gone.
    pub(crate) fn signal_gateway(&self, signal: Signal) {
        let pid = self.gateway_pid();
        kill_process(pid, signal).unwrap();
        let lock = std::fs::File::open(self.data().join("nacre.lock")).unwrap();
        rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockShared).unwrap();
    }
}

impl Drop for TestComputer {
    fn drop(&mut self) {
        if self.empty {
            return;
        }
        // So that the sandboxes of a gateway that a test killed are stopped too.
        let _ = self.run(&["up", "--detach", "--listen", "127.0.0.1:0"]);
        let _ = self.run(&["down"]);
    }
}

/// A command under way.
pub(crate) struct Running {
    child: Child,
    stdout: BufReader<ChildStdout>,
}

impl Running {
    /// Returns when the command has printed its first line.
    pub(crate) fn start(mut command: Command) -> (Self, String) {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let mut running = Self { child, stdout };
        let line = running.line();
        (running, line)
    }

    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    pub(crate) fn code(mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }
}

impl Running {
    /// Closes the reading end first; returns the code and what was complained about.
    pub(crate) fn close_and_wait(self) -> (Option<i32>, String) {
        let Self { mut child, stdout } = self;
        drop(stdout);
        let mut complaint = String::new();
        if let Some(mut stderr) = child.stderr.take() {
            std::io::Read::read_to_string(&mut stderr, &mut complaint).unwrap();
        }
        (child.wait().unwrap().code(), complaint)
    }
}
