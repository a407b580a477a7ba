//! A command in a sandbox, wired to this process: its input, its output, its signals.
//!
//! Output is written and input is read by threads of their own, so that a full pipe or a silent
//! terminal never holds up anything else; signals travel on a separate connection, so that they
//! arrive even when the command reads no input.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bytes::Bytes;
use nacre_wire::client::{Client, ExecEvent, ExecInput, ExecSession};
use nacre_wire::exec::Exit;
use rustix::event::{PollFd, PollFlags, poll};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{Notify, mpsc};

use crate::failure::{Failure, Result};
use crate::terminal::{self, RawMode};

/// Two interrupts this close together mean it.
const INSIST: Duration = Duration::from_secs(2);
const CHUNK: usize = 64 * 1024;
/// Ctrl-], alone in what was typed, leaves a terminal without ending it.
const LEAVE_KEY: &[u8] = &[0x1d];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Input {
    Nothing,
    /// Bytes as they are.
    Stream,
    /// Key presses, with the terminal in raw mode and its size followed.
    Terminal,
}

/// What Ctrl-C does when it is not a key press for the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnInterrupt {
    Forward,
    Leave,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ended {
    Exit(Exit),
    /// Nobody reads our output any more.
    BrokenPipe,
    /// The user left; the command runs on.
    Left,
}

pub(crate) async fn drive(
    client: &Client,
    session: ExecSession,
    input: Input,
    on_interrupt: OnInterrupt,
) -> Result<Ended> {
    let raw = match input {
        Input::Terminal => RawMode::enter()?,
        Input::Nothing | Input::Stream => None,
    };
    let leave = Arc::new(Notify::new());
    let signals = Signals::install()?;
    let id = session.id.clone();
    let (to_command, mut from_command) = session.split();
    let tasks = [
        tokio::spawn(signals.forward(client.clone(), id, on_interrupt, leave.clone())),
        tokio::spawn(feed(to_command, input, leave.clone())),
    ];
    let (stdout, stderr) = (Writer::start(std::io::stdout())?, Writer::start(std::io::stderr())?);
    let ended = loop {
        let event = tokio::select! {
            event = from_command.next() => event?,
            () = leave.notified() => break Ended::Left,
        };
        let written = match event {
            ExecEvent::Stdout(bytes) => stdout.write(bytes).await,
            ExecEvent::Stderr(bytes) => stderr.write(bytes).await,
            ExecEvent::Gap(bytes) => {
                let note = format!("\n[nacre: {bytes} bytes of output were skipped]\n");
                stderr.write(Bytes::from(note)).await
            }
            ExecEvent::Exit(exit) => break Ended::Exit(exit),
        };
        if !written {
            break Ended::BrokenPipe;
        }
    };
    for task in tasks {
        task.abort();
    }
    let flushed = [stdout.finish().await, stderr.finish().await];
    drop(raw);
    match ended {
        Ended::Exit(_) if flushed.contains(&Flushed::BrokenPipe) => Ok(Ended::BrokenPipe),
        ended => Ok(ended),
    }
}

/// Sends what is typed or piped, then that there is no more, and the terminal's size when it
/// changes. The connection stays open for the command's output.
async fn feed(mut command: ExecInput, input: Input, leave: Arc<Notify>) {
    let mut resized = match input {
        Input::Terminal => signal(SignalKind::window_change()).ok(),
        Input::Nothing | Input::Stream => None,
    };
    // The size was asked for before anybody listened for changes of it.
    if resized.is_some() && command.resize(terminal::size()).await.is_err() {
        return std::future::pending().await;
    }
    let mut typed = match input {
        Input::Nothing => None,
        Input::Stream | Input::Terminal => Some(read_stdin()),
    };
    loop {
        let sent = tokio::select! {
            chunk = next_chunk(&mut typed) => match chunk {
                Some(chunk) if input == Input::Terminal && chunk == LEAVE_KEY => {
                    leave.notify_one();
                    Ok(())
                }
                Some(chunk) => command.write(chunk).await,
                None => {
                    typed = None;
                    command.eof().await
                }
            },
            () = next_signal(&mut resized) => command.resize(terminal::size()).await,
        };
        // The command may have ended, or closed its input; its output tells the rest.
        if sent.is_err() {
            return std::future::pending().await;
        }
    }
}

async fn next_chunk(typed: &mut Option<mpsc::Receiver<Bytes>>) -> Option<Bytes> {
    match typed {
        Some(typed) => typed.recv().await,
        None => std::future::pending().await,
    }
}

async fn next_signal(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => {
            signal.recv().await;
        }
        None => std::future::pending().await,
    }
}

/// The thread ends with the process: a read that waits for a key cannot be called off.
fn read_stdin() -> mpsc::Receiver<Bytes> {
    let (sender, receiver) = mpsc::channel(4);
    std::thread::spawn(move || {
        let mut stdin = std::io::stdin().lock();
        let mut buffer = vec![0; CHUNK];
        loop {
            match stdin.read(&mut buffer) {
                Ok(0) => return,
                Ok(count) => {
                    if sender.blocking_send(Bytes::copy_from_slice(&buffer[..count])).is_err() {
                        return;
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
    });
    receiver
}

struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
    quit: Signal,
}

impl Signals {
    fn install() -> Result<Self> {
        let listen =
            |kind| signal(kind).map_err(|error| Failure::io("signals cannot be handled", &error));
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            hang_up: listen(SignalKind::hangup())?,
            quit: listen(SignalKind::quit())?,
        })
    }

    async fn forward(
        mut self,
        client: Client,
        id: String,
        on_interrupt: OnInterrupt,
        leave: Arc<Notify>,
    ) {
        let mut last_interrupt: Option<Instant> = None;
        loop {
            let name = tokio::select! {
                _ = self.interrupt.recv() => {
                    let insists = last_interrupt.is_some_and(|last| last.elapsed() < INSIST);
                    last_interrupt = Some(Instant::now());
                    if insists { "KILL" } else { "INT" }
                }
                _ = self.terminate.recv() => "TERM",
                _ = self.hang_up.recv() => "HUP",
                _ = self.quit.recv() => "QUIT",
            };
            match on_interrupt {
                OnInterrupt::Leave => leave.notify_one(),
                // One that has just ended cannot be signalled; its exit is on the way.
                OnInterrupt::Forward => drop(client.signal(&id, name).await),
            }
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flushed {
    All,
    BrokenPipe,
}

/// A thread that writes to one of our own streams, without the buffering that would hold back a
/// prompt or split what a program wrote at once.
struct Writer {
    sender: mpsc::Sender<Bytes>,
    thread: JoinHandle<Flushed>,
}

impl Writer {
    fn start(stream: impl AsFd) -> Result<Self> {
        let fd = stream.as_fd().try_clone_to_owned();
        let mut file = File::from(fd.map_err(|error| Failure::io("standard output", &error))?);
        let (sender, mut receiver) = mpsc::channel::<Bytes>(8);
        let thread = std::thread::spawn(move || {
            while let Some(bytes) = receiver.blocking_recv() {
                if write_all(&mut file, &bytes).is_err() {
                    return Flushed::BrokenPipe;
                }
            }
            Flushed::All
        });
        Ok(Self { sender, thread })
    }

    /// `false` when nobody reads any more.
    async fn write(&self, bytes: Bytes) -> bool {
        self.sender.send(bytes).await.is_ok()
    }

    async fn finish(self) -> Flushed {
        drop(self.sender);
        let joined = tokio::task::spawn_blocking(move || self.thread.join()).await;
        joined.ok().and_then(|thread| thread.ok()).unwrap_or(Flushed::BrokenPipe)
    }
}

/// As `Write::write_all`, also when somebody made the terminal non-blocking.
fn write_all(file: &mut File, mut bytes: &[u8]) -> std::io::Result<()> {
    while !bytes.is_empty() {
        match file.write(bytes) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                poll(&mut [PollFd::new(file, PollFlags::OUT)], None)?;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
