//! The body of an agent that runs where it acts.

use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use async_trait::async_trait;
use nacre_wire::exec::{Exit, signal_name};
use nacre_wire::{ApiError, ErrorKind};
use rustix::fs::OFlags;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Child;
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep_until};

use super::memory;
use super::program::{self, Opened, Program, Remarks};
use super::{Body, Command, Entry, EntryKind, Expected, File, Output, Result, Stream, Write};

const BUFFER: usize = 32 * 1024;
/// What a command wrote just before it ended is read; a process that it left behind and that holds on
/// to its output is not waited for.
const LAST_WORDS: Duration = Duration::from_millis(200);

#[derive(Debug, Clone)]
pub struct Local {
    workspace: PathBuf,
}

impl Local {
    pub fn new(workspace: impl Into<PathBuf>) -> Self {
        Self { workspace: workspace.into() }
    }

    fn path(&self, path: &str) -> PathBuf {
        self.workspace.join(path)
    }
}

#[async_trait]
impl Body for Local {
    async fn execute(&self, command: &Command, output: &mut Output<'_>) -> Result<Exit> {
        let within = command.within.as_ref().map_or(self.workspace.clone(), |path| self.path(path));
        let failed = |error: io::Error| ApiError::io(within.display(), &error);
        let child = tokio::process::Command::new("/bin/sh")
            .arg("-c")
            .arg(&command.line)
            .current_dir(&within)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(failed)?;
        let mut running = Running(Some(child));
        let deadline = Instant::now() + command.timeout;
        let killed_before = memory::kills();
        match follow(&mut running, deadline, output).await.map_err(failed)? {
            Some(status) => {
                let starved = status.code() != Some(0) && memory::kills() > killed_before;
                Ok(Exit { out_of_memory: starved, ..exit_of(status) })
            }
            None => {
                running.kill();
                running.wait().await.map_err(failed)?;
                Ok(Exit { code: None, signal: None, timed_out: true, out_of_memory: false })
            }
        }
    }

    async fn read_file(&self, path: &str, at_most: u64) -> Result<File> {
        let file = self.path(path);
        off_thread(path, move || read(&file, at_most)).await
    }

    async fn write_file(&self, path: &str, write: &Write) -> Result<()> {
        let (file, new) = (self.path(path), write.clone());
        off_thread(path, move || replace(&file, &new)).await
    }

    async fn list_files(&self, path: &str) -> Result<Vec<Entry>> {
        let directory = self.path(path);
        off_thread(path, move || list(&directory)).await
    }

    async fn open(&self, program: &Program) -> Result<Opened> {
        let (name, rest) = program.named()?;
        let mut child = tokio::process::Command::new(name)
            .args(rest)
            .envs(&program.env)
            .current_dir(&self.workspace)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(|error| ApiError::io(name, &error))?;
        let (Some(input), Some(output), Some(stderr)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(ApiError::new(ErrorKind::Internal, format!("{name} has no streams")));
        };
        let remarks = Remarks::default();
        tokio::spawn(program::listen(stderr, remarks.clone()));
        let (output, dropped) = program::watched(output);
        let mut running = Running(Some(child));
        tokio::spawn(async move {
            tokio::select! {
                _ = running.wait() => {}
                () = dropped.cancelled() => {}
            }
        });
        Ok(Opened { input: Box::new(input), output: Box::new(output), remarks })
    }
}

/// A command that has not ended, with what it started. Dropped, it is ended.
struct Running(Option<Child>);

impl Running {
    fn kill(&self) {
        let pid = self.0.as_ref().and_then(Child::id);
        if let Some(pid) = pid.and_then(|pid| Pid::from_raw(pid.cast_signed())) {
            // It may be gone.
            let _ = kill_process_group(pid, Signal::KILL);
        }
    }

    async fn wait(&mut self) -> io::Result<ExitStatus> {
        let Some(child) = &mut self.0 else {
            return Err(io::Error::other("it has ended before"));
        };
        let status = child.wait().await?;
        self.0 = None;
        Ok(status)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
        // The runtime by itself takes away what is left of a process only after it has slept the next
        // time, however long that is.
        if let (Some(mut child), Ok(runtime)) = (self.0.take(), Handle::try_current()) {
            runtime.spawn(async move { child.wait().await });
        }
    }
}

/// Until the command has ended and told all; `None` when its time is up.
async fn follow(
    running: &mut Running,
    deadline: Instant,
    output: &mut Output<'_>,
) -> io::Result<Option<ExitStatus>> {
    let child = running.0.as_mut();
    let (stdout, stderr) =
        child.map_or((None, None), |child| (child.stdout.take(), child.stderr.take()));
    let (mut stdout, mut stderr) = (Pipe::new(stdout), Pipe::new(stderr));
    let mut ended = None;
    let mut until = deadline;
    while ended.is_none() || stdout.is_open() || stderr.is_open() {
        tokio::select! {
            // First, because output may never end.
            biased;
            () = sleep_until(until) => break,
            read = stdout.read(), if stdout.is_open() => tell(output, Stream::Stdout, read?),
            read = stderr.read(), if stderr.is_open() => tell(output, Stream::Stderr, read?),
            status = running.wait(), if ended.is_none() => {
                ended = Some(status?);
                until = until.min(Instant::now() + LAST_WORDS);
            }
        }
    }
    Ok(ended)
}

fn tell(output: &mut Output<'_>, stream: Stream, bytes: &[u8]) {
    if !bytes.is_empty() {
        output(stream, bytes);
    }
}

/// One stream of a command, until it ends.
struct Pipe<R> {
    source: Option<R>,
    buffer: Vec<u8>,
}

impl<R: AsyncRead + Unpin> Pipe<R> {
    fn new(source: Option<R>) -> Self {
        Self { source, buffer: vec![0; BUFFER] }
    }

    fn is_open(&self) -> bool {
        self.source.is_some()
    }

    /// What there is next; nothing at its end.
    async fn read(&mut self) -> io::Result<&[u8]> {
        let Some(source) = &mut self.source else { return Ok(&[]) };
        let length = source.read(&mut self.buffer).await?;
        if length == 0 {
            self.source = None;
        }
        Ok(&self.buffer[..length])
    }
}

fn exit_of(status: ExitStatus) -> Exit {
    use std::os::unix::process::ExitStatusExt;
    let signal = status.signal().map(signal_name);
    Exit { code: status.code(), signal, timed_out: false, out_of_memory: false }
}

/// Files are read and written by a thread that may wait.
async fn off_thread<T: Send + 'static>(
    path: &str,
    work: impl FnOnce() -> Result<T, Fault> + Send + 'static,
) -> Result<T> {
    let done = tokio::task::spawn_blocking(work).await;
    match done.map_err(|error| ApiError::new(ErrorKind::Internal, error.to_string()))? {
        Ok(value) => Ok(value),
        Err(Fault::Io(error)) => Err(ApiError::io(path, &error)),
        Err(Fault::NoFile) => {
            let message = format!("{path}: not a regular file");
            Err(ApiError::new(ErrorKind::InvalidRequest, message)
                .hint("run a command to read or write it"))
        }
        Err(Fault::Changed) => {
            Err(ApiError::new(ErrorKind::Conflict, format!("{path} was changed since it was read")))
        }
        Err(Fault::TooLarge { size, at_most }) => {
            let message = format!("{path} has {size} bytes, more than {at_most}");
            Err(ApiError::new(ErrorKind::TooLarge, message).hint("look at a part with a command"))
        }
    }
}

enum Fault {
    Io(io::Error),
    /// A pipe, a socket or a device.
    NoFile,
    Changed,
    TooLarge {
        size: u64,
        at_most: u64,
    },
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

fn version(metadata: &std::fs::Metadata) -> String {
    let (seconds, nanos) = (metadata.mtime(), metadata.mtime_nsec());
    format!("{}-{}-{seconds}.{nanos}", metadata.ino(), metadata.size())
}

fn read(path: &Path, at_most: u64) -> Result<File, Fault> {
    use std::io::Read;
    // To open a pipe would be to wait for whoever writes to it.
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
    let file = std::fs::File::options().read(true).custom_flags(flags).open(path)?;
    let metadata = file.metadata()?;
    if metadata.is_dir() {
        return Err(io::Error::from(io::ErrorKind::IsADirectory).into());
    }
    if !metadata.is_file() {
        return Err(Fault::NoFile);
    }
    if metadata.len() > at_most {
        return Err(Fault::TooLarge { size: metadata.len(), at_most });
    }
    let mut bytes = Vec::new();
    // It may grow while it is read, and some files say nothing about their length.
    file.take(at_most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > at_most {
        return Err(Fault::TooLarge { size: bytes.len() as u64, at_most });
    }
    Ok(File { bytes, version: version(&metadata) })
}

fn replace(path: &Path, Write { bytes, expected, .. }: &Write) -> Result<(), Fault> {
    use std::io::Write as _;
    // What a link points to is written, not the link.
    let path = match std::fs::canonicalize(path) {
        Ok(path) => path,
        Err(error) if error.kind() == io::ErrorKind::NotFound => path.to_owned(),
        Err(error) => return Err(error.into()),
    };
    let parent = path.parent().unwrap_or(Path::new("/"));
    std::fs::create_dir_all(parent)?;
    let mut draft = tempfile::Builder::new().prefix(".nacre-").tempfile_in(parent)?;
    draft.write_all(bytes)?;
    let mode = match std::fs::metadata(&path) {
        Ok(there) if there.is_dir() => {
            return Err(io::Error::from(io::ErrorKind::IsADirectory).into());
        }
        Ok(there) => {
            let as_expected = match expected {
                Expected::Anything => true,
                Expected::Nothing => {
                    return Err(io::Error::from(io::ErrorKind::AlreadyExists).into());
                }
                Expected::Version(known) => *known == version(&there),
            };
            if !as_expected {
                return Err(Fault::Changed);
            }
            there.permissions().mode() & 0o7777
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => match expected {
            Expected::Version(_) => return Err(Fault::Changed),
            Expected::Anything | Expected::Nothing => 0o644,
        },
        Err(error) => return Err(error.into()),
    };
    draft.as_file().set_permissions(std::fs::Permissions::from_mode(mode))?;
    match expected {
        Expected::Nothing => draft.persist_noclobber(&path),
        Expected::Anything | Expected::Version(_) => draft.persist(&path),
    }
    .map_err(|error| error.error)?;
    Ok(())
}

fn list(path: &Path) -> Result<Vec<Entry>, Fault> {
    let mut entries = Vec::new();
    for entry in std::fs::read_dir(path)? {
        let entry = entry?;
        // Gone since it was listed.
        let Ok(metadata) = entry.metadata() else { continue };
        let kind = match metadata.file_type() {
            kind if kind.is_file() => EntryKind::File,
            kind if kind.is_dir() => EntryKind::Directory,
            kind if kind.is_symlink() => EntryKind::Link,
            _ => EntryKind::Other,
        };
        let name = entry.file_name().to_string_lossy().into_owned();
        entries.push(Entry { name, kind, size: metadata.len() });
    }
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(entries)
}
