//! LiteLLM's proxy, in the Python that `cargo xtask bench provider` makes for it.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};

use super::{Way, load};

const KEY: &str = "sk-bench-master";
/// It imports for long.
const TRIES: u32 = 600;
const PAUSE: Duration = Duration::from_millis(200);

pub(super) async fn version(program: &Path) -> Result<String> {
    let python = program.with_file_name("python");
    let words = ["-c", "import importlib.metadata as m; print(m.version('litellm'))"];
    let output = Command::new(python).args(words).output().await?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

pub(super) async fn start(program: &Path, server: &str, home: &Path) -> Result<(Child, Way)> {
    std::fs::create_dir_all(home)?;
    let config = home.join("config.yaml");
    std::fs::write(
        &config,
        format!(
            "model_list:\n  - model_name: gpt-4o\n    litellm_params:\n      model: openai/gpt-4o\n      \
             api_base: http://{server}/v1\n      api_key: sk-bench\n\
             general_settings:\n  master_key: {KEY}\nlitellm_settings:\n  telemetry: false\n"
        ),
    )?;
    let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let log = std::fs::File::create(home.join("litellm.log"))?;
    let child = Command::new(program)
        .arg("--config")
        .arg(&config)
        .args(["--host", "127.0.0.1", "--port", &port.to_string(), "--num_workers", "1"])
        .env("LITELLM_LOCAL_MODEL_COST_MAP", "True")
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .kill_on_drop(true)
        .spawn()
        .with_context(|| format!("{}", program.display()))?;
    let address = format!("127.0.0.1:{port}");
    let way = Way { address, path: "/v1/chat/completions", token: KEY.to_owned() };
    for _ in 0..TRIES {
        if load::once(&way).await.is_ok() {
            return Ok((child, way));
        }
        tokio::time::sleep(PAUSE).await;
    }
    bail!("LiteLLM does not answer: {}", std::fs::read_to_string(home.join("litellm.log"))?)
}

pub(super) async fn stop(child: &mut Child) -> Result<()> {
    if let Some(pid) = child.id().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?)) {
        kill_process(pid, Signal::TERM)?;
    }
    if tokio::time::timeout(Duration::from_secs(10), child.wait()).await.is_err() {
        child.kill().await?;
    }
    Ok(())
}
