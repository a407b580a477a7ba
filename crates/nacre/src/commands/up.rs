//! `nacre up`: be the gateway, here or in the background.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use nacre_gateway::{Gateway, Reload, RunningGateway};
use nacre_wire::control::{SandboxState, SetupCode, Shutdown, SignInLink};
use serde::{Deserialize, Serialize};
use tokio::signal::unix::{SignalKind, signal};

use super::{Context, login};
use crate::config::{RawConfig, prepare_data_dir};
use crate::failure::{Failure, Result};
use crate::{connect, driver, output};

const LOG_FILE: &str = "gateway.log";

#[derive(Debug, Default, Args)]
#[command(after_help = "\
Ctrl-C stops the gateway and the sandboxes. SIGTERM stops only the gateway: sandboxes run on and the
next `nacre up` finds them.

Examples:
  nacre up
  nacre up --detach
  nacre up --listen 127.0.0.1:9000 --data ~/other
  nacre up --tls-cert fullchain.pem --tls-key privkey.pem
  nacre up --public-url https://pc.example --trusted-proxy 127.0.0.1
  OWNER_DID=did:plc:... PUBLIC_URL=https://pc.example nacre up --listen 0.0.0.0:8080")]
pub(crate) struct Up {
    #[command(flatten)]
    front: Front,
    /// Whether a new computer gets the desktop's source, to be changed there [default: true]
    #[arg(long, value_name = "true|false", env = "NACRE_DESKTOP_SEED", hide_env_values = true)]
    desktop_seed: Option<String>,
    /// Run in the background and return when it is ready
    #[arg(short, long)]
    detach: bool,
    /// We are the background process: the report goes to a parent that waits for it.
    #[arg(long, hide = true)]
    background: bool,
}

impl Up {
    /// A variable that is there and empty says nothing.
    fn desktop_seed(&self) -> Result<Option<bool>> {
        match self.desktop_seed.as_deref().unwrap_or_default() {
            "" => Ok(None),
            "true" => Ok(Some(true)),
            "false" => Ok(Some(false)),
            other => {
                Err(Failure::new(format!("--desktop-seed takes true or false, not \"{other}\"")))
            }
        }
    }
}

/// How browsers come in.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub(crate) struct Front {
    /// Address for browsers [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<String>,
    /// Certificate chain for https, as a PEM file; read again when it changes
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// Its private key, as a PEM file
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
    /// The address people use, when a proxy stands before
    #[arg(long, value_name = "URL", env = "PUBLIC_URL", hide_env_values = true)]
    pub(crate) public_url: Option<String>,
    /// Whose computer it is: the DID of their Atmosphere account
    #[arg(long, value_name = "DID", env = "OWNER_DID", hide_env_values = true)]
    pub(crate) owner_did: Option<String>,
    /// The directory of did:plc, when it is not the public one
    #[arg(long, value_name = "URL", env = "ATPROTO_PLC_URL", hide_env_values = true)]
    pub(crate) plc_url: Option<String>,
    /// Authorities that account servers may have their certificates from besides the public ones, as a
    /// PEM file
    #[arg(long, value_name = "FILE", env = "ATPROTO_CA_FILE", hide_env_values = true)]
    pub(crate) account_ca: Option<PathBuf>,
    /// A proxy whose X-Forwarded-* headers are believed: an address or a network
    #[arg(
        long,
        value_name = "NETWORK",
        env = "NACRE_TRUSTED_PROXIES",
        hide_env_values = true,
        value_delimiter = ','
    )]
    pub(crate) trusted_proxy: Vec<String>,
}

impl Front {
    /// The same again for a process that starts elsewhere.
    fn args(&self) -> Result<Vec<OsString>> {
        let mut args = Vec::new();
        let mut add = |flag: &str, value: OsString| args.extend([flag.into(), value]);
        let texts = [
            ("--listen", &self.listen),
            ("--public-url", &self.public_url),
            ("--owner-did", &self.owner_did),
            ("--plc-url", &self.plc_url),
        ];
        for (flag, text) in texts {
            if let Some(text) = text {
                add(flag, text.into());
            }
        }
        let files = [
            ("--tls-cert", &self.tls_cert),
            ("--tls-key", &self.tls_key),
            ("--account-ca", &self.account_ca),
        ];
        for (flag, file) in files {
            // A variable that is there and empty says nothing.
            if let Some(file) = file.as_ref().filter(|file| !file.as_os_str().is_empty()) {
                let path = std::path::absolute(file);
                add(flag, path.map_err(|error| Failure::io(file.display(), &error))?.into());
            }
        }
        for proxy in &self.trusted_proxy {
            add("--trusted-proxy", proxy.into());
        }
        Ok(args)
    }
}

/// What the user learns when it is ready.
#[derive(Debug, Serialize, Deserialize)]
struct Report {
    url: String,
    /// Whose computer it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    owner: Option<String>,
    /// Absent when somebody owns it: what is printed may be kept where others read it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sign_in: Option<SignInLink>,
    /// Absent when somebody owns it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    setup: Option<SetupCode>,
    pid: u32,
    /// Absent when it was running before.
    #[serde(skip_serializing_if = "Option::is_none")]
    ready_ms: Option<u64>,
    /// Why the live sandbox does not run.
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<String>,
}

pub(crate) fn run(command: Up, context: &Context) -> Result<ExitCode> {
    let began = Instant::now();
    prepare_data_dir(&context.data_dir)?;
    let seed = command.desktop_seed()?;
    if command.detach {
        return detach(&command, context);
    }
    if command.background {
        // A session of our own, so that closing the terminal does not end us.
        let _ = rustix::process::setsid();
    }
    let raw = RawConfig::load(&context.data_dir, context.config.as_deref())?;
    let mut config = raw.resolve(context.data_dir.clone(), command.front.clone())?;
    if let Some(seed) = seed {
        config.gateway.desktop.seed = seed;
    }
    config.gateway.reload_models = Some(reload(context));
    let log = config.log.install()?;
    config.gateway.observe.dropped = log.dropped();
    raise_open_files();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::io("cannot start", &error))?;
    let code = runtime.block_on(async {
        if let Some(report) = running_already(&context.data_dir).await? {
            tell(&report, &command, context)?;
            return Ok(ExitCode::SUCCESS);
        }
        let driver =
            Arc::new(driver::open(&context.data_dir, driver::PARKED, config.host_directories)?);
        let gateway = Gateway::start(config.gateway, driver).await?;
        serve(gateway, began, &command, context).await
    });
    runtime.shutdown_timeout(Duration::from_secs(1));
    code
}

/// For `nacre provider`: the files are read again, the environment stays what it was.
fn reload(context: &Context) -> Reload {
    let (data_dir, file) = (context.data_dir.clone(), context.config.clone());
    Reload(Arc::new(move || {
        let raw = RawConfig::load(&data_dir, file.as_deref());
        raw.and_then(|raw| raw.models(&data_dir)).map_err(|failure| failure.to_string())
    }))
}

async fn serve(
    gateway: RunningGateway,
    began: Instant,
    command: &Up,
    context: &Context,
) -> Result<ExitCode> {
    let failed = |error| Failure::io("signals cannot be handled", &error);
    let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
    let mut hang_up = signal(SignalKind::hangup()).map_err(failed)?;
    let sign_in = match gateway.owner() {
        None => Some(gateway.sign_in_link().await?),
        Some(_) => None,
    };
    let ready_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    tell(&report(&gateway, sign_in, ready_ms)?, command, context)?;
    let how = tokio::select! {
        how = gateway.asked_to_stop() => how,
        _ = interrupt.recv() => Shutdown { stop_sandboxes: true },
        _ = terminate.recv() => Shutdown::default(),
        _ = hang_up.recv() => Shutdown::default(),
    };
    tokio::select! {
        () = gateway.stop(how) => Ok(ExitCode::SUCCESS),
        // The next start recovers what this leaves.
        _ = interrupt.recv() => Ok(ExitCode::from(130)),
    }
}

/// Every socket of a page is two descriptors here, and the usual limit of 1024 is soon used up.
fn raise_open_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let now = getrlimit(Resource::Nofile);
    // As many as we may; where that fails, fewer sockets work.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: now.maximum, maximum: now.maximum });
}

fn report(gateway: &RunningGateway, sign_in: Option<SignInLink>, ready_ms: u64) -> Result<Report> {
    let sandboxes = gateway.sandboxes();
    let live = sandboxes.iter().find(|sandbox| sandbox.role.as_deref() == Some("live"));
    let failure = match live {
        Some(live) if live.state == SandboxState::Failed => live.failure.clone(),
        Some(_) => None,
        None => Some("there is no live sandbox".to_owned()),
    };
    let setup = gateway.setup_code().map_err(nacre_wire::client::Error::from)?;
    Ok(Report {
        url: gateway.url(),
        owner: gateway.owner(),
        sign_in,
        setup,
        pid: std::process::id(),
        ready_ms: Some(ready_ms),
        failure,
    })
}

async fn running_already(data_dir: &Path) -> Result<Option<Report>> {
    let Some((gateway, status)) = connect::Gateway::find(data_dir).await? else { return Ok(None) };
    let sign_in = match status.owner {
        None => Some(login::fresh_link(&gateway).await?),
        Some(_) => None,
    };
    Ok(Some(Report {
        url: status.url,
        owner: status.owner,
        sign_in,
        setup: None,
        pid: status.pid,
        ready_ms: None,
        failure: None,
    }))
}

fn tell(report: &Report, command: &Up, context: &Context) -> Result<()> {
    if command.background {
        let line =
            serde_json::to_string(report).map_err(|error| Failure::new(error.to_string()))?;
        output::print(&format!("{line}\n"))?;
        return let_go_of_stdout();
    }
    if context.json { output::print_json(report) } else { output::print(&describe(report)) }
}

fn describe(report: &Report) -> String {
    let first = match report.ready_ms {
        Some(ms) => format!("Nacre is ready ({ms} ms)."),
        None => format!("Nacre is already running (process {}).", report.pid),
    };
    let trouble = match &report.failure {
        Some(why) => format!("  The live sandbox does not run: {why}\n  See: nacre doctor\n"),
        None => String::new(),
    };
    let enter = match (&report.sign_in, &report.owner) {
        (Some(SignInLink { url, expires_in_s }), _) => {
            format!("  Sign in (once, within {} minutes):\n  {url}\n", expires_in_s / 60)
        }
        (None, Some(owner)) => format!("  {}\n  Only {owner} gets in.\n", report.url),
        (None, None) => format!("  {}\n", report.url),
    };
    let setup = match &report.setup {
        Some(SetupCode { url, code, .. }) => {
            format!("\n  Or make it yours with your Atmosphere account:\n  {url}  {code}\n")
        }
        None => String::new(),
    };
    format!("{first}\n{trouble}\n{enter}{setup}\n")
}

/// The parent has what it waited for and goes away; nothing may hold its pipe open.
fn let_go_of_stdout() -> Result<()> {
    let failed = |error: std::io::Error| Failure::io("/dev/null", &error);
    let null = OpenOptions::new().write(true).open("/dev/null").map_err(failed)?;
    rustix::stdio::dup2_stdout(&null).map_err(|errno| failed(errno.into()))
}

/// Starts ourselves again in the background. Its first line of output is the report; no line means
/// that it failed, and its log says why.
fn detach(command: &Up, context: &Context) -> Result<ExitCode> {
    let log_path = context.data_dir.join(LOG_FILE);
    let failed = |error: std::io::Error| Failure::io(log_path.display(), &error);
    let log =
        OpenOptions::new().create(true).append(true).mode(0o600).open(&log_path).map_err(failed)?;
    let log_starts_at = log.metadata().map_err(failed)?.len();
    let program = std::env::current_exe().map_err(|error| Failure::io("this program", &error))?;
    let mut again = Command::new(program);
    again.args(["up", "--background", "--data"]).arg(&context.data_dir);
    if let Some(config) = &context.config {
        again.arg("--config").arg(config);
    }
    again.args(command.front.args()?);
    if let Some(seed) = &command.desktop_seed {
        again.args(["--desktop-seed", seed]);
    }
    let mut child = again
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(log)
        .spawn()
        .map_err(|error| Failure::io("this program", &error))?;
    let mut line = String::new();
    if let Some(stdout) = child.stdout.take() {
        BufReader::new(stdout)
            .read_line(&mut line)
            .map_err(|error| Failure::io("the background process", &error))?;
    }
    match serde_json::from_str::<Report>(&line) {
        Ok(report) => {
            tell(&report, &Up::default(), context)?;
            Ok(ExitCode::SUCCESS)
        }
        Err(_) => Err(why_it_failed(&log_path, log_starts_at)),
    }
}

/// The background process reports its failure as any command does, on its standard error.
fn why_it_failed(log_path: &Path, starts_at: u64) -> Failure {
    let log = std::fs::read(log_path).unwrap_or_default();
    let from = usize::try_from(starts_at).unwrap_or(0).min(log.len());
    let text = String::from_utf8_lossy(&log[from..]).into_owned();
    let find = |prefix| text.lines().rev().find_map(|line| line.strip_prefix(prefix));
    let message = find("error: ").unwrap_or("the gateway did not start").to_owned();
    let see = format!("its log is {}", log_path.display());
    Failure::new(message).hint(find("hint: ").map_or(see, str::to_owned))
}
