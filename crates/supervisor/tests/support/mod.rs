//! A supervisor of one's own per test, in a process of its own, and a small client for it.

#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "each test binary uses a part of it"
)]

pub mod desktop;
pub mod story;

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use nacre_wire::exec::{ClientControl, ExecRequest, Exit, ServerControl, Stream, TtySize};
use nacre_wire::status::SupervisorStats;
use serde::de::DeserializeOwned;
use tempfile::TempDir;
use tokio::net::UnixStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

/// No wait in a test should come near this; it only turns a hang into a failure.
pub const PATIENCE: Duration = Duration::from_secs(60);

pub struct Supervisor {
    process: Child,
    folder: TempDir,
}

impl Supervisor {
    pub async fn start() -> Self {
        Self::start_with(|_| {}).await
    }

    /// `prepare` may change how the process is started.
    pub async fn start_with(prepare: impl FnOnce(&mut Command)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let door = folder.path().join("door");
        std::fs::create_dir(folder.path().join("workspace")).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_nacre-guest"));
        command.arg("serve").arg("--door").arg(&door);
        command.arg("--workspace").arg(folder.path().join("workspace")).stdin(Stdio::null());
        prepare(&mut command);
        let process = command.spawn().unwrap();
        let supervisor = Self { process, folder };
        // Listening is the only event a process without a pipe to us has to offer.
        while UnixStream::connect(&door).await.is_err() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        supervisor
    }

    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    pub fn terminate(&self) {
        let pid = rustix::process::Pid::from_child(&self.process);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    }

    pub async fn wait(&mut self) -> ExitStatus {
        loop {
            if let Some(status) = self.process.try_wait().unwrap() {
                return status;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    pub fn workspace(&self) -> PathBuf {
        self.folder.path().join("workspace").canonicalize().unwrap()
    }

    pub async fn connect(&self) -> UnixStream {
        UnixStream::connect(self.folder.path().join("door")).await.unwrap()
    }

    pub fn client(&self) -> nacre_wire::client::Client {
        nacre_wire::client::Client::unix(self.folder.path().join("door"))
    }

    pub async fn call(
        &self,
        method: &str,
        path: &str,
        body: impl Into<Bytes>,
    ) -> (StatusCode, Bytes) {
        let response = self.request(method, path, body.into()).await;
        let status = response.status();
        (status, response.into_body().collect().await.unwrap().to_bytes())
    }

    pub async fn request(
        &self,
        method: &str,
        path: &str,
        body: Bytes,
    ) -> Response<hyper::body::Incoming> {
        let request = Request::builder().method(method).uri(path).header("host", "door");
        self.send(request.body(Full::new(body)).unwrap()).await
    }

    pub async fn send(&self, request: Request<Full<Bytes>>) -> Response<hyper::body::Incoming> {
        let io = TokioIo::new(self.connect().await);
        let (mut sender, connection) = hyper::client::conn::http1::handshake(io).await.unwrap();
        tokio::spawn(connection);
        sender.send_request(request).await.unwrap()
    }

    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> T {
        let (status, body) = self.call("GET", path, "").await;
        assert!(status.is_success(), "{path}: {status} {body:?}");
        serde_json::from_slice(&body).unwrap()
    }

    pub async fn stats(&self) -> SupervisorStats {
        self.get("/supervisor/stats").await
    }

    /// Waits until no more descriptors are open than this: closing is the supervisor's last act
    /// for a client, and nobody is told of it.
    pub async fn open_files_back_to(&self, expected: u64) {
        let waited = tokio::time::timeout(PATIENCE, async {
            while self.stats().await.open_fds > expected {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        });
        if waited.await.is_err() {
            panic!("{} files are open instead of {expected}", self.stats().await.open_fds);
        }
    }

    pub async fn socket(&self, path: &str) -> Socket {
        let stream = self.connect().await;
        let (socket, _) =
            tokio_tungstenite::client_async(format!("ws://door{path}"), stream).await.unwrap();
        Socket(socket)
    }

    pub async fn attach(&self, id: &str) -> Socket {
        self.socket(&format!("/supervisor/commands/{id}/attach")).await
    }

    /// Starts a command and returns once it runs.
    pub async fn exec(&self, request: ExecRequest) -> Running {
        let mut socket = self.socket("/supervisor/exec").await;
        socket.control(&ClientControl::Start(Box::new(request))).await;
        match socket.next().await {
            Some(Said::Control(ServerControl::Started { id, pid })) => Running { socket, id, pid },
            other => panic!("expected a start: {other:?}"),
        }
    }

    pub async fn sh(&self, script: &str) -> Running {
        self.exec(sh(script)).await
    }

    /// Starts what cannot be started and returns why.
    pub async fn refused(&self, request: ExecRequest) -> nacre_wire::ApiError {
        let mut socket = self.socket("/supervisor/exec").await;
        socket.control(&ClientControl::Start(Box::new(request))).await;
        match socket.next().await {
            Some(Said::Control(ServerControl::Error(error))) => error,
            other => panic!("expected an error: {other:?}"),
        }
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

pub fn sh(script: &str) -> ExecRequest {
    ExecRequest { shell: Some(script.into()), ..ExecRequest::default() }
}

pub fn argv(args: &[&str]) -> ExecRequest {
    ExecRequest { argv: args.iter().map(|arg| (*arg).into()).collect(), ..ExecRequest::default() }
}

pub fn terminal(script: &str) -> ExecRequest {
    ExecRequest { tty: Some(TtySize { cols: 80, rows: 24 }), stdin: true, ..sh(script) }
}

pub struct Socket(pub WebSocketStream<UnixStream>);

/// One message from the supervisor.
#[derive(Debug, PartialEq, Eq)]
pub enum Said {
    Output(Stream, Vec<u8>),
    Control(ServerControl),
}

/// All that was said until the exit.
#[derive(Debug, Default)]
pub struct Heard {
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    pub gaps: u64,
    pub exit: Option<Exit>,
}

impl Heard {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    pub fn code(&self) -> Option<i32> {
        self.exit.as_ref().unwrap().code
    }
}

impl Socket {
    pub async fn control(&mut self, control: &ClientControl) {
        let text = serde_json::to_string(control).unwrap();
        self.0.send(Message::Text(text.into())).await.unwrap();
    }

    pub async fn signal(&mut self, signal: &str) {
        self.control(&ClientControl::Signal { signal: signal.into() }).await;
    }

    pub async fn input(&mut self, bytes: impl Into<Bytes>) {
        self.0.send(Message::Binary(bytes.into())).await.unwrap();
    }

    /// `None` when the supervisor closed.
    pub async fn next(&mut self) -> Option<Said> {
        loop {
            match tokio::time::timeout(PATIENCE, self.0.next()).await.expect("a message in time") {
                Some(Ok(Message::Binary(bytes))) => {
                    let stream = Stream::from_byte(bytes[0]).unwrap();
                    return Some(Said::Output(stream, bytes[1..].to_vec()));
                }
                Some(Ok(Message::Text(text))) => {
                    return Some(Said::Control(serde_json::from_str(&text).unwrap()));
                }
                Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => {}
                Some(Ok(Message::Close(_)) | Err(_)) | None => return None,
            }
        }
    }

    /// Reads until the output so far contains `needle`.
    pub async fn until(&mut self, needle: &str) -> String {
        let mut seen = Vec::new();
        loop {
            match self.next().await {
                Some(Said::Output(_, bytes)) => seen.extend_from_slice(&bytes),
                Some(Said::Control(ServerControl::Started { .. } | ServerControl::Gap { .. })) => {}
                other => {
                    panic!("{other:?} before {needle:?} in {:?}", String::from_utf8_lossy(&seen))
                }
            }
            let text = String::from_utf8_lossy(&seen);
            if text.contains(needle) {
                return text.into_owned();
            }
        }
    }

    pub async fn finish(&mut self) -> Heard {
        let mut heard = Heard::default();
        loop {
            match self.next().await {
                Some(Said::Output(Stream::Stdout, bytes)) => heard.stdout.extend_from_slice(&bytes),
                Some(Said::Output(Stream::Stderr, bytes)) => heard.stderr.extend_from_slice(&bytes),
                Some(Said::Control(ServerControl::Gap { bytes })) => heard.gaps += bytes,
                Some(Said::Control(ServerControl::Started { .. })) => {}
                Some(Said::Control(ServerControl::Exit(exit))) => {
                    heard.exit = Some(exit);
                    assert_eq!(self.next().await, None, "the exit is the last message");
                    return heard;
                }
                Some(Said::Control(ServerControl::Error(error))) => panic!("{error:?}"),
                None => panic!("closed without an exit"),
            }
        }
    }
}

pub struct Running {
    pub socket: Socket,
    pub id: String,
    pub pid: i32,
}

impl Running {
    pub async fn finish(mut self) -> Heard {
        self.socket.finish().await
    }
}

/// Waits until a process is gone (or only a name without a parent that waits for it).
pub async fn gone(pid: i32) {
    let alive = || Path::new(&format!("/proc/{pid}")).exists();
    let waited = tokio::time::timeout(PATIENCE, async {
        while alive() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    waited.await.unwrap_or_else(|_| panic!("process {pid} lives on"));
}

pub fn limit_open_files(command: &mut Command, limit: u64) {
    // SAFETY: setrlimit is a plain system call.
    unsafe {
        command.pre_exec(move || {
            let limit = libc::rlimit { rlim_cur: limit, rlim_max: limit };
            match libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            }
        });
    }
}
