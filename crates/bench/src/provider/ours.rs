//! The gateway as `nacre up` runs it, with the model server as its provider.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;

use anyhow::{Context, Result};
use nacre_gateway::{
    Gateway, JsonLines, Kind, RawGatewayConfig, RawModelsConfig, RawProvider, Spool,
};
use nacre_wire::client::Client;
use nacre_wire::models::{CreatePolicyToken, MadePolicyToken, PolicyScope};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Child;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use super::Way;
use crate::gateway::{OneUpstream, ourselves};

/// Until it is killed. The first line of output is its address and a policy token with a budget.
pub(super) async fn serve(server: &str, data: &Path) -> Result<()> {
    std::fs::create_dir_all(data)?;
    let (spool, _guard) = Spool::start(File::create(data.join("gateway.log"))?)?;
    tracing_subscriber::registry().with(EnvFilter::new("info")).with(JsonLines::new(spool)).init();
    let raw = RawGatewayConfig { listen: Some("127.0.0.1:0".to_owned()), ..Default::default() };
    let mut config = raw.resolve(data.to_owned())?;
    let provider = RawProvider {
        kind: Some(Kind::Openai),
        base_url: Some(format!("http://{server}/v1")),
        key_env: Some("KEY".to_owned()),
        ..Default::default()
    };
    let provider = provider.resolve("openai", |_| Some("sk-bench".to_owned()));
    // The usual limit of a day would end the benchmark.
    let limits =
        RawModelsConfig { dollars_per_day: nacre_gateway::Dollars::new(1e6), ..Default::default() };
    config.models = limits.resolve(vec![provider.map_err(anyhow::Error::msg)?]);
    let driver = OneUpstream::new(data.join("nobody"));
    let gateway = Gateway::start(config, Arc::new(driver)).await?;
    let wanted = CreatePolicyToken {
        name: "bench".to_owned(),
        scope: PolicyScope { tokens: Some(1 << 50), dollars: Some(1e6), ..Default::default() },
        expires_in_s: Some(24 * 3600),
    };
    let admin = Client::unix(PathBuf::from(gateway.socket()));
    let made: MadePolicyToken = admin.post_json("/admin/sandboxes/policy-tokens", &wanted).await?;
    println!("{} {}", gateway.address(), made.token);
    std::future::pending().await
}

pub(super) async fn start(server: &str, data: &Path) -> Result<(Child, Way)> {
    let mut command = ourselves("model-process", &["gateway", server], &[data])?;
    let mut child = command.stdout(Stdio::piped()).spawn()?;
    let output = child.stdout.take().context("no output")?;
    let line = BufReader::new(output).lines().next_line().await?.context("the gateway ended")?;
    let (address, token) = line.split_once(' ').context("it says something else")?;
    let way = Way {
        address: address.to_owned(),
        path: "/provider/v1/openai/chat/completions",
        token: token.to_owned(),
    };
    Ok((child, way))
}
