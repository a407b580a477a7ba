//! `nacre swap`: makes dev live and live dev, and takes that back.

use std::process::ExitCode;

use clap::Args;
use http_body_util::BodyExt;
use nacre_wire::client::{Client, empty, full};
use nacre_wire::error::ErrorBody;
use nacre_wire::roles::{SwapCheck, SwapRefused, SwapRequest, SwapVerdict, Swapped, UNSYNCED};

use super::Context;
use crate::failure::{Failure, Result};
use crate::output;

#[derive(Debug, Args)]
#[command(after_help = "\
Before the swap dev must answer, its app must be ready, its WebSocket must open, and its page must
load with every script, style and wasm that it names. What fails is shown, and nothing moves.

After it the gateway watches for two minutes, and swaps back by itself when more requests fail than
before, the page stops loading or WebSockets keep reconnecting.")]
pub(crate) struct Swap {
    /// Only make the checks, and show each as it is made
    #[arg(long, conflicts_with = "rollback")]
    check: bool,
    /// Go back to what was live before the last swap
    #[arg(long)]
    rollback: bool,
    /// With --rollback: even if that does not answer
    #[arg(long, requires = "rollback")]
    force: bool,
}

pub(crate) async fn run(command: Swap, context: &Context) -> Result<ExitCode> {
    let gateway = context.gateway().await?;
    if command.check {
        return check(&gateway.client, context.json).await;
    }
    let wanted = SwapRequest { rollback: command.rollback, force: command.force };
    let body = serde_json::to_vec(&wanted).map_err(|error| Failure::new(error.to_string()))?;
    let client = &gateway.client;
    let path = "/admin/sandboxes/swap";
    let request = client.request(http::Method::POST, path, full(body))?;
    let answer = client.send_raw(request).await?;
    let status = answer.status();
    let body = answer.into_body().collect().await;
    let body = body.map_err(|error| Failure::new(format!("the answer broke off: {error}")))?;
    let body = body.to_bytes();
    if status == http::StatusCode::CONFLICT {
        return report_refusal(&body, context);
    }
    if !status.is_success() {
        return Err(read::<ErrorBody>(&body)?.error.into());
    }
    let swapped: Swapped = read(&body)?;
    if context.json {
        output::print_json(&swapped)?;
    } else {
        output::print(&told(&swapped, command.rollback))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Shows them as they come.
async fn check(client: &Client, json: bool) -> Result<ExitCode> {
    const LONGEST: usize = 1 << 20;
    let path = "/admin/sandboxes/swap/checks";
    let answer = client.send(client.request(http::Method::GET, path, empty())?).await?;
    let (mut body, mut rest) = (answer.into_body(), Vec::new());
    let broke = |why: &str| Failure::new(format!("the checks broke off: {why}"));
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| broke(&error.to_string()))?;
        rest.extend(frame.into_data().unwrap_or_default());
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = rest.drain(..=end).collect();
            if json {
                output::print(&String::from_utf8_lossy(&line))?;
            }
            match serde_json::from_slice::<SwapVerdict>(&line) {
                Ok(found) => return concluded(found, json),
                Err(_) if json => {}
                Err(_) => output::print(&checks(&[read(&line)?]))?,
            }
        }
        if rest.len() > LONGEST {
            return Err(broke("a line has no end"));
        }
    }
    Err(broke("nobody said what they came to"))
}

fn concluded(found: SwapVerdict, json: bool) -> Result<ExitCode> {
    if !found.ok {
        return Err(Failure::new(found.verdict));
    }
    if !json {
        output::print(&format!("{}; nothing has moved.\n", found.verdict))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn report_refusal(body: &[u8], context: &Context) -> Result<ExitCode> {
    let refused: SwapRefused = read(body)?;
    if context.json {
        output::print_json(&refused)?;
    } else {
        output::print(&checks(&refused.checks))?;
    }
    Err(refused.error.into())
}

fn read<T: serde::de::DeserializeOwned>(body: &[u8]) -> Result<T> {
    serde_json::from_slice(body)
        .map_err(|error| Failure::new(format!("the gateway's answer makes no sense: {error}")))
}

fn told(swapped: &Swapped, rollback: bool) -> String {
    let mut text = checks(&swapped.checks);
    let what = if rollback { "What was live before is live again" } else { "dev is live" };
    text.push_str(&format!(
        "{what}, in {:.1} ms; what was live is dev.\n",
        swapped.moved_in_us as f64 / 1000.0
    ));
    if swapped.durable_in_us.is_none() {
        text.push_str(&format!("But {UNSYNCED}.\n"));
    }
    if swapped.watched_until.is_some() {
        text.push_str("It is watched for a while; nacre swap --rollback takes it back.\n");
    }
    text
}

fn checks(checks: &[SwapCheck]) -> String {
    let mut text = String::new();
    for check in checks {
        let mark = if check.ok { "ok    " } else { "FAILED" };
        text.push_str(&format!("{mark}  {:<9}  {}\n", check.name, output::one_line(&check.detail)));
        for evidence in &check.evidence {
            let status = evidence.status.map_or_else(String::new, |status| format!(" {status}"));
            let kind = evidence.content_type.as_deref().unwrap_or("");
            let line = format!("{}: {}{status} {kind}", evidence.url, evidence.problem);
            text.push_str(&format!("          {}\n", output::one_line(line.trim_end())));
            if let Some(excerpt) = &evidence.excerpt {
                text.push_str(&format!("          > {}\n", output::one_line(excerpt.trim())));
            }
        }
    }
    text
}
