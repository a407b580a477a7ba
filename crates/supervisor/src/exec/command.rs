//! One command: what is known of it, and what can be done to it while it runs.
//!
//! ```text
//! running ──exit──▶ draining ──pipes empty──▶ finished ──forgotten──▶ gone
//!    └─time-out, cancel─▶ ending (TERM, grace, KILL) ──▶ draining
//! ```
//! [`Command::live`] is the task that walks this path; everybody else reads or asks.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures_util::future::join_all;
use nacre_wire::exec::{
    CommandInfo, ExecRequest, Exit, Stream, TtySize, signal_name, signal_number,
};
use nacre_wire::{ApiError, ErrorKind};
use tokio::io::unix::AsyncFd;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::input::Input;
use super::oom::OomKills;
use super::output::Output;
use super::program::{Program, check_size};
use super::pump::{Drained, Pump, watched};
use super::reaper::{Ended, Reaper};
use super::session::Session;
use super::spawn::{Spawned, Streams, winsize};

/// Between asking a command to end and ending it.
const GRACE: Duration = Duration::from_secs(2);
/// How long the exit waits for processes that a command left behind with its pipes open. They
/// may write on: that is kept for who attaches later, but nobody waits for it.
const STRAGGLERS: Duration = Duration::from_millis(200);
/// How often an ending session is looked at.
const TICK: Duration = Duration::from_millis(10);

pub(super) struct Command {
    id: String,
    line: String,
    label: Option<String>,
    cwd: std::path::PathBuf,
    user: String,
    detached: bool,
    started_at: u64,
    ended_at: AtomicU64,
    session: Session,
    reaper: Arc<Reaper>,
    terminal: Option<Terminal>,
    pub(super) output: Arc<Output>,
    pub(super) input: Input,
    pub(super) clients: AtomicUsize,
    /// Asks [`Command::live`] to end it.
    pub(super) end: CancellationToken,
    pub(super) forgotten: CancellationToken,
}

struct Terminal {
    /// Absent once nothing is left that could use it.
    master: Mutex<Option<Arc<AsyncFd<OwnedFd>>>>,
    size: Mutex<TtySize>,
}

/// What [`Command::live`] needs, and nobody else has.
pub(super) struct Life {
    ended: oneshot::Receiver<Ended>,
    pumps: Vec<Pump>,
    time_limit: Option<Duration>,
    oom_kills: OomKills,
    oom_kills_before: u64,
}

impl Command {
    pub(super) fn new(
        id: String,
        request: &ExecRequest,
        program: Program,
        spawned: Spawned,
        reaper: &Arc<Reaper>,
        oom_kills: OomKills,
    ) -> io::Result<(Arc<Self>, Life)> {
        let output = Output::new(program.tty);
        let pump = |source, stream| Pump { source, stream, output: Arc::clone(&output) };
        let (input, terminal, pumps) = match spawned.streams {
            Streams::Pipes { stdin, stdout, stderr } => {
                let input = stdin.map(watched).transpose()?.map_or(Input::none(), Input::pipe);
                let stdout = pump(watched(stdout)?, Stream::Stdout);
                let stderr = pump(watched(stderr)?, Stream::Stderr);
                (input, None, vec![stdout, stderr])
            }
            Streams::Terminal { master } => {
                let master = watched(master)?;
                let size = Mutex::new(program.tty.unwrap_or(TtySize { cols: 80, rows: 24 }));
                let pumps = vec![pump(Arc::clone(&master), Stream::Stdout)];
                let input = Input::terminal(Arc::clone(&master));
                (input, Some(Terminal { master: Mutex::new(Some(master)), size }), pumps)
            }
        };
        let life = Life {
            ended: spawned.ended,
            pumps,
            time_limit: request.timeout_ms.map(Duration::from_millis),
            oom_kills,
            oom_kills_before: oom_kills.count(),
        };
        let command = Self {
            id,
            line: program.line,
            label: request.label.clone(),
            cwd: program.cwd,
            user: program.user.name,
            detached: request.detach,
            started_at: now_ms(),
            ended_at: AtomicU64::new(0),
            session: Session { leader: spawned.pid },
            reaper: Arc::clone(reaper),
            terminal,
            output,
            input,
            clients: AtomicUsize::new(0),
            end: CancellationToken::new(),
            forgotten: CancellationToken::new(),
        };
        Ok((Arc::new(command), life))
    }

    pub(super) fn id(&self) -> &str {
        &self.id
    }

    pub(super) fn pid(&self) -> i32 {
        self.session.leader
    }

    pub(super) fn detached(&self) -> bool {
        self.detached
    }

    pub(super) fn info(&self) -> CommandInfo {
        let exit = self.output.exit();
        CommandInfo {
            id: self.id.clone(),
            pid: self.session.leader,
            command: self.line.clone(),
            label: self.label.clone(),
            cwd: self.cwd.as_path().into(),
            user: self.user.clone(),
            tty: self.terminal.as_ref().map(|terminal| *lock(&terminal.size)),
            detached: self.detached,
            clients: self.clients.load(Ordering::Relaxed),
            started_at: self.started_at,
            ended_at: exit.as_ref().map(|_| self.ended_at.load(Ordering::Relaxed)),
            exit,
            output_bytes: self.output.total(),
        }
    }

    /// To the whole process group.
    pub(super) fn signal(&self, name: &str) -> Result<(), ApiError> {
        let number = signal_number(name).ok_or_else(|| {
            ApiError::new(ErrorKind::InvalidRequest, format!("\"{name}\" is not a signal"))
                .hint("use a name such as INT, TERM or KILL")
        })?;
        if self.session.signal_group(&self.reaper, number) { Ok(()) } else { Err(self.has_ended()) }
    }

    pub(super) fn resize(&self, size: TtySize) -> Result<(), ApiError> {
        check_size(size)?;
        let Some(terminal) = &self.terminal else {
            let message = format!("command {} has no terminal", self.id);
            return Err(ApiError::new(ErrorKind::InvalidRequest, message));
        };
        // The screen first: what the program draws for the new size must not meet the old one.
        *lock(&terminal.size) = size;
        self.output.resize(size);
        let master = lock(&terminal.master).clone().ok_or_else(|| self.has_ended())?;
        rustix::termios::tcsetwinsize(master.get_ref(), winsize(size))
            .map_err(|error| ApiError::io(format!("terminal of {}", self.id), &error.into()))
    }

    pub(super) fn has_ended(&self) -> ApiError {
        ApiError::new(ErrorKind::Unavailable, format!("command {} has ended", self.id))
    }

    /// Runs to the end of the command; `ended` is called just before clients learn of its exit,
    /// so that what they ask next finds it ended.
    pub(super) async fn live(&self, life: Life, ended: impl FnOnce()) {
        let Life { ended: process_ended, pumps, time_limit, oom_kills, oom_kills_before } = life;
        let exited = CancellationToken::new();
        let gone = async {
            let gone = self.until_gone(process_ended, time_limit).await;
            exited.cancel();
            gone
        };
        let ((how, timed_out), drained) = tokio::join!(gone, self.drain(&pumps, &exited));
        let open = pumps.iter().zip(drained).filter(|(_, drained)| *drained == Drained::StillOpen);
        let mut stragglers = join_all(open.map(|(pump, _)| pump.until_end()));
        let closed = timeout(STRAGGLERS, &mut stragglers).await.is_ok();

        self.ended_at.store(now_ms(), Ordering::Relaxed);
        let mut exit = exit(how, timed_out);
        exit.out_of_memory = exit.code != Some(0) && oom_kills.count() > oom_kills_before;
        self.input.close();
        ended();
        self.output.finish(exit);
        if !closed {
            tokio::select! {
                _ = stragglers => {}
                () = self.forgotten.cancelled() => {}
            }
        }
        if let Some(terminal) = &self.terminal {
            *lock(&terminal.master) = None;
        }
    }

    /// Reads all the command wrote. That waits for the client that started it, but not for ever
    /// once somebody asked for the end.
    async fn drain(&self, pumps: &[Pump], exited: &CancellationToken) -> Vec<Drained> {
        let mut drained = join_all(pumps.iter().map(|pump| pump.until_drained(exited)));
        let impatience = async {
            self.end.cancelled().await;
            sleep(GRACE).await;
        };
        tokio::select! {
            biased;
            drained = &mut drained => return drained,
            () = impatience => self.output.release(),
        }
        drained.await
    }

    /// Waits for the process, and when it has to be ended for its whole session.
    async fn until_gone(
        &self,
        mut ended: oneshot::Receiver<Ended>,
        time_limit: Option<Duration>,
    ) -> (Ended, TimedOut) {
        let time_is_up = async {
            match time_limit {
                Some(limit) => sleep(limit).await,
                None => std::future::pending().await,
            }
        };
        let timed_out = tokio::select! {
            biased;
            ended = &mut ended => return (known(ended), TimedOut(false)),
            () = time_is_up => TimedOut(true),
            () = self.end.cancelled() => TimedOut(false),
        };
        (self.put_to_end(ended).await, timed_out)
    }

    /// Ends what the command left behind in its session when it ended by itself. At once after
    /// the end: the session's number is free again when nobody is left in it.
    pub(super) async fn sweep(&self) {
        if self.session.is_empty() {
            return;
        }
        self.session.signal_all(&self.reaper, libc::SIGTERM);
        self.session.signal_all(&self.reaper, libc::SIGCONT);
        let deadline = Instant::now() + GRACE;
        while !self.session.is_empty() && Instant::now() < deadline {
            sleep(TICK).await;
        }
        self.session.signal_all(&self.reaper, libc::SIGKILL);
    }

    async fn put_to_end(&self, mut ended: oneshot::Receiver<Ended>) -> Ended {
        self.session.signal_all(&self.reaper, libc::SIGTERM);
        // A stopped process only sees the signal once it continues.
        self.session.signal_all(&self.reaper, libc::SIGCONT);
        let deadline = Instant::now() + GRACE;
        let asked = tokio::select! {
            ended = &mut ended => Some(known(ended)),
            () = sleep_until(deadline) => None,
        };
        while !self.session.is_empty() && Instant::now() < deadline {
            sleep(TICK).await;
        }
        self.session.signal_all(&self.reaper, libc::SIGKILL);
        let ended = match asked {
            Some(ended) => ended,
            None => known(ended.await),
        };
        // Killed, but a process deep in the kernel may take a moment; not for ever.
        let patience = Instant::now() + GRACE;
        while !self.session.is_empty() && Instant::now() < patience {
            sleep(TICK).await;
        }
        ended
    }
}

#[derive(Debug, Clone, Copy)]
struct TimedOut(bool);

fn known(ended: Result<Ended, oneshot::error::RecvError>) -> Ended {
    // The reaper lives as long as the runtime, so its promise is kept.
    ended.unwrap_or(Ended::Signalled(libc::SIGKILL))
}

fn exit(ended: Ended, TimedOut(timed_out): TimedOut) -> Exit {
    let (code, signal) = match ended {
        Ended::Exited(code) => (Some(code), None),
        Ended::Signalled(number) => (None, Some(signal_name(number))),
    };
    Exit { code, signal, timed_out, out_of_memory: false }
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
