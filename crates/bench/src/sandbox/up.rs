//! `nacre up`, from the command to a page that answers.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

use super::Rounds;
use crate::report::Row;
use crate::samples::Samples;

/// The rows for the very first start and for every other one.
pub(super) fn rows(first: &Samples, later: &Samples) -> Vec<Row> {
    let row = |which: &str, samples: &Samples| {
        Row::lower(format!("nacre up to ready, {which}, p50"), "ms", samples.median())
            .target(300.0)
            .samples(samples.count())
    };
    vec![row("data folder exists", later), row("first start, fresh data folder", first)]
}

pub(super) async fn to_ready(nacre: &Path, rounds: Rounds) -> Result<Vec<Row>> {
    let (mut first, mut later) = (Samples::default(), Samples::default());
    for _ in 0..rounds.up {
        let home = tempfile::Builder::new().prefix("nacre-up-").tempdir()?;
        first.push_ms(once(nacre, home.path()).await?);
        later.push_ms(once(nacre, home.path()).await?);
    }
    Ok(rows(&first, &later))
}

async fn once(nacre: &Path, home: &Path) -> Result<Duration> {
    let began = Instant::now();
    let (child, link) = begin(nacre, home).await?;
    sign_in(&link).await?;
    let took = began.elapsed();
    end(child, nacre, home).await?;
    Ok(took)
}

/// A gateway with its live sandbox, and the link to it.
pub(crate) async fn begin(nacre: &Path, home: &Path) -> Result<(Child, String)> {
    let mut command = Command::new(nacre);
    command.args(["up", "--listen", "127.0.0.1:0", "--data"]).arg(home);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
    let mut child = command.spawn().with_context(|| format!("cannot run {}", nacre.display()))?;
    let link = link_of(&mut child).await?;
    Ok((child, link))
}

pub(crate) async fn end(mut child: Child, nacre: &Path, home: &Path) -> Result<()> {
    let stop = Command::new(nacre).arg("down").arg("--data").arg(home).status().await?;
    ensure!(stop.success(), "nacre down ended with {stop}");
    child.wait().await?;
    Ok(())
}

async fn link_of(child: &mut Child) -> Result<String> {
    let output = child.stdout.take().context("nacre up has no output")?;
    let mut lines = BufReader::new(output).lines();
    while let Some(line) = lines.next_line().await? {
        if let Some(start) = line.find("http://") {
            let link = line[start..].split_whitespace().next().unwrap_or_default().to_owned();
            tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
            return Ok(link);
        }
    }
    bail!("nacre up ended without a sign-in link")
}

/// Follows the one-time link, as a browser would; it answers with the session and a redirect.
async fn sign_in(link: &str) -> Result<()> {
    let rest = link.strip_prefix("http://").context("the link is not http")?;
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let mut stream =
        TcpStream::connect(host).await.with_context(|| format!("cannot reach {host}"))?;
    let request = format!("GET /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    let status = answer.split(' ').nth(1).unwrap_or_default();
    ensure!(matches!(status, "200" | "302" | "303"), "{link} answered {status}");
    Ok(())
}
