//! The body of an agent that acts on a sandbox from its host.

use async_trait::async_trait;
use http::{HeaderValue, Method};
use http_body_util::{BodyExt, Limited};
use nacre_wire::client::{self, Client, ExecEvent, ExecInput, ExecOutput, ExecSession};
use nacre_wire::exec::{ExecRequest, Exit};
use nacre_wire::files::{FileKind, Listing, Stat};
use nacre_wire::history::Author;
use nacre_wire::path::to_query;
use nacre_wire::{ApiError, ErrorKind};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

use super::program::{self, Opened, Program, Remarks};
use super::{Body, Command, Entry, EntryKind, Expected, File, Output, Result, Stream, Write};

/// Names the author of a change to the supervisor's history.
const BY: &str = "nacre-by";
/// Of what goes to a program or comes from it, how much may be on its way.
const ON_ITS_WAY: usize = 64 * 1024;

#[derive(Clone)]
pub struct Remote {
    client: Client,
    /// Under whose name changes are recorded.
    conversation: String,
}

impl Remote {
    pub fn new(client: Client, conversation: impl Into<String>) -> Self {
        Self { client, conversation: conversation.into() }
    }

    fn author(&self, call: Option<String>) -> Author {
        Author::Conversation { id: self.conversation.clone(), call }
    }
}

#[async_trait]
impl Body for Remote {
    async fn execute(&self, command: &Command, output: &mut Output<'_>) -> Result<Exit> {
        let request = ExecRequest {
            shell: Some(command.line.clone()),
            cwd: command.within.as_deref().map(Into::into),
            timeout_ms: u64::try_from(command.timeout.as_millis()).ok(),
            by: vec![self.author(command.call.clone())],
            ..ExecRequest::default()
        };
        // The connection is the command's: closed, it ends.
        let (_input, mut events) = self.client.exec(request).await.map_err(plain)?.split();
        loop {
            match events.next().await.map_err(plain)? {
                ExecEvent::Stdout(bytes) => output(Stream::Stdout, &bytes),
                ExecEvent::Stderr(bytes) => output(Stream::Stderr, &bytes),
                ExecEvent::Gap(_) => {}
                ExecEvent::Exit(exit) => return Ok(exit),
            }
        }
    }

    async fn read_file(&self, path: &str, at_most: u64) -> Result<File> {
        let call = format!("/supervisor/files/content?path={}", to_query(path));
        let request = self.client.request(Method::GET, &call, client::empty()).map_err(plain)?;
        let response = self.client.send(request).await.map_err(plain)?;
        let version = response.headers().get(http::header::ETAG);
        let version = version.and_then(|tag| tag.to_str().ok()).unwrap_or_default().to_owned();
        let limit = usize::try_from(at_most).unwrap_or(usize::MAX);
        match Limited::new(response.into_body(), limit).collect().await {
            Ok(body) => Ok(File { bytes: body.to_bytes().into(), version }),
            Err(error) if error.is::<http_body_util::LengthLimitError>() => {
                let message = format!("{path} has more than {at_most} bytes");
                Err(ApiError::new(ErrorKind::TooLarge, message)
                    .hint("look at a part with a command"))
            }
            Err(error) => Err(ApiError::new(ErrorKind::Unavailable, format!("{path}: {error}"))),
        }
    }

    async fn write_file(&self, path: &str, write: &Write) -> Result<()> {
        let call = format!("/supervisor/files/content?path={}&parents=true", to_query(path));
        let body = client::full(write.bytes.clone());
        let mut request = self.client.request(Method::PUT, &call, body).map_err(plain)?;
        let headers = request.headers_mut();
        match &write.expected {
            Expected::Anything => {}
            Expected::Nothing => {
                headers.insert(http::header::IF_NONE_MATCH, HeaderValue::from_static("*"));
            }
            Expected::Version(version) => {
                let version = HeaderValue::from_str(version).map_err(odd)?;
                headers.insert(http::header::IF_MATCH, version);
            }
        }
        let author = serde_json::to_string(&self.author(write.call.clone())).map_err(odd)?;
        headers.insert(BY, HeaderValue::from_str(&author).map_err(odd)?);
        let response = self.client.send(request).await.map_err(plain)?;
        response.into_body().collect().await.map_err(odd)?;
        Ok(())
    }

    async fn list_files(&self, path: &str) -> Result<Vec<Entry>> {
        let mut entries = Vec::new();
        let mut after = None;
        loop {
            let Listing { entries: some, next } =
                self.client.list(path, None, after.as_ref()).await.map_err(plain)?;
            entries.extend(some.into_iter().map(entry));
            after = next;
            if after.is_none() {
                entries.sort_by(|a: &Entry, b| a.name.cmp(&b.name));
                return Ok(entries);
            }
        }
    }

    async fn open(&self, program: &Program) -> Result<Opened> {
        program.named()?;
        let request = ExecRequest {
            argv: program.words.clone(),
            env: program.env.iter().map(|(k, v)| (k.clone(), Some(v.clone()))).collect(),
            stdin: true,
            ..ExecRequest::default()
        };
        let session = self.client.exec(request).await.map_err(plain)?;
        let (input, from) = tokio::io::duplex(ON_ITS_WAY);
        let (output, to) = tokio::io::duplex(ON_ITS_WAY);
        let (output, dropped) = program::watched(output);
        let remarks = Remarks::default();
        let carried = carry(session, from, to, remarks.clone());
        // The connection goes with the task, and the program with the connection.
        tokio::spawn(async move { dropped.run_until_cancelled(carried).await });
        Ok(Opened { input: Box::new(input), output: Box::new(output), remarks })
    }
}

/// Carries what is said between a program behind the door and whoever opened it, until either is gone.
async fn carry(session: ExecSession, from: DuplexStream, to: DuplexStream, remarks: Remarks) {
    let (input, output) = session.split();
    // Its input may end long before it does.
    let speak = async {
        if let Err(error) = speak(from, input).await {
            tracing::debug!(%error, "a program's input ended");
        }
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = speak => {}
        () = hear(output, to, remarks) => {}
    }
}

/// Gives the input back, because the connection is the program's and must not be closed with it.
async fn speak(mut from: DuplexStream, mut input: ExecInput) -> client::Result<ExecInput> {
    let mut buffer = vec![0; ON_ITS_WAY];
    loop {
        match from.read(&mut buffer).await {
            Ok(0) | Err(_) => {
                input.eof().await?;
                return Ok(input);
            }
            Ok(length) => input.write(buffer[..length].to_vec()).await?,
        }
    }
}

async fn hear(mut output: ExecOutput, mut to: DuplexStream, remarks: Remarks) {
    loop {
        match output.next().await {
            Ok(ExecEvent::Stdout(bytes)) => {
                if to.write_all(&bytes).await.is_err() {
                    return;
                }
            }
            Ok(ExecEvent::Stderr(bytes)) => remarks.add(&bytes),
            Ok(ExecEvent::Gap(_)) => {}
            Ok(ExecEvent::Exit(_)) => return,
            Err(error) => {
                remarks.add(error.to_string().as_bytes());
                return;
            }
        }
    }
}

fn entry(stat: Stat) -> Entry {
    let kind = match stat.kind {
        FileKind::File => EntryKind::File,
        FileKind::Directory => EntryKind::Directory,
        FileKind::Symlink => EntryKind::Link,
        FileKind::Fifo
        | FileKind::Socket
        | FileKind::BlockDevice
        | FileKind::CharDevice
        | FileKind::Unknown => EntryKind::Other,
    };
    let name = stat.path.as_path().file_name().unwrap_or_default();
    Entry { name: name.to_string_lossy().into_owned(), kind, size: stat.size }
}

fn plain(error: client::Error) -> ApiError {
    match error {
        client::Error::Api(error) => error,
        other => ApiError::new(other.kind(), other.to_string()),
    }
}

fn odd(error: impl std::fmt::Display) -> ApiError {
    ApiError::new(ErrorKind::Internal, error.to_string())
}
